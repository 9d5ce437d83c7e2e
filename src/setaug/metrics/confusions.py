"""Confusions: which label was predicted where which other one was missing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setaug.metrics.indicators import check_same_length, index_labels, indicator_matrix

_MOST = 2000
"""Only this many labels, those missing (superfluous) most often, are combined, so that memory is bounded."""


@dataclass(frozen=True)
class Confusions:
    """In how many examples one label was missing and another was superfluous."""

    labels: tuple[str, ...]
    counts: csr_array
    """A row per missing label, a column per superfluous one, both in the order of `labels`."""
    is_cut: bool
    """Whether there were too many labels, so that rare ones are not counted."""

    def most_frequent(self, n: int) -> list[tuple[str, str, int]]:
        """Return the `n` most frequent confusions: missing label, superfluous label, number of examples."""
        pairs = self.counts.tocoo()
        first = np.argsort(-pairs.data, kind="stable")[:n]
        return [(self.labels[pairs.row[at]], self.labels[pairs.col[at]], int(pairs.data[at])) for at in first]


def count_confusions(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> Confusions:
    """Count, over examples, each combination of a missing and a superfluous label.

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
    superfluous, others = _most_frequent(indicator_matrix([pair[1] for pair in pairs], columns))
    counts = (missing.T @ superfluous).tocsr()
    counts.sort_indices()
    return Confusions(tuple(columns), counts, some or others)


def _most_frequent(flags: csr_array) -> tuple[csr_array, bool]:
    """Clear all but the columns with the most entries; return whether there were others."""
    totals: NDArray[np.int64] = flags.sum(axis=0, dtype=np.int64)
    kept = np.zeros(len(totals), np.int64)
    kept[np.argsort(-totals, kind="stable")[:_MOST]] = 1
    flags = flags.astype(np.int64)  # one byte would not hold the counts
    flags.data *= kept[flags.indices]
    flags.eliminate_zeros()
    return flags, int(np.count_nonzero(totals)) > _MOST
