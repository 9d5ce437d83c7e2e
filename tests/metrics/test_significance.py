"""Tests of differences: against enumeration, against statsmodels, and by how often they err."""

from collections.abc import Callable
from dataclasses import asdict
from itertools import product
from random import Random
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportions_ztest

from setaug.metrics import PairedScores, compare_proportions, compare_sets, score_sets
from setaug.metrics import significance as module
from setaug.metrics.significance import BootstrapTest, Metric, PermutationTest
from tests.strategies import label_sets

METRICS = get_args(Metric)
MACROS = ("gold", "gold-or-predicted", "vocabulary")
Sets = list[list[str]]
triples = st.lists(st.tuples(label_sets, label_sets, label_sets), min_size=1, max_size=6)


def made_up(n: int, *, skill: tuple[float, float] = (0.6, 0.6), seed: int = 0) -> tuple[Sets, Sets, Sets]:
    """Draw true sets, and two predictions that keep each true label with a chance and add a wrong one sometimes."""
    rng = Random(seed)
    gold = [rng.sample("abcdefgh", rng.randint(0, 4)) for _ in range(n)]
    first, second = (
        [
            [y for y in labels if rng.random() < chance]
            + [y for y in "xyzab" if y not in labels and rng.random() < 0.1]
            for labels in gold
        ]
        for chance in skill
    )
    return gold, first, second


def permute(
    gold: Sets, first: Sets, second: Sets, *, n_rounds: int = 10_000, seed: int = 0, **options: Any
) -> PermutationTest:
    return PairedScores.of(gold, first, second, **options).permutation(n_rounds, seed=seed)


def bootstrap(
    gold: Sets, first: Sets, second: Sets, *, n_rounds: int = 10_000, seed: int = 0, **options: Any
) -> BootstrapTest:
    return PairedScores.of(gold, first, second, **options).bootstrap(n_rounds, seed=seed)


def difference(first: Sets, second: Sets, gold: Sets, metric: str, macro_over: str = "gold") -> float:
    """Compute the difference by scoring both from scratch."""
    options = {"macro_over": macro_over, "vocabulary": list("abcxq")}
    return getattr(score_sets(gold, second, **options), metric) - getattr(score_sets(gold, first, **options), metric)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=25)
@given(data=triples)
def test_scores_are_those_of_score_sets(metric: Metric, data: list[tuple[list[str], ...]]) -> None:
    first, second, gold = map(list, zip(*data, strict=True))
    for macro_over in MACROS if metric == "macro_f1" else ("gold",):
        options = {"macro_over": macro_over, "vocabulary": list("abcxq")}
        result = compare_sets(gold, first, second, metric=metric, n_rounds=8, **options)
        assert result.first == pytest.approx(getattr(score_sets(gold, first, **options), metric))
        assert result.second == pytest.approx(getattr(score_sets(gold, second, **options), metric))
        assert result.difference == pytest.approx(result.second - result.first)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=8)
@given(data=st.lists(st.tuples(label_sets, label_sets, label_sets), min_size=1, max_size=4))
def test_few_examples_are_permuted_in_all_ways(metric: Metric, data: list[tuple[list[str], ...]]) -> None:
    first, second, gold = map(list, zip(*data, strict=True))
    for macro_over in MACROS if metric == "macro_f1" else ("gold",):
        observed = difference(first, second, gold, metric, macro_over)
        all_differences = []
        for exchange in product([False, True], repeat=len(gold)):
            pairs = [(b, a) if swap else (a, b) for a, b, swap in zip(first, second, exchange, strict=True)]
            swapped = [list(sets) for sets in zip(*pairs, strict=True)]
            all_differences.append(difference(*swapped, gold, metric, macro_over))
        result = permute(
            gold, first, second, metric=metric, macro_over=macro_over, vocabulary=list("abcxq"), n_rounds=16
        )
        assert result.is_exact
        assert result.p_one_sided == pytest.approx(np.mean([d >= observed - 1e-9 for d in all_differences]))
        assert result.p_two_sided == pytest.approx(np.mean([abs(d) >= abs(observed) - 1e-9 for d in all_differences]))


