from fractions import Fraction
from itertools import permutations
from math import inf, log2
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from setaug.orders import Edge, LabelStatistics, OrderGraph, SetBatch, Thresholds, make_ordering
from tests.strategies import ALPHABET, all_orders, all_thresholds, corpora, posets, random_edges

V_AND_FREE = OrderGraph(("a", "b", "c", "d"), (Edge("a", "b"), Edge("a", "c")))


def as_fraction(bound) -> Fraction:
    return bound if isinstance(bound, Fraction) else Fraction(str(bound))


def paper_edges(labels, corpus, thresholds) -> set[tuple[str, str]]:
    """Read Algorithm 1 literally: probabilities are fractions, log2 x > p/q is x**q > 2**p, beta is log2(min_ratio)."""
    alpha, two_to_beta = as_fraction(thresholds.min_pmi), as_fraction(thresholds.min_ratio)

    def p(*wanted):
        return Fraction(sum(set(wanted) <= set(labels) for labels in corpus), len(corpus))

    edges = set()
    for y_i, y_j in permutations(labels, 2):
        if p(y_i, y_j) == 0:
            continue  # its pmi is minus infinity
        p_i_given_j, p_j_given_i = p(y_i, y_j) / p(y_j), p(y_i, y_j) / p(y_i)
        two_to_pmi = p(y_i, y_j) / (p(y_i) * p(y_j))
        is_dependent = two_to_pmi**alpha.denominator > Fraction(2) ** alpha.numerator
        if is_dependent and p_i_given_j / p_j_given_i > two_to_beta:
            edges.add((y_j, y_i))
    return edges


def edges_of(graph: OrderGraph) -> set[tuple[str, str]]:
    pairs = [(edge.before, edge.after) for edge in graph.edges]
    assert len(pairs) == len(set(pairs))
    return set(pairs)


@given(corpora, st.permutations(ALPHABET).map(lambda labels: [*labels[:6], "never seen"]), all_thresholds)
def test_the_graph_of_a_set_has_the_edges_of_algorithm_1(corpus, labels, thresholds):
    graph = OrderGraph.of_set(labels, LabelStatistics().update(corpus), thresholds)
    assert graph.labels == tuple(labels)
    assert edges_of(graph) == paper_edges(labels, corpus, thresholds)


@given(corpora, all_thresholds)
def test_the_graph_of_the_space_has_the_edges_of_algorithm_1(corpus, thresholds):
    statistics = LabelStatistics().update(corpus)
    graph = OrderGraph.of_space(statistics, thresholds)
    assert graph.labels == tuple(statistics.labels)
    assert edges_of(graph) == paper_edges(graph.labels, corpus, thresholds)


@given(corpora, all_thresholds)
def test_the_compiled_loop_finds_the_edges_of_algorithm_1(corpus, thresholds):
    statistics = LabelStatistics().update(corpus)
    ordering = make_ordering("topological", labels=statistics.labels, edges=statistics.edges(thresholds))
    sets = [*corpus[::7], list(ALPHABET), ["never", "seen", *ALPHABET[:3]]]
    batch = SetBatch.of([[statistics.ids.get(label, -1) for label in labels] for labels in sets])
    drawn = ordering.orders(batch, 1, seed=0, first_index=0)
    assert drawn.n_edges.tolist() == [len(paper_edges(labels, corpus, thresholds)) for labels in sets]
    for labels, start, end in zip(sets, batch.starts[:-1], batch.starts[1:], strict=True):
        graph = OrderGraph.of_set(labels, statistics, thresholds)
        assert graph.allows([labels[place] for place in drawn.positions[0, start:end]])


@given(corpora)
def test_equally_frequent_labels_are_free(corpus):
    statistics = LabelStatistics().update(corpus)
    for edge in OrderGraph.of_space(statistics, Thresholds(min_pmi=-9, min_ratio=1)).edges:
        assert statistics.count(edge.before) < statistics.count(edge.after)


@given(corpora, all_thresholds)
def test_graphs_have_no_cycle(corpus, thresholds):
    graph = OrderGraph.of_space(LabelStatistics().update(corpus), thresholds)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(edges_of(graph)))


