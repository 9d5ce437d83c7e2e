"""The lemmas of the paper's appendix "Proofs", on distributions over label sets that are tables: all sums are exact.

A set is a tuple of 0 and 1, one for each label; ``p(y_i)`` is the probability that a set holds label i.
"""

from fractions import Fraction
from itertools import permutations, product
from math import prod

import networkx as nx
from hypothesis import assume, given
from hypothesis import strategies as st

from setaug.orders import LabelStatistics, OrderGraph
from tests.strategies import all_thresholds, corpora

SETS = list(product((0, 1), repeat=3))
weights = st.lists(st.integers(1, 9), min_size=8, max_size=8)
"""None is zero: the paper assumes that each set is possible."""
shares = st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20)


def as_table(values):
    return {one: Fraction(value, sum(values)) for one, value in zip(SETS, values, strict=True)}


def p(table, **labels):
    """Give the probability that labels are present (1) or absent (0); i, j and k are the three."""
    places = {"ijk".index(name): value for name, value in labels.items()}
    return sum(share for one, share in table.items() if all(one[at] == value for at, value in places.items()))


def bernoulli(chances):
    """Give the table of independent labels."""
    return {
        one: prod((chance if is_in else 1 - chance) for chance, is_in in zip(chances, one, strict=True)) for one in SETS
    }


# --- the first: dependence is retained --------------------------------------------------------------------------------


def are_independent(table):
    return p(table, i=1, j=1) == p(table, i=1) * p(table, j=1)


def is_independent_of_both(table):
    """Tell whether label i is independent of labels j and k together: of each of their four values."""
    return all(p(table, i=1, j=j, k=k) == p(table, i=1) * p(table, j=j, k=k) for j in (0, 1) for k in (0, 1))


@given(weights)
def test_what_depends_on_a_label_depends_on_that_label_and_another(values):
    table = as_table(values)
    assume(not are_independent(table))
    assert not is_independent_of_both(table)


def test_the_converse_of_retained_dependence_does_not_hold():
    """Label i is there exactly when one of j and k is (almost): it depends on both together, on neither alone."""
    table = as_table([9 if one[0] == one[1] ^ one[2] else 1 for one in SETS])
    assert are_independent(table)
    assert p(table, i=1, k=1) == p(table, i=1) * p(table, k=1)
    assert not is_independent_of_both(table)


# --- the second: conditioning on what is independent keeps the direction ---------------------------------------------


def says_more(table, **given):
    """Tell whether p(i | j, given) > p(j | i, given)."""
    both = p(table, i=1, j=1, **given)
    return both / p(table, j=1, **given) > both / p(table, i=1, **given)


@given(st.lists(st.integers(1, 9), min_size=4, max_size=4), shares, st.sampled_from([0, 1]))
def test_the_direction_of_an_edge_is_the_same_given_an_independent_label(pair, chance, value):
    table = {
        (i, j, k): Fraction(pair[2 * i + j], sum(pair)) * (chance if k else 1 - chance)
        for i, j, k in product((0, 1), repeat=3)
    }
    assert says_more(table, k=value) == says_more(table) == (p(table, i=1) > p(table, j=1))


def test_given_a_label_that_is_not_independent_the_direction_may_turn():
    table = as_table([1, 1, 1, 9, 9, 1, 1, 1])  # i alone is frequent; with k, it is j that is
    assert p(table, i=1, k=1) < p(table, j=1, k=1)
    assert p(table, i=1, k=0) > p(table, j=1, k=0)
    assert says_more(table, k=1) != says_more(table, k=0)


@given(weights)
def test_the_second_condition_of_an_edge_compares_frequencies_alone(values):
    """p(i | j) over p(j | i) is p(i) over p(j). So it does not say that j makes i more likely: the pmi does."""
    table = as_table(values)
    both = p(table, i=1, j=1)
    assert (both / p(table, j=1)) / (both / p(table, i=1)) == p(table, i=1) / p(table, j=1)


@given(st.tuples(shares, shares, shares))
def test_the_second_condition_can_hold_for_independent_labels(chances):
    table = bernoulli(chances)
    assert p(table, i=1, j=1) / p(table, j=1) == p(table, i=1)  # j tells nothing about i
    assert says_more(table) == (chances[0] > chances[1])


# --- the third: where labels are independent, order does not matter ---------------------------------------------------


def steps(table, one, order):
    """Factorise the probability of a set by the chain rule: decide label by label, in an order, whether it is in."""
    names = "ijk"
    found = []
    for at, place in enumerate(order):
        before = {names[earlier]: one[earlier] for earlier in order[:at]}
        found.append(p(table, **before, **{names[place]: one[place]}) / p(table, **before))
    return found


@given(st.tuples(shares, shares, shares))
def test_independent_labels_are_as_hard_to_predict_in_every_order(chances):
    """What the lemma says: each step is a marginal, whatever stands before it, so all factorisations are one."""
    table = bernoulli(chances)
    for one in SETS:
        for order in permutations(range(3)):
            wanted = [chances[place] if one[place] else 1 - chances[place] for place in order]
            assert steps(table, one, order) == wanted


@given(st.tuples(*[st.integers(1, 3)] * 3), all_thresholds)
def test_independent_labels_have_no_edges_so_their_orders_are_random_ones(quarters, thresholds):
    """Each combination as often as independent labels would have it: no pmi is above 0."""
    assume(thresholds.min_pmi >= 0)
    table = bernoulli([Fraction(quarter, 4) for quarter in quarters])
    corpus = [[name for name, is_in in zip("ijk", one, strict=True) if is_in] for one in SETS]
    repeated = [labels for labels, one in zip(corpus, SETS, strict=True) for _ in range(int(64 * table[one]))]
    graph = OrderGraph.of_set(["i", "j", "k"], LabelStatistics().update(repeated), thresholds)
    assert len(repeated) == 64
    assert graph.n_orders == 6


@given(weights)
def test_dependent_labels_have_other_steps_in_another_order_but_the_same_product(values):
    """What the lemma does not say: that the product would differ. By the chain rule, it never does for a true
    distribution; what differs is how hard each step is, and so what a model of limited means learns of it.
    """
    table = as_table(values)
    assume(not are_independent(table))
    for one in SETS:
        for order in permutations(range(3)):
            assert prod(steps(table, one, order)) == table[one]
    first, then = (steps(table, (1, 1, 1), order) for order in ((0, 1, 2), (1, 0, 2)))
    assert first[1] != p(table, j=1)
    assert then[1] != p(table, i=1)


# --- the fourth: no cycles --------------------------------------------------------------------------------------------


@given(corpora, all_thresholds)
def test_counts_grow_along_each_edge_so_graphs_have_no_cycle(corpus, thresholds):
    """As the proof has it; so a cycle would need a label that is more frequent than itself."""
    statistics = LabelStatistics().update(corpus)
    edges = OrderGraph.of_space(statistics, thresholds).edges
    assert all(statistics.count(edge.before) < statistics.count(edge.after) for edge in edges)
    assert nx.is_directed_acyclic_graph(nx.DiGraph([(edge.before, edge.after) for edge in edges]))
