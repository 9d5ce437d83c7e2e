"""Models that predict sets.

The names below are imported when they are first used: looking into a model folder needs no torch.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from setaug.errors import MissingExtraError

if TYPE_CHECKING:
    from setaug.models.methods import load_model, make_model
    from setaug.models.neural.callbacks import SetMetricsCallback, set_metrics
    from setaug.models.neural.classifier import SetClassifier
    from setaug.models.neural.constraint import SetConstraint
    from setaug.models.neural.generator import SetGenerator
    from setaug.models.neural.model import SetModel
    from setaug.models.neural.search import SetSearch
    from setaug.models.tfidf import TfidfClassifier
    from setaug.settings import METHODS, SEEDS, TrainingSettings

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
_LIGHT = ("setaug.settings", "setaug.models.methods", "setaug.models.tfidf")
"""Modules without torch."""

__all__ = [
    "METHODS",
    "SEEDS",
    "SetClassifier",
    "SetConstraint",
    "SetGenerator",
    "SetMetricsCallback",
    "SetModel",
    "SetSearch",
    "TfidfClassifier",
    "TrainingSettings",
    "load_model",
    "make_model",
    "require_torch",
    "set_metrics",
]


def require_torch() -> None:
    """Raise a `MissingExtraError` unless torch and transformers are installed."""
    if not all(find_spec(name) for name in ("accelerate", "torch", "transformers")):
        raise MissingExtraError("Training and running models", "train")


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'setaug.models' has no attribute {name!r}")
    if _HOMES[name] not in _LIGHT:
        require_torch()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
