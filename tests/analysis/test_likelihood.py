"""The likelihood of sets, on tables of known probabilities: by hand, and by expected values, computed exactly."""

from itertools import permutations, product
from math import factorial, inf, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setaug import Example
from setaug.analysis.likelihood import MAX_EXACT, SetLikelihood, bound_of, elbo_of, set_likelihoods
from setaug.orders import LabelStatistics, OrderGraph, SetBatch, Thresholds, make_ordering
from setaug.registry import proposals as known_proposals

SETS = [["tennis", "match", "event"]] * 2 + [["match", "event"]] * 6 + [["event"]] * 24 + [["person"]] * 68
STATISTICS = LabelStatistics().update(SETS)
"""Tennis goes before match and event, and match before event; a person is free."""
THREE = Example("x", ["person", "event", "match"], id=7)
TABLE = {
    ("person", "event", "match"): 1 / 4,
    ("person", "match", "event"): 1 / 8,
    ("event", "person", "match"): 1 / 16,
    ("event", "match", "person"): 1 / 32,
    ("match", "person", "event"): 1 / 64,
    ("match", "event", "person"): 1 / 64,
}
ALLOWED = [order for order in TABLE if order.index("match") < order.index("event")]

PROPOSALS = known_proposals()


def by_table(table, asked=None):
    """Score orders by a table; note what was asked for."""

    def score(examples, orders):
        if asked is not None:
            asked.append([list(each) for each in orders])
        return [[log2(table[order]) if table[order] else -inf for order in each] for each in orders]

    return score


def by_hash(examples, orders):
    """Score any orders, by nothing but the order itself."""
    return [
        [-float(sum(at * len(label) + ord(label[0]) for at, label in enumerate(z)) % 13) for z in e] for e in orders
    ]


def likelihoods(examples, score, **options):
    return list(set_likelihoods(examples, score, statistics=STATISTICS, **options))


def one(example, score, proposal, **options):
    (found,) = likelihoods([example], score, proposals=[proposal], **options)
    return found[proposal]


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_the_sum_over_all_orders_is_exact():
    for proposal in PROPOSALS:
        assert one(THREE, by_table(TABLE), proposal).exact == pytest.approx(log2(1 / 2))


@pytest.mark.parametrize(
    ("proposal", "order"), [("given", ("person", "event", "match")), ("frequency", ("person", "event", "match"))]
)
def test_a_single_order_has_its_own_probability_for_every_bound(proposal, order):
    found = one(THREE, by_table(TABLE), proposal, samples=5)
    assert (found.log2_orders, found.elbo, found.bound, found.allowed) == pytest.approx((0, -2, -2, -2))
    assert log2(TABLE[order]) == -2
    assert found.gap == pytest.approx(1)


@pytest.mark.parametrize(("proposal", "n_orders"), [("uniform", 6), ("topological", 3), ("reversed", 3)])
def test_bounds_are_those_of_the_drawn_orders(proposal, n_orders):
    """Draw the same orders, and compute the two formulas from the probabilities themselves."""
    edges = STATISTICS.edges(Thresholds())
    ordering = make_ordering(PROPOSALS[proposal], labels=STATISTICS.labels, edges=edges)
    batch = SetBatch.of([[STATISTICS.ids[label] for label in THREE.labels]])
    rows = ordering.orders(batch, 5, seed=3, first_index=8).positions.tolist()
    weights = [TABLE[tuple(THREE.labels[at] for at in row)] * n_orders for row in rows]
    assert len(set(weights)) > 1
    found = one(THREE, by_table(TABLE), proposal, samples=5, seed=3, first_index=8)
    assert found.log2_orders == pytest.approx(log2(n_orders))
    assert found.elbo == pytest.approx(sum(map(log2, weights)) / 5)
    assert found.bound == pytest.approx(log2(sum(weights) / 5))
    without = one(THREE, by_table(TABLE), proposal, samples=5, seed=3, first_index=8, max_exact=2)
    assert (without.elbo, without.bound) == (found.elbo, found.bound)
    assert (without.exact, without.allowed, without.gap) == (None, None, None)


def test_elbo_and_bound_by_hand():
    """Two draws of p 1/4 and 1/16 among 8 orders: (log2 2 + log2 1/2) / 2, and log2 of (2 + 1/2) / 2."""
    assert elbo_of([-2, -4], 3) == 0
    assert bound_of([-2, -4], 3) == pytest.approx(log2(1.25))
    assert elbo_of([-2, -inf], 3) == -inf
    assert bound_of([-2, -inf], 3) == 0
    assert bound_of([-inf, -inf], 3) == -inf
    assert bound_of([-3000, -3000, -2999, -inf], 2) == -2998