@pytest.mark.parametrize("metric", METRICS)
def test_random_exchanges_come_close_to_all_of_them(metric: Metric) -> None:
    gold, first, second = made_up(11, skill=(0.5, 0.7), seed=4)
    exact = permute(gold, first, second, metric=metric, n_rounds=2**11)
    drawn = permute(gold, first, second, metric=metric, n_rounds=2**7 - 1)
    assert exact.is_exact
    assert exact.n_rounds <= 2**11
    if not drawn.is_exact:
        error = 4 * np.sqrt(0.25 / 128) + 1 / 128
        assert abs(drawn.p_one_sided - exact.p_one_sided) < error
        assert abs(drawn.p_two_sided - exact.p_two_sided) < error
        assert drawn.p_one_sided * 128 == pytest.approx(round(drawn.p_one_sided * 128))  # (k + 1) / (127 + 1)


@pytest.mark.parametrize("metric", METRICS)
def test_the_bootstrap_of_few_examples_comes_close_to_all_draws(metric: Metric) -> None:
    gold, first, second = made_up(3, skill=(0.4, 0.8), seed=2)
    everything = [
        difference([first[i] for i in draw], [second[i] for i in draw], [gold[i] for i in draw], metric)
        for draw in product(range(3), repeat=3)
    ]
    n = 4000
    result = bootstrap(gold, first, second, metric=metric, n_rounds=n, seed=1)
    share = np.mean(np.array(everything) <= 1e-9)
    assert result.p_one_sided == pytest.approx(share, abs=4 * np.sqrt(0.25 / n))
    middle = np.quantile(np.repeat(everything, 100), [0.015, 0.035, 0.965, 0.985])
    assert middle[0] - 1e-9 <= result.low <= middle[1] + 1e-9
    assert middle[2] - 1e-9 <= result.high <= middle[3] + 1e-9


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("test", [bootstrap, permute])
def test_exchanging_the_models_turns_the_difference_round(test: Callable[..., object], metric: Metric) -> None:
    gold, first, second = made_up(60, skill=(0.5, 0.6), seed=5)
    there, back = test(gold, first, second, metric=metric), test(gold, second, first, metric=metric)
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_two_sided == pytest.approx(back.p_two_sided, abs=0.03)
    assert 0.97 < there.p_one_sided + back.p_one_sided < 1.25  # equal differences count on both sides
    if test is bootstrap:
        assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


@pytest.mark.parametrize("metric", METRICS)
def test_equal_predictions_do_not_differ(metric: Metric) -> None:
    gold, first, _ = made_up(30)
    result = compare_sets(gold, first, first, metric=metric, n_rounds=50)
    assert (result.difference, result.bootstrap.low, result.bootstrap.high) == (0, 0, 0)
    assert result.permutation.p_one_sided == result.permutation.p_two_sided == 1.0
    assert result.bootstrap.p_one_sided == result.bootstrap.p_two_sided == 1.0
    assert result.sentence == f"The two are equal in {metric}."


@pytest.mark.parametrize("metric", ["samples_f1", "micro_f1", "macro_f1"])
def test_models_that_are_alike_are_called_different_one_time_in_twenty(metric: Metric) -> None:
    n_runs = 300
    found: dict[str, list[bool]] = {"permutation": [], "bootstrap": [], "one-sided": []}
    for seed in range(n_runs):
        data = made_up(80, seed=seed)
        result = compare_sets(*data, metric=metric, n_rounds=199, seed=seed)
        found["permutation"].append(result.permutation.p_two_sided <= 0.05)
        found["one-sided"].append(result.permutation.p_one_sided <= 0.05)
        found["bootstrap"].append(result.bootstrap.p_two_sided <= 0.05)
    # Of 300 with chance 0.05 there are 4 to 27 but for one case in a thousand; the bootstrap is a bit rash.
    assert 4 <= sum(found["permutation"]) <= 27
    assert 4 <= sum(found["one-sided"]) <= 27
    assert 4 <= sum(found["bootstrap"]) <= 33


@pytest.mark.parametrize("metric", METRICS)
def test_a_much_better_model_is_found_to_be_better(metric: Metric) -> None:
    result = compare_sets(*made_up(300, skill=(0.4, 0.9)), metric=metric, n_rounds=500)
    assert result.difference > 0
    assert 0 < result.bootstrap.low < result.difference < result.bootstrap.high
    assert result.permutation.p_one_sided == pytest.approx(1 / 501) or metric == "micro_precision"
    assert result.permutation.p_two_sided < 0.05
    assert result.sentence.startswith("The second is better by 0.")
    back = compare_sets(*made_up(300, skill=(0.9, 0.4)), metric=metric, n_rounds=500)
    assert back.sentence.startswith("The first is better by 0.")
    assert back.permutation.p_one_sided > 0.95


