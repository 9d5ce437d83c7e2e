"""Statistics of stored outputs: the most frequent label, and ill-formed labels (section 4.3)."""

from collections.abc import Iterable, Sequence

from setaug.datasets import Dataset
from setaug.examples import Example
from setaug.orders.statistics import LabelStatistics
from setaug.predictions import Prediction

OUTPUT_SCORES = ("commonest_first", "commonest", "ill_formed")
"""The scores that are computed from stored predictions, also of cells that were stored earlier."""


def commonest_label(examples: Iterable[Example]) -> str:
    """Return the most frequent label; among ties, the first by name.

    Examples
    --------
    >>> commonest_label([Example("", ["joy", "love"]), Example("", ["joy"])])
    'joy'

    """
    ((label, _),) = LabelStatistics().update(example.labels for example in examples).most_common(1)
    return label


def score_outputs(predictions: Sequence[Prediction], dataset: Dataset) -> dict[str, float | None]:
    """Return the fractions of outputs that begin with the most frequent label, contain it, or have an ill-formed one.

    A label is ill-formed if the dataset does not have it; without a list of its labels, the last fraction is None.
    """
    commonest = commonest_label(dataset.train)
    known = None if dataset.labels is None else frozenset(dataset.labels)
    n = len(predictions)
    ill_formed = None if known is None else sum(not known.issuperset(one.labels) for one in predictions) / n
    return {
        "commonest_first": sum(one.labels[:1] == (commonest,) for one in predictions) / n,
        "commonest": sum(commonest in one.labels for one in predictions) / n,
        "ill_formed": ill_formed,
    }
