"""Choose the threshold, or the number of labels, with the highest mean F1 of the sets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating[Any]]


def tune_threshold(
    scores: Scores, hits: NDArray[np.bool_], sizes: NDArray[np.int64], *, at_least_one: bool = False
) -> tuple[float, float]:
    """Give the best of all thresholds, and its F1.

    Each row is an example, each column a label. Sorted by score, each label changes the F1 of its own example only, so
    a running sum of these changes has the F1 of every threshold.

    Parameters
    ----------
    hits
        Which labels are true.
    sizes
        How large the true sets are; they may hold labels that have no column.
    at_least_one
        Whether the best label is always taken.

    Examples
    --------
    >>> scores = np.array([[0.9, 0.6, 0.1], [0.2, 0.8, 0.4]])
    >>> hits = np.array([[True, True, False], [False, True, False]])
    >>> tune_threshold(scores, hits, hits.sum(axis=1))
    (0.5, 1.0)

    """
    ranked, f1 = _f1_by_size(scores, hits, sizes)
    if at_least_one:
        f1[:, 0] = f1[:, 1]
    flat = ranked.ravel()
    order = np.argsort(-flat, kind="stable")
    levels = flat[order]
    means = (f1[:, 0].sum() + np.cumsum(np.diff(f1, axis=1).ravel()[order])) / len(scores)
    ends = np.flatnonzero(np.append(levels[1:] < levels[:-1], True))
    best = ends[np.argmax(means[ends])]
    if f1[:, 0].mean() >= means[best]:
        return float(levels[0]) + 1.0, float(f1[:, 0].mean())
    below = levels[best + 1] if best + 1 < len(levels) else levels[best] - 1.0
    return float(levels[best] + below) / 2, float(means[best])


def tune_k(scores: Scores, hits: NDArray[np.bool_], sizes: NDArray[np.int64], *, largest: int) -> tuple[int, float]:
    """Give the best number of labels from 1 to the largest, the same for all examples, and its F1.

    Examples
    --------
    >>> hits = np.array([[True, True, False], [False, True, False]])
    >>> k, f1 = tune_k(np.array([[0.9, 0.6, 0.1], [0.2, 0.8, 0.4]]), hits, hits.sum(axis=1), largest=3)
    >>> k, round(f1, 3)
    (1, 0.833)

    """
    means = _f1_by_size(scores, hits, sizes)[1][:, 1 : largest + 1].mean(axis=0)
    best = int(np.argmax(means))
    return best + 1, float(means[best])


def _f1_by_size(
    scores: Scores, hits: NDArray[np.bool_], sizes: NDArray[np.int64]
) -> tuple[Scores, NDArray[np.float64]]:
    """Sort each row's scores, the highest first, and give the F1 of its 0, 1, 2, ... best labels."""
    order = np.argsort(-scores, axis=1, kind="stable")
    f1 = np.empty((len(scores), scores.shape[1] + 1))
    f1[:, 0] = sizes == 0
    np.cumsum(np.take_along_axis(hits, order, axis=1), axis=1, out=f1[:, 1:])
    f1[:, 1:] *= 2 / (np.arange(1, scores.shape[1] + 1) + sizes[:, None])
    return np.take_along_axis(scores, order, axis=1), f1
