"""The data sets that a page looks at: files that were dropped in, held for a while, and never run."""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from sys import getsizeof
from threading import Lock
from types import MappingProxyType
from typing import Any, BinaryIO

import orjson

from setaug.analysis.inspection import Inspection, inspect_file
from setaug.errors import DataError
from setaug.examples import Columns, Example, read_stream
from setaug.orders.edges import Thresholds
from setaug.orders.statistics import LabelStatistics
from setaug.sample import sample_examples
from setaug.storage import open_input
from setaug.web.limits import Limits, Refusal

KINDS = ("jsonl", "csv", "tsv")
"""What can be dropped in. Nothing compressed: a small file could hold far too much."""
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})
_EXAMPLE, _LABEL, _PAIR = 160, 200, 24
"""Bytes that an example, a different label and a pair of labels take in memory, apart from their characters."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One file, and what was found in it."""

    key: str
    name: str
    path: Path
    kind: str
    columns: Columns
    n_bytes: int
    n_memory: int
    examples: list[Example] = field(repr=False)
    statistics: LabelStatistics = field(repr=False)
    frequent_labels: list[tuple[str, int]] = field(repr=False)
    _inspections: "OrderedDict[tuple[float, float, bool], Inspection]" = field(default_factory=OrderedDict, repr=False)
    _locks: tuple[Lock, Lock] = field(default_factory=lambda: (Lock(), Lock()), repr=False)

    def inspect(
        self, thresholds: Thresholds, *, with_diagnosis: bool, progress: Callable[..., None] | None = None
    ) -> Inspection:
        """Return what ``setaug inspect`` finds; the last few answers are kept."""
        key = (float(thresholds.min_pmi), float(thresholds.min_ratio), with_diagnosis)
        with self._locks[with_diagnosis]:  # who asks for the same at the same time waits for the one answer
            if (found := self._inspections.get(key)) is None:
                found = self._inspections[key] = inspect_file(
                    self.path,
                    thresholds=thresholds,
                    columns=self.columns,
                    kind=self.kind,
                    with_diagnosis=with_diagnosis,
                    progress=progress,
                )
            while len(self._inspections) > 8:
                self._inspections.popitem(last=False)
        return found


class Datasets:
    """Data sets under keys that cannot be guessed; the least recently used one is removed when there are too many.

    The one that the server starts with and the built-in sample stay.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self._limits = folder, limits
        self._held: OrderedDict[str, Dataset] = OrderedDict()
        self._kept: dict[str, Dataset] = {}
        self._lock, self._sample_lock = Lock(), Lock()
        self._sample: Dataset | None = None

    def __len__(self) -> int:
        return len(self._held) + len(self._kept)

    def get(self, key: str) -> Dataset:
        """Look one up."""
        with self._lock:
            if key in self._kept:
                return self._kept[key]
            if key not in self._held:
                raise Refusal(404, "there is no such data set; it may have been dropped to make room for others.")
            self._held.move_to_end(key)
            return self._held[key]

    def new_path(self) -> Path:
        """Return a path for a file that is about to be written; what a client calls it is never part of it."""
        return self.folder / secrets.token_urlsafe(12)

    def add(self, path: Path, *, name: str, kind: str, columns: Columns) -> Dataset:
        """Take over an uploaded file; raise a `DataError` or a `Refusal`, and remove it, if it cannot be used."""
        dataset = self._read(path, name, kind, columns, self._limits)
        with self._lock:
            self._held[dataset.key] = dataset
            while len(self._held) > 1 and self._is_too_much():
                _, dropped = self._held.popitem(last=False)
                dropped.path.unlink(missing_ok=True)
        return dataset

    def _is_too_much(self) -> bool:
        held, limits = self._held.values(), self._limits
        return (
            len(held) > limits.datasets
            or sum(one.n_bytes for one in held) > limits.held_bytes
            or sum(one.n_memory for one in held) > limits.held_memory
        )

    def _read(self, path: Path, name: str, kind: str, columns: Columns, limits: Limits | None) -> Dataset:
        try:
            with path.open("rb") as stream:
                examples, n_memory = read_bounded(stream, name, kind, columns, limits)
            statistics = LabelStatistics().update(example.labels for example in examples)
            frequent = statistics.most_common()
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        n_bytes = path.stat().st_size
        return Dataset(path.name, name, path, kind, columns, n_bytes, n_memory, examples, statistics, frequent)

    def add_sample(self) -> Dataset:
        """Take the built-in sample."""
        with self._sample_lock:
            if self._sample is None:
                self._sample = self._keep(sample_file(), name="sample.jsonl", kind="jsonl", columns=Columns())
        return self._sample

    def open(self, path: str, *, kind: str, columns: Columns) -> Dataset:
        """Take a file of the person who starts the server, of any size."""
        with open_input(path) as stream:
            content = stream.read()
        return self._keep(content, name=Path(path).name, kind=kind, columns=columns)

    def _keep(self, content: bytes, *, name: str, kind: str, columns: Columns) -> Dataset:
        path = self.new_path()
        path.write_bytes(content)
        dataset = self._read(path, name, kind, columns, None)
        with self._lock:
            self._kept[dataset.key] = dataset
        return dataset


def read_bounded(
    stream: BinaryIO, name: str, kind: str, columns: Columns, limits: Limits | None
) -> tuple[list[Example], int]:
    """Return examples, and about how much memory they and their counts take; raise a `Refusal` if it is too much.

    Each label is in memory once, and what else a row holds is not kept.
    """
    found: list[Example] = []
    known: dict[str, str] = {}
    n_bytes = n_pairs = 0
    for _, example in read_stream(stream, name, kind, columns, None):
        n_bytes += getsizeof(example.text) + sum(_LABEL + getsizeof(one) for one in example.labels if one not in known)
        n_bytes += _EXAMPLE + 8 * len(example.labels)
        n_pairs += len(example.labels) * (len(example.labels) - 1) // 2
        if limits is not None:
            _check(len(example.labels), limits.labels_per_set, f"labels in set {len(found) + 1}", name)
            _check(n_pairs, limits.label_pairs, "pairs of labels over all sets", name)
            _check(n_bytes + _PAIR * n_pairs, limits.held_memory // 2, "bytes of memory", name)
        labels = tuple(known.setdefault(label, label) for label in example.labels)
        found.append(Example(example.text, labels, fields=_NO_FIELDS))
    if not found:
        raise DataError("there is no example in it.", source=name)
    return found, n_bytes + _PAIR * n_pairs


def _check(n: int, most: int, what: str, name: str) -> None:
    if n > most:
        raise Refusal(413, f"{name}: too many {what}; at most {most:,} are taken. Use the command line for more.")


@lru_cache
def sample_file() -> bytes:
    """Return the built-in sample as ``setaug demo`` writes it."""
    return b"".join(orjson.dumps(_row(example), option=orjson.OPT_APPEND_NEWLINE) for example in sample_examples())


def _row(example: Example) -> dict[str, Any]:
    return {"id": example.id, "text": example.text, "labels": example.labels}
