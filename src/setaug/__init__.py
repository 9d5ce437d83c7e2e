"""Turn any seq2seq model or LLM into a model that writes sets.

The names below are imported when they are first used, so that ``import setaug`` costs nothing. Everything else is
imported from its module.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers; `_HOMES` has the same names
    from setaug.analysis.diagnosis import diagnose as diagnose
    from setaug.analysis.inspection import inspect_examples as inspect_examples
    from setaug.augmenter import SetAugmenter as SetAugmenter
    from setaug.codec import SetCodec as SetCodec
    from setaug.engines.augment_files import augment_files as augment_files
    from setaug.errors import SetAugError as SetAugError
    from setaug.examples import Columns as Columns
    from setaug.examples import Example as Example
    from setaug.examples import read_examples as read_examples
    from setaug.examples import write_examples as write_examples
    from setaug.metrics.report import evaluate as evaluate
    from setaug.metrics.significance import compare_sets as compare_sets
    from setaug.models import SetClassifier as SetClassifier
    from setaug.models import SetConstraint as SetConstraint
    from setaug.models import SetGenerator as SetGenerator
    from setaug.models import SetSearch as SetSearch
    from setaug.models import TfidfClassifier as TfidfClassifier
    from setaug.models import load_model as load_model
    from setaug.predictions import Prediction as Prediction
    from setaug.predictions import read_predictions as read_predictions
    from setaug.predictions import write_predictions as write_predictions
    from setaug.prompting import PromptedSetModel as PromptedSetModel
    from setaug.settings import Decoding as Decoding
    from setaug.settings import TrainingSettings as TrainingSettings

__version__ = "0.1.0"

_HOMES = {
    "Columns": "setaug.examples",
    "Decoding": "setaug.settings",
    "Example": "setaug.examples",
    "Prediction": "setaug.predictions",
    "PromptedSetModel": "setaug.prompting",
    "SetAugError": "setaug.errors",
    "SetAugmenter": "setaug.augmenter",
    "SetClassifier": "setaug.models",
    "SetCodec": "setaug.codec",
    "SetConstraint": "setaug.models",
    "SetGenerator": "setaug.models",
    "SetSearch": "setaug.models",
    "TfidfClassifier": "setaug.models",
    "TrainingSettings": "setaug.settings",
    "augment_files": "setaug.engines.augment_files",
    "compare_sets": "setaug.metrics.significance",
    "diagnose": "setaug.analysis.diagnosis",
    "evaluate": "setaug.metrics.report",
    "inspect_examples": "setaug.analysis.inspection",
    "load_model": "setaug.models",
    "read_examples": "setaug.examples",
    "read_predictions": "setaug.predictions",
    "write_examples": "setaug.examples",
    "write_predictions": "setaug.predictions",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'setaug' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
