"""One set from label probabilities, against enumeration of all sets."""

import json
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.decoding.choice import Independent, Rule, _largest_size, fit_size_ratios, mean_f1
from setaug.settings import WAYS, Decoding

N_LABELS = 4
SETS = [frozenset(some) for size in range(N_LABELS + 1) for some in combinations(range(N_LABELS), size)]
shares = st.lists(st.integers(1, 99).map(lambda n: n / 100), min_size=N_LABELS, max_size=N_LABELS)
size_weights = st.lists(st.integers(0, 9), min_size=N_LABELS + 1, max_size=N_LABELS + 1).filter(any)


def distribution(p, weights=None):
    """Return the probability of each set: independent labels, reweighted to the sizes."""
    found = {}
    for truth in SETS:
        found[truth] = np.prod([p[at] if at in truth else 1 - p[at] for at in range(N_LABELS)])
    if weights is None:
        return found
    of_size = [sum(share for truth, share in found.items() if len(truth) == size) for size in range(N_LABELS + 1)]
    q = np.array(weights) / sum(weights)
    return {truth: share * q[len(truth)] / of_size[len(truth)] for truth, share in found.items()}


def f1(one, two):
    return 2 * len(one & two) / (len(one) + len(two)) if one or two else 1.0


def jaccard(one, two):
    return len(one & two) / len(one | two) if one or two else 1.0


def exact(one, two):
    return float(one == two)


def expected(score, found, shares):
    return sum(share * score(found, truth) for truth, share in shares.items())


def choose(way, p, weights, least=0, **options):
    sizes = None if weights is None else np.array([weights]) / sum(weights)
    (columns,) = Rule(way=way, least=least).choose(np.array([p]), sizes, **options)
    return frozenset(columns.tolist())


@given(shares, st.none() | size_weights)
def test_no_other_set_has_a_higher_expected_f1(p, weights):
    truths = distribution(p, weights)
    best = max(expected(f1, some, truths) for some in SETS)
    assert expected(f1, choose("expected-f1", p, weights), truths) == pytest.approx(best, abs=1e-6)


@given(shares, st.none() | size_weights)
def test_no_other_set_is_more_probable(p, weights):
    truths = distribution(p, weights)
    best = max(expected(exact, some, truths) for some in SETS)
    assert expected(exact, choose("exact-match", p, weights), truths) == pytest.approx(best, abs=1e-6)


@given(shares, st.none() | size_weights)
def test_no_set_of_most_probable_labels_has_a_higher_expected_jaccard(p, weights):
    truths = distribution(p, weights)
    ranked = np.argsort(-np.array(p), kind="stable").tolist()
    best = max(expected(jaccard, frozenset(ranked[:k]), truths) for k in range(N_LABELS + 1))
    assert expected(jaccard, choose("expected-jaccard", p, weights), truths) == pytest.approx(best, abs=1e-6)


@given(shares, size_weights)
def test_joint_probabilities_are_those_of_enumeration(p, weights):
    found = Independent.make(np.array([p]), np.array([weights]) / sum(weights), range(N_LABELS + 1)).joint()[0]
    truths = distribution(p, weights)
    for label, size in product(range(N_LABELS), range(N_LABELS + 1)):
        wanted = sum(share for truth, share in truths.items() if label in truth and len(truth) == size)
        assert found[label, size] == pytest.approx(wanted, abs=1e-9)


@given(shares, size_weights)
def test_the_size_is_the_most_probable_one(p, weights):
    assert len(choose("size", p, weights)) == weights.index(max(weights))


@given(st.sampled_from(["expected-f1", "expected-jaccard", "exact-match", "size"]), shares, size_weights)
def test_ratios_weight_the_sizes_of_independent_labels(way, p, ratios):
    truths = distribution(p)
    of_size = [sum(share for truth, share in truths.items() if len(truth) == size) for size in range(N_LABELS + 1)]
    weights = [ratio * share for ratio, share in zip(ratios, of_size, strict=True)]
    (columns,) = Rule(way=way, least=0, size_ratios=tuple(map(float, ratios))).choose(np.array([p]))
    assert frozenset(columns.tolist()) == choose(way, p, weights)


def test_ratios_give_sizes_the_shares_of_the_dev_data():
    drawn = np.random.default_rng(0)
    p = drawn.random((400, 5)) * 0.6
    sizes = drawn.integers(2, 4, size=400)  # more labels than independent ones would have, and never none
    ratios = np.array(fit_size_ratios(p, sizes, 5))
    before = Independent.make(-np.sort(-p, axis=1), None, range(6)).sizes
    after = before * ratios
    found = (after.sum(axis=0) / 400)[2:4]
    assert found == pytest.approx(np.bincount(sizes)[2:4] / 400, abs=0.02)
    assert abs(before[:, 2:4].sum() / 400 - 1) > 0.3


@given(st.sampled_from(list(WAYS)), shares, st.none() | size_weights, st.integers(0, N_LABELS), st.integers(0, 3))
def test_sets_have_an_allowed_size(way, p, weights, least, more):
    allowed = range(least, min(least + more, N_LABELS) + 1)
    assert len(choose(way, p, weights, allowed=allowed)) in allowed


