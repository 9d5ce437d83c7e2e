"""Confusions: which label was predicted instead of which missing one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setaug.metrics.indicators import check_same_length, index_labels, indicator_matrix

_MOST = 2000
"""Only this many labels, those most often missing (extra), are paired, to bound memory."""


@dataclass(frozen=True)
class Confusions:
    """The number of examples in which one label is missing and another is extra."""

    labels: tuple[str, ...]
    counts: csr_array
    """A row per missing label, a column per extra one, both in the order of `labels`."""
    is_cut: bool
    """Whether rare labels were not counted because there are too many labels."""

    def most_frequent(self, n: int) -> list[tuple[str, str, int]]:
        """Return the `n` most frequent confusions: missing label, extra label, number of examples."""
        pairs = self.counts.tocoo()
        first = np.argsort(-pairs.data, kind="stable")[:n]
        return [(self.labels[pairs.row[at]], self.labels[pairs.col[at]], int(pairs.data[at])) for at in first]


def count_confusions(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Confusions:
    """Count, over examples, each pair of a missing and an extra label.

    Examples
    --------
    >>> found = count_confusions([["love"], ["love", "fear"], ["love", "joy"]], [["joy"], ["joy", "fear"], ["love"]])
    >>> found.most_frequent(2)
    [('love', 'joy', 2)]

    """
    check_same_length(gold, predicted)
    columns = index_labels(gold, predicted)
    pairs = [({*truth} - {*guess}, {*guess} - {*truth}) for guess, truth in zip(predicted, gold, strict=True)]
    missing, some = _most_frequent(indicator_matrix([pair[0] for pair in pairs], columns))
    extra, others = _most_frequent(indicator_matrix([pair[1] for pair in pairs], columns))
    counts = (missing.T @ extra).tocsr()
    counts.sort_indices()
    return Confusions(tuple(columns), counts, some or others)


def _most_frequent(flags: csr_array) -> tuple[csr_array, bool]:
    """Clear all but the columns with the most entries; return whether there were others."""
    totals: NDArray[np.int64] = flags.sum(axis=0, dtype=np.int64)
    kept = np.zeros(len(totals), np.int64)
    kept[np.argsort(-totals, kind="stable")[:_MOST]] = 1
    flags = flags.astype(np.int64)  # one byte would overflow
    flags.data *= kept[flags.indices]
    flags.eliminate_zeros()
    return flags, int(np.count_nonzero(totals)) > _MOST
