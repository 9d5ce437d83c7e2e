"""Scores of predicted set sizes, and format errors: repeated, unknown and malformed labels (paper, section 4.3)."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from setaug.metrics.indicators import check_same_length
from setaug.predictions import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeScores:
    """Scores of set sizes, and the fraction of predictions with format errors.

    Each fraction is over the predictions that state a size, or record such errors; None if there are none.
    """

    n_examples: int
    n_stated: int
    """The number of predictions that state a size."""
    agreement_generated: float | None
    """The fraction whose stated size is the number of labels written, repeats included (as the paper counts)."""
    agreement_generated_within_one: float | None
    agreement_distinct: float | None
    """The fraction whose stated size is the number of distinct labels written."""
    agreement_distinct_within_one: float | None
    accuracy: float
    """The fraction whose size (as stated, else the number of labels) is that of the true set."""
    accuracy_within_one: float
    repeated: float | None
    """The fraction with a repeated label."""
    unknown: float | None
    """The fraction with a label outside the vocabulary."""
    malformed: float | None
    """The fraction with a malformed part."""


def score_sizes(
    gold: Sequence[Collection[str]], predictions: Sequence[Prediction], *, vocabulary: Iterable[str] | None = None
) -> SizeScores:
    """Score predicted sizes, and count format errors.

    A given vocabulary decides which labels are unknown, whatever the predictions record.

    Examples
    --------
    >>> written = Prediction(labels=("joy", "love"), size=3, repeated=("joy",))  # 3 | joy | love | joy
    >>> scores = score_sizes([["joy", "love", "pride"]], [written])
    >>> scores.agreement_generated, scores.agreement_distinct, scores.agreement_distinct_within_one, scores.accuracy
    (1.0, 0.0, 1.0, 1.0)

    """
    check_same_length(gold, predictions)
    stated = [abs(one.size - len(set(one.labels))) for one in predictions if one.size is not None]
    written = [abs(one.size - n) for one in predictions if one.size is not None and (n := n_generated(one)) is not None]
    errors = [
        abs((len(set(one.labels)) if one.size is None else one.size) - len(set(labels)))
        for labels, one in zip(gold, predictions, strict=True)
    ]
    if vocabulary is None:
        unknown = _share_of(predictions, lambda one: one.unknown)
    else:
        known = frozenset(vocabulary)
        unknown = _share(not known.issuperset(one.labels) for one in predictions)
    return SizeScores(
        n_examples=len(gold),
        n_stated=len(stated),
        agreement_generated=_share(error == 0 for error in written),
        agreement_generated_within_one=_share(error <= 1 for error in written),
        agreement_distinct=_share(error == 0 for error in stated),
        agreement_distinct_within_one=_share(error <= 1 for error in stated),
        accuracy=_share(error == 0 for error in errors) or 0.0,
        accuracy_within_one=_share(error <= 1 for error in errors) or 0.0,
        repeated=_share_of(predictions, lambda one: one.repeated),
        unknown=unknown,
        malformed=_share_of(predictions, lambda one: one.malformed),
    )


def n_generated(prediction: Prediction) -> int | None:
    """Return the number of generated labels, repeats included; None if repeats were not recorded.

    Examples
    --------
    >>> n_generated(Prediction(labels=("joy", "love"), repeated=("joy",)))
    3

    """
    return None if prediction.repeated is None else len(set(prediction.labels)) + len(prediction.repeated)


def _share_of(predictions: Iterable[Prediction], flaws: Callable[[Prediction], tuple[str, ...] | None]) -> float | None:
    return _share(bool(found) for found in map(flaws, predictions) if found is not None)


def _share(cases: Iterable[bool]) -> float | None:
    flags = list(cases)
    return sum(flags) / len(flags) if flags else None
