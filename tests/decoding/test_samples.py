"""From many sets to one: shares, and the set that promises most."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.decoding.samples import WAYS, best_for_f1, best_for_jaccard, choose, label_shares, size_shares

drawn_sets = st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=7)
weighted = st.lists(st.tuples(st.frozensets(st.sampled_from("abcd")), st.integers(1, 5)), min_size=1, max_size=5)


def f1(one, two):
    return Fraction(2 * len(one & two), len(one) + len(two)) if one or two else Fraction(1)


def jaccard(one, two):
    return Fraction(len(one & two), len(one | two)) if one or two else Fraction(1)


def subsets(labels):
    return [frozenset(some) for size in range(len(labels) + 1) for some in combinations(sorted(labels), size)]


def mean(score, found, sets, weights=None):
    weights = weights or [1] * len(sets)
    total = sum((weight * score(found, other) for weight, other in zip(weights, sets, strict=True)), Fraction(0))
    return total / sum(weights)


@given(drawn_sets)
def test_no_other_set_has_a_higher_expected_f1(sets):
    best = max(mean(f1, some, sets) for some in subsets(frozenset().union(*sets)))
    assert mean(f1, frozenset(best_for_f1(sets)), sets) == best


@given(weighted)
def test_weights_count_as_so_many_sets(pairs):
    sets, weights = zip(*pairs, strict=True)
    found = frozenset(best_for_f1(sets, weights))
    best = max(mean(f1, some, sets, weights) for some in subsets(frozenset().union(*sets)))
    assert mean(f1, found, sets, weights) == best
    repeated = [one for one, times in pairs for _ in range(times)]
    assert label_shares(sets, weights) == pytest.approx(label_shares(repeated))


@given(drawn_sets)
def test_for_jaccard_none_of_the_sets_themselves_is_better(sets):
    found = frozenset(best_for_jaccard(sets))
    assert mean(jaccard, found, sets) >= max(mean(jaccard, one, sets) for one in sets) - Fraction(1, 10**9)
    assert found <= frozenset().union(*sets)


@given(drawn_sets)
def test_shares_are_exact_and_the_most_frequent_comes_first(sets):
    shares = label_shares(sets)
    assert shares == {label: sum(label in one for one in sets) / len(sets) for label in shares}
    assert shares.keys() == frozenset().union(*sets)
    assert list(shares) == sorted(shares, key=lambda label: (-shares[label], label))
    sizes = size_shares(sets)
    assert sum(sizes.values()) == pytest.approx(1)
    assert sizes == {size: [len(one) for one in sets].count(size) / len(sets) for size in sizes}


@pytest.mark.parametrize("n", [3, 9, 11, 12, 14, 20, 49, 100])
def test_all_is_one_and_half_is_a_half_whatever_the_number(n):
    shares = label_shares([{"all", "half"}] * n + [{"all"}] * n)
    assert shares == {"all": 1.0, "half": 0.5}
    chosen = choose("threshold", [], probabilities=shares, sizes={}, threshold=0.5)
    assert chosen == ("all", "half")


def test_sets_without_labels():
    assert label_shares([(), ()]) == {}
    assert best_for_f1([(), ()]) == set() == best_for_jaccard([()])
    assert all(choose(way, [()], probabilities={}, sizes={0: 1.0}) == () for way in WAYS)


@pytest.mark.parametrize(
    ("way", "wanted"),
    [
        ("threshold", ("b", "a")),
        ("size", ("b", "a", "c")),
        ("expected-f1", ("b", "a")),
        ("expected-jaccard", ("b", "a")),
    ],
)
def test_the_most_probable_label_comes_first(way, wanted):
    sets = [{"a", "b"}, {"a", "b"}, {"b"}, {"a", "b", "c"}]
    probabilities = {"a": 0.6, "b": 0.9, "c": 0.3}
    assert choose(way, sets, probabilities=probabilities, sizes={2: 0.2, 3: 0.5, 1: 0.3}) == wanted


def test_of_equally_probable_sizes_the_smaller_is_taken_and_there_may_be_too_few_labels():
    assert choose("size", [], probabilities={"a": 0.1, "b": 0.2}, sizes={2: 0.4, 1: 0.4}) == ("b",)
    assert choose("size", [], probabilities={"a": 0.1}, sizes={3: 1.0}) == ("a",)


@given(drawn_sets, st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_allowed_sizes_are_kept_and_nothing_within_them_is_better(sets, one, two, threshold):
    allowed = range(min(one, two), max(one, two) + 1)
    shares, labels = label_shares(sets), frozenset().union(*sets)
    found = {
        way: frozenset(
            choose(way, sets, probabilities=shares, sizes=size_shares(sets), threshold=threshold, allowed=allowed)
        )
        for way in WAYS
    }
    within = [some for some in subsets(labels) if len(some) in allowed]
    if not within:  # too few labels
        assert set(found.values()) == {labels}
        return
    assert all(some in within for some in found.values())
    assert mean(f1, found["expected-f1"], sets) == max(mean(f1, some, sets) for some in within)
    drawn = [mean(jaccard, some, sets) for some in sets if some in within]
    best_f1 = max(within, key=lambda some: mean(f1, some, sets))
    assert mean(jaccard, found["expected-jaccard"], sets) >= max(drawn, default=0) - Fraction(1, 10**9)
    assert mean(jaccard, found["expected-jaccard"], sets) >= mean(jaccard, best_f1, sets) * Fraction(1, 2)

    def gain(some):
        return sum(Fraction(shares[label]) - Fraction(threshold) for label in some)

    assert gain(found["threshold"]) == max(map(gain, within))
    sizes = size_shares(sets)
    likeliest = max(sizes, key=lambda size: (sizes[size], -size))
    nearest = min((len(some) for some in within), key=lambda size: abs(size - likeliest))
    assert len(found["size"]) == nearest
    assert min((shares[label] for label in found["size"]), default=1) >= max(
        (shares[label] for label in labels - found["size"]), default=0
    )


def test_another_way_is_refused():
    with pytest.raises(ValueError, match=r"choose must be one of expected-f1, .*, got 'best'"):
        choose("best", [{"a"}], probabilities={"a": 1.0}, sizes={1: 1.0})
