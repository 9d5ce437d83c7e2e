from itertools import pairwise, permutations
from math import factorial, log2
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.orders import (
    ORDERINGS,
    EdgeTable,
    LabelStatistics,
    LinearExtensions,
    OrderBatch,
    OrderGraph,
    SetBatch,
    Thresholds,
    make_ordering,
)
from setaug.orders.statistics import frequency_order
from tests.strategies import (
    ALPHABET,
    all_thresholds,
    chain,
    corpora,
    edge_table,
    fence,
    is_allowed,
    order_poset,
    p_uniform,
    posets,
    random_edges,
)

label_lists = st.lists(st.lists(st.sampled_from([*ALPHABET, "x", "y"]), unique=True, max_size=8), max_size=6)
names = st.sampled_from(list(ORDERINGS))
options = st.fixed_dictionaries({"sampler": st.sampled_from(["uniform", "quick"]), "distinct": st.booleans()})
seeds = st.integers(0, (1 << 64) - 1)


def batch_of(statistics: LabelStatistics, sets) -> SetBatch:
    return SetBatch.of([[statistics.ids.get(label, -1) for label in labels] for labels in sets])


def orders_of(name, statistics, sets, n_orders=2, *, thresholds=None, seed=0, first_index=0, **options) -> OrderBatch:
    edges = statistics.edges(thresholds or Thresholds())
    ordering = make_ordering(name, labels=statistics.labels, edges=edges, **options)
    return ordering.orders(batch_of(statistics, sets), n_orders, seed=seed, first_index=first_index)


def written(drawn: OrderBatch, sets) -> list[list[tuple[str, ...]]]:
    """Give the labels in order: for each row of the orders, for each set."""
    ends = np.cumsum([0, *map(len, sets)])
    return [
        [
            tuple(labels[place] for place in row[start : start + len(labels)])
            for labels, start in zip(sets, ends[:-1], strict=True)
        ]
        for row in drawn.positions.tolist()
    ]


@given(names, corpora, label_lists, st.integers(0, 3), all_thresholds, seeds, options)
def test_every_ordering_gives_permutations(name, corpus, sets, n_orders, thresholds, seed, options):
    statistics = LabelStatistics().update(corpus)
    drawn = orders_of(name, statistics, sets, n_orders, thresholds=thresholds, seed=seed, **options)
    assert drawn.positions.shape == (n_orders, sum(map(len, sets)))
    assert drawn.positions.dtype == np.int32
    assert drawn.n_edges.shape == drawn.log2_orders.shape == (len(sets),)
    for row in written(drawn, sets):
        assert [sorted(order) for order in row] == [sorted(labels) for labels in sets]


@given(st.sampled_from(["topological", "reversed"]), corpora, label_lists, all_thresholds, options)
def test_orders_respect_the_graph(name, corpus, sets, thresholds, options):
    statistics = LabelStatistics().update(corpus)
    drawn = orders_of(name, statistics, sets, thresholds=thresholds, **options)
    graphs = [OrderGraph.of_set(labels, statistics, thresholds) for labels in sets]
    for row in written(drawn, sets):
        for order, graph in zip(row, graphs, strict=True):
            assert graph.allows(order if name == "topological" else order[::-1])
    assert drawn.n_edges.tolist() == [len(graph.edges) for graph in graphs]


@given(corpora, label_lists, all_thresholds, seeds, options)
def test_reversed_orders_are_the_others_turned_round(corpus, sets, thresholds, seed, options):
    statistics = LabelStatistics().update(corpus)
    one, two = (
        written(orders_of(name, statistics, sets, thresholds=thresholds, seed=seed, **options), sets)
        for name in ("topological", "reversed")
    )
    assert [[order[::-1] for order in row] for row in two] == one


def joined(pieces: list[OrderBatch], n_orders: int) -> OrderBatch:
    return OrderBatch(
        np.concatenate([np.empty((n_orders, 0), np.int32), *(piece.positions for piece in pieces)], axis=1),
        np.concatenate([np.empty(0, np.int64), *(piece.n_edges for piece in pieces)]),
        np.concatenate([np.empty(0), *(piece.log2_orders for piece in pieces)]),
    )


