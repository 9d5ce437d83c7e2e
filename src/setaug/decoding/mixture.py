"""Several models as one: their calibrated label probabilities, weighted on dev data, and the rule that chooses sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from setaug.decoding.choice import Floats, Hits, Rule, mean_f1
from setaug.settings import WAYS

_ROUNDS = 10
_TINY = 1e-6


@dataclass(frozen=True, eq=False)
class LabelProbabilities:
    """The predictions of a model for texts (rows)."""

    labels: Floats
    """The probability of each known label (columns)."""
    sizes: Floats | None = None
    """The probability of each size: 0, 1, 2, ...; None if the model does not predict sizes."""


@dataclass(frozen=True)
class LogisticCalibration:
    """A logistic function of the log-odds, the same for all labels.

    Examples
    --------
    >>> calibration = LogisticCalibration.fit(np.array([[0.9, 0.8], [0.7, 0.1]]), np.array([[1, 0], [1, 0]], bool))
    >>> bool(np.all(np.diff(calibration(np.array([0.1, 0.5, 0.9]))) > 0))
    True

    """

    slope: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit(cls, probabilities: Floats, hits: Hits) -> "LogisticCalibration":
        """Fit the calibration on dev data; it is the identity if the slope would not be positive."""
        from sklearn.linear_model import LogisticRegression

        if hits.all() or not hits.any():
            return cls()
        model = LogisticRegression(C=100.0).fit(_log_odds(probabilities).reshape(-1, 1), hits.ravel())
        slope, shift = float(model.coef_[0, 0]), float(model.intercept_[0])
        return cls(slope, shift) if slope > 0 else cls()

    def __call__(self, probabilities: Floats) -> Floats:
        """Return the calibrated probabilities."""
        if self == LogisticCalibration():
            return probabilities
        found: Floats = expit(self.slope * _log_odds(probabilities) + self.shift)
        return found

    def to_list(self) -> list[float]:
        """Return it as JSON."""
        return [self.slope, self.shift]

    @classmethod
    def from_list(cls, saved: Sequence[float]) -> "LogisticCalibration":
        """Read it back."""
        slope, shift = map(float, saved)
        if not isfinite(slope) or not isfinite(shift):
            raise ValueError(f"a calibration has the numbers {saved!r}")
        return cls(slope, shift)


def _log_odds(probabilities: Floats) -> Floats:
    found: Floats = logit(np.clip(np.asarray(probabilities, np.float64), _TINY, 1 - _TINY))
    return found


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A weighted mean of the calibrated probabilities of several models, and the rule for its sets.

    Parameters
    ----------
    weights
        The weight of each model; they sum to one.
    calibrations
        The calibration of each model.
    rule
        How a set is chosen.

    """

    weights: tuple[float, ...]
    calibrations: tuple[LogisticCalibration, ...]
    rule: Rule

    @classmethod
    def fit(
        cls,
        members: Sequence[LabelProbabilities],
        hits: Hits,
        n_true: NDArray[np.int64],
        *,
        least: int = 1,
        largest: int | None = None,
        ways: Sequence[str] = tuple(WAYS),
        calibrate: bool = True,
    ) -> tuple["Mixture", float]:
        """Return the mixture with the highest mean F1 of the sets on dev data, and that F1.

        The weights are found by ensemble selection (Caruana et al. 2004): in each of ten rounds, the model is added,
        possibly again, with which sets are best by expected F1.

        Parameters
        ----------
        members
            The probabilities of each model, with the same columns.
        hits, n_true
            Which labels each example has, and how many (they may have labels without a column).
        calibrate
            Whether the probabilities of each model are calibrated before they are averaged.

        """
        calibrations = tuple(
            LogisticCalibration.fit(member.labels, hits) if calibrate else LogisticCalibration() for member in members
        )
        calibrated = [
            LabelProbabilities(apply(member.labels), member.sizes)
            for apply, member in zip(calibrations, members, strict=True)
        ]
        rule = Rule(least=least, largest=largest)
        counts, best = np.zeros(len(members)), (-1.0, np.zeros(len(members)))
        for _ in range(_ROUNDS if len(members) > 1 else 1):
            tried = []
            for at in range(len(members)):
                added = counts + np.eye(len(members))[at]
                mean = average(calibrated, added / added.sum())
                tried.append(
                    (mean_f1(Rule(least=least, largest=largest).choose(mean.labels, mean.sizes), hits, n_true), added)
                )
            reached, counts = max(tried, key=lambda pair: pair[0])
            if reached > best[0]:
                best = reached, counts
        weights = tuple((best[1] / best[1].sum()).tolist())
        mean = average(calibrated, weights)
        rule, f1 = Rule.fit(mean.labels, mean.sizes, hits, n_true, least=least, largest=largest, ways=ways)
        return cls(weights=weights, calibrations=calibrations, rule=rule), f1

    def combine(self, members: Sequence[LabelProbabilities]) -> LabelProbabilities:
        """Return the combined probabilities of the models."""
        calibrated = [
            LabelProbabilities(apply(member.labels), member.sizes)
            for apply, member in zip(self.calibrations, members, strict=True)
        ]
        return average(calibrated, self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        pairs = [one.to_list() for one in self.calibrations]
        return {"weights": list(self.weights), "calibrations": pairs, "rule": self.rule.to_dict()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Mixture":
        """Read it back."""
        weights = tuple(float(weight) for weight in saved["weights"])
        calibrations = tuple(map(LogisticCalibration.from_list, saved["calibrations"]))
        if len(weights) != len(calibrations) or not np.isfinite(weights).all() or not 0.99 < sum(weights) < 1.01:
            raise ValueError(f"weights must sum to 1, one for each calibration, got {weights!r}")
        return cls(weights=weights, calibrations=calibrations, rule=Rule.from_dict(saved["rule"]))


def average(members: Sequence[LabelProbabilities], weights: Sequence[float] | Floats) -> LabelProbabilities:
    """Return the weighted mean of probabilities; for sizes, over the models that predict them."""
    pairs = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight > 0]
    labels = sum(weight * member.labels for member, weight in pairs)
    sized = [(member.sizes, weight) for member, weight in pairs if member.sizes is not None]
    if not sized:  # use the sizes of any model that predicts them
        sized = [(member.sizes, 1.0) for member in members if member.sizes is not None]
    if not sized:
        return LabelProbabilities(np.asarray(labels))
    width = max(sizes.shape[1] for sizes, _ in sized)
    total = sum(weight for _, weight in sized)
    padded = [np.pad(sizes, ((0, 0), (0, width - sizes.shape[1]))) * (weight / total) for sizes, weight in sized]
    return LabelProbabilities(np.asarray(labels), np.asarray(sum(padded)))
