"""The data sets that a page looks at: files that were dropped in, held for a while, and never run."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import orjson

from setaug.errors import DataError
from setaug.examples import Columns, Example, read_stream
from setaug.files import open_input
from setaug.inspection import Inspection, frequent_labels, inspect_file
from setaug.orders.edges import Thresholds
from setaug.orders.statistics import LabelStatistics
from setaug.sample import sample_examples
from setaug.web.limits import Limits, Refusal

KINDS = ("jsonl", "csv", "tsv")
"""What can be dropped in. Nothing compressed: a small file could hold far too much."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Hold one file, and what was found in it."""

    key: str
    name: str
    path: Path
    kind: str
    columns: Columns
    n_bytes: int
    examples: list[Example] = field(repr=False)
    statistics: LabelStatistics = field(repr=False)
    frequent_labels: list[tuple[str, int]] = field(repr=False)
    _inspections: "OrderedDict[tuple[float, float, bool], Inspection]" = field(default_factory=OrderedDict, repr=False)
    _locks: tuple[Lock, Lock] = field(default_factory=lambda: (Lock(), Lock()), repr=False)

    def inspect(self, thresholds: Thresholds, *, with_diagnosis: bool) -> Inspection:
        """Give what ``setaug inspect`` gives; the last few answers are remembered."""
        key = (float(thresholds.min_pmi), float(thresholds.min_ratio), with_diagnosis)
        with self._locks[with_diagnosis]:  # who asks for the same at the same time waits for the one answer
            if (found := self._inspections.get(key)) is None:
                found = self._inspections[key] = inspect_file(
                    self.path,
                    thresholds=thresholds,
                    columns=self.columns,
                    kind=self.kind,
                    with_diagnosis=with_diagnosis,
                )
            while len(self._inspections) > 8:
                self._inspections.popitem(last=False)
        return found


class Datasets:
    """Hold data sets under names that cannot be guessed; the least recently used one goes when there are too many.

    The one that the server starts with and the built-in sample stay.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self._held: OrderedDict[str, Dataset] = OrderedDict()
        self._kept: dict[str, Dataset] = {}
        self._lock, self._sample_lock = Lock(), Lock()
        self._sample: Dataset | None = None

    def get(self, key: str) -> Dataset:
        """Look one up."""
        with self._lock:
            if key in self._kept:
                return self._kept[key]
            if key not in self._held:
                raise Refusal(404, "there is no such data set; it may have been dropped to make room for others.")
            self._held.move_to_end(key)
            return self._held[key]

    def add(self, content: bytes, *, name: str, kind: str, columns: Columns) -> Dataset:
        """Take a file; raise a `DataError` if a line of it is bad."""
        dataset = self._read(content, name, kind, columns)
        with self._lock:
            self._held[dataset.key] = dataset
            while len(self._held) > self._limits.datasets or self._n_bytes() > self._limits.held_bytes:
                _, dropped = self._held.popitem(last=False)
                dropped.path.unlink(missing_ok=True)
        return dataset

    def _n_bytes(self) -> int:
        return sum(one.n_bytes for one in self._held.values())

    def _read(self, content: bytes, name: str, kind: str, columns: Columns) -> Dataset:
        key = secrets.token_urlsafe(12)  # what the file was called is never part of a path
        path = self._folder / f"{key}.{kind}"
        path.write_bytes(content)
        try:
            examples = _examples(path, name, kind, columns)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        statistics = LabelStatistics().update(example.labels for example in examples)
        return Dataset(key, name, path, kind, columns, len(content), examples, statistics, frequent_labels(statistics))

    def add_sample(self) -> Dataset:
        """Take the built-in sample."""
        with self._sample_lock:
            if self._sample is None:
                self._sample = self._keep(sample_file(), name="sample.jsonl", kind="jsonl", columns=Columns())
        return self._sample

    def open(self, path: str, *, kind: str, columns: Columns) -> Dataset:
        """Take a file of the person who starts the server."""
        with open_input(path) as stream:
            content = stream.read()
        return self._keep(content, name=Path(path).name, kind=kind, columns=columns)

    def _keep(self, content: bytes, *, name: str, kind: str, columns: Columns) -> Dataset:
        dataset = self._read(content, name, kind, columns)
        with self._lock:
            self._kept[dataset.key] = dataset
        return dataset


def _examples(path: Path, name: str, kind: str, columns: Columns) -> list[Example]:
    with path.open("rb") as stream:
        found = [example for _, example in read_stream(stream, name, kind, columns, None)]
    if not found:
        raise DataError("there is no example in it.", source=name)
    return found


@lru_cache
def sample_file() -> bytes:
    """Give the built-in sample as ``setaug demo`` writes it."""
    return b"".join(orjson.dumps(_row(example), option=orjson.OPT_APPEND_NEWLINE) for example in sample_examples())


def _row(example: Example) -> dict[str, Any]:
    return {"id": example.id, "text": example.text, "labels": example.labels}
