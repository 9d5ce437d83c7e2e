"""Counts of labels and of label pairs (paper, section 3.1, "Learning pairwise constraints")."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice, pairwise
from math import log2
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson

from setaug.errors import FileError
from setaug.orders.arrays import Ints, Keys, SetBatch, pack_keys, unpack_keys
from setaug.orders.edges import EdgeTable, Thresholds, edges_among
from setaug.orders.pair_counts import PairCounts, add_counts
from setaug.storage import BROKEN_ARCHIVE, open_input, open_output

_FORMAT = "label-statistics/1"
_CHUNK = 1 << 16


class LabelStatistics:
    """Counts of labels and label pairs over label sets.

    Examples
    --------
    >>> sets = [{"match", "event"}, {"match", "event"}, {"concert", "event"}, {"person"}]
    >>> statistics = LabelStatistics().update(sets)
    >>> statistics.count("event"), statistics.pair_count("match", "event")
    (3, 2)
    >>> round(statistics.pmi("match", "event"), 3)
    0.415
    >>> statistics.ratio("event", "match")
    Fraction(3, 2)

    """

    def __init__(self) -> None:
        self.n_sets = 0
        """The number of sets counted, empty ones included."""
        self._ids: dict[str, int] = {}
        self._counts: Ints = np.zeros(0, np.int64)
        self._pair_table = PairCounts()

    @classmethod
    def from_counts(
        cls, n_sets: int, labels: Iterable[str], counts: Ints, pairs: Keys, pair_counts: Ints
    ) -> "LabelStatistics":
        """Build statistics from counts; the position of a label is its id, and the keys of label pairs are sorted."""
        statistics = cls()
        statistics.n_sets = n_sets
        statistics._ids = {label: at for at, label in enumerate(labels)}
        statistics._counts, statistics._pair_table = counts, PairCounts(pairs, pair_counts)
        return statistics

    def update(self, label_sets: Iterable[Iterable[str]]) -> Self:
        """Add label sets to the counts; a label that occurs twice in a set counts once."""
        sets = iter(label_sets)
        while chunk := [_different(labels) for labels in islice(sets, _CHUNK)]:
            ids = [[self._ids.setdefault(label, len(self._ids)) for label in labels] for labels in chunk]
            self.add(SetBatch.of(ids))
        return self

    def add(self, batch: SetBatch) -> None:
        """Add sets of known ids to the counts; an id occurs at most once in a set."""
        from setaug.orders.kernels import pair_keys

        if len(batch) == 0:
            return
        self.n_sets += len(batch)
        if len(self._counts) < len(self._ids):
            self._counts = np.concatenate([self._counts, np.zeros(len(self._ids) - len(self._counts), np.int64)])
        self._counts += np.bincount(batch.ids, minlength=len(self._counts))
        self._pair_table.add(pair_keys(batch.starts, batch.ids))

    def merge(self, other: "LabelStatistics") -> "LabelStatistics":
        """Return the statistics of both parts together; merging is associative and commutative."""
        merged = LabelStatistics()
        merged.n_sets = self.n_sets + other.n_sets
        merged._ids = dict(self._ids)
        renumbered = np.array([merged._ids.setdefault(label, len(merged._ids)) for label in other._ids], np.int64)
        merged._counts = np.zeros(len(merged._ids), np.int64)
        merged._counts[: len(self._counts)] = self._counts
        merged._counts[renumbered] += other._counts
        pairs, counts = other._pair_table.sorted()
        pairs = _renumber(pairs, renumbered)
        by_key = np.argsort(pairs)
        both = add_counts(*self._pair_table.sorted(), pairs[by_key], counts[by_key])
        merged._pair_table = PairCounts(*both)
        return merged

    @property
    def labels(self) -> list[str]:
        """The labels; the position of a label is its id."""
        return list(self._ids)

    @property
    def ids(self) -> dict[str, int]:
        """The id of each label."""
        return self._ids

    @property
    def counts(self) -> Ints:
        """The number of sets that contain each label, by id."""
        return self._counts

    @property
    def pairs(self) -> tuple[Ints, Ints, Ints]:
        """The label pairs that occur, as three arrays: the two ids, and the number of sets that contain both."""
        pairs, counts = self._pair_table.sorted()
        return *unpack_keys(pairs), counts

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """Return the `n` most frequent labels, or all that occur, with their counts; ties by name."""
        labels = self.labels
        ranked = frequency_order(labels, self._counts)[: np.count_nonzero(self._counts)][:n]
        return [(labels[at], int(self._counts[at])) for at in ranked]

    def count(self, label: str) -> int:
        """Return the number of sets that contain a label."""
        at = self._ids.get(label)
        return 0 if at is None else int(self._counts[at])

    def pair_count(self, a: str, b: str) -> int:
        """Return the number of sets that contain both of two different labels."""
        if a not in self._ids or b not in self._ids:
            return 0
        low, high = sorted((self._ids[a], self._ids[b]))
        key = np.uint64(low << 32 | high)
        pairs, counts = self._pair_table.sorted()
        at = int(np.searchsorted(pairs, key))
        return int(counts[at]) if at < len(pairs) and pairs[at] == key else 0

    def pmi(self, a: str, b: str) -> float:
        """Return the pointwise mutual information of two labels in bits; minus infinity if they never co-occur."""
        n_both = self.pair_count(a, b)
        if n_both == 0:
            return float("-inf")
        return log2(Fraction(n_both * self.n_sets, self.count(a) * self.count(b)))

    def ratio(self, a: str, b: str) -> Fraction:
        """Return how many times as frequent label a is as label b, which must occur."""
        if self.count(b) == 0:
            raise ValueError(f"the label {b!r} does not occur.")
        return Fraction(self.count(a), self.count(b))

    def precedes(self, first: str, then: str, thresholds: Thresholds) -> bool:
        """Return whether one label must be written before another (Algorithm 1, line 3)."""
        n_first, n_then = self.count(first), self.count(then)
        if n_first == 0 or n_then == 0 or not thresholds.exceeds_ratio(n_then, n_first):
            return False
        return thresholds.exceeds_pmi(self.pair_count(first, then), n_first, n_then, self.n_sets)

    def edges(self, thresholds: Thresholds) -> EdgeTable:
        """Return the edges over the whole label space."""
        return edges_among(*self._pair_table.sorted(), self._counts, self.n_sets, thresholds)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelStatistics):
            return NotImplemented
        return self._canonical() == other._canonical()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        n_pairs = len(self._pair_table.sorted()[0])
        return f"LabelStatistics(n_sets={self.n_sets}, n_labels={len(self._ids)}, n_pairs={n_pairs})"

    def _canonical(self) -> dict[str, object]:
        """Return the counts in a canonical form, independent of the order of counting."""
        labels = sorted(self._ids)
        place = np.empty(len(labels), np.int64)
        place[[self._ids[label] for label in labels]] = np.arange(len(labels))
        pairs, counts = self._pair_table.sorted()
        pairs = _renumber(pairs, place)
        by_key = np.argsort(pairs)
        return {
            "n_sets": self.n_sets,
            "labels": labels,
            "counts": self._counts[[self._ids[label] for label in labels]].tolist(),
            "pairs": [ids.tolist() for ids in unpack_keys(pairs[by_key])],
            "pair_counts": counts[by_key].tolist(),
        }

    def save(self, path: str | Path) -> None:
        """Write the counts as JSON, compressed for .gz and .zst; equal counts give equal bytes."""
        with open_output(path) as stream:
            stream.write(orjson.dumps({"setaug": _FORMAT, **self._canonical()}))

    @classmethod
    def load(cls, path: str | Path) -> "LabelStatistics":
        """Read counts written by `save`."""
        try:
            with open_input(path) as stream:
                saved = orjson.loads(stream.read())
            return cls._from_saved(saved)
        except (*BROKEN_ARCHIVE, KeyError, OverflowError, TypeError, ValueError) as error:
            raise FileError(f"{path} does not contain valid label statistics ({type(error).__name__}).") from None

    @classmethod
    def _from_saved(cls, saved: dict[str, Any]) -> "LabelStatistics":
        labels = saved["labels"]
        n_sets, counts, pair_counts = saved["n_sets"], saved["counts"], saved["pair_counts"]
        low, high = saved["pairs"]
        is_whole = (
            saved["setaug"] == _FORMAT
            and isinstance(labels, list)
            and all(isinstance(label, str) for label in labels)
            and len(set(labels)) == len(labels) == len(counts)
            and len(low) == len(high) == len(pair_counts)
            and all(type(n) is int and n >= 0 for n in [n_sets, *counts, *pair_counts, *low, *high])
            and all(a < b < len(labels) for a, b in zip(low, high, strict=True))
            and all(n <= n_sets for n in counts)
            and all(n <= min(counts[a], counts[b]) for n, a, b in zip(pair_counts, low, high, strict=True))
            and all(one < two for one, two in pairwise(zip(low, high, strict=True)))
        )
        if not is_whole:
            raise ValueError
        pairs = pack_keys(np.array(low, np.int64), np.array(high, np.int64))
        return cls.from_counts(n_sets, labels, np.array(counts, np.int64), pairs, np.array(pair_counts, np.int64))


def _different(labels: Iterable[str]) -> list[str]:
    if isinstance(labels, str):
        raise TypeError(f"expected sets of labels, got the string {labels!r}.")
    return list(dict.fromkeys(labels))


def frequency_order(labels: Sequence[str], counts: Ints) -> list[int]:
    """Return label ids from frequent to rare, ties by name."""
    return sorted(range(len(labels)), key=lambda at: (-int(counts[at]), labels[at]))


def _renumber(pairs: Keys, ids: Ints) -> Keys:
    """Return the keys of label pairs after each id became ``ids[id]``."""
    if len(pairs) == 0:
        return pairs
    a, b = (ids[part] for part in unpack_keys(pairs))
    return pack_keys(np.minimum(a, b), np.maximum(a, b))
