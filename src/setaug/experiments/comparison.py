"""Whether one row of a table is better than another by more than chance, over all seeds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

import numpy as np
from scipy.stats import permutation_test

from setaug.metrics import compare_proportions, paired_permutation, score_sets

Sets: TypeAlias = Sequence[Collection[str]]

TESTED = ("macro_f1", "micro_f1", "samples_f1")
"""The scores whose differences are tested."""
N_ROUNDS = 10_000
PAPER_LEVEL = 0.0005
"""What the paper calls significant."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Hold how a row compares with another one."""

    points: float
    """How much higher its mean score is, from -1 to 1."""
    p_paired: float
    """Two-sided, by exchanging what the two models predict for an example."""
    p_proportions: float
    """One-sided, as the paper tests it, its F taken for a share of the test examples."""


def compare_rows(first: Sequence[Sets], second: Sequence[Sets], gold: Sets, *, score: str) -> Difference:
    """Compare two rows of which each seed's sets are given, in the same order of seeds.

    What a model predicts for an example with several seeds is exchanged together, since it is not independent.

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
        raise ValueError(f"there are {len(first)} seeds of the first row, and {len(second)} of the second.")
    rows = first, second
    means = [fmean(getattr(score_sets(sets, gold), score) for sets in row) for row in rows]
    hits = [round(mean * len(gold)) for mean in means]
    return Difference(
        points=means[1] - means[0],
        p_paired=_paired(*rows, gold) if score == "samples_f1" else _paired_by_label(*rows, gold, score),
        p_proportions=compare_proportions(hits[0], len(gold), hits[1], len(gold)).p_one_sided,
    )


def _paired(first: Sequence[Sets], second: Sequence[Sets], gold: Sets) -> float:
    """Exchange the mean F that an example has over the seeds."""
    means = [
        np.mean([[_f1(*pair) for pair in zip(sets, gold, strict=True)] for sets in row], axis=0)
        for row in (first, second)
    ]
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
    """Exchange the sets of all seeds; each seed's labels count by themselves, so macro F is its mean over seeds."""
    sets = (_together(row) for row in (first, second, [gold] * len(first)))
    return paired_permutation(*sets, metric=score, n_rounds=N_ROUNDS).p_two_sided  # type: ignore[arg-type]


def _together(row: Sequence[Sets]) -> list[list[str]]:
    return [
        [f"{seed} {label}" for seed, labels in enumerate(each) for label in labels] for each in zip(*row, strict=True)
    ]