def test_what_a_proposal_may_draw_is_what_its_graph_allows():
    found = likelihoods([THREE], by_table(TABLE), proposals=["topological", "reversed", "uniform"])[0]
    assert found["topological"].allowed == pytest.approx(log2(sum(TABLE[order] for order in ALLOWED)))
    assert found["reversed"].allowed == pytest.approx(log2(sum(TABLE[order[::-1]] for order in ALLOWED)))
    assert found["uniform"].allowed == found["uniform"].exact
    assert {found[name].exact for name in found} == {found["uniform"].exact}


def test_an_empty_set_and_a_single_label_have_one_order():
    for labels in ([], ["event"]):
        for proposal in PROPOSALS:
            found = one(Example("x", labels), by_table({tuple(labels): 1 / 8}), proposal, max_exact=len(labels))
            assert (found.elbo, found.bound, found.exact, found.allowed, found.log2_orders) == (-3, -3, -3, -3, 0)
            assert found.n_labels == len(labels)


def test_what_is_impossible_has_no_bits():
    found = one(THREE, by_table(dict.fromkeys(TABLE, 0)), "uniform")
    assert found.exact == found.bound == found.elbo == -inf


# --- expected values --------------------------------------------------------------------------------------------------


def expected(values, log2_orders, n_draws, of):
    """Average over all ways in which so many independent draws can come out."""
    return np.mean([of(draws, log2_orders) for draws in product(values, repeat=n_draws)])


@settings(max_examples=60)
@given(st.lists(st.floats(-12, 0), min_size=6, max_size=6))
def test_bounds_are_lower_bounds_that_rise_with_the_draws(values):
    """Exactly, over all tuples of draws from all orders of three labels."""
    exact = float(np.logaddexp2.reduce(values))
    elbos = [expected(values, log2(6), n, elbo_of) for n in (1, 2, 3)]
    bounds = [expected(values, log2(6), n, bound_of) for n in (1, 2, 3)]
    assert elbos == pytest.approx([elbos[0]] * 3)
    assert elbos[0] == pytest.approx(bounds[0])
    assert bounds[0] <= bounds[1] + 1e-9 <= bounds[2] + 2e-9 <= exact + 3e-9
    if max(values) - min(values) > 1:
        assert bounds[0] < bounds[1] < bounds[2] < exact


@settings(max_examples=40)
@given(st.lists(st.floats(-12, 0), min_size=6, max_size=6))
def test_the_likelihood_is_never_below_what_a_proposal_allows(values):
    table = dict(zip(permutations(THREE.labels), (2.0**value for value in values), strict=True))
    found = likelihoods([THREE], by_table(table), proposals=list(PROPOSALS), samples=2)[0]
    assert all(found[name].allowed <= found[name].exact + 1e-12 for name in PROPOSALS)
    bounds = [expected([log2(table[order]) for order in ALLOWED], log2(3), n, bound_of) for n in (1, 2, 5)]
    assert bounds[0] <= bounds[1] + 1e-9 <= bounds[2] + 2e-9 <= found["topological"].allowed + 3e-9


def test_many_draws_come_to_what_the_proposal_allows_and_not_to_more():
    found = likelihoods([THREE], by_table(TABLE), proposals=["topological", "uniform"], samples=20_000)[0]
    assert found["topological"].bound == pytest.approx(log2(1 / 8 + 1 / 64 + 1 / 64), abs=0.03)
    assert found["topological"].exact - found["topological"].bound > 1
    assert found["uniform"].bound == pytest.approx(found["uniform"].exact, abs=0.03)
    by_hand = np.mean([log2(p) for p in TABLE.values()]) + log2(6)
    assert found["uniform"].elbo == pytest.approx(by_hand, abs=0.05)


def test_the_count_behind_a_bound_is_the_number_of_orders_that_the_graph_allows():
    example = Example("x", ["event", "tennis", "person", "match", "new", "other"])
    graph = OrderGraph.of_set(example.labels, STATISTICS)
    n_allowed = sum(graph.allows(order) for order in permutations(example.labels))
    assert n_allowed == factorial(6) // 6
    equal = likelihoods([example], lambda _, orders: [[0.0] * len(orders[0])], proposals=list(PROPOSALS))[0]
    for name, n_orders in {"topological": n_allowed, "reversed": n_allowed, "uniform": 720, "given": 1}.items():
        assert equal[name].log2_orders == pytest.approx(log2(n_orders))
        assert equal[name].bound == equal[name].elbo == pytest.approx(equal[name].allowed)


# --- draws ------------------------------------------------------------------------------------------------------------

MANY = [Example(str(n), labels) for n, labels in enumerate([*SETS[:3], ["person", "event", "new", "match"], []] * 70)]


