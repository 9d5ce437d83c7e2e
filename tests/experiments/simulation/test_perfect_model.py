"""The perfect model, against enumeration of all orders."""

from itertools import permutations
from math import isclose

import pytest

from setaug.experiments.simulation.design import topological_share
from setaug.experiments.simulation.perfect_model import (
    expected_jaccards,
    greedy_set,
    likely_sets,
    perfect_scores,
    prefix_probability,
)
from setaug.experiments.simulation.processes import paired_symbols

X = [0.5, 0.3, 0.2]
SET = frozenset(["s0", "p0", "s1", "p1", "s2"])


def is_topological(order: tuple[str, ...]) -> bool:
    place = {label: at for at, label in enumerate(order)}
    return all(place[f"p{at}"] < place[f"s{at}"] for at in (0, 1))


@pytest.mark.parametrize("topological", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("start", [[], ["p0"], ["s0"], ["s2", "p1"], ["p1", "s1"], ["s1", "p1"], ["p0", "p1", "s2"]])
def test_the_probability_of_a_prefix_is_its_share_of_orders(start: list[str], topological: float) -> None:
    orders = list(permutations(SET))
    allowed = [order for order in orders if is_topological(order)]
    shares = [sum(list(order[: len(start)]) == start for order in each) / len(each) for each in (orders, allowed)]
    expected = (1 - topological) * shares[0] + topological * shares[1]
    assert isclose(prefix_probability(SET, start, topological), expected, abs_tol=1e-12)


def test_a_prefix_with_a_label_of_another_set_has_probability_0() -> None:
    assert prefix_probability(SET, ["s9"], 0.5) == 0


def test_likely_sets_are_all_that_there_are() -> None:
    sets = likely_sets(X, n_blocks=2)
    assert isclose(sum(sets.values()), 1)
    drawn = [frozenset(one.labels) for one in paired_symbols(500, n_symbols=3, n_blocks=2)]
    assert set(drawn) <= set(sets)


@pytest.mark.parametrize("topological", [0.0, 1.0])
def test_greedy_takes_the_likeliest_label_each_time(topological: float) -> None:
    sets = likely_sets(X, n_blocks=2)
    start: tuple[str, ...] = ()
    while True:  # by enumeration: how likely is each way to go on?
        chances: dict[str, float] = {}
        for labels, chance in sets.items():
            orders = list(permutations(sorted(labels)))
            if topological:
                pairs = [(f"p{label[1:]}", label) for label in labels if f"p{label[1:]}" in labels and label[0] == "s"]
                orders = [one for one in orders if all(one.index(p) < one.index(s) for p, s in pairs)]
            for order in orders:
                if order[: len(start)] == start:
                    then = order[len(start)] if len(order) > len(start) else ""
                    chances[then] = chances.get(then, 0) + chance / len(orders)
        likeliest = max(sorted(chances), key=chances.__getitem__)
        if not likeliest:
            break
        start += (likeliest,)
    assert greedy_set(sets, topological) == frozenset(start)


def test_expected_scores_are_averages_over_all_sets() -> None:
    sets = likely_sets(X, n_blocks=3)
    for predicted, score in zip(sets, expected_jaccards(sets).tolist(), strict=True):
        by_hand = sum(p * len(predicted & labels) / len(predicted | labels) for labels, p in sets.items())
        assert isclose(score, by_hand)


def test_no_way_of_decoding_beats_the_best_set() -> None:
    sets = likely_sets(X, n_blocks=3)
    scores = expected_jaccards(sets)
    found = perfect_scores([X, X], n_blocks=3, shares=(0, 1))
    assert found["best"] == max(scores)
    assert isclose(found["random"], sum(p * score for p, score in zip(sets.values(), scores, strict=True)))
    assert max(found["random"], found["greedy 0.00"], found["greedy 1.00"]) <= found["best"]


def test_large_numbers_of_sets_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = likely_sets(X, n_blocks=3)
    whole = expected_jaccards(sets)
    monkeypatch.setattr("setaug.experiments.simulation.perfect_model._ROWS", 5)
    assert expected_jaccards(sets).tolist() == pytest.approx(whole.tolist())


def test_one_of_three_orders_is_the_given_one() -> None:
    assert [topological_share(added) for added in (0, 1, 2)] == [0, 1 / 2, 2 / 3]
