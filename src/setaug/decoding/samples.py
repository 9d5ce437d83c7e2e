"""One set from several samples for a text: label probabilities, their calibration, and the choice."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.predictions import Prediction
from setaug.settings import WAYS


@dataclass(frozen=True)
class Calibration:
    """A piecewise linear map from fractions to probabilities."""

    shares: tuple[float, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def fit(cls, shares: Sequence[Mapping[str, float]], gold: Sequence[Collection[str]]) -> "Calibration":
        """Fit an isotonic regression of correctness on the fraction of a label, on dev examples.

        Labels that no sample contains are left out: they have no probability.
        """
        from sklearn.isotonic import IsotonicRegression

        pairs = [
            (share, float(label in labels))
            for found, labels in zip(shares, gold, strict=True)
            for label, share in found.items()
        ]
        if not pairs:
            raise ValueError("cannot calibrate: no dev example has a generated label.")
        x, y = np.array(pairs).T
        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x, y)
        return cls(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))

    def __call__(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Return the calibrated probability of each label."""
        values = np.interp(list(shares.values()), self.shares, self.probabilities).tolist()
        return dict(zip(shares, values, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"shares": list(self.shares), "probabilities": list(self.probabilities)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Calibration":
        """Read it back."""
        return cls(tuple(saved["shares"]), tuple(saved["probabilities"]))


def predict_by_vote(
    sets: Sequence[Sequence[str]],
    *,
    way: str,
    threshold: float | None = None,
    k: int | None = None,
    strange: frozenset[str] | None = None,
    sizes: Mapping[int, float] | None = None,
    allowed: range | None = None,
    calibration: Calibration | None = None,
    key: str | int | None = None,
) -> Prediction:
    """Choose a set by one of the `WAYS`; a label's probability is the fraction of sets that contain it.

    ``best`` and ``written``, which say nothing about samples, are ``expected-f1``.

    Parameters
    ----------
    threshold, k
        The minimum share of a label, for ``threshold`` (0.5 by default), and the number of labels, for ``top-k``.
    strange
        Labels that are not in the vocabulary; None where it is open.
    sizes
        The probability of each size; by default its share of the sets.
    allowed
        The sizes that the set may have; by default any.
    calibration
        Maps shares to probabilities.

    """
    way = "expected-f1" if way in ("best", "written") else way
    shares = label_shares(sets)
    probabilities = shares if calibration is None else calibration(shares)
    sizes = size_shares(sets) if sizes is None else sizes
    level = 0.5 if threshold is None else threshold
    labels = choose(way, sets, probabilities=probabilities, sizes=sizes, threshold=level, k=k, allowed=allowed)
    unknown = None if strange is None else tuple(label for label in labels if label in strange)
    return Prediction(labels=labels, probabilities=probabilities, sizes=sizes, unknown=unknown, id=key)


def probability_matrix(predictions: Sequence[Prediction], labels: Sequence[str]) -> NDArray[np.float64]:
    """Return the probabilities of predictions: one row per prediction, one column per label; 0 if none is given.

    Examples
    --------
    >>> probability_matrix([Prediction(labels=("joy",), probabilities={"joy": 0.75})], ["fear", "joy"]).tolist()
    [[0.0, 0.75]]

    """
    rows = [[(one.probabilities or {}).get(label, 0.0) for label in labels] for one in predictions]
    return np.array(rows, np.float64).reshape(len(predictions), len(labels))


def label_shares(sets: Sequence[Collection[str]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the fraction of sets that contain each label, in descending order.

    Examples
    --------
    >>> label_shares([{"joy"}, {"joy", "love"}])
    {'joy': 1.0, 'love': 0.5}

    """
    labels, holds, weight = _table(sets, weights)
    # Divide last: a label in all sets has exactly 1, and one in half of them exactly a half.
    shares = dict(zip(labels, (weight @ holds / weight.sum()).tolist(), strict=True))
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def size_shares(sets: Sequence[Collection[str]]) -> dict[int, float]:
    """Return the fraction of sets of each size."""
    sizes = [len(labels) for labels in sets]
    return {size: sizes.count(size) / len(sizes) for size in sorted(set(sizes))}


def choose(
    way: str,
    sets: Sequence[Collection[str]],
    *,
    probabilities: Mapping[str, float],
    sizes: Mapping[int, float],
    threshold: float = 0.5,
    k: int | None = None,
    allowed: range | None = None,
) -> tuple[str, ...]:
    """Choose a set, by one of the `WAYS`; the most probable label first.

    Parameters
    ----------
    sets
        The samples.
    probabilities
        The probability of each label that any of them contains.
    sizes
        The probability of each size.
    k
        The number of labels, for ``top-k``; by default the mean size of the samples.
    allowed
        The sizes that the set may have; by default any. Where the samples have too few labels, all are taken.

    """
    match way:
        case "threshold":
            size = sum(share >= threshold for share in probabilities.values())
            chosen = set(_ranked(probabilities)[: _nearest(size, allowed)])
        case "top-k":
            size = round(float(np.mean([len(one) for one in sets]))) if k is None else k
            chosen = set(_ranked(probabilities)[: _nearest(size, allowed)])
        case "size":
            size = max(sizes, key=lambda size: (sizes[size], -size))
            chosen = set(_ranked(probabilities)[: _nearest(size, allowed)])
        case "expected-f1":
            chosen = best_for_f1(sets, allowed=allowed)
        case "expected-jaccard":
            chosen = best_for_jaccard(sets, allowed=allowed)
        case "exact-match":
            counts: Counter[frozenset[str]] = Counter(
                frozenset(one) for one in sets if not allowed or len(one) in allowed
            )
            if not counts:  # no sample has an allowed size
                size = round(float(np.mean([len(one) for one in sets])))
                counts = Counter([frozenset(_ranked(probabilities)[: _nearest(size, allowed)])])
            found = max(counts, key=lambda one: (counts[one], _total(one, probabilities), sorted(one)))
            chosen = set(found)
        case _:
            raise ValueError(f"choose must be one of {', '.join(WAYS)}, got {way!r}.")
    return tuple(_ranked({label: probabilities.get(label, 0.0) for label in chosen}))


def _total(labels: Collection[str], probabilities: Mapping[str, float]) -> float:
    return sum(probabilities.get(label, 0.0) for label in labels)


def _nearest(size: int, allowed: range | None) -> int:
    return size if not allowed else min(max(size, allowed[0]), allowed[-1])


def best_for_f1(
    sets: Sequence[Collection[str]], weights: Sequence[float] | None = None, *, allowed: range | None = None
) -> set[str]:
    """Return the set with the highest mean F1 against the samples, of all sets of an allowed size.

    For each size k the best labels are those with the highest sum of 2 / (k + |s|) over the sets s that contain them
    (Dembczynski et al. 2011); two empty sets have an F1 of 1.

    Examples
    --------
    >>> sorted(best_for_f1([{"a", "b"}, {"a", "c"}, {"a"}]))
    ['a']

    """
    return max(_candidates(sets, weights, allowed), key=lambda found: (round(found[0], 12), -len(found[1])))[1]


def _candidates(
    sets: Sequence[Collection[str]], weights: Sequence[float] | None, allowed: range | None
) -> list[tuple[float, set[str]]]:
    """Return the set with the highest mean F1, and that mean, for each allowed size."""
    labels, holds, weight = _table(sets, weights)
    share = weight / weight.sum()
    sizes = holds.sum(axis=1)
    found = []
    for size in _within(range(len(labels) + 1), allowed):
        if not size:
            found.append((float(share[sizes == 0].sum()), set[str]()))
            continue
        gains = (share * 2 / (size + sizes)) @ holds
        best = np.argsort(-gains, kind="stable")[:size]
        found.append((float(gains[best].sum()), {labels[at] for at in best}))
    return found


def _within(sizes: range, allowed: range | None) -> range:
    """Clip a range of sizes to the allowed ones; if none is left, keep the nearest."""
    return range(_nearest(sizes[0], allowed), _nearest(sizes[-1], allowed) + 1) if allowed else sizes


def best_for_jaccard(sets: Sequence[Collection[str]], *, allowed: range | None = None) -> set[str]:
    """Return a set with a high mean Jaccard index: the best of the samples and of the sets that are best for F1."""
    given = [set(one) for one in sets if not allowed or len(one) in allowed]
    candidates = [*given, *(found for _, found in _candidates(sets, None, allowed))]
    return max(candidates, key=lambda found: (np.mean([_jaccard(found, set(other)) for other in sets]), -len(found)))


def _jaccard(one: set[str], two: set[str]) -> float:
    return len(one & two) / len(one | two) if one or two else 1.0


def _ranked(probabilities: Mapping[str, float]) -> list[str]:
    return sorted(probabilities, key=lambda label: (-probabilities[label], label))


def _table(
    sets: Sequence[Collection[str]], weights: Sequence[float] | None
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Return the labels, the indicator matrix of the sets, and the weight of each set."""
    labels = sorted({label for found in sets for label in found})
    holds = np.array([[label in found for label in labels] for found in sets], np.float64).reshape(len(sets), -1)
    return labels, holds, np.ones(len(sets)) if weights is None else np.asarray(weights, np.float64)
