"""The weakest baseline: the most frequent labels, whatever the text."""

from collections.abc import Iterable, Sequence
from typing import Self

from sklearn.base import BaseEstimator

from setaug.examples import Example
from setaug.metrics import score_sets
from setaug.orders.statistics import LabelStatistics
from setaug.predictions import Prediction

TOP_K = (1, 3, 5, 10, 50)
"""The values of k that the paper tries on the dev data."""


def best_k(gold: Sequence[Sequence[str]], ranked: Sequence[Sequence[str]]) -> int:
    """Return the paper's k with the highest mean F1 of the k first labels; the smallest of equal ones.

    Examples
    --------
    >>> best_k([["joy"]], [["joy", "love", "fear"]])
    1

    """
    return max(TOP_K, key=lambda k: (score_sets(gold, [labels[:k] for labels in ranked]).samples_f1, -k))


class MostFrequent(BaseEstimator):  # type: ignore[misc]
    """Predicts the k most frequent training labels for each text.

    Examples
    --------
    >>> train = [Example("", ["joy", "love"]), Example("", ["joy"])]
    >>> MostFrequent().fit(train, dev=train).predict(train, k=2)[0].labels
    ('joy', 'love')

    """

    def fit(self, examples: Iterable[Example], *, dev: Sequence[Example]) -> Self:
        """Count labels; choose k by the mean F1 of the sets on dev data."""
        counted = LabelStatistics().update(example.labels for example in examples)
        self.labels_ = sorted(counted.labels, key=lambda label: (-counted.count(label), label))
        self.k_ = best_k([example.labels for example in dev], [self.labels_] * len(dev))
        return self

    def predict(self, examples: Iterable[Example], *, k: int | None = None) -> list[Prediction]:
        """Return the same set for each example."""
        labels = tuple(self.labels_[: self.k_ if k is None else k])
        return [Prediction(labels=labels, id=example.id) for example in examples]