def test_no_order_is_scored_twice():
    asked = []
    score = by_table({order: 1 / 6 for n in range(4) for order in permutations(THREE.labels, n)}, asked)
    likelihoods([THREE], score, proposals=["uniform", "topological", "given"], samples=50)
    assert [sorted(each) for each in asked[0]] == [sorted(TABLE)]
    asked.clear()
    likelihoods([THREE], score, proposals=["topological", "given"], samples=50, max_exact=0)
    assert sorted(asked[0][0]) == sorted([*ALLOWED, THREE.labels])


def test_draws_depend_on_the_seed_and_the_index_alone():
    options = {"proposals": ["uniform", "topological"], "samples": 3, "max_exact": 0}
    whole = likelihoods(MANY, by_hash, seed=5, **options)
    assert whole == likelihoods(MANY, by_hash, seed=5, **options)
    assert whole != likelihoods(MANY, by_hash, seed=6, **options)
    for start in (1, 100, 300):
        assert whole[start:] == likelihoods(MANY[start:], by_hash, seed=5, first_index=start, **options)
    assert whole[3] != whole[8]  # the same set, at another place
    alone = likelihoods(MANY, by_hash, seed=5, **{**options, "proposals": ["topological"]})
    assert [found["topological"] for found in whole] == [found["topological"] for found in alone]


def test_where_a_graph_has_no_edge_the_same_orders_are_drawn_as_from_all():
    """So that a difference between proposals is one between them, not between their draws."""
    free = Example("x", ["person", "new", "event"])
    names = ["uniform", "topological", "reversed"]
    found = likelihoods([free, THREE] * 5, by_hash, proposals=names, samples=3)
    for each in found[::2]:
        assert {each[name].bound for name in names} == {each["uniform"].bound}
    assert any(each["topological"].bound != each["uniform"].bound for each in found[1::2])
    alone = likelihoods([free], by_hash, proposals=["topological"], samples=3)[0]
    assert alone["topological"] == found[0]["topological"]


def test_many_sets_are_scored_in_parts(monkeypatch):
    whole = likelihoods(MANY, by_hash)
    sizes = []

    def noting(examples, orders):
        sizes.append(sum(map(len, orders)))
        return by_hash(examples, orders)

    monkeypatch.setattr("setaug.analysis.likelihood._AT_ONCE", 30)
    monkeypatch.setattr("setaug.analysis.likelihood._WINDOW", 7)
    assert likelihoods(MANY, noting) == whole
    assert len(sizes) > 20
    assert max(sizes) < 30 + 24


def test_sets_that_are_too_large_to_count_have_no_bound():
    """A fence of 230 labels is one part, above what is drawn uniformly and with too many down-sets to count."""
    names = [f"label {n}" for n in range(230)]
    sets = [[names[n], names[n + 1]] for n in range(229)] + [[name] for name in names[1::2] for _ in range(40)]
    statistics = LabelStatistics().update(sets)
    example = Example("x", names)
    asked = []

    def score(examples, orders):
        asked.append(orders)
        return [[-1.0] * len(orders[0])]

    options = {"statistics": statistics, "thresholds": Thresholds(min_pmi=0, min_ratio=2), "samples": 2}
    (found,) = set_likelihoods([example], score, proposals=["topological", "uniform"], **options)
    assert found["topological"].log2_orders is found["topological"].bound is found["topological"].elbo is None
    assert found["topological"].to_dict() == {}
    assert found["uniform"].bound == pytest.approx(sum(log2(n) for n in range(1, 231)) - 1)
    assert len(asked[0][0]) == 2


# --- what it is, and what is refused ----------------------------------------------------------------------------------


def test_a_likelihood_says_what_it_is_about():
    found = one(THREE, by_table(TABLE), "given", samples=3)
    assert found == SetLikelihood(
        proposal="given", samples=3, n_labels=3, log2_orders=0, elbo=-2, bound=-2, exact=found.exact, allowed=-2, id=7
    )
    assert found.to_dict() == {"log2_orders": 0, "elbo": -2, "bound": -2, "allowed": -2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"proposals": ["magic"]}, "proposal must be one of topological, .*, got 'magic'"),
        ({"proposals": []}, "proposals must be a list of at least one name"),
        ({"proposals": "uniform"}, "proposals must be a list of at least one name, got 'uniform'"),
        ({"samples": 0}, "samples must be an integer of at least 1, got 0"),
        ({"samples": True}, "samples must be"),
        ({"max_exact": MAX_EXACT + 1}, "max_exact must be an integer from 0 to 7, got 8"),
        ({"max_exact": -1}, "max_exact must be"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        set_likelihoods([THREE], by_hash, statistics=STATISTICS, **options)
