"""Significance tests of the difference between two rows of a table, over all seeds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

import numpy as np
from scipy.stats import permutation_test

from setaug.metrics import PairedScores, compare_proportions, score_sets

Sets: TypeAlias = Sequence[Collection[str]]

TESTED = ("macro_f1", "micro_f1", "samples_f1")
"""The scores whose differences are tested."""
N_ROUNDS = 10_000
PAPER_LEVEL = 0.0005
"""The paper's level of significance."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between two rows."""

    points: float
    """Difference of the mean scores, from -1 to 1."""
    p_paired: float
    """Two-sided, by swapping the predictions of the two models for an example."""
    p_proportions: float
    """One-sided, the paper's test of two proportions, with F as a share of the test examples."""


def compare_rows(first: Sequence[Sets], second: Sequence[Sets], gold: Sets, *, score: str) -> Difference:
    """Compare the predicted sets of two rows, given by seed, in the same order of seeds.

    The predictions of all seeds for an example are swapped together, since they are not independent.

    Examples
    --------
    >>> gold = [["joy"], ["fear", "anger"], ["love"], ["joy", "love"]] * 5
    >>> found = compare_rows([[["joy"]] * 20], [gold], gold, score="samples_f1")
    >>> round(found.points, 3), found.p_paired < 0.01
    (0.583, True)

    """
    if score not in TESTED:
        raise ValueError(f"score must be one of {', '.join(TESTED)}, got {score!r}.")
    if len(first) != len(second):
        raise ValueError(f"both rows must have the same number of seeds, got {len(first)} and {len(second)}.")
    rows = first, second
    means = [fmean(getattr(score_sets(gold, sets), score) for sets in row) for row in rows]
    hits = [round(mean * len(gold)) for mean in means]
    return Difference(
        points=means[1] - means[0],
        p_paired=_paired(*rows, gold) if score == "samples_f1" else _paired_by_label(*rows, gold, score),
        p_proportions=compare_proportions(hits[0], len(gold), hits[1], len(gold)).p_one_sided,
    )


def _paired(first: Sequence[Sets], second: Sequence[Sets], gold: Sets) -> float:
    """Swap the mean F of an example over the seeds."""
    means = [np.mean([list(map(_f1, sets, gold)) for sets in row], axis=0) for row in (first, second)]
    difference = means[1] - means[0]
    if not difference.any():
        return 1.0
    test = permutation_test(
        (difference,),
        lambda values, axis: np.mean(values, axis=axis),
        permutation_type="samples",
        n_resamples=N_ROUNDS,
        vectorized=True,
        batch=500,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def _f1(found: Collection[str], gold: Collection[str]) -> float:
    if not found and not gold:
        return 1.0
    return 2 * len(set(found) & set(gold)) / (len(set(found)) + len(set(gold)))


def _paired_by_label(first: Sequence[Sets], second: Sequence[Sets], gold: Sets, score: str) -> float:
    """Swap the sets of all seeds. Labels are kept apart by seed, so macro F is its mean over seeds."""
    joined = (
        [[f"{seed} {label}" for seed, labels in enumerate(each) for label in labels] for each in zip(*row, strict=True)]
        for row in ([gold] * len(first), first, second)
    )
    return PairedScores.of(*joined, metric=score).permutation(N_ROUNDS).p_two_sided  # type: ignore[arg-type]
