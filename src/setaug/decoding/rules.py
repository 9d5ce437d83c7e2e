"""How a set is taken from the probabilities of labels that are scored one by one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.errors import DataError
from setaug.examples import make_examples
from setaug.predictions import Prediction

RULES = ("threshold", "top-k", "oracle-k")
"""Take the labels above a threshold, the k best ones (both tuned on dev data), or as many as the true set has."""


def check_rule(rule: str) -> str:
    """Give the rule back if there is such a one."""
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}.")
    return rule


def check_k(k: object, rule: str) -> int:
    """Give k back if it is a number of labels, and the rule takes one."""
    if rule != "top-k":
        raise ValueError(f"k is for the rule top-k, and the rule is {rule}; leave k out, or give rule='top-k'.")
    if type(k) is not int:
        raise TypeError(f"k must be a whole number from 1 on, got {k!r}.")
    if k < 1:
        raise ValueError(f"k must be a whole number from 1 on, got {k}.")
    return k


def true_sizes(items: Sequence[Any]) -> list[int]:
    """Count the labels of examples or rows, for the rule ``oracle-k``."""
    if any(isinstance(item, str) for item in items):
        raise DataError("oracle-k needs the true sets: give examples, not texts.")
    return [len(example.labels) for example in make_examples(items)]


def best_labels(row: NDArray[np.floating[Any]], labels: Sequence[str], n: int) -> tuple[str, ...]:
    """Give the n labels with the highest scores, the best first.

    Examples
    --------
    >>> best_labels(np.array([0.2, 0.1, 0.7]), ["joy", "fear", "love"], 2)
    ('love', 'joy')

    """
    return tuple(labels[at] for at in np.argsort(-row, kind="stable")[:n])


def make_prediction(
    row: NDArray[np.floating[Any]], labels: Sequence[str], n: int, key: str | int | None = None
) -> Prediction:
    """Predict the n best labels, and name the probabilities that are worth telling."""
    ranked = [at for at in np.argsort(-row, kind="stable")[:100].tolist() if row[at] >= 0.001]
    named = {labels[at]: round(float(row[at]), 6) for at in ranked}
    return Prediction(labels=best_labels(row, labels, n), probabilities=named, id=key)
