"""Scores of rankings: the labels of a prediction by descending probability, against the true set."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

CUTS = (1, 3, 5, 10)
"""The numbers of labels at which rankings are scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingScores:
    """Scores of rankings, averaged over the examples that have a true label."""

    n_examples: int
    """Examples with a true label."""
    precision_at: Mapping[int, float]
    """The share of true labels among the first k; k counts also where fewer labels are ranked."""
    ndcg_at: Mapping[int, float]
    """The normalized discounted cumulative gain of the first k."""
    average_precision: float
    """The mean, over the true labels, of the precision at their rank; a label without a rank counts 0."""
    coverage: float
    """How many labels of the ranking have to be taken to have all true ones; those without a rank come last."""


def score_rankings(
    gold: Sequence[Collection[str]], probabilities: Sequence[Mapping[str, float]], *, cuts: Sequence[int] = CUTS
) -> RankingScores | None:
    """Score label probabilities as rankings; None if no example has a true label.

    Labels with equal probabilities are ranked in the order given.

    Examples
    --------
    >>> scores = score_rankings([{"joy", "pride"}], [{"joy": 0.9, "fear": 0.6, "pride": 0.5}])
    >>> scores.precision_at[1], round(scores.average_precision, 3), scores.coverage
    (1.0, 0.833, 3.0)

    """
    pairs = [(set(truth), found) for truth, found in zip(gold, probabilities, strict=True) if truth]
    if not pairs:
        return None
    most = max(cuts)
    discounts = 1 / np.log2(np.arange(2, most + 2))
    ideal = np.cumsum(discounts)
    precision, gain, average, depth = [], [], [], []
    for truth, found in pairs:
        ranked = sorted(found, key=lambda label: -found[label])
        hits = np.array([label in truth for label in ranked], np.float64)
        first = np.zeros(most)
        first[: min(most, len(hits))] = hits[:most]
        precision.append([first[:k].sum() / k for k in cuts])
        gain.append([first[:k] @ discounts[:k] / ideal[min(k, len(truth)) - 1] for k in cuts])
        ranks = np.flatnonzero(hits) + 1
        average.append(float((np.arange(1, len(ranks) + 1) / ranks).sum()) / len(truth))
        n_missing = len(truth) - len(ranks)
        depth.append(len(ranked) + n_missing if n_missing else int(ranks[-1]))
    return RankingScores(
        n_examples=len(pairs),
        precision_at=dict(zip(cuts, np.mean(precision, axis=0).tolist(), strict=True)),
        ndcg_at=dict(zip(cuts, np.mean(gain, axis=0).tolist(), strict=True)),
        average_precision=float(np.mean(average)),
        coverage=float(np.mean(depth)),
    )