def assert_equal(one: OrderBatch, two: OrderBatch) -> None:
    np.testing.assert_array_equal(one.positions, two.positions)
    np.testing.assert_array_equal(one.n_edges, two.n_edges)
    np.testing.assert_array_equal(one.log2_orders, two.log2_orders)


@given(names, corpora, label_lists, st.lists(st.integers(0, 6), max_size=3), seeds, options, all_thresholds)
def test_orders_do_not_depend_on_the_batch(name, corpus, sets, cuts, seed, options, thresholds):
    statistics = LabelStatistics().update(corpus)
    shared = {"thresholds": thresholds, "seed": seed, **options}
    cuts = sorted({0, len(sets), *(min(cut, len(sets)) for cut in cuts)})
    pieces = [
        orders_of(name, statistics, sets[low:high], first_index=100 + low, **shared) for low, high in pairwise(cuts)
    ]
    assert_equal(joined(pieces, 2), orders_of(name, statistics, sets, first_index=100, **shared))


def mixed_sets() -> tuple[EdgeTable, list[list[int]]]:
    """Give sets for which the compiled loop takes different ways: small, counted, uncounted, too large."""
    rng = Random(2)
    edges = [*fence(24), *((i, j) for i, j in random_edges(rng, 70, 0.03) if min(i, j) > 23)]
    sets = [rng.sample(range(70), size) for size in (3, 30, 1, 70, 6, 0, 66, 12)]
    return edge_table(70, edges), [[0, 1, 2], [*range(24)], [1, 2, 3, 4, 5, 6, 7], *sets, [5, 4, 3, 2], [*range(25)]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampler": "quick"},
        {"distinct": True},
        {"sampler": "quick", "distinct": True},
    ],
)
def test_orders_do_not_depend_on_the_batch_whatever_the_sizes(options):
    edges, sets = mixed_sets()
    ordering = make_ordering("topological", labels=[str(i) for i in range(70)], edges=edges, **options)
    singles = [ordering.orders(SetBatch.of([ids]), 2, seed=1, first_index=7 + at) for at, ids in enumerate(sets)]
    assert_equal(joined(singles, 2), ordering.orders(SetBatch.of(sets), 2, seed=1, first_index=7))


@pytest.mark.parametrize("name", ["topological", "reversed", "random"])
@pytest.mark.parametrize("sampler", ["uniform", "quick"])
def test_a_seed_settles_the_orders(name, sampler):
    statistics = LabelStatistics().update([list(ALPHABET)])
    draws = [
        orders_of(name, statistics, [ALPHABET] * 5, seed=seed, sampler=sampler).positions.tolist()
        for seed in (1, 1, 2, 1 + (1 << 32), 1 + (1 << 63))
    ]
    assert draws[0] == draws[1]
    assert all(draws[0] != other for other in draws[2:])


@pytest.mark.parametrize("name", ["topological", "reversed", "random"])
def test_equal_sets_at_different_places_get_different_orders(name):
    statistics = LabelStatistics().update([list(ALPHABET)])
    (row,) = written(orders_of(name, statistics, [ALPHABET] * 20, 1), [ALPHABET] * 20)
    assert len(set(row)) > 15


@pytest.mark.parametrize("name", ["topological", "random"])
@pytest.mark.parametrize("seed", [-1, 1 << 64, -(1 << 70)])
def test_a_seed_may_be_any_whole_number(name, seed):
    statistics = LabelStatistics().update([list(ALPHABET)])
    drawn, same = (orders_of(name, statistics, [ALPHABET], seed=number) for number in (seed, seed % (1 << 64)))
    assert drawn.positions.tolist() == same.positions.tolist()


# --- the number of orders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "distinct"),
    [("uniform", False), ("uniform", True), ("quick", False), ("quick", True)],
)
@given(poset=posets(9))
def test_orders_are_counted(sampler, distinct, poset):
    drawn = order_poset(*poset, 2, sampler=sampler, distinct=distinct)
    assert drawn.log2_orders == pytest.approx(log2(LinearExtensions(*poset).count), abs=1e-9)
    assert drawn.n_edges.tolist() == [len(poset[1])] * 2


