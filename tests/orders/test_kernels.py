from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from setaug.orders import LabelStatistics, SetBatch, Stream, kernels, make_ordering, plain_kernels
from setaug.orders.edges import edges_among
from setaug.orders.rng import GOLDEN
from tests.strategies import all_orders, all_thresholds, corpora, is_allowed, p_uniform, posets

words = st.integers(0, (1 << 64) - 1)
large = st.integers(0, (1 << 300) - 1)
N_LIMBS = 11


def start(seed: int, index: int = 0) -> np.ndarray:
    state = np.empty(1, np.uint64)
    kernels.start_stream(state, np.uint64(seed), index)
    return state


# --- random numbers ---------------------------------------------------------------------------------------------------


@given(words, st.integers(0, 1 << 40))
def test_a_compiled_stream_starts_where_the_plain_one_does(seed, index):
    assert start(seed, index).tolist() == [Stream(seed, index).state]


@given(words, st.lists(st.integers(1, 1 << 63) | st.integers(1, 20) | st.integers(0, 63).map(lambda k: 1 << k)))
def test_a_compiled_stream_gives_the_numbers_of_the_plain_one(seed, bounds):
    state, stream = start(seed, 5), Stream(seed, 5)
    for bound in bounds:
        assert int(kernels.below(state, np.uint64(bound))) == stream.below(bound) < bound
    assert state.tolist() == [stream.state]


@given(words)
def test_a_compiled_stream_gives_all_64_bits(seed):
    state, stream = start(seed), Stream(seed)
    assert [int(kernels.below(state, np.uint64((1 << 64) - 1))) for _ in range(9)] == [stream.next() for _ in range(9)]


@given(words, st.integers(0, 20))
def test_a_compiled_shuffle_is_the_plain_one(seed, size):
    state, stream = start(seed), Stream(seed)
    compiled, plain = np.arange(size), list(range(size))
    kernels.shuffle(state, compiled, size)
    stream.shuffle(plain)
    assert compiled.tolist() == plain


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 1 << 64, 1 << 200, (1 << 64) + 1])
def test_numbers_below_a_bound_reach_from_end_to_end(bound):
    stream = Stream(3)
    drawn = [stream.below(bound) for _ in range(400)]
    assert 0 <= min(drawn) <= bound // 20
    assert bound - 1 - bound // 20 <= max(drawn) < bound


def test_streams_of_different_examples_differ():
    assert len({Stream(seed, index).state for seed in range(50) for index in range(50)}) == 2500


# --- large whole numbers ----------------------------------------------------------------------------------------------


def limbs(number: int) -> np.ndarray:
    return np.array([number >> 32 * k & 0xFFFFFFFF for k in range(N_LIMBS)], np.uint64)


def whole(numbers: np.ndarray) -> int:
    return sum(int(limb) << 32 * k for k, limb in enumerate(numbers))


@given(large, large, st.integers(0, 64))
def test_large_numbers_add_up(a, b, times):
    total = limbs(a)
    kernels.add_multiple(total, limbs(b), np.uint64(times), N_LIMBS)
    assert whole(total) == a + b * times


@given(large, large, st.booleans())
def test_large_numbers_are_subtracted_where_they_can_be(a, b, equal):
    a = b if equal else a
    total = limbs(a)
    assert kernels.subtract(total, limbs(b), N_LIMBS) == (a >= b)
    assert whole(total) == (a - b if a >= b else a)


@given(words, large | st.integers(0, 300).map(lambda k: 1 << k) | st.integers(1, 9))
def test_large_numbers_are_drawn_below_their_bound(seed, bound):
    assume(bound)
    state, drawn = start(seed), np.empty(N_LIMBS, np.uint64)
    for _ in range(5):
        kernels.below_large(state, limbs(bound), N_LIMBS, drawn)
        assert whole(drawn) < bound


@pytest.mark.parametrize("bound", [3, 1 << 32, 3 << 32, (1 << 32) + 5, 10**60])
def test_large_numbers_are_drawn_evenly(bound):
    state, drawn, n = start(1), np.empty(N_LIMBS, np.uint64), 3000
    thirds = [0, 0, 0]
    for _ in range(n):
        kernels.below_large(state, limbs(bound), N_LIMBS, drawn)
        thirds[whole(drawn) * 3 // bound] += 1
    assert all(abs(third - n / 3) < 4 * (n * 2 / 9) ** 0.5 for third in thirds)


# --- pairs and edges --------------------------------------------------------------------------------------------------

id_sets = st.lists(st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=6), max_size=5)


@given(id_sets)
def test_pairs_are_listed_set_by_set(sets):
    batch = SetBatch.of(sets)
    expected = [min(a, b) << 32 | max(a, b) for ids in sets for a, b in combinations(ids, 2)]
    assert kernels.pair_keys(batch.starts, batch.ids).tolist() == expected


@given(st.sets(words.filter(lambda key: key < (1 << 64) - 1), max_size=50), st.lists(words))
def test_a_table_holds_its_keys_and_no_other(keys, others):
    table = kernels.hash_keys(np.array(sorted(keys), np.uint64))
    assert all(kernels.holds(table, np.uint64(key)) for key in keys)
    assert all(kernels.holds(table, np.uint64(key)) == (key in keys) for key in others if key < (1 << 64) - 1)


