"""Several models as one: the weighted mean of their label probabilities, and the rule that chooses sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from setaug.decoding.choice import Floats, Hits, Rule
from setaug.settings import WAYS

_TINY = 1e-6
SHRINKAGE = 5.0
"""Strength of the penalty that pulls calibrations to the identity; chosen on dev data, see docs/models.md."""
_PRIOR = 30.0
"""Pseudo-counts that pull weights to equal ones; chosen on dev data, too."""
MIN_TUNING = 50
"""Fewer dev examples do not compare ways to choose a set: by chance, a tuned threshold is often better on them."""
_RAREST = 1e-4
"""Labels that are rarer are treated as if they were so frequent."""
_SLOPES, _SHIFTS, _TILTS = (0.01, 100.0), (-20.0, 20.0), (-1.0, 0.0)
"""Bounds: data that is separated perfectly has no steepest curve, and rare labels are never made rarer."""


@dataclass(frozen=True, eq=False)
class LabelProbabilities:
    """The predictions of a model for texts (rows)."""

    labels: Floats
    """The probability of each known label (columns)."""
    sizes: Floats | None = None
    """The probability of each size: 0, 1, 2, ...; None if the model does not predict sizes."""
    known: Hits | None = None
    """Which labels (columns) the model knows; None if it knows all."""

    @property
    def columns(self) -> Any:
        """The columns of the labels that the model knows, as an index."""
        return slice(None) if self.known is None else np.flatnonzero(self.known)


def probabilities_of(model: Any, texts: Sequence[str], labels: Sequence[str]) -> LabelProbabilities:
    """Return the predictions of a fitted model with these labels as columns."""
    own = model.label_probabilities(texts) if hasattr(model, "label_probabilities") else None
    shares = model.predict_proba(texts) if own is None else own.labels
    places = {label: at for at, label in enumerate(labels)}
    pairs = [(at, places[label]) for at, label in enumerate(model.classes_.tolist()) if label in places]
    found, known = np.zeros((len(texts), len(labels))), np.zeros(len(labels), bool)
    if pairs:
        theirs, ours = np.array(pairs).T
        found[:, ours], known[ours] = shares[:, theirs], True
    return LabelProbabilities(found, None if own is None else own.sizes, None if known.all() else known)


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
    def fit(cls, probabilities: Floats, hits: Hits, *, shrinkage: float = 0.0) -> "LogisticCalibration":
        """Fit the calibration on dev data by maximum likelihood.

        Parameters
        ----------
        shrinkage
            How strongly it is pulled to the identity, if the probabilities are more than scores.

        """
        if hits.all() or not hits.any():
            return cls()
        slope, shift = fit_logistic([_log_odds(probabilities).ravel()], hits.ravel(), shrinkage, [_SLOPES, _SHIFTS])
        return cls() if slope == _SLOPES[0] else cls(slope, shift)

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

    A mean of calibrated probabilities is less certain than it should be, and too low for rare labels. So it is
    calibrated once more, as a logistic function of its log-odds with a shift of its own for each label.

    Parameters
    ----------
    weights
        The weight of each model; they sum to one.
    calibrations
        The calibration of each model.
    rule
        How a set is chosen.
    slope, shifts
        The calibration of the mean: one slope, and a shift for each label; without shifts there is none.

    """

    weights: tuple[float, ...]
    calibrations: tuple[LogisticCalibration, ...]
    rule: Rule
    slope: float = 1.0
    shifts: tuple[float, ...] = ()

    @classmethod
    def equal(cls, n_members: int, *, least: int = 1, largest: int | None = None) -> "Mixture":
        """Return the mixture where there is no dev data: equal weights, no calibration, and expected F1."""
        rule = Rule(least=least, largest=largest)
        weights = (1 / n_members,) * n_members
        return cls(weights=weights, calibrations=(LogisticCalibration(),) * n_members, rule=rule)

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
        new: Hits | None = None,
    ) -> tuple["Mixture", float]:
        """Tune a mixture on dev data; return it, and the mean F1 of its sets.

        Weights and calibrations maximize the likelihood of the true sets, since F1 on little dev data is too noisy for
        that; the rule maximizes F1.

        Parameters
        ----------
        members
            The probabilities of each model, with the same columns.
        hits, n_true
            Which labels each example has, and how many (they may have labels without a column).
        calibrate
            Whether probabilities are calibrated, those of each model and their mean.
        new
            Which labels (columns) are known only because some of these examples have them. An example that alone has
            such a label is tuned with as if the label were unknown; else new labels seem more frequent than they are.

        """
        if new is not None:
            own = hits & new & (hits.sum(axis=0) == 1)
            members = [replace(one, labels=np.where(own, 0.0, one.labels)) for one in members]
            hits = hits & ~own
        calibrations = tuple(
            LogisticCalibration.fit(one.labels[:, one.columns], hits[:, one.columns], shrinkage=SHRINKAGE)
            if calibrate
            else LogisticCalibration()
            for one in members
        )
        shared = np.logical_and.reduce(
            [np.ones(hits.shape[1], bool), *(one.known for one in members if one.known is not None)]
        )
        weights = _fit_weights(
            [apply(one.labels[:, shared]) for apply, one in zip(calibrations, members, strict=True)], hits[:, shared]
        )
        mixture = cls(weights=weights, calibrations=calibrations, rule=Rule(least=least, largest=largest))
        if calibrate:
            slope, shifts = _calibrate_mean(mixture.combine(members).labels, hits)
            mixture = replace(mixture, slope=slope, shifts=shifts)
        mean = mixture.combine(members)
        ways = ways if len(hits) >= MIN_TUNING else ways[:1]
        rule, f1 = Rule.fit(mean.labels, mean.sizes, hits, n_true, least=least, largest=largest, ways=ways)
        return replace(mixture, rule=rule), f1

    def combine(self, members: Sequence[LabelProbabilities]) -> LabelProbabilities:
        """Return the combined probabilities of the models."""
        calibrated = [
            replace(member, labels=apply(member.labels))
            for apply, member in zip(self.calibrations, members, strict=True)
        ]
        mean = average(calibrated, self.weights)
        if not self.shifts:
            return mean
        return replace(mean, labels=expit(self.slope * _log_odds(mean.labels) + np.array(self.shifts)))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        pairs = [one.to_list() for one in self.calibrations]
        mean = {"slope": self.slope, "shifts": list(self.shifts)}
        return {"weights": list(self.weights), "calibrations": pairs, **mean, "rule": self.rule.to_dict()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, n_labels: int) -> "Mixture":
        """Read it back, for models that know so many labels."""
        weights = tuple(float(weight) for weight in saved["weights"])
        calibrations = tuple(map(LogisticCalibration.from_list, saved["calibrations"]))
        if len(weights) != len(calibrations) or not np.isfinite(weights).all() or not 0.99 < sum(weights) < 1.01:
            raise ValueError(f"weights must sum to 1, one for each calibration, got {weights!r}")
        slope, shifts = float(saved.get("slope", 1.0)), tuple(map(float, saved.get("shifts", ())))
        if not np.isfinite([slope, *shifts]).all():
            raise ValueError("slope and shifts must be finite numbers")
        if shifts and len(shifts) != n_labels:
            raise ValueError(f"there must be a shift for each of {n_labels} labels, got {len(shifts)}")
        rule = Rule.from_dict(saved["rule"])
        return cls(weights=weights, calibrations=calibrations, rule=rule, slope=slope, shifts=shifts)


