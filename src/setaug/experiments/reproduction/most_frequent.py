"""The weakest baseline: the most frequent labels, for every text."""

from collections.abc import Iterable, Sequence
from typing import Self

from sklearn.base import BaseEstimator

from setaug.examples import Example
from setaug.metrics import score_sets
from setaug.models.neural.classifier import TOP_K
from setaug.orders.statistics import LabelStatistics
from setaug.predictions import Prediction


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
        gold = [example.labels for example in dev]
        self.k_ = max(TOP_K, key=lambda k: (score_sets(gold, [self.labels_[:k]] * len(gold)).samples_f1, -k))
        return self

    def predict(self, examples: Iterable[Example], *, k: int | None = None) -> list[Prediction]:
        """Return the same set for each example."""
        labels = tuple(self.labels_[: self.k_ if k is None else k])
        return [Prediction(labels=labels, id=example.id) for example in examples]
