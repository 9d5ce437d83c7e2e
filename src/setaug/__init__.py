"""Turn any seq2seq model or LLM into a model that writes sets.

The names below are imported when they are first used, so that ``import setaug`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setaug.analysis.diagnosis import Diagnosis, diagnose
    from setaug.analysis.inspection import Inspection, inspect_examples, inspect_file
    from setaug.analysis.likelihood import SetLikelihood
    from setaug.augmenter import SetAugmenter
    from setaug.codec import DecodedSet, SetCodec
    from setaug.engines.augment_files import augment_files
    from setaug.engines.local import LocalEngine
    from setaug.engines.ray_engine import RayEngine
    from setaug.errors import (
        DataError,
        EndpointError,
        EngineError,
        FileError,
        MissingExtraError,
        ModelError,
        SetAugError,
    )
    from setaug.examples import Example, Pair, Skipped, as_examples, read_examples
    from setaug.metrics.report import Evaluation, evaluate
    from setaug.metrics.sets import SetScores, score_sets
    from setaug.metrics.significance import Comparison, compare_sets
    from setaug.models.methods import load_model, make_model
    from setaug.models.neural.classifier import SetClassifier
    from setaug.models.neural.constraint import SetConstraint
    from setaug.models.neural.generator import SetGenerator
    from setaug.models.neural.search import SetSearch
    from setaug.models.tfidf import TfidfClassifier
    from setaug.orders.edges import Thresholds
    from setaug.orders.graph import Edge, OrderGraph
    from setaug.orders.statistics import LabelStatistics
    from setaug.predictions import Prediction, read_predictions
    from setaug.prompting.model import PromptedSetModel
    from setaug.settings import Decoding, Endpoint, TrainingSettings

__version__ = "0.1.0"

_HOMES = {
    "Comparison": "setaug.metrics.significance",
    "DataError": "setaug.errors",
    "DecodedSet": "setaug.codec",
    "Decoding": "setaug.settings",
    "Diagnosis": "setaug.analysis.diagnosis",
    "Edge": "setaug.orders.graph",
    "Endpoint": "setaug.prompting.endpoint",
    "EndpointError": "setaug.errors",
    "EngineError": "setaug.errors",
    "Evaluation": "setaug.metrics.report",
    "Example": "setaug.examples",
    "FileError": "setaug.errors",
    "Inspection": "setaug.analysis.inspection",
    "LabelStatistics": "setaug.orders.statistics",
    "LocalEngine": "setaug.engines.local",
    "MissingExtraError": "setaug.errors",
    "ModelError": "setaug.errors",
    "OrderGraph": "setaug.orders.graph",
    "Pair": "setaug.examples",
    "Prediction": "setaug.predictions",
    "PromptedSetModel": "setaug.prompting.model",
    "RayEngine": "setaug.engines.ray_engine",
    "SetAugError": "setaug.errors",
    "SetAugmenter": "setaug.augmenter",
    "SetClassifier": "setaug.models",
    "SetCodec": "setaug.codec",
    "SetConstraint": "setaug.models",
    "SetGenerator": "setaug.models",
    "SetLikelihood": "setaug.analysis.likelihood",
    "SetScores": "setaug.metrics.sets",
    "SetSearch": "setaug.models",
    "Skipped": "setaug.examples",
    "TfidfClassifier": "setaug.models",
    "Thresholds": "setaug.orders.edges",
    "TrainingSettings": "setaug.settings",
    "as_examples": "setaug.examples",
    "augment_files": "setaug.engines.augment_files",
    "compare_sets": "setaug.metrics.significance",
    "diagnose": "setaug.analysis.diagnosis",
    "evaluate": "setaug.metrics.report",
    "inspect_examples": "setaug.analysis.inspection",
    "inspect_file": "setaug.analysis.inspection",
    "load_model": "setaug.models",
    "make_model": "setaug.models",
    "read_examples": "setaug.examples",
    "read_predictions": "setaug.predictions",
    "score_sets": "setaug.metrics.sets",
}

__all__ = [
    "Comparison",
    "DataError",
    "DecodedSet",
    "Decoding",
    "Diagnosis",
    "Edge",
    "Endpoint",
    "EndpointError",
    "EngineError",
    "Evaluation",
    "Example",
    "FileError",
    "Inspection",
    "LabelStatistics",
    "LocalEngine",
    "MissingExtraError",
    "ModelError",
    "OrderGraph",
    "Pair",
    "Prediction",
    "PromptedSetModel",
    "RayEngine",
    "SetAugError",
    "SetAugmenter",
    "SetClassifier",
    "SetCodec",
    "SetConstraint",
    "SetGenerator",
    "SetLikelihood",
    "SetScores",
    "SetSearch",
    "Skipped",
    "TfidfClassifier",
    "Thresholds",
    "TrainingSettings",
    "as_examples",
    "augment_files",
    "compare_sets",
    "diagnose",
    "evaluate",
    "inspect_examples",
    "inspect_file",
    "load_model",
    "make_model",
    "read_examples",
    "read_predictions",
    "score_sets",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'setaug' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