@given(corpora, all_thresholds)
def test_edges_of_counted_sets_need_only_the_undecided_pairs(corpus, thresholds):
    statistics = LabelStatistics().update(corpus)
    batch = SetBatch.of([[statistics.ids[label] for label in labels] for labels in corpus])
    whole_table = statistics.edges(thresholds)
    cap = thresholds.sure_cap(statistics.n_sets)
    keys = kernels.undecided_keys(batch.starts, batch.ids, whole_table.bounds, cap)
    pairs, n_both = np.unique(keys, return_counts=True)
    pruned = edges_among(pairs, n_both, statistics.counts, statistics.n_sets, thresholds, cap=cap)
    assert set(pruned.keys.tolist()) <= set(whole_table.keys.tolist())
    for name in ("topological", "reversed"):
        one, two = (
            make_ordering(name, labels=statistics.labels, edges=edges).orders(batch, 2, seed=4, first_index=0)
            for edges in (whole_table, pruned)
        )
        assert one.n_edges.tolist() == two.n_edges.tolist()
        assert one.positions.tolist() == two.positions.tolist()


def test_undecided_pairs_are_few():
    # Labels that are rare or alike in frequency are decided without being counted together.
    corpus = [[f"rare {i}", "common"] for i in range(40)] + [["common", "usual"]] * 60 + [[]] * 20_000
    statistics = LabelStatistics().update(corpus)
    batch = SetBatch.of([[statistics.ids[label] for label in labels] for labels in corpus])
    cap = 20_000.0
    bounds = np.stack([statistics.counts, 3 * statistics.counts], axis=1)
    assert len(kernels.undecided_keys(batch.starts, batch.ids, bounds, cap)) == 0
    undecided = kernels.undecided_keys(batch.starts, batch.ids, bounds, 0.0)
    assert len(undecided) == 40
    assert len(kernels.pair_keys(batch.starts, batch.ids)) == 100


def test_many_undecided_pairs_are_all_listed():
    batch = SetBatch.of([range(80)])
    bounds = np.stack([np.arange(1, 81), np.arange(1, 81)], axis=1)
    keys = kernels.undecided_keys(batch.starts, batch.ids, bounds, 0.0)
    assert sorted(keys.tolist()) == sorted(kernels.pair_keys(batch.starts, batch.ids).tolist())
    assert len(keys) == 3160


# --- graphs -----------------------------------------------------------------------------------------------------------


def as_bits(size, edges) -> tuple[np.ndarray, np.ndarray]:
    """Give for each label, as bits, the labels before it and those after it."""
    before, after = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    for i, j in edges:
        after[i] |= np.uint64(1 << j)
        before[j] |= np.uint64(1 << i)
    return before, after


@given(posets(12))
def test_parts_are_those_of_networkx(poset):
    size, edges = poset
    parts = np.zeros(size, np.uint64)
    n_parts = kernels.find_parts(*as_bits(*poset), size, parts)
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(size))
    expected = {sum(1 << i for i in part) for part in nx.connected_components(graph)}
    assert set(parts[:n_parts].tolist()) == expected
    assert n_parts == len(expected)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
def test_the_orders_of_small_graphs_are_all_listed(size):
    first, n_ways, listed = plain_kernels.small_tables()
    pairs = [(i, j) for j in range(size) for i in range(j)]
    for graph in range(1 << len(pairs)):
        edges = [pair for at, pair in enumerate(pairs) if graph >> at & 1]
        start = first[size, graph]
        found = [tuple(order) for order in listed[start : start + n_ways[size, graph], :size].tolist()]
        assert sorted(found) == sorted(all_orders(size, edges))


def test_the_orders_of_graphs_over_five_labels_are_all_listed():
    first, n_ways, listed = plain_kernels.small_tables()
    pairs = [(i, j) for j in range(5) for i in range(j)]
    every = list(permutations(range(5)))
    for graph in range(0, 1 << len(pairs), 37):
        edges = [pair for at, pair in enumerate(pairs) if graph >> at & 1]
        start = first[5, graph]
        found = [tuple(order) for order in listed[start : start + n_ways[5, graph]].tolist()]
        assert sorted(found) == [order for order in every if is_allowed(order, 5, edges)]


def test_where_no_room_is_left_no_down_sets_are_listed():
    # As after another part of the set whose down-sets took all of it; compiled, it writes beyond its arrays.
    masks, follows = np.empty(0, np.uint64), np.empty((0, 2), np.int32)
    slots, stamps = np.zeros(16, np.int32), np.zeros(16, np.int64)
    twins, needs = np.array([1, 2], np.uint64), np.array([0, 1], np.uint64)
    assert kernels.find_down_sets.py_func(twins, needs, 2, masks, follows, slots, stamps, 1) == -1


# --- Huber's sampler --------------------------------------------------------------------------------------------------


def huber_draws(size, edges, n) -> tuple[list[tuple[int, ...]], list[int]]:
    """Draw orders of an already sorted poset, and tell how many random numbers each took."""
    before = np.zeros((size, size), np.bool_)
    for i, j in edges:
        before[i, j] = True
    line, order, state = np.arange(size), np.empty(size, np.int64), start(3)
    orders, n_numbers = [], []
    step = pow(GOLDEN, -1, 1 << 64)
    for _ in range(n):
        first = int(state[0])
        kernels.draw_huber(state, before, line, order)
        orders.append(tuple(order.tolist()))
        n_numbers.append((int(state[0]) - first) * step % (1 << 64))
    return orders, n_numbers


@pytest.mark.parametrize(("size", "edges"), [(3, []), (3, [(0, 2)]), (4, [(0, 1), (0, 2)])])
def test_draws_without_counting_are_uniform_to_a_hair(size, edges):
    # What goes wrong in the few draws whose runs do not meet at once shows only in many.
    orders, _ = huber_draws(size, edges, 100_000)
    assert p_uniform(orders, all_orders(size, edges)) > 1e-4


def test_draws_without_counting_use_no_random_number_twice():
    # Where the runs do not meet, the next block is twice as long; those numbers must not come again.
    _, n_numbers = huber_draws(6, [(0, 3), (1, 3), (2, 5)], 500)
    assert max(n_numbers) > 2 * min(n_numbers)
