"""One set from label scores: by a threshold or by the number of labels, either of them tuned on dev data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.errors import DataError
from setaug.examples import make_examples
from setaug.predictions import Prediction

Scores = NDArray[np.floating[Any]]

RULES = ("threshold", "top-k", "oracle-k")
"""All labels above a threshold, the k best ones (both tuned on dev data), or as many as the true set has."""


def check_rule(rule: str) -> str:
    """Return the rule; raise a `ValueError` if it is unknown."""
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}.")
    return rule


def check_k(k: object, rule: str) -> int:
    """Return k; raise unless it is a number of labels and the rule is ``top-k``."""
    if rule != "top-k":
        raise ValueError(f"k is for the rule top-k, and the rule is {rule}; leave k out, or give rule='top-k'.")
    if type(k) is not int:
        raise TypeError(f"k must be an integer of at least 1, got {k!r}.")
    if k < 1:
        raise ValueError(f"k must be an integer of at least 1, got {k}.")
    return k


def true_sizes(items: Sequence[Any]) -> list[int]:
    """Return the sizes of the true sets, for the rule ``oracle-k``."""
    if any(isinstance(item, str) for item in items):
        raise DataError("oracle-k needs the true sets: give examples, not texts.")
    return [len(example.labels) for example in make_examples(items)]


def best_labels(row: Scores, labels: Sequence[str], n: int) -> tuple[str, ...]:
    """Return the n labels with the highest scores, the best first.

    Examples
    --------
    >>> best_labels(np.array([0.2, 0.1, 0.7]), ["joy", "fear", "love"], 2)
    ('love', 'joy')

    """
    return tuple(labels[at] for at in np.argsort(-row, kind="stable")[:n])


def make_prediction(row: Scores, labels: Sequence[str], n: int, key: str | int | None = None) -> Prediction:
    """Return a prediction of the n best labels, with the probabilities that are not negligible."""
    ranked = [at for at in np.argsort(-row, kind="stable")[:100].tolist() if row[at] >= 0.001]
    named = {labels[at]: round(float(row[at]), 6) for at in ranked}
    return Prediction(labels=best_labels(row, labels, n), probabilities=named, id=key)


def tune_threshold(
    scores: Scores, hits: NDArray[np.bool_], sizes: NDArray[np.int64], *, at_least_one: bool = False
) -> tuple[float, float]:
    """Return the threshold with the highest mean F1 of the sets, and that F1.

    Each row is an example, each column a label. Sorted by score, each label changes the F1 of its own example only, so
    a running sum of these changes gives the F1 of every threshold.

    Parameters
    ----------
    hits
        Which labels are true.
    sizes
        The sizes of the true sets; they may have labels without a column.
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
    """Return the number of labels, from 1 to the largest, with the highest mean F1 of the sets, and that F1.

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
    """Return each row's scores in descending order, and the F1 of its 0, 1, 2, ... best labels."""
    order = np.argsort(-scores, axis=1, kind="stable")
    f1 = np.empty((len(scores), scores.shape[1] + 1))
    f1[:, 0] = sizes == 0
    np.cumsum(np.take_along_axis(hits, order, axis=1), axis=1, out=f1[:, 1:])
    f1[:, 1:] *= 2 / (np.arange(1, scores.shape[1] + 1) + sizes[:, None])
    return np.take_along_axis(scores, order, axis=1), f1