@pytest.mark.parametrize(
    ("size", "edges", "count"),
    [
        (0, [], 1),
        (1, [], 1),
        (64, [], factorial(64)),
        (150, [], factorial(150)),
        (64, chain(64), 1),
        (64, [(i, 63) for i in range(63)], factorial(63)),
        (64, [(i, j) for i in range(32) for j in range(32, 64)], factorial(32) ** 2),
        (40, [(0, 1), (2, 3), (2, 4)], factorial(40) // 2 // 3),
        (80, [(0, i) for i in range(1, 80)], factorial(79)),
    ],
)
def test_orders_of_large_sets_are_counted(size, edges, count):
    drawn = order_poset(size, edges, 1, 3, seed=2)
    assert drawn.log2_orders[0] == pytest.approx(log2(count), abs=1e-9)
    assert drawn.n_edges.tolist() == [len(edges)]
    assert all(is_allowed(order, size, edges) for order in drawn.positions.tolist())


def test_what_has_too_many_down_sets_is_not_counted():
    assert np.isnan(order_poset(24, fence(24), 1).log2_orders).all()
    drawn = order_poset(24, fence(24), 1, 3, distinct=True)
    assert all(is_allowed(order, 24, fence(24)) for order in drawn.positions.tolist())
    assert len(set(map(tuple, drawn.positions.tolist()))) == 3


def test_random_orders_are_counted_and_have_no_edges():
    statistics = LabelStatistics().update([list("abcd")])
    drawn = orders_of("random", statistics, ["abcd", "", "a", "abc"])
    assert drawn.log2_orders == pytest.approx([log2(24), 0, 0, log2(6)])
    assert drawn.n_edges.tolist() == [0, 0, 0, 0]


def test_random_orders_are_uniform():
    statistics = LabelStatistics().update([list("abcd")])
    (row,) = written(orders_of("random", statistics, ["abcd"] * 1200, 1), ["abcd"] * 1200)
    assert p_uniform(row, list(permutations("abcd"))) > 1e-4


@pytest.mark.parametrize("name", ["frequency", "given"])
def test_a_fixed_order_is_one_order(name):
    drawn = orders_of(name, LabelStatistics().update([list("abcd")]), ["abcd", "ba", ""])
    assert drawn.log2_orders.tolist() == [0, 0, 0]
    assert drawn.n_edges.tolist() == [0, 0, 0]


# --- fixed orders -----------------------------------------------------------------------------------------------------


def test_frequent_labels_come_first_and_ties_by_name():
    corpus = [["c", "b"], ["c", "a"], ["c", "d"], ["d"], ["é"], ["B"]]
    statistics = LabelStatistics().update(corpus)
    sets = [["B", "a", "b", "c", "d", "é"], ["é", "d"], [], ["a", "b"], ["b", "a"]]
    expected = [("c", "d", "B", "a", "b", "é"), ("d", "é"), (), ("a", "b"), ("a", "b")]
    assert written(orders_of("frequency", statistics, sets, 3), sets) == [expected] * 3


def test_labels_never_seen_come_last_as_given():
    statistics = LabelStatistics().update([["a", "b"], ["b"]])
    sets = [["y", "a", "x", "b"], ["x", "y"]]
    assert written(orders_of("frequency", statistics, sets, 1), sets) == [[("b", "a", "y", "x"), ("x", "y")]]
    assert written(orders_of("frequency", LabelStatistics(), sets, 1), sets) == [[("y", "a", "x", "b"), ("x", "y")]]


@given(corpora)
def test_labels_are_sorted_from_frequent_to_rare(corpus):
    statistics = LabelStatistics().update(corpus)
    wanted = sorted(statistics.labels, key=lambda label: (-statistics.count(label), label))
    assert [statistics.labels[at] for at in frequency_order(statistics.labels, statistics.counts)] == wanted
    assert statistics.most_common() == [(label, statistics.count(label)) for label in wanted]
    assert statistics.most_common(2) == statistics.most_common()[:2]


def test_the_given_order_is_kept():
    statistics = LabelStatistics().update([["a", "b"]])
    sets = [["b", "x", "a"], [], ["a"]]
    assert written(orders_of("given", statistics, sets), sets) == [[("b", "x", "a"), (), ("a",)]] * 2


# --- corners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORDERINGS)
@pytest.mark.parametrize("corpus", [[], [["a"]]])
def test_empty_sets_and_batches_have_empty_orders(name, corpus):
    statistics = LabelStatistics().update(corpus)
    assert orders_of(name, statistics, []).positions.shape == (2, 0)
    assert orders_of(name, statistics, [[], []]).positions.shape == (2, 0)
    assert orders_of(name, statistics, [[], []]).log2_orders.tolist() == [0, 0]
    assert orders_of(name, statistics, [["a"]], 0).positions.shape == (0, 1)


@pytest.mark.parametrize("options", [{}, {"sampler": "quick", "distinct": True}])
def test_no_orders_are_drawn_where_none_are_asked_for(options):
    drawn = order_poset(70, chain(70), 2, 0, **options)
    assert drawn.positions.shape == (0, 140)
    assert drawn.log2_orders.tolist() == [0, 0]


@pytest.mark.parametrize("name", ["topological", "reversed", "random"])
@pytest.mark.parametrize("sampler", ["uniform", "quick"])
def test_labels_never_seen_are_free(name, sampler):
    statistics = LabelStatistics().update([["a", "b"]] * 2 + [["b"]] * 6 + [[]] * 24)
    sets = [["x", "y"]] * 60 + [["b", "x", "a"]] * 60
    drawn = orders_of(name, statistics, sets, 1, sampler=sampler)
    (row,) = written(drawn, sets)
    assert set(row[:60]) == {("x", "y"), ("y", "x")}
    assert len(set(row[60:])) == (6 if name == "random" else 3)
    assert drawn.n_edges.tolist() == [0] * 60 + [0 if name == "random" else 1] * 60


def test_distinct_orders_differ_as_long_as_there_are_others():
    statistics = LabelStatistics().update([list("abcd")])
    sets = ["abcd", "ab", "", "a", "abc"]
    for name in ("topological", "reversed", "random"):
        rows = written(orders_of(name, statistics, sets, 8, distinct=True), sets)
        for at, labels in enumerate(sets):
            n = factorial(len(labels))
            for start in range(0, 8, n):
                block = [row[at] for row in rows[start : start + n]]
                assert len(set(block)) == len(block)


def test_an_unknown_ordering_is_named():
    with pytest.raises(
        ValueError, match="ordering must be one of topological, reversed, random, frequency, given, got 'x'"
    ):
        make_ordering("x", labels=[], edges=LabelStatistics().edges(Thresholds()))


def test_sets_of_hundreds_of_labels_are_drawn_the_quick_way_and_that_is_told(monkeypatch):
    monkeypatch.setattr("setaug.orders.orderings.MAX_UNIFORM", 70)
    monkeypatch.setattr("setaug.orders.orderings._MAX_STATES", 0)
    size = 90
    edges = [(i, i + 1) for i in range(size - 1)] + [(0, size)]
    ordering = make_ordering("topological", labels=[], edges=edge_table(size + 1, edges))
    drawn = ordering.orders(SetBatch.of([range(size + 1), range(60)]), 2, seed=0, first_index=0)
    assert drawn.n_rushed == 1
    order = drawn.positions[0, : size + 1].tolist()
    assert all(order.index(i) < order.index(j) for i, j in edges)


def test_large_sets_that_can_be_counted_are_not_drawn_the_quick_way(monkeypatch):
    monkeypatch.setattr("setaug.orders.orderings.MAX_UNIFORM", 70)
    drawn = order_poset(80, [(i, 79) for i in range(79)], 1)
    assert drawn.log2_orders[0] == pytest.approx(log2(factorial(79)))
    assert drawn.n_rushed == 0
