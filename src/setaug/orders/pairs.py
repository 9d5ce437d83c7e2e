"""Counts of keys that come in great numbers: pairs of labels. What does not fit into memory goes to a temporary file.

There it stands as sorted runs, each with different keys and how often each occurred, which are merged when the counts
are asked for.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Self

import numpy as np

from setaug.orders.edges import Ints, Keys

_MAX_PENDING = 1 << 22
"""So many keys are kept unsorted before they are added up (32 MB)."""
MAX_IN_MEMORY = 1 << 23
"""So many different keys are kept in memory before they become a run (128 MB, and twice as much while adding up)."""
_MERGED = 1 << 21
"""About so many keys of all runs together are in memory while they are merged."""
_PART = 1 << 18
"""At most so many are given at a time: whoever looks at them may need some ten numbers for each."""


class PairCounts:
    """Count keys.

    Parameters
    ----------
    keys, counts
        What is counted already; the keys are sorted.

    """

    def __init__(self, keys: Keys | None = None, counts: Ints | None = None) -> None:
        self._keys: Keys = np.zeros(0, np.uint64) if keys is None else keys
        self._counts: Ints = np.zeros(0, np.int64) if counts is None else counts
        self._pending: list[Keys] = []
        self._n_pending = 0

    def add(self, keys: Keys) -> None:
        """Note keys, each as often as it occurs."""
        self._pending.append(keys)
        self._n_pending += len(keys)
        if self._n_pending > max(_MAX_PENDING, len(self._keys) // 2):
            self.sorted()

    def add_counts(self, keys: Keys, counts: Ints) -> None:
        """Add a table of counts, sorted by key."""
        self._keys, self._counts = add_counts(*self.sorted(), keys, counts)

    def sorted(self) -> tuple[Keys, Ints]:
        """Give the different keys, sorted, and how often each occurred."""
        if self._pending:
            noted, self._pending, self._n_pending = np.concatenate(self._pending), [], 0
            self._keys, self._counts = add_counts(self._keys, self._counts, *np.unique(noted, return_counts=True))
        return self._keys, self._counts


class SpillingPairCounts(PairCounts):
    """Count more keys than fit into memory; the temporary file goes when the context ends."""

    def __init__(self) -> None:
        super().__init__()
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._runs: list[_Run] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def sorted(self) -> tuple[Keys, Ints]:
        """Give the counts that are in memory."""
        keys, counts = super().sorted()
        if len(keys) <= MAX_IN_MEMORY:
            return keys, counts
        self._runs.append(_Run.write(self._file, keys, counts))
        self._keys, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        return self._keys, self._counts

    def parts(self) -> Iterator[tuple[Keys, Ints]]:
        """Give all counts, a part at a time: the keys are sorted, also from part to part, and each occurs once."""
        in_memory = self.sorted()
        if not self._runs:
            yield from _cut(*in_memory)
            return
        runs = [*self._runs, _Run.write(self._file, *in_memory)]
        size = max(1, _MERGED // len(runs))
        while heads := [head for run in runs if len((head := run.head(size))[0])]:
            # Up to the smallest last key, nothing can be left that is not in one of the heads.
            last = min(keys[-1] for keys, _ in heads)
            keys, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
            for run in runs:
                keys, counts = add_counts(keys, counts, *run.take(last))
            yield from _cut(keys, counts)


@dataclass(slots=True)
class _Run:
    """Know where in a file sorted keys stand, behind them their counts."""

    file: IO[bytes]
    start: int
    n_keys: int
    n_read: int = 0
    ahead: tuple[Keys, Ints] = field(default_factory=lambda: (np.zeros(0, np.uint64), np.zeros(0, np.int64)))

    @classmethod
    def write(cls, file: IO[bytes], keys: Keys, counts: Ints) -> "_Run":
        start = file.seek(0, 2)
        file.write(keys.tobytes())
        file.write(counts.tobytes())
        return cls(file, start, len(keys))

    def head(self, size: int) -> tuple[Keys, Ints]:
        """Give the next keys that were not taken yet: so many, or what is left."""
        missing = min(size - len(self.ahead[0]), self.n_keys - self.n_read)
        if missing > 0:
            self.file.seek(self.start + 8 * self.n_read)
            keys = np.frombuffer(self.file.read(8 * missing), np.uint64)
            self.file.seek(self.start + 8 * (self.n_keys + self.n_read))
            counts = np.frombuffer(self.file.read(8 * missing), np.int64)
            self.ahead = np.concatenate([self.ahead[0], keys]), np.concatenate([self.ahead[1], counts])
            self.n_read += missing
        return self.ahead

    def take(self, last: np.uint64) -> tuple[Keys, Ints]:
        """Give the keys of the head up to this one, once."""
        keys, counts = self.ahead
        end = int(np.searchsorted(keys, last, "right"))
        self.ahead = keys[end:], counts[end:]
        return keys[:end], counts[:end]


def _cut(keys: Keys, counts: Ints) -> Iterator[tuple[Keys, Ints]]:
    """Cut a table into parts; at least one, if empty."""
    for start in range(0, max(len(keys), 1), _PART):
        yield keys[start : start + _PART], counts[start : start + _PART]


def add_counts(keys: Keys, counts: Ints, more_keys: Keys, more_counts: Ints) -> tuple[Keys, Ints]:
    """Add two tables of counts, each sorted by key."""
    if len(keys) == 0 or len(more_keys) == 0:
        return (more_keys, more_counts) if len(keys) == 0 else (keys, counts)
    from setaug.orders.kernels import merge_counts

    return merge_counts(keys, counts, more_keys, more_counts)  # type: ignore[no-any-return]
