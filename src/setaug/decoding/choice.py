"""From many generations for one text to one set: the share of each label, and the set that promises most."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

CHOICES = ("expected-f1", "expected-jaccard", "size", "vote")
"""Ways to choose: the set with the highest expected F1 or Jaccard over the generations; the most probable labels, as
many as the most probable size says; or the labels whose probability reaches a threshold."""


def label_shares(sets: Sequence[Collection[str]], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Give the share of the sets that hold a label, the most frequent one first.

    Examples
    --------
    >>> label_shares([{"joy"}, {"joy", "love"}])
    {'joy': 1.0, 'love': 0.5}

    """
    labels, holds, weight = _table(sets, weights)
    # Divide last: a label that all sets hold has exactly 1, and one that half of them hold exactly a half.
    shares = dict(zip(labels, (weight @ holds / weight.sum()).tolist(), strict=True))
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def size_shares(sets: Sequence[Collection[str]]) -> dict[int, float]:
    """Give the share of each size among the sets."""
    sizes = [len(labels) for labels in sets]
    return {size: sizes.count(size) / len(sizes) for size in sorted(set(sizes))}


def choose(
    way: str,
    sets: Sequence[Collection[str]],
    *,
    probabilities: Mapping[str, float],
    sizes: Mapping[int, float],
    threshold: float = 0.5,
) -> tuple[str, ...]:
    """Choose a set, by one of the `CHOICES`; the most probable label first.

    Parameters
    ----------
    sets
        The generations.
    probabilities
        The probability of each label that any of them holds.
    sizes
        The probability of each size.

    """
    match way:
        case "vote":
            chosen = {label for label, share in probabilities.items() if share >= threshold}
        case "size":
            size = max(sizes, key=lambda size: (sizes[size], -size))
            chosen = set(_ranked(probabilities)[:size])
        case "expected-f1":
            chosen = best_for_f1(sets)
        case "expected-jaccard":
            chosen = best_for_jaccard(sets)
        case _:
            raise ValueError(f"choose must be one of {', '.join(CHOICES)}, got {way!r}.")
    return tuple(_ranked({label: probabilities.get(label, 0.0) for label in chosen}))


def best_for_f1(sets: Sequence[Collection[str]], weights: Sequence[float] | None = None) -> set[str]:
    """Find the set with the highest mean F1 against the sets given, over all sets there are.

    For each size k the best labels are those with the highest sum of 2 / (k + |s|) over the sets s that hold them
    (Dembczynski et al. 2011); two empty sets agree fully.

    Examples
    --------
    >>> sorted(best_for_f1([{"a", "b"}, {"a", "c"}, {"a"}]))
    ['a']

    """
    return max(_candidates(sets, weights), key=lambda found: (round(found[0], 12), -len(found[1])))[1]


def _candidates(sets: Sequence[Collection[str]], weights: Sequence[float] | None) -> list[tuple[float, set[str]]]:
    """For each size, give the set with the highest mean F1, and that mean."""
    labels, holds, weight = _table(sets, weights)
    share = weight / weight.sum()
    sizes = holds.sum(axis=1)
    found = [(float(share[sizes == 0].sum()), set[str]())]
    for size in range(1, len(labels) + 1):
        gains = (share * 2 / (size + sizes)) @ holds
        best = np.argsort(-gains, kind="stable")[:size]
        found.append((float(gains[best].sum()), {labels[at] for at in best}))
    return found


def best_for_jaccard(sets: Sequence[Collection[str]]) -> set[str]:
    """Find a set with a high mean Jaccard index: the best of the sets given and those that are best for F1."""
    candidates = [*map(set, sets), *(found for _, found in _candidates(sets, None))]
    return max(candidates, key=lambda found: (np.mean([_jaccard(found, set(other)) for other in sets]), -len(found)))


def _jaccard(one: set[str], two: set[str]) -> float:
    return len(one & two) / len(one | two) if one or two else 1.0


def _ranked(probabilities: Mapping[str, float]) -> list[str]:
    return sorted(probabilities, key=lambda label: (-probabilities[label], label))


def _table(
    sets: Sequence[Collection[str]], weights: Sequence[float] | None
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Give the labels, which set holds which, and each set's weight."""
    labels = sorted({label for found in sets for label in found})
    holds = np.array([[label in found for label in labels] for found in sets], np.float64).reshape(len(sets), -1)
    return labels, holds, np.ones(len(sets)) if weights is None else np.asarray(weights, np.float64)
