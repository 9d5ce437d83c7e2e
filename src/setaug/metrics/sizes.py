"""Whether a model knows how many labels there are, and whether it writes sets at all (paper, section 4.3)."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from setaug.metrics.indicators import check_same_length
from setaug.predictions import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeScores:
    """Hold what predictions tell about sizes, and the share of them with a flaw.

    A share is None where no prediction tells: no size is stated, or it is not known whether labels were repeated.
    Otherwise it runs over the predictions that do tell.
    """

    n_examples: int
    n_stated: int
    """How many predictions state a size."""
    agreement: float | None
    """The share whose stated size is the number of different labels that follow it."""
    agreement_within_one: float | None
    accuracy: float
    """The share whose size is that of the true set: the stated size or, where none is, the number of labels."""
    accuracy_within_one: float
    repeated: float | None
    """The share of predictions in which a label was written again."""
    unknown: float | None
    """The share with a label that is not in the vocabulary."""
    malformed: float | None
    """The share with a part that is no label."""


def score_sizes(
    predictions: Sequence[Prediction],
    gold: Sequence[Collection[str]],
    *,
    vocabulary: Iterable[str] | None = None,
) -> SizeScores:
    """Compare the sizes that predictions state with what they write and with the true sizes; count their flaws.

    Where a vocabulary is given, it decides which labels are unknown, whatever the predictions say themselves.

    Examples
    --------
    >>> predictions = [Prediction(labels=("joy", "love"), size=3), Prediction(labels=("fear",), size=1)]
    >>> scores = score_sizes(predictions, [["joy", "love", "pride"], ["fear"]])
    >>> scores.agreement, scores.agreement_within_one, scores.accuracy
    (0.5, 1.0, 1.0)

    """
    check_same_length(predictions, gold)
    stated = [abs(one.size - len(set(one.labels))) for one in predictions if one.size is not None]
    errors = [
        abs((len(set(one.labels)) if one.size is None else one.size) - len(set(labels)))
        for one, labels in zip(predictions, gold, strict=True)
    ]
    if vocabulary is None:
        unknown = _share_of(predictions, lambda one: one.unknown)
    else:
        known = frozenset(vocabulary)
        unknown = _share(not known.issuperset(one.labels) for one in predictions)
    return SizeScores(
        n_examples=len(gold),
        n_stated=len(stated),
        agreement=_share(error == 0 for error in stated),
        agreement_within_one=_share(error <= 1 for error in stated),
        accuracy=_share(error == 0 for error in errors) or 0.0,
        accuracy_within_one=_share(error <= 1 for error in errors) or 0.0,
        repeated=_share_of(predictions, lambda one: one.repeated),
        unknown=unknown,
        malformed=_share_of(predictions, lambda one: one.malformed),
    )


def _share_of(predictions: Iterable[Prediction], flaws: Callable[[Prediction], tuple[str, ...] | None]) -> float | None:
    return _share(bool(found) for found in map(flaws, predictions) if found is not None)


def _share(cases: Iterable[bool]) -> float | None:
    flags = list(cases)
    return sum(flags) / len(flags) if flags else None
