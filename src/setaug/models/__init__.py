"""Models that write sets; the only part that needs torch and transformers."""

from setaug.errors import MissingExtraError

try:
    import accelerate as _accelerate  # noqa: F401
    import torch as _torch  # noqa: F401
    import transformers as _transformers  # noqa: F401
except ImportError:
    raise MissingExtraError("Training and running models", "train") from None

from setaug.models.base import SetModel
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
    "SetModel",
    "SetSearch",
    "TrainingSettings",
    "load_model",
    "make_model",
]
