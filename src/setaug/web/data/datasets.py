"""The datasets of the server: uploaded files, stored for a while, and never executed."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

from setaug.examples import Columns
from setaug.sample import sample_examples
from setaug.storage import open_input
from setaug.terminal import json_line
from setaug.web.data import questions
from setaug.web.data.processes import Worker
from setaug.web.data.questions import Source
from setaug.web.limits import Limits, Refusal

KINDS = ("jsonl", "csv", "tsv")
"""Formats of uploads. No compressed ones: a small file could expand to a huge one."""
_STANDS_BACK = 10
"""The niceness of processes with long-running work."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """An uploaded file, and the size class that selects its process."""

    source: Source
    n_bytes: int
    n_memory: int
    n_examples: int
    joined: tuple[str, str] | None
    """A label that looks like several labels in one, and their separator, if most labels do."""
    is_large: bool

    @property
    def key(self) -> str:
        """The key, which is also the name of the file."""
        return self.source.path.name


class Workers:
    """Three processes: for small datasets, for large ones, and for slow queries. None waits for another."""

    def __init__(self) -> None:
        self.small = Worker(tidy=questions.forget_removed)
        self.large = Worker(_STANDS_BACK, tidy=questions.forget_removed)
        self.slow = Worker(_STANDS_BACK, tidy=questions.forget_removed)

    def of(self, dataset: Dataset) -> Worker:
        """Return the process that has a dataset in memory."""
        return self.large if dataset.is_large else self.small

    def memory(self) -> int:
        """Return the total memory in bytes."""
        return sum(one.memory() for one in (self.small, self.large, self.slow))

    def end(self) -> None:
        """End the processes."""
        for one in (self.small, self.large, self.slow):
            one.end()


class Datasets:
    """Datasets by unguessable keys; the least recently used one is evicted if there are too many.

    The initial dataset of the server and the built-in sample are never evicted.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self._limits = folder, limits
        self.workers = Workers()
        self._held: OrderedDict[str, Dataset] = OrderedDict()
        self._kept: dict[str, Dataset] = {}
        self._lock, self._sample_lock = Lock(), Lock()
        self._sample: Dataset | None = None

    def __len__(self) -> int:
        return len(self._held) + len(self._kept)

    def close(self) -> None:
        """End the processes."""
        self.workers.end()

    def get(self, key: str) -> Dataset:
        """Return a dataset by its key."""
        with self._lock:
            if key in self._kept:
                return self._kept[key]
            if key not in self._held:
                raise Refusal(404, "no such dataset; it may have been evicted to make room for others.")
            self._held.move_to_end(key)
            return self._held[key]

    def new_path(self) -> Path:
        """Return a path for a new file; it never contains the client's file name."""
        return self.folder / secrets.token_urlsafe(12)

    def hold(self, dataset: Dataset) -> None:
        """Store a dataset, and evict others if a limit is exceeded. The processes drop evicted datasets."""
        with self._lock:
            self._held[dataset.key] = dataset
            while len(self._held) > 1 and self._is_too_much():
                _, dropped = self._held.popitem(last=False)
                dropped.source.path.unlink(missing_ok=True)

    def _is_too_much(self) -> bool:
        held, limits = self._held.values(), self._limits
        return (
            len(held) > limits.datasets
            or sum(one.n_bytes for one in held) > limits.held_bytes
            or sum(one.n_memory for one in held) > limits.held_memory
        )

    def sample(self) -> Dataset:
        """Return the built-in sample."""
        with self._sample_lock:
            if self._sample is None:
                self._sample = self._keep(sample_file(), name="sample.jsonl", kind="jsonl", columns=Columns())
        return self._sample

    def open(self, path: str, *, kind: str, columns: Columns) -> Dataset:
        """Load the file given with ``--data``, of any size."""
        with open_input(path) as stream:
            content = stream.read()
        return self._keep(content, name=Path(path).name, kind=kind, columns=columns)

    def _keep(self, content: bytes, *, name: str, kind: str, columns: Columns) -> Dataset:
        source = Source(self.new_path(), name, kind, columns)
        source.path.write_bytes(content)
        is_large = len(content) > self._limits.small_bytes
        worker = self.workers.large if is_large else self.workers.small
        found = worker.call(questions.read, source, None)
        dataset = Dataset(source, len(content), **found, is_large=is_large)
        with self._lock:
            self._kept[dataset.key] = dataset
        return dataset


@lru_cache
def sample_file() -> bytes:
    """Return the built-in sample as ``setaug demo`` writes it."""
    return b"".join(json_line(example.to_dict()) for example in sample_examples())
