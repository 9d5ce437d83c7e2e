from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import islice
from math import comb, factorial, prod
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare, kstest

from setaug.orders import LinearExtensions, Stream, linear_extensions
from setaug.orders.linear_extensions import MAX_LABELS
from tests.strategies import (
    UNIFORM_WAYS,
    all_orders,
    behind_chain,
    chain,
    draw_behind_chain,
    draw_compiled,
    draw_counted,
    draw_huber,
    fence,
    is_allowed,
    order_poset,
    p_uniform,
    posets,
    random_edges,
)

V_AND_FREE = (4, [(0, 1), (0, 2)])
NAMED = {
    "V and a free label": V_AND_FREE,
    "antichain": (4, []),
    "chain": (5, chain(5)),
    "V": (3, [(0, 1), (0, 2)]),
    "upside-down V": (3, [(1, 0), (2, 0)]),
    "star": (5, [(0, i) for i in range(1, 5)]),
    "star to its hub": (5, [(i, 0) for i in range(1, 5)]),
    "N": (4, [(0, 2), (1, 2), (1, 3)]),
    "diamond": (4, [(0, 1), (0, 2), (1, 3), (2, 3)]),
    "fence": (6, fence(6)),
    "two chains": (6, [(0, 1), (1, 2), (3, 4), (4, 5)]),
    "bipartite": (5, [(i, j) for i in (0, 1) for j in (2, 3, 4)]),
    "binary tree": (7, [((i - 1) // 2, i) for i in range(1, 7)]),
    "grid": (8, [*chain(4), *((i + 4, j + 4) for i, j in chain(4)), *((i, i + 4) for i in range(4))]),
    "crown": (6, [(i, 3 + j) for i in range(3) for j in range(3) if i != j]),
    "twins": (6, [(0, 2), (1, 2), (2, 3), (2, 4), (2, 5), (0, 3)]),
}


class Impatient(LinearExtensions):
    """Give up where a loop would draw for ever."""

    n_draws = 0

    def draw(self, stream):
        self._count_draw()
        return super().draw(stream)

    def draw_quick(self, stream):
        self._count_draw()
        return super().draw_quick(stream)

    def _count_draw(self):
        self.n_draws += 1
        assert self.n_draws < 50_000, "draws for ever"


# --- counts -----------------------------------------------------------------------------------------------------------


def disjoint_chains(*lengths):
    starts = [sum(lengths[:k]) for k in range(len(lengths))]
    return sum(lengths), [(start + i, start + j) for start, n in zip(starts, lengths, strict=True) for i, j in chain(n)]


def bipartite(a, b):
    return a + b, [(i, a + j) for i in range(a) for j in range(b)]


def grid(length):
    """A 2 x n grid."""
    row = chain(length)
    return 2 * length, [*row, *((i + length, j + length) for i, j in row), *((i, i + length) for i in range(length))]


def tree(size, seed):
    rng = Random(seed)
    return size, [(rng.randrange(i), i) for i in range(1, size)]


def hook_lengths(size, edges):
    """Count the orders of a tree whose root comes first: n! over the product of the subtrees' sizes."""
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(size))
    return factorial(size) // prod(len(nx.descendants(graph, i)) + 1 for i in graph)


def flipped(size, edges):
    return size, [(j, i) for i, j in edges]


BINARY = (15, [((i - 1) // 2, i) for i in range(1, 15)])
TWO_LEVELS = (79, [*((0, 1 + g) for g in range(6)), *((1 + g, 7 + 12 * g + k) for g in range(6) for k in range(12))])


@pytest.mark.parametrize(
    ("poset", "count"),
    [
        *(((n, []), factorial(n)) for n in (0, 1, 2, 7, 60)),
        *(((n, chain(n)), 1) for n in (1, 2, 60, MAX_LABELS)),
        *(((n, fence(n)), euler) for n, euler in enumerate([1, 1, 1, 2, 5, 16, 61, 272, 1385])),
        (NAMED["V"], 2),
        (NAMED["N"], 5),
        (V_AND_FREE, 8),
        (disjoint_chains(3, 2), comb(5, 2)),
        (disjoint_chains(4, 4, 4), factorial(12) // factorial(4) ** 3),
        (disjoint_chains(20, 20, 20), factorial(60) // factorial(20) ** 3),
        *((bipartite(a, b), factorial(a) * factorial(b)) for a, b in ((1, 1), (2, 3), (5, 4), (30, 30))),
        *((grid(n), comb(2 * n, n) // (n + 1)) for n in (1, 2, 3, 6, 20)),
        (BINARY, factorial(15) // (15 * 7**2 * 3**4)),
        *((tree(size, seed), hook_lengths(*tree(size, seed))) for size, seed in ((9, 0), (30, 1), (79, 2))),
        ((79, [(0, i) for i in range(1, 79)]), factorial(78)),
        ((79, [(i, 0) for i in range(1, 79)]), factorial(78)),
        (TWO_LEVELS, hook_lengths(*TWO_LEVELS)),
        # 59 labels in any order before the last, and one edge among 60 labels.
        ((60, [(i, 59) for i in range(59)]), factorial(59)),
        ((60, [(3, 8)]), factorial(60) // 2),
        (behind_chain(14, *V_AND_FREE), 8),
    ],
)
def test_counts_are_those_of_known_formulas(poset, count):
    assert LinearExtensions(*poset).count == count


@pytest.mark.parametrize("poset", [BINARY, tree(79, 2), TWO_LEVELS])
def test_a_poset_has_as_many_orders_upside_down(poset):
    assert flipped(*flipped(*poset)) == poset
    expected = LinearExtensions(*poset).count
    assert LinearExtensions(*flipped(*poset)).count == expected


@given(posets(6))
def test_counts_and_listings_are_those_of_networkx(poset):
    poset_orders = LinearExtensions(*poset)
    expected = all_orders(*poset)
    assert poset_orders.count == len(expected)
    assert [tuple(order) for order in poset_orders] == sorted(expected)


@given(posets(7), st.data())
def test_neither_names_nor_implied_edges_change_the_count(poset, data):
    size, edges = poset
    names = data.draw(st.permutations(range(size)))
    closed = nx.transitive_closure_dag(nx.DiGraph(edges)).edges if edges else []
    count = LinearExtensions(size, edges).count
    assert LinearExtensions(size, [(names[i], names[j]) for i, j in edges]).count == count
    assert LinearExtensions(size, closed).count == count
    assert LinearExtensions(size, [*edges, *edges]).count == count


def test_what_is_too_large_is_not_counted_but_drawn(monkeypatch):
    sparse = random_edges(Random(5), 40, 0.1)
    assert LinearExtensions(40, sparse).count is None
    assert is_allowed(LinearExtensions(40, sparse).draw(Stream(0)), 40, sparse)
    monkeypatch.setattr(linear_extensions, "MAX_LABELS", 8)
    assert LinearExtensions(9, chain(9)).count is None
    assert LinearExtensions(9, chain(9)).draw(Stream(0)) == [*range(9)]


def test_the_bound_on_states_is_kept():
    assert LinearExtensions(6, fence(6), max_states=3).count is None
    assert LinearExtensions(6, fence(6), max_states=1000).count == 61
    assert LinearExtensions(6, [], max_states=0).count == 720  # free labels need none


def test_a_part_that_is_too_large_leaves_the_others_as_they_are():
    small, large = [(0, 1), (0, 2)], [(i + 3, j + 3) for i, j in fence(9)]
    poset_orders = LinearExtensions(12, small + large, max_states=6)
    assert poset_orders.count is None
    drawn = [poset_orders.draw(Stream(0, i)) for i in range(200)]
    assert all(is_allowed(order, 12, small + large) for order in drawn)
    assert {tuple(i for i in order if i < 3) for order in drawn} == {(0, 1, 2), (0, 2, 1)}


@pytest.mark.parametrize("edges", [[(0, 0)], [(0, 1), (1, 0)], [(0, 1), (1, 2), (2, 0)]])
def test_a_cycle_allows_no_order(edges):
    with pytest.raises(ValueError, match=r"the edges form a cycle, so no order satisfies them\."):
        LinearExtensions(3, edges)


def test_orders_are_listed_one_by_one():
    assert list(islice(LinearExtensions(30, []), 2)) == [[*range(30)], [*range(28), 29, 28]]


# --- uniform draws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("poset", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("way", UNIFORM_WAYS)
def test_draws_are_uniform(way, poset):
    possible = all_orders(*poset)
    assert p_uniform(UNIFORM_WAYS[way](*poset, max(30 * len(possible), 500)), possible) > 1e-4


@pytest.mark.parametrize("name", ["V and a free label", "N", "diamond", "upside-down V"])
def test_draws_for_sets_too_large_for_the_compiled_loop_are_uniform(name):
    assert p_uniform(draw_behind_chain(64, *NAMED[name], 300), all_orders(*NAMED[name])) > 1e-4


@pytest.mark.parametrize("way", UNIFORM_WAYS)
def test_draws_are_uniform_over_many_random_posets(way):
    rng = Random(4)
    p_values = []
    while len(p_values) < 60:
        size = rng.randint(3, 7)
        edges = random_edges(rng, size, rng.uniform(0.1, 0.6))
        possible = all_orders(size, edges) if len(edges) > size - 3 else []
        if 4 <= len(possible) <= 40:
            drawn = UNIFORM_WAYS[way](size, edges, 25 * len(possible), seed=len(p_values))
            p_values.append(p_uniform(drawn, possible))
    assert min(p_values) > 1e-4
    assert kstest(p_values, "uniform").pvalue > 1e-3


def assert_same_places(one, two) -> None:
    """Compare at which places two ways of drawing put each label."""
    one, two = np.array(one), np.array(two)
    for label in range(one.shape[1]):
        table = np.array([(way == label).sum(axis=0) for way in (one, two)])
        seldom = table.sum(axis=0) < 10
        table = np.column_stack([table[:, ~seldom], table[:, seldom].sum(axis=1)])
        table = table[:, table.sum(axis=0) > 0]
        assert table.shape[1] == 1 or chi2_contingency(table).pvalue > 1e-4


@pytest.mark.parametrize("draw", [draw_huber, draw_compiled])
@pytest.mark.parametrize("size", [9, 10])
def test_labels_stand_where_the_counted_way_puts_them(size, draw):
    edges = random_edges(Random(size), size, 0.25)
    assert_same_places(draw_counted(size, edges, 2500), draw(size, edges, 2500))


@pytest.mark.parametrize(
    "poset",
    [
        (24, fence(24)),
        disjoint_chains(15, 15),
        (40, [(i, 39) for i in range(39)]),
        (79, [(i, 0) for i in range(1, 79)]),
    ],
    ids=["too many down-sets to count", "two chains", "star", "too many labels for the compiled loop"],
)
def test_labels_of_larger_sets_stand_where_the_counted_way_puts_them(poset):
    compiled = order_poset(*poset, 1, 400, seed=6).positions
    assert_same_places(draw_counted(*poset, 400), compiled)


def test_several_orders_of_one_set_are_as_uniform_as_one_of_several():
    drawn = order_poset(*NAMED["fence"], 1, 2000, seed=3).positions
    assert p_uniform(map(tuple, drawn.tolist()), all_orders(*NAMED["fence"])) > 1e-4


def test_orders_drawn_one_after_the_other_are_independent():
    drawn = order_poset(*V_AND_FREE, 2000, 2, seed=5).positions.reshape(2, 2000, 4)
    pairs = Counter(zip(map(tuple, drawn[0].tolist()), map(tuple, drawn[1].tolist()), strict=True))
    possible = all_orders(*V_AND_FREE)
    assert chisquare([pairs[one, two] for one in possible for two in possible]).pvalue > 1e-4


# --- the quick way ----------------------------------------------------------------------------------------------------


def quick_chances(size, edges) -> dict[tuple[int, ...], Fraction]:
    """Work out how likely each order is when any label whose turn it may be is picked again and again."""
    chances = {}
    for order in all_orders(size, edges):
        chance = Fraction(1)
        for at in range(size):
            left = set(order[at:])
            chance /= sum(not any(i in left and j == label for i, j in edges) for label in left)
        chances[order] = chance
    return chances


def draw_quick_plain(size, edges, n):
    poset_orders = LinearExtensions(size, edges)
    return [tuple(poset_orders.draw_quick(Stream(21, i))) for i in range(n)]


def draw_quick_compiled(size, edges, n):
    return draw_compiled(size, edges, n, sampler="quick")


def test_the_quick_way_is_not_uniform_by_the_numbers():
    chances = quick_chances(*V_AND_FREE)
    assert sum(chances.values()) == 1
    assert (chances[3, 0, 1, 2], chances[0, 1, 2, 3]) == (Fraction(1, 4), Fraction(1, 12))


@pytest.mark.parametrize("draw", [draw_quick_plain, draw_quick_compiled])
@pytest.mark.parametrize("name", ["V and a free label", "N", "fence", "two chains", "crown"])
def test_the_quick_way_has_the_chances_worked_out(draw, name):
    chances = quick_chances(*NAMED[name])
    n = 30 * len(chances) + 3000
    drawn = Counter(draw(*NAMED[name], n))
    assert drawn.keys() <= chances.keys()
    expected = np.array([float(chance) for chance in chances.values()]) * n
    assert chisquare([drawn[order] for order in chances], expected).pvalue > 1e-4


@pytest.mark.parametrize("draw", [draw_quick_plain, draw_quick_compiled])
def test_the_test_of_uniformity_refuses_the_quick_way(draw):
    assert p_uniform(draw(*V_AND_FREE, 500), all_orders(*V_AND_FREE)) < 1e-9


# --- large sets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "chance"), [(40, 0.1), (79, 0.04), (150, 0.015)])
def test_large_sets_get_orders_that_are_allowed(size, chance):
    edges = random_edges(Random(size), size, chance)
    drawn = order_poset(size, edges, 1, seed=1)
    assert np.isnan(drawn.log2_orders[0])
    assert is_allowed(drawn.positions[0].tolist(), size, edges)


def test_large_sets_get_orders_that_are_allowed_without_counting():
    edges = random_edges(Random(79), 79, 0.04)
    drawn = draw_huber(79, edges, 3)
    assert all(is_allowed(order, 79, edges) for order in drawn)
    assert len(set(drawn)) == 3


@pytest.mark.parametrize(
    "poset", [tree(79, 2), flipped(*tree(40, 3)), TWO_LEVELS, (79, [(i, 0) for i in range(1, 79)])]
)
def test_large_hierarchies_get_orders_that_are_allowed(poset):
    poset_orders = LinearExtensions(*poset)
    drawn = [poset_orders.draw(Stream(0, i)) for i in range(3)]
    assert all(is_allowed(order, *poset) for order in drawn)
    assert len(set(map(tuple, drawn))) == 3


def test_a_large_set_without_edges_is_shuffled():
    drawn = order_poset(150, [], 2, 2, seed=0)
    assert all(sorted(order) == [*range(150)] for order in drawn.positions.reshape(-1, 150).tolist())
    assert drawn.log2_orders == pytest.approx(np.log2(np.arange(1, 151)).sum())


# --- distinct orders --------------------------------------------------------------------------------------------------


def plain_distinct(size, edges, n, quick):
    return Impatient(size, edges).draw_many(n, Stream(8), quick=quick, distinct=True)


def compiled_distinct(size, edges, n, quick):
    sampler = "quick" if quick else "uniform"
    return order_poset(size, edges, 1, n, sampler=sampler, distinct=True, seed=9).positions.tolist()


def reversed_distinct(size, edges, n, quick):
    sampler = "quick" if quick else "uniform"
    drawn = order_poset(size, edges, 1, n, name="reversed", sampler=sampler, distinct=True, seed=9).positions
    return drawn[:, ::-1].tolist()


def behind_chain_distinct(length, size, edges, n, quick):
    drawn = compiled_distinct(*behind_chain(length, size, edges), n, quick)
    return [[i - length for i in order[length:]] for order in drawn]


DISTINCT_WAYS = {
    "plain": plain_distinct,
    "compiled": compiled_distinct,
    "compiled, reversed": reversed_distinct,
    "compiled, behind a chain": partial(behind_chain_distinct, 6),
    "too large for the compiled loop": partial(behind_chain_distinct, 64),
}


def random_distinct(size, edges, n, quick):
    return order_poset(size, [], 1, n, name="random", distinct=True, seed=9).positions.tolist()


@pytest.mark.parametrize("way", DISTINCT_WAYS)
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(
    "poset", [(1, []), (3, chain(3)), (3, [(0, 1), (0, 2)]), (4, [(0, 2), (1, 2), (1, 3)]), (3, []), V_AND_FREE]
)
def test_no_order_comes_again_before_all_have_come(way, quick, poset):
    possible = all_orders(*poset)
    n = len(possible)
    for asked in (1, max(n - 1, 1), n, n + 1, 3 * n, 3 * n + 2):
        drawn = [tuple(order) for order in DISTINCT_WAYS[way](*poset, asked, quick)]
        assert len(drawn) == asked
        for start in range(0, asked, n):
            block = drawn[start : start + n]
            assert set(block) <= set(possible)
            assert len(set(block)) == len(block)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
def test_no_random_order_comes_again_before_all_have_come(size):
    n = factorial(size)
    drawn = [tuple(order) for order in random_distinct(size, [], 2 * n + 1, False)]
    assert len(set(drawn[:n])) == len(set(drawn[n : 2 * n])) == n
    assert drawn[2 * n] in drawn[:n]


def test_without_being_told_orders_may_come_again():
    drawn = LinearExtensions(3, [(0, 1), (0, 2)]).draw_many(12, Stream(0))
    assert any(one == two for one, two in zip(drawn[::2], drawn[1::2], strict=True))


@pytest.mark.parametrize("way", [plain_distinct, compiled_distinct])
def test_the_second_of_distinct_orders_is_uniform_too(way):
    if way is plain_distinct:
        poset_orders = LinearExtensions(*V_AND_FREE)
        drawn = [tuple(poset_orders.draw_many(2, Stream(3, i), distinct=True)[1]) for i in range(2000)]
    else:
        second = order_poset(*V_AND_FREE, 2000, 2, distinct=True, seed=9).positions[1]
        drawn = [tuple(order) for order in second.reshape(2000, 4).tolist()]
    assert p_uniform(drawn, all_orders(*V_AND_FREE)) > 1e-4


@pytest.mark.parametrize("quick", [False, True])
def test_distinct_orders_come_to_an_end_where_they_are_not_counted(monkeypatch, quick):
    monkeypatch.setattr(linear_extensions, "MAX_LABELS", 5)
    poset_orders = Impatient(6, chain(6))
    assert poset_orders.count is None
    assert poset_orders.draw_many(2, Stream(0), quick=quick, distinct=True) == [[*range(6)]] * 2


def test_distinct_orders_come_to_an_end_where_the_quick_way_hardly_ever_draws_one():
    # The free label comes last one time in 2**18.
    drawn = Impatient(19, chain(18)).draw_many(38, Stream(0), quick=True, distinct=True)
    assert sorted(drawn[:19]) == sorted(drawn[19:]) == list(LinearExtensions(19, chain(18)))


@pytest.mark.parametrize("n", [3, 7])
def test_distinct_orders_that_can_be_listed_all_come(monkeypatch, n):
    # Even where each draw gives the same one.
    monkeypatch.setattr(LinearExtensions, "draw", lambda self, stream: [0, 1, 2])
    drawn = LinearExtensions(3, [(0, 1)]).draw_many(n, Stream(0), distinct=True)
    assert all(is_allowed(order, 3, [(0, 1)]) for order in drawn)
    assert all(len(set(map(tuple, drawn[start : start + 3]))) == len(drawn[start : start + 3]) for start in (0, 3, 6))
