"""Counts of label pairs, even if they do not fit into memory.

The excess is spilled to a temporary file as runs of sorted, distinct keys with their counts. The runs are merged
when the counts are read.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Self, TypeAlias

import numpy as np

from setaug.orders.arrays import Ints, Keys

_MAX_PENDING = 1 << 22
"""Number of unsorted keys to collect before they are aggregated (32 MB)."""
MAX_IN_MEMORY = 1 << 23
"""Number of distinct keys in memory before they become a run (128 MB, twice that during aggregation)."""
_MERGED = 1 << 21
"""Approximate number of keys of all runs in memory during a merge."""
_PART = 1 << 18
"""Maximum size of a part of `SpillingPairCounts.parts`: its consumer may need about ten numbers per key."""
_Table: TypeAlias = tuple[Keys, Ints]


def _empty() -> _Table:
    return np.zeros(0, np.uint64), np.zeros(0, np.int64)


class PairCounts:
    """Counts of label pairs (packed keys) in memory, initially empty or from a table sorted by key."""

    def __init__(self, keys: Keys | None = None, counts: Ints | None = None) -> None:
        self._table = _empty() if keys is None or counts is None else (keys, counts)
        self._pending: list[Keys] = []
        self._n_pending = 0

    def add(self, keys: Keys) -> None:
        """Count keys, which may repeat."""
        self._pending.append(keys)
        self._n_pending += len(keys)
        if self._n_pending > max(_MAX_PENDING, len(self._table[0]) // 2):
            self.sorted()

    def add_counts(self, keys: Keys, counts: Ints) -> None:
        """Add a table of counts, sorted by key."""
        self._table = add_counts(*self.sorted(), keys, counts)

    def sorted(self) -> _Table:
        """Return the distinct keys, sorted, and their counts."""
        if self._pending:
            added, self._pending, self._n_pending = np.concatenate(self._pending), [], 0
            self._table = add_counts(*self._table, *np.unique(added, return_counts=True))
        return self._table


class SpillingPairCounts(PairCounts):
    """Counts of more label pairs than fit into memory; a context manager that removes its temporary file."""

    def __init__(self) -> None:
        super().__init__()
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._runs: list[_Run] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def sorted(self) -> _Table:
        """Return the counts that are in memory."""
        if len(super().sorted()[0]) > MAX_IN_MEMORY:
            self._runs.append(_Run.write(self._file, *self._table))
            self._table = _empty()
        return self._table

    def parts(self) -> Iterator[_Table]:
        """Yield all counts in parts: keys are distinct, and sorted within and across parts."""
        in_memory = self.sorted()
        if not self._runs:
            yield from _cut(*in_memory)
            return
        runs = [*self._runs, _Run.write(self._file, *in_memory)]
        size = max(1, _MERGED // len(runs))
        while heads := [head for run in runs if len((head := run.head(size))[0])]:
            # Up to the smallest last key, all keys are in the heads.
            last = min(keys[-1] for keys, _ in heads)
            merged = _empty()
            for run in runs:
                merged = add_counts(*merged, *run.take(last))
            yield from _cut(*merged)


@dataclass(slots=True)
class _Run:
    """A part of a file: sorted keys, then their counts."""

    file: IO[bytes]
    start: int
    n_keys: int
    n_read: int = 0
    ahead: _Table = field(default_factory=_empty)

    @classmethod
    def write(cls, file: IO[bytes], keys: Keys, counts: Ints) -> "_Run":
        start = file.seek(0, 2)
        file.write(keys.tobytes())
        file.write(counts.tobytes())
        return cls(file, start, len(keys))

    def head(self, size: int) -> _Table:
        """Return the next `size` keys, or the rest."""
        missing = min(size - len(self.ahead[0]), self.n_keys - self.n_read)
        if missing > 0:
            self.file.seek(self.start + 8 * self.n_read)
            keys = np.frombuffer(self.file.read(8 * missing), np.uint64)
            self.file.seek(self.start + 8 * (self.n_keys + self.n_read))
            counts = np.frombuffer(self.file.read(8 * missing), np.int64)
            self.ahead = np.concatenate([self.ahead[0], keys]), np.concatenate([self.ahead[1], counts])
            self.n_read += missing
        return self.ahead

    def take(self, last: np.uint64) -> _Table:
        """Return the head up to the key `last`, and drop it from the run."""
        keys, counts = self.ahead
        end = int(np.searchsorted(keys, last, "right"))
        self.ahead = keys[end:], counts[end:]
        return keys[:end], counts[:end]


def _cut(keys: Keys, counts: Ints) -> Iterator[_Table]:
    """Split a table into parts; an empty one into one empty part."""
    for start in range(0, max(len(keys), 1), _PART):
        yield keys[start : start + _PART], counts[start : start + _PART]


def add_counts(keys: Keys, counts: Ints, more_keys: Keys, more_counts: Ints) -> _Table:
    """Return the sum of two tables of counts, each sorted by key."""
    if len(keys) == 0 or len(more_keys) == 0:
        return (more_keys, more_counts) if len(keys) == 0 else (keys, counts)
    from setaug.orders.kernels import merge_counts

    return merge_counts(keys, counts, more_keys, more_counts)  # type: ignore[no-any-return]
