"""Turn any seq2seq model or LLM into a model that writes sets.

The names below are imported when they are first used, so that ``import setaug`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setaug.augmenter import SetAugmenter
    from setaug.codec import DecodedSet, SetCodec
    from setaug.diagnosis import Diagnosis, diagnose
    from setaug.engines.local import augment_file
    from setaug.errors import DataError, FileError, MissingExtraError, SetAugError
    from setaug.examples import Example, Pair, Skipped, as_examples, read_examples
    from setaug.inspection import Inspection, inspect_examples, inspect_file
    from setaug.orders.edges import Thresholds
    from setaug.orders.graph import Edge, OrderGraph
    from setaug.orders.statistics import LabelStatistics

__version__ = "0.1.0"

_HOMES = {
    "DataError": "setaug.errors",
    "DecodedSet": "setaug.codec",
    "Diagnosis": "setaug.diagnosis",
    "Edge": "setaug.orders.graph",
    "Example": "setaug.examples",
    "FileError": "setaug.errors",
    "Inspection": "setaug.inspection",
    "LabelStatistics": "setaug.orders.statistics",
    "MissingExtraError": "setaug.errors",
    "OrderGraph": "setaug.orders.graph",
    "Pair": "setaug.examples",
    "SetAugError": "setaug.errors",
    "SetAugmenter": "setaug.augmenter",
    "SetCodec": "setaug.codec",
    "Skipped": "setaug.examples",
    "Thresholds": "setaug.orders.edges",
    "as_examples": "setaug.examples",
    "augment_file": "setaug.engines.local",
    "diagnose": "setaug.diagnosis",
    "inspect_examples": "setaug.inspection",
    "inspect_file": "setaug.inspection",
    "read_examples": "setaug.examples",
}

__all__ = [
    "DataError",
    "DecodedSet",
    "Diagnosis",
    "Edge",
    "Example",
    "FileError",
    "Inspection",
    "LabelStatistics",
    "MissingExtraError",
    "OrderGraph",
    "Pair",
    "SetAugError",
    "SetAugmenter",
    "SetCodec",
    "Skipped",
    "Thresholds",
    "as_examples",
    "augment_file",
    "diagnose",
    "inspect_examples",
    "inspect_file",
    "read_examples",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'setaug' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