def test_rare_labels_go_before_frequent_ones():
    corpus = [["volleyball", "match"], ["chess", "match"], ["football", "match"], ["golf", "match"]] + [["person"]] * 12
    graph = OrderGraph.of_set(["match", "volleyball", "person"], LabelStatistics().update(corpus))
    assert graph.edges == (Edge("volleyball", "match"),)
    assert graph.n_orders == 3


def test_an_edge_says_why():
    corpus = [["a", "b"]] * 2 + [["b"]] * 6 + [[]] * 24
    (edge,) = OrderGraph.of_set(["b", "a"], LabelStatistics().update(corpus)).edges
    assert (edge.before, edge.after, edge.n_both, edge.pmi, edge.ratio) == ("a", "b", 2, 2.0, 4.0)
    assert edge == Edge("a", "b")
    assert edge != Edge("b", "a")
    assert (Edge("a", "b").pmi, Edge("a", "b").ratio) == (inf, inf)


def test_labels_given_twice_are_one():
    assert OrderGraph.of_set(["b", "a", "b"], LabelStatistics()).labels == ("b", "a")


def test_labels_never_seen_are_free():
    statistics = LabelStatistics().update([["a", "b"]] * 2 + [["b"]] * 6 + [[]] * 24)
    graph = OrderGraph.of_set(["x", "a", "y", "b"], statistics)
    assert edges_of(graph) == {("a", "b")}
    assert graph.n_orders == 12


def test_the_space_can_be_cut_to_the_edges_seen_most_often():
    kinds = {"ab": 5, "cb": 3, "de": 4, "fb": 2}
    corpus = [list(kind) for kind, times in kinds.items() for _ in range(times)]
    corpus += [["b"]] * 40 + [["e"]] * 40 + [[]] * 400
    statistics = LabelStatistics().update(corpus)
    whole = OrderGraph.of_space(statistics)
    assert [(edge.before, edge.after) for edge in whole.edges] == [("a", "b"), ("d", "e"), ("c", "b"), ("f", "b")]
    # Of two labels, one edge; of three, d -> e does not fit but c -> b does.
    expected = {0: "", 1: "", 2: "ab", 3: "ab cb", 4: "ab de", 5: "ab de cb", 6: "ab de cb fb", 99: "ab de cb fb"}
    for top, edges in expected.items():
        graph = OrderGraph.of_space(statistics, top=top)
        assert " ".join(edge.before + edge.after for edge in graph.edges) == edges
        assert set(graph.labels) == set(edges) - {" "}
        assert len(graph.labels) <= top


@given(corpora, all_thresholds, st.integers(0, 9))
def test_a_cut_space_keeps_the_first_edges_that_fit(corpus, thresholds, top):
    statistics = LabelStatistics().update(corpus)
    whole, cut = OrderGraph.of_space(statistics, thresholds), OrderGraph.of_space(statistics, thresholds, top=top)
    assert len(cut.labels) == len(set(cut.labels)) <= top
    assert set(cut.labels) == {label for edge in cut.edges for label in (edge.before, edge.after)}
    assert [edge for edge in whole.edges if edge in cut.edges] == list(cut.edges)
    for left_out in set(whole.edges) - set(cut.edges):
        assert left_out.n_both == 1 or len({*cut.labels, left_out.before, left_out.after}) > top


def named(size, edges) -> OrderGraph:
    return OrderGraph(tuple(ALPHABET[:size]), tuple(Edge(ALPHABET[i], ALPHABET[j]) for i, j in edges))


@given(posets(5))
def test_a_graph_allows_its_orders_and_no_other(poset):
    graph = named(*poset)
    possible = {tuple(ALPHABET[i] for i in order) for order in all_orders(*poset)}
    assert {order for order in permutations(graph.labels) if graph.allows(order)} == possible
    assert graph.n_orders == len(possible)
    assert graph.log2_orders == log2(len(possible))


@pytest.mark.parametrize("order", ["", "abc", "abcda", "dabcd", "abcde", "abce", "bacd"])
def test_a_graph_allows_only_orders_of_all_its_labels(order):
    assert V_AND_FREE.allows("abcd")
    assert not V_AND_FREE.allows(order)


