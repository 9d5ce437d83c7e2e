"""Tests between rows of a table."""

from itertools import product

import numpy as np
import pytest

from setaug.experiments.reproduction.comparison import compare_rows
from setaug.metrics import PairedScores, compare_proportions, score_sets

GOLD = [["joy", "love"], ["fear"], ["anger", "fear"], ["love", "pride"]]
POOR = [["joy"], ["joy"], ["fear"], ["joy"]]
FAIR = [["joy", "love"], ["fear"], ["fear"], ["love"]]


def swap_all(first: list[list[list[str]]], second: list[list[list[str]]], score: str) -> float:
    """Try all exchanges of examples, for all seeds at once."""

    def mean(row: list[list[list[str]]]) -> float:
        return float(np.mean([getattr(score_sets(GOLD, sets), score) for sets in row]))

    observed = abs(mean(second) - mean(first))
    differences = []
    for swaps in product((False, True), repeat=len(GOLD)):
        pairs = [
            [(b, a) if swap else (a, b) for swap, a, b in zip(swaps, one, other, strict=True)]
            for one, other in zip(first, second, strict=True)
        ]
        mixed = [[[pair[side] for pair in row] for row in pairs] for side in (0, 1)]
        differences.append(abs(mean(mixed[1]) - mean(mixed[0])))
    return float(np.mean(np.array(differences) >= observed - 1e-12))


@pytest.mark.parametrize("score", ["samples_f1", "macro_f1"])
def test_seeds_are_exchanged_together(score: str) -> None:
    first, second = [POOR, FAIR[::-1]], [FAIR, GOLD]
    found = compare_rows(first, second, GOLD, score=score)
    assert found.p_paired == pytest.approx(swap_all(first, second, score))
    means = [np.mean([getattr(score_sets(GOLD, sets), score) for sets in row]) for row in (first, second)]
    assert found.points == pytest.approx(means[1] - means[0])


@pytest.mark.parametrize("score", ["samples_f1", "macro_f1", "micro_f1"])
def test_one_seed_is_the_usual_test(score: str) -> None:
    found = compare_rows([POOR], [FAIR], GOLD, score=score)
    usual = PairedScores.of(GOLD, POOR, FAIR, metric=score).permutation()  # type: ignore[arg-type]
    assert found.p_paired == pytest.approx(usual.p_two_sided)


def test_the_paper_s_test_takes_f_for_a_share_of_the_examples() -> None:
    found = compare_rows([POOR], [FAIR], GOLD, score="samples_f1")
    hits = [round(score_sets(GOLD, sets).samples_f1 * len(GOLD)) for sets in (POOR, FAIR)]
    assert found.p_proportions == compare_proportions(hits[0], 4, hits[1], 4).p_one_sided


def test_equal_rows_do_not_differ() -> None:
    found = compare_rows([POOR], [POOR], GOLD, score="samples_f1")
    assert (found.points, found.p_paired) == (0, 1)


def test_only_some_scores_are_tested() -> None:
    with pytest.raises(ValueError, match="score must be one of macro_f1, micro_f1, samples_f1, got 'agreement'"):
        compare_rows([POOR], [FAIR], GOLD, score="agreement")


def test_rows_need_the_same_seeds() -> None:
    with pytest.raises(ValueError, match="both rows must have the same number of seeds, got 1 and 2"):
        compare_rows([POOR], [FAIR, FAIR], GOLD, score="samples_f1")
