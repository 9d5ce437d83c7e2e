"""Turn any seq2seq model or LLM into a model that writes sets.

The names below are imported when they are first used, so that ``import setaug`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setaug.augmenter import SetAugmenter
    from setaug.codec import DecodedSet, SetCodec
    from setaug.diagnosis import Diagnosis, diagnose
    from setaug.errors import DataError, FileError, MissingExtraError, SetAugError
    from setaug.examples import Example, Pair, Skipped, as_examples, read_examples
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
    "LabelStatistics": "setaug.orders.statistics",
    "MissingExtraError": "setaug.errors",
    "OrderGraph": "setaug.orders.graph",
    "Pair": "setaug.examples",
    "SetAugError": "setaug.errors",
    "SetAugmenter": "setaug.augmenter",
    "SetCodec": "setaug.codec",
    "Skipped": "setaug.examples",
    "as_examples": "setaug.examples",
    "diagnose": "setaug.diagnosis",
    "read_examples": "setaug.examples",
}

__all__ = [
    "DataError",
    "DecodedSet",
    "Diagnosis",
    "Edge",
    "Example",
    "FileError",
    "LabelStatistics",
    "MissingExtraError",
    "OrderGraph",
    "Pair",
    "SetAugError",
    "SetAugmenter",
    "SetCodec",
    "Skipped",
    "as_examples",
    "diagnose",
    "read_examples",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'setaug' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
