"""Models that predict sets.

The names below are imported when they are first used: looking into a model folder needs no torch.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from setaug.errors import MissingExtraError

if TYPE_CHECKING:
    from setaug.models.methods import load_model as load_model
    from setaug.models.methods import make_model as make_model
    from setaug.models.neural.callbacks import SetMetricsCallback as SetMetricsCallback
    from setaug.models.neural.callbacks import set_metrics as set_metrics
    from setaug.models.neural.classifier import SetClassifier as SetClassifier
    from setaug.models.neural.constraint import SetConstraint as SetConstraint
    from setaug.models.neural.generator import SetGenerator as SetGenerator
    from setaug.models.neural.model import SetModel as SetModel
    from setaug.models.neural.search import SetSearch as SetSearch
    from setaug.models.tfidf import TfidfClassifier as TfidfClassifier
    from setaug.settings import METHODS as METHODS
    from setaug.settings import SEEDS as SEEDS
    from setaug.settings import TrainingSettings as TrainingSettings

_HOMES = {
    "METHODS": "setaug.settings",
    "SEEDS": "setaug.settings",
    "SetClassifier": "setaug.models.neural.classifier",
    "SetConstraint": "setaug.models.neural.constraint",
    "SetGenerator": "setaug.models.neural.generator",
    "SetMetricsCallback": "setaug.models.neural.callbacks",
    "SetModel": "setaug.models.neural.model",
    "SetSearch": "setaug.models.neural.search",
    "TfidfClassifier": "setaug.models.tfidf",
    "TrainingSettings": "setaug.settings",
    "load_model": "setaug.models.methods",
    "make_model": "setaug.models.methods",
    "set_metrics": "setaug.models.neural.callbacks",
}

__all__ = sorted([*_HOMES, "require_torch"])


def require_torch() -> None:
    """Raise a `MissingExtraError` unless torch and transformers are installed."""
    if not all(find_spec(name) for name in ("accelerate", "torch", "transformers")):
        raise MissingExtraError("Training and running models", "train")


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'setaug.models' has no attribute {name!r}")
    if _HOMES[name].startswith("setaug.models.neural."):
        require_torch()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
