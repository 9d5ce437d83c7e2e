"""One prediction from many sets that were drawn for a text."""

from collections.abc import Mapping, Sequence

from setaug.decoding.calibration import Calibration
from setaug.decoding.choice import choose, label_shares, size_shares
from setaug.predictions import Prediction


def predict_by_vote(
    sets: Sequence[Sequence[str]],
    *,
    way: str,
    threshold: float,
    strange: frozenset[str] | None = None,
    sizes: Mapping[int, float] | None = None,
    calibration: Calibration | None = None,
    key: str | int | None = None,
) -> Prediction:
    """Choose a set by one of the `CHOICES`; a label's probability is its share of the sets.

    Parameters
    ----------
    strange
        Labels that are not in the vocabulary; None where it is open.
    sizes
        The probability of each size, where more is known than the sizes of the sets.
    calibration
        Says what a share is worth.

    """
    shares = label_shares(sets)
    probabilities = shares if calibration is None else calibration(shares)
    sizes = size_shares(sets) if sizes is None else sizes
    labels = choose(way, sets, probabilities=probabilities, sizes=sizes, threshold=threshold)
    unknown = None if strange is None else tuple(label for label in labels if label in strange)
    return Prediction(labels=labels, probabilities=probabilities, sizes=sizes, unknown=unknown, id=key)
