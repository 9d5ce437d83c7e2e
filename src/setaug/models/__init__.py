"""Models that write sets; the only part that needs torch and transformers."""

from importlib.util import find_spec

from setaug.errors import MissingExtraError

if not all(find_spec(name) for name in ("accelerate", "torch", "transformers")):
    raise MissingExtraError("Training and running models", "train")

from setaug.models.base import SetModel
from setaug.models.callbacks import SetMetricsCallback, set_metrics
from setaug.models.classifier import SetClassifier
from setaug.models.constraint import SetConstraint
from setaug.models.generator import SetGenerator
from setaug.models.methods import METHODS, load_model, make_model
from setaug.models.search import SetSearch
from setaug.models.settings import SEEDS, TrainingSettings

__all__ = [
    "METHODS",
    "SEEDS",
    "SetClassifier",
    "SetConstraint",
    "SetGenerator",
    "SetMetricsCallback",
    "SetModel",
    "SetSearch",
    "TrainingSettings",
    "load_model",
    "make_model",
    "set_metrics",
]
