from math import factorial, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug import LabelStatistics, OrderGraph
from setaug.orders import ORDERINGS, Extensions, OrderBatch, SetBatch, Thresholds, make_ordering
from setaug.orders.orderings import frequency_ranks
from tests.strategies import (
    ALPHABET,
    all_thresholds,
    chain,
    corpora,
    fence,
    order_poset,
    posets,
    random_edges,
)
from random import Random

label_lists = st.lists(st.lists(st.sampled_from([*ALPHABET, "x", "y"]), unique=True, max_size=8), max_size=6)
names = st.sampled_from(ORDERINGS)
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
        [tuple(labels[place] for place in row[start : start + len(labels)]) for labels, start in zip(sets, ends, strict=False)]
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


@given(names, corpora, label_lists, st.lists(st.integers(0, 6), max_size=3), seeds, options, all_thresholds)
def test_orders_do_not_depend_on_the_batch(name, corpus, sets, cuts, seed, options, thresholds):
    statistics = LabelStatistics().update(corpus)
    shared = {"thresholds": thresholds, "seed": seed, **options}
    whole = orders_of(name, statistics, sets, first_index=100, **shared)
    cuts = sorted({0, len(sets), *(min(cut, len(sets)) for cut in cuts)})
    pieces = [
        orders_of(name, statistics, sets[low:high], first_index=100 + low, **shared)
        for low, high in zip(cuts, cuts[1:], strict=False)
    ]
    assert np.concatenate([np.empty((2, 0)), *(piece.positions for piece in pieces)], axis=1).tolist() == whole.positions.tolist()
    assert np.concatenate([[], *(piece.n_edges for piece in pieces)]).tolist() == whole.n_edges.tolist()


@pytest.mark.parametrize("sampler", ["uniform", "quick"])
@pytest.mark.parametrize("distinct", [False, True])
def test_neither_orders_nor_counts_depend_on_the_batch_whatever_the_sizes(sampler, distinct):
    rng = Random(2)
    sizes = [3, 30, 5, 1, 70, 6, 24, 4, 0, 66]
    edges = [*random_edges(rng, 70, 0.03), *((i, j) for i, j in fence(24))]
    edges = sorted({(min(edge), max(edge)) for edge in edges})
    from tests.strategies import edge_table

    ordering = make_ordering("topological", labels=[str(i) for i in range(70)], edges=edge_table(70, edges), sampler=sampler, distinct=distinct)
    sets = [rng.sample(range(70), size) for size in sizes]
    whole = ordering.orders(SetBatch.of(sets), 2, seed=1, first_index=7)
    singles = [ordering.orders(SetBatch.of([ids]), 2, seed=1, first_index=7 + at) for at, ids in enumerate(sets)]
    assert np.concatenate([single.positions for single in singles], axis=1).tolist() == whole.positions.tolist()
    assert np.concatenate([single.n_edges for single in singles]).tolist() == whole.n_edges.tolist()
    np.testing.assert_array_equal(np.concatenate([single.log2_orders for single in singles]), whole.log2_orders)