def fit_logistic(
    features: Sequence[Floats], hits: Hits, shrinkage: float, bounds: Sequence[tuple[float, float]]
) -> list[float]:
    """Return the slopes of features and the shift of a logistic regression that is pulled to the first feature."""
    columns, identity = np.stack([*features, np.ones(len(hits))]), np.eye(len(features) + 1)[0]

    def loss(found: Floats) -> tuple[float, Floats]:
        z, away = found @ columns, found - identity
        value = np.logaddexp(0, z).sum() - z[hits].sum() + shrinkage / 2 * away @ away
        return float(value), columns @ (expit(z) - hits) + shrinkage * away

    found: list[float] = minimize(loss, identity, jac=True, method="L-BFGS-B", bounds=bounds).x.tolist()
    return found


def _calibrate_mean(mean: Floats, hits: Hits) -> tuple[float, tuple[float, ...]]:
    """Return the slope, and the shift of each label: the rarer a label seems to the models, the more it is raised."""
    if hits.all() or not hits.any():
        return 1.0, ()
    rarity = np.log(np.clip(mean.mean(axis=0), _RAREST, 1))
    rarity -= rarity.max()
    features = [_log_odds(mean).ravel(), np.broadcast_to(rarity, mean.shape).ravel()]
    slope, tilt, shift = fit_logistic(features, hits.ravel(), SHRINKAGE, [_SLOPES, _TILTS, _SHIFTS])
    return slope, tuple((shift + tilt * rarity).tolist())


def _fit_weights(calibrated: Sequence[Floats], hits: Hits) -> tuple[float, ...]:
    """Return the weights with the highest likelihood, times a prior (Dirichlet) that prefers equal ones."""
    if len(calibrated) == 1:
        return (1.0,)
    shares = np.stack([np.where(hits, p, 1 - p).ravel() for p in calibrated])
    shares = np.clip(shares[:, np.ptp(shares, axis=0) > _TINY], _TINY, 1)  # the others are the same for all weights

    def loss(logits: Floats) -> tuple[float, Floats]:
        weights = softmax(logits)
        mean = weights @ shares
        slopes = (shares / mean).sum(axis=1) + _PRIOR / weights
        value = np.log(mean).sum() + _PRIOR * np.log(weights).sum()
        return -float(value), -weights * (slopes - weights @ slopes)

    found = minimize(loss, np.zeros(len(calibrated)), jac=True, method="L-BFGS-B")
    return tuple(softmax(found.x).tolist())


def average(members: Sequence[LabelProbabilities], weights: Sequence[float] | Floats) -> LabelProbabilities:
    """Return the weighted mean of probabilities: of each label over the models that know it, of sizes likewise."""
    pairs = [(member, weight) for member, weight in zip(members, weights, strict=True) if weight > 0]
    shares = [
        weight * (np.ones(member.labels.shape[1]) if member.known is None else member.known) for member, weight in pairs
    ]
    total_share = np.sum(shares, axis=0)
    labels = sum(share * member.labels for share, (member, _) in zip(shares, pairs, strict=True))
    labels = labels / np.where(total_share > 0, total_share, 1.0)
    sized = [(member.sizes, weight) for member, weight in pairs if member.sizes is not None]
    if not sized:  # use the sizes of any model that predicts them
        sized = [(member.sizes, 1.0) for member in members if member.sizes is not None]
    if not sized:
        return LabelProbabilities(np.asarray(labels))
    width = max(sizes.shape[1] for sizes, _ in sized)
    total = sum(weight for _, weight in sized)
    padded = [np.pad(sizes, ((0, 0), (0, width - sizes.shape[1]))) * (weight / total) for sizes, weight in sized]
    return LabelProbabilities(np.asarray(labels), np.asarray(sum(padded)))