def test_the_sentence_says_when_it_may_be_chance() -> None:
    result = compare_sets(*made_up(40, seed=1), n_rounds=200)
    assert result.permutation.p_two_sided > 0.05
    assert "which may be chance (95 % interval " in result.sentence


@pytest.mark.parametrize("metric", ["samples_f1", "macro_f1"])
def test_the_same_seed_gives_the_same_numbers_in_blocks_of_any_size(
    metric: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made_up(50, skill=(0.5, 0.6))
    whole = compare_sets(*data, metric=metric, n_rounds=100, seed=3)
    assert whole == compare_sets(*data, metric=metric, n_rounds=100, seed=3)
    assert whole != compare_sets(*data, metric=metric, n_rounds=100, seed=4)
    monkeypatch.setattr(module, "_BLOCK", 350)
    parts = compare_sets(*data, metric=metric, n_rounds=100, seed=3)
    assert parts.permutation == whole.permutation
    assert asdict(parts.bootstrap) == pytest.approx(asdict(whole.bootstrap))


@given(st.integers(1, 500), st.integers(1, 500), st.data())
def test_two_proportions_are_tested_as_statsmodels_does(first: int, second: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, first)), data.draw(st.integers(0, second))
    result = compare_proportions(hits[0], first, hits[1], second)
    assert (result.first, result.second) == (hits[0] / first, hits[1] / second)
    if sum(hits) in (0, first + second):  # all alike: statsmodels divides by zero
        assert (result.z, result.p_one_sided) == (0.0, 0.5)
        return
    z, p = proportions_ztest([hits[1], hits[0]], [second, first], alternative="larger")
    assert result.z == pytest.approx(z)
    assert result.p_one_sided == pytest.approx(p)


def test_metrics_that_are_proportions_are_tested_as_such() -> None:
    gold, first, second = made_up(100, skill=(0.5, 0.8))
    n_gold = sum(map(len, gold))
    for metric, counts in {
        "exact_match": [(sum(set(p) == set(g) for p, g in zip(s, gold, strict=True)), 100) for s in (first, second)],
        "micro_recall": [
            (sum(len({*p} & {*g}) for p, g in zip(s, gold, strict=True)), n_gold) for s in (first, second)
        ],
        "micro_precision": [
            (sum(len({*p} & {*g}) for p, g in zip(s, gold, strict=True)), sum(map(len, s))) for s in (first, second)
        ],
    }.items():
        result = compare_sets(gold, first, second, metric=metric, n_rounds=10).proportions
        assert result == compare_proportions(*counts[0], *counts[1])
        assert result is not None
        assert 0 < result.p_one_sided < 1
    assert compare_sets(gold, first, second, metric="micro_f1", n_rounds=10).proportions is None
    assert compare_sets([["a"]], [[]], [["a"]], metric="micro_precision", n_rounds=10).proportions is None


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_but_empty_sets_can_be_compared(metric: Metric) -> None:
    result = compare_sets([[], []], [[], []], [[], []], metric=metric, n_rounds=5)
    assert result.first == result.second == (1.0 if metric in ("samples_f1", "jaccard", "exact_match") else 0.0)


def test_bad_calls_say_what_is_wrong() -> None:
    sets = [["a"]]
    with pytest.raises(ValueError, match=r"metric must be one of micro_f1, .*, got 'f2'"):
        compare_sets(sets, sets, sets, metric="f2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_rounds must be at least 1, got 0"):
        bootstrap(sets, sets, sets, n_rounds=0)
    with pytest.raises(ValueError, match="n_rounds must be at least 1, got -5"):
        permute(sets, sets, sets, n_rounds=-5)
    with pytest.raises(ValueError, match="seed must not be negative, got -1"):
        compare_sets(sets, sets, sets, seed=-1)
    with pytest.raises(ValueError, match="same length, got 1 and 2"):
        compare_sets(sets, sets, sets * 2)
    with pytest.raises(ValueError, match="needs a vocabulary"):
        compare_sets(sets, sets, sets, metric="macro_f1", macro_over="vocabulary")
    for numbers in ((3, 2, 0, 1), (0, 0, 0, 1), (-1, 2, 0, 1)):
        with pytest.raises(ValueError, match="a proportion must be 0 to n of n, with n at least 1"):
            compare_proportions(*numbers)