@pytest.mark.parametrize("way", WAYS)
def test_more_labels_than_there_are_give_all(way):
    assert choose(way, [0.5] * N_LABELS, None, allowed=range(9, 10)) == frozenset(range(N_LABELS))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_labels", [1, 2, 300])
def test_labels_come_in_the_order_of_their_probability(way, n_labels):
    drawn = np.random.default_rng(0).random((5, n_labels)) ** 4
    sizes = np.random.default_rng(1).dirichlet(np.ones(5), size=5)
    for columns, row in zip(Rule(way=way, threshold=0.3, k=3).choose(drawn, sizes), drawn, strict=True):
        assert len(columns) >= 1
        assert (np.diff(row[columns]) <= 0).all()
        assert len(set(columns.tolist())) == len(columns)


def test_impossible_sizes_are_ignored():
    sizes = np.array([[0.0, 0.4, 0.0, 0.0, 0.0, 0.0, 0.6]])
    assert [len(found) for found in Rule(way="expected-f1").choose(np.array([[0.9, 0.8]]), sizes)] == [1]


def test_nothing_to_choose_from_gives_nothing():
    assert Rule().choose(np.empty((0, 3))) == []


def test_fit_returns_the_rule_that_is_clearly_best_on_dev_data():
    # The probabilities are wrong, so that only the number of labels is right: two, whatever the others say.
    drawn = np.random.default_rng(0)
    p = drawn.random((60, 6)) ** 6 * 0.2
    hits = np.argsort(np.argsort(-p, axis=1), axis=1) < 2
    rule, reached = Rule.fit(p, None, hits, hits.sum(axis=1))
    assert (rule.way, rule.k, reached) == ("top-k", 2, 1.0)
    assert reached == mean_f1(rule.choose(p), hits, hits.sum(axis=1))
    assert Rule.fit(p, None, hits, hits.sum(axis=1), ways=["expected-f1"])[1] < 1
    assert Rule.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


def test_one_example_alone_does_not_decide():
    hits = np.array([[True, True, False], [True, False, False], [False, False, True]])
    p = np.array([[0.9, 0.30, 0.1], [0.9, 0.29, 0.1], [0.1, 0.2, 0.7]])
    tried = {way: Rule.fit(p, None, hits, hits.sum(axis=1), ways=[way])[1] for way in WAYS}
    assert max(tried.values()) > tried["expected-f1"]
    assert Rule.fit(p, None, hits, hits.sum(axis=1))[0].way == "expected-f1"


def test_unknown_ways_are_named():
    with pytest.raises(ValueError, match=r"choose must be one of expected-f1, .*got 'vote'"):
        Rule(way="vote")
    with pytest.raises(ValueError, match="ways must name some of"):
        Rule.fit(np.ones((1, 1)), None, np.ones((1, 1), bool), np.array([1]), ways=())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"k": 0}, "k must be an integer of at least 1, got 0"),
        ({"least": -1}, "least must be an integer of at least 0, got -1"),
        ({"largest": 0}, "largest must be an integer of at least 1, got 0"),
        ({"threshold": float("nan")}, "threshold must be a number, got nan"),
        ({"size_ratios": (1.0, -2.0)}, "size_ratios must be numbers of at least 0"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Rule(**values)


def test_of_many_dev_examples_some_compare_the_ways():
    p = np.tile([[0.9, 0.2]], (2500, 1))
    hits = np.tile([[True, False]], (2500, 1))
    hits[1::3] = [False, True]  # every third row is looked at, from the first
    assert Rule.fit(p, None, hits, np.ones(2500, np.int64), ways=["top-k"])[1] == 1.0


@pytest.mark.parametrize("way", ["expected-f1", "expected-jaccard", "exact-match", "size"])
@pytest.mark.parametrize("has_sizes", [True, False])
def test_a_set_may_have_more_labels_than_are_usually_considered(way, has_sizes):
    p = np.full((2, 120), 0.01)
    p[:, 10:100] = 0.99
    sizes = np.eye(121)[[90, 90]] if has_sizes else None
    for columns in Rule(way=way).choose(p, sizes):
        assert sorted(columns) == list(range(10, 100))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asked", [{"size_is": 40}, {"min_size": 40, "max_size": 50}])
def test_a_size_that_the_labels_make_all_but_impossible_is_kept(way, asked):
    p = np.full((1, 100), 1e-9)
    p[0, :3] = 0.9
    (columns,) = Rule().choose_asked(Decoding(choose=way, **asked), p)
    assert len(columns) in (40, 50)
    assert columns[:3].tolist() == [0, 1, 2]


def test_sizes_that_together_are_improbable_are_not_considered():
    sizes = np.full((2, 401), 1e-8)
    sizes[0, 2], sizes[1, 3] = 1, 0.5
    sizes[1, 7] = 0.5
    assert _largest_size(np.full((2, 500), 0.01), sizes, range(401)) == 7
    probabilities = np.random.default_rng(0).random((2, 500)) / 50
    found = Rule(largest=400).choose(probabilities, sizes / sizes.sum(axis=1, keepdims=True))
    few = Rule(largest=400).choose(probabilities, sizes[:, :9] / sizes[:, :9].sum(axis=1, keepdims=True))
    assert [row.tolist() for row in found] == [row.tolist() for row in few]