def test_a_graph_too_large_to_count_has_no_number_of_orders():
    edges = tuple(Edge(str(i), str(j)) for i, j in random_edges(Random(5), 40, 0.1))
    graph = OrderGraph(tuple(map(str, range(40))), edges)
    assert graph.n_orders is None
    assert graph.log2_orders is None
    assert all(graph.allows(order) for order in graph.draw(3))


@given(posets(6), st.integers(), st.sampled_from(["uniform", "quick"]), st.booleans())
def test_drawn_orders_are_allowed(poset, seed, sampler, distinct):
    graph = named(*poset)
    orders = graph.draw(5, seed=seed, sampler=sampler, distinct=distinct)
    assert len(orders) == 5
    assert all(isinstance(order, tuple) and graph.allows(order) for order in orders)
    if distinct:
        assert len(set(orders)) == min(5, graph.n_orders)


def test_one_order_is_drawn_unless_told_otherwise():
    assert len(V_AND_FREE.draw()) == 1
    assert V_AND_FREE.draw(0) == []
    assert OrderGraph(()).draw(2) == [(), ()]


@pytest.mark.parametrize("sampler", ["uniform", "quick"])
def test_a_seed_settles_the_draw(sampler):
    draws = [V_AND_FREE.draw(20, seed=seed, sampler=sampler) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_a_seed_may_be_a_numpy_generator():
    one, two = (np.random.default_rng(5) for _ in range(2))
    assert V_AND_FREE.draw(20, seed=one) == V_AND_FREE.draw(20, seed=two)
    assert V_AND_FREE.draw(20, seed=one) != V_AND_FREE.draw(20, seed=np.random.default_rng(5))


def test_an_unknown_sampler_is_named():
    with pytest.raises(ValueError, match=r"sampler must be one of uniform, quick, got 'fast'\."):
        V_AND_FREE.draw(sampler="fast")


@pytest.mark.parametrize("edges", [["aa"], ["ab", "ba"], ["ab", "bc", "ca"], ["ab", "bc", "cd", "db"]])
def test_edges_in_a_cycle_allow_no_order(edges):
    graph = OrderGraph(tuple("abcd"), tuple(Edge(*edge) for edge in edges))
    for ask in (lambda: graph.n_orders, graph.draw):
        with pytest.raises(ValueError, match=r"the edges form a cycle, so no order satisfies them\."):
            ask()


def test_graphs_compare_by_labels_and_edges():
    assert OrderGraph(("a", "b"), (Edge("a", "b"),)) == OrderGraph(("a", "b"), (Edge("a", "b", 3, 1.0, 2.0),))
    assert OrderGraph(("a", "b")) != OrderGraph(("b", "a"))


@given(corpora, all_thresholds)
def test_edges_carry_the_values_that_were_compared(corpus, thresholds):
    statistics = LabelStatistics().update(corpus)
    graph = OrderGraph.of_space(statistics, thresholds)
    assume(graph.edges)
    for edge in graph.edges:
        assert edge.n_both == sum({edge.before, edge.after} <= set(labels) for labels in corpus)
        assert edge.pmi == statistics.pmi(edge.before, edge.after) >= thresholds.min_pmi
        assert edge.ratio == statistics.count(edge.after) / statistics.count(edge.before) > thresholds.min_ratio


@given(corpora, all_thresholds, st.integers(1, 9))
def test_around_a_label_are_the_neighbours_it_stands_with_most_often(corpus, thresholds, top):
    statistics = LabelStatistics().update(corpus)
    whole = OrderGraph.of_space(statistics, thresholds)
    for label in statistics.labels:
        near = {
            edge.after if edge.before == label else edge.before: edge.n_both
            for edge in whole.edges
            if label in (edge.before, edge.after)
        }
        wanted = sorted(near, key=lambda other: (-near[other], other))[: top - 1]
        around = OrderGraph.around(label, statistics, thresholds, top=top)
        assert around.labels == (label, *wanted)
        assert set(around.edges) == set(OrderGraph.of_set(around.labels, statistics, thresholds).edges)


def test_nothing_is_around_a_label_that_was_never_seen():
    assert OrderGraph.around("x", LabelStatistics().update([["a", "b"]])) == OrderGraph(("x",))
