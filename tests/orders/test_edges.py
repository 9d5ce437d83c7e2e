from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.orders import EdgeTable, Thresholds
from setaug.orders.edges import edges_among
from tests.strategies import all_thresholds, ratio_bounds

counts = st.integers(1, 1 << 40)


def as_ints(values):
    return np.array(values, np.int64)


def exceeds_by_powers(n_both: int, n_a: int, n_b: int, n_sets: int, min_pmi: Fraction) -> bool:
    """Compare (n_ab n)^q with 2^p (n_a n_b)^q for min_pmi = p/q, in whole numbers."""
    p, q = min_pmi.numerator, min_pmi.denominator
    return (n_both * n_sets) ** q * 2 ** max(-p, 0) > (n_a * n_b) ** q * 2 ** max(p, 0)


@pytest.mark.parametrize(
    ("min_ratio", "n_earlier", "n_tied"),
    [
        (1, 7, 7),
        (1.0, 1, 1),
        (3, 5, 15),
        (3.0, 5, 15),
        (1.2, 5, 6),
        (1.2, 50_000_000_000, 60_000_000_000),
        (Fraction(6, 5), 5, 6),
        (1.5, 4, 6),
        (Fraction(3, 2), 4, 6),
        (2.7182818, 10_000_000, 27_182_818),
        (2.7182818, 5_000_000, 13_591_409),
        (Fraction(27_182_818, 10_000_000), 5_000_000, 13_591_409),
        (np.float64(1.1), 10, 11),
        (np.float32(1.1), 10, 11),
        (np.int64(2), 10, 20),
    ],
)
def test_a_label_exactly_min_ratio_times_as_frequent_gives_no_edge(min_ratio, n_earlier, n_tied):
    thresholds = Thresholds(min_ratio=min_ratio)
    assert not thresholds.exceeds_ratio(n_tied, n_earlier)
    assert thresholds.exceeds_ratio(n_tied + 1, n_earlier)
    assert thresholds.bounds(as_ints([n_earlier])).tolist() == [[n_earlier, n_tied]]


@pytest.mark.parametrize("min_ratio", [1.2, 1.5, 2.7182818, 3.0])
def test_a_ratio_means_the_same_as_a_float_and_as_a_fraction(min_ratio):
    as_float, as_fraction = Thresholds(min_ratio=min_ratio), Thresholds(min_ratio=Fraction(str(min_ratio)))
    cases = [(a, b) for a in range(1, 60) for b in range(1, 20)]
    assert [as_float.exceeds_ratio(*case) for case in cases] == [as_fraction.exceeds_ratio(*case) for case in cases]


@pytest.mark.parametrize(
    ("min_pmi", "n_both", "n_a", "n_b", "n_sets"),
    [
        (0, 3, 5, 6, 10),
        (0.0, 3, 5, 6, 10),
        (1, 2, 4, 5, 20),
        (1.0, 2, 4, 5, 20),
        (Fraction(1), 2, 4, 5, 20),
        (3, 1, 3, 7, 168),
        (-1, 1, 4, 4, 8),
        (-1.0, 3, 12, 5, 10),
        (-3, 1, 8, 8, 8),
        (1, 3**20, 3**21, 5**15, 2 * 3 * 5**15),
    ],
)
def test_a_pmi_of_exactly_min_pmi_gives_no_edge(min_pmi, n_both, n_a, n_b, n_sets):
    assert Fraction(n_both * n_sets, n_a * n_b) == Fraction(2) ** int(min_pmi)
    thresholds = Thresholds(min_pmi=min_pmi)
    assert not thresholds.exceeds_pmi(n_both, n_a, n_b, n_sets)
    assert thresholds.exceeds_pmi(n_both, n_a, n_b, n_sets + 1)
    assert thresholds.exceeds_pmi(n_both + 1, n_a, n_b, n_sets)
    assert not thresholds.pmi_mask(as_ints([n_both]), as_ints([n_a]), as_ints([n_b]), n_sets).any()


@given(counts, counts, counts, counts, st.fractions(-8, 8, max_denominator=12))
def test_a_pmi_is_compared_exactly(n_both, n_a, n_b, n_sets, min_pmi):
    expected = exceeds_by_powers(n_both, n_a, n_b, n_sets, min_pmi)
    assert Thresholds(min_pmi=min_pmi).exceeds_pmi(n_both, n_a, n_b, n_sets) is expected


@pytest.mark.parametrize("min_pmi", [Fraction(1, 2), Fraction(-1, 2), Fraction(1, 3), Fraction(13, 10)])
def test_near_ties_of_an_irrational_bound_are_decided_right(min_pmi):
    # The convergents of 2**min_pmi are as near to it as fractions of their size can be.
    p, q, digits = min_pmi.numerator, min_pmi.denominator, 1 << 400
    root = _integer_root(Fraction(2) ** p * digits**q, q)
    thresholds = Thresholds(min_pmi=min_pmi)
    sides = set()
    for above, below in _convergents(Fraction(root, digits), 60):
        expected = exceeds_by_powers(above, below, 1, 1, min_pmi)
        assert thresholds.exceeds_pmi(above, below, 1, 1) is expected
        if max(above, below) < 1 << 40:
            assert thresholds.pmi_mask(as_ints([above]), as_ints([below]), as_ints([1]), 1).tolist() == [expected]
        sides.add(expected)
    assert sides == {True, False}


def _integer_root(value: Fraction, degree: int) -> int:
    low, high = 0, 1 << (value.numerator.bit_length() // degree + 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle)
    return low


def _convergents(value: Fraction, n: int) -> list[tuple[int, int]]:
    (h, k), (h_last, k_last), found = (1, 0), (0, 1), []
    for _ in range(n):
        whole = value.numerator // value.denominator
        (h, k), (h_last, k_last) = (whole * h + h_last, whole * k + k_last), (h, k)
        found.append((h, k))
        value = 1 / (value - whole)
    return [(h, k) for h, k in found if h]


def test_a_bound_given_as_a_float_means_what_it_shows():
    # 0.1 as a binary fraction is a little more than 1/10.
    assert Thresholds(min_pmi=0.1)._pmi == Fraction(1, 10)
    assert Thresholds(min_ratio=1.1)._ratio == Fraction(11, 10)


def test_labels_that_never_meet_exceed_no_pmi():
    thresholds = Thresholds(min_pmi=-1000)
    assert not thresholds.exceeds_pmi(0, 5, 5, 100)
    assert thresholds.pmi_mask(as_ints([0, 1]), as_ints([5, 5]), as_ints([5, 5]), 100).tolist() == [False, True]


@given(st.lists(st.tuples(counts, counts, counts), max_size=8), counts, all_thresholds)
def test_many_pmis_are_compared_as_one_is(pairs, n_sets, thresholds):
    n_both, n_a, n_b = (as_ints([pair[k] for pair in pairs]) for k in range(3))
    expected = [thresholds.exceeds_pmi(*pair, n_sets) for pair in pairs]
    assert thresholds.pmi_mask(n_both, n_a, n_b, n_sets).tolist() == expected


@given(counts, counts, st.integers(-3, 3), st.integers(-2, 2))
def test_many_pmis_are_compared_as_one_is_near_ties(n_a, n_b, min_pmi, off_by):
    # n_both * n_sets is 2**min_pmi * n_a * n_b, give or take a little: far below what floats tell apart.
    n_sets = max((n_a * n_b << 3 >> 3 - min_pmi) + off_by, 1)
    thresholds = Thresholds(min_pmi=min_pmi)
    one = thresholds.exceeds_pmi(1, n_a, n_b, n_sets)
    assert one == exceeds_by_powers(1, n_a, n_b, n_sets, Fraction(min_pmi))
    assert thresholds.pmi_mask(as_ints([1]), as_ints([n_a]), as_ints([n_b]), n_sets).tolist() == [one]


@given(st.lists(st.integers(0, 1 << 40), max_size=8), ratio_bounds | st.sampled_from([1e9, 1e30, 2.718281828459045]))
def test_beside_each_count_stands_the_largest_that_gives_no_edge(values, min_ratio):
    thresholds = Thresholds(min_ratio=min_ratio)
    bounds = thresholds.bounds(as_ints(values))
    assert bounds.shape == (len(values), 2)
    assert bounds[:, 0].tolist() == values
    for n, floor in bounds.tolist():
        assert not thresholds.exceeds_ratio(floor, n)
        assert thresholds.exceeds_ratio(floor + 1, n) or floor == np.iinfo(np.int64).max


def test_a_bound_above_64_bits_is_never_exceeded():
    most = np.iinfo(np.int64).max
    assert Thresholds(min_ratio=1e30).bounds(as_ints([1, 5, 1])).tolist() == [[1, most], [5, most], [1, most]]


@given(counts, counts, counts, all_thresholds)
def test_labels_below_the_sure_cap_exceed_the_pmi_if_they_meet_at_all(n_a, n_b, n_sets, thresholds):
    if n_a * n_b < thresholds.sure_cap(n_sets):
        assert thresholds.exceeds_pmi(1, n_a, n_b, n_sets)


def test_the_sure_cap_leaves_out_little():
    assert Thresholds(min_pmi=1).sure_cap(1000) == pytest.approx(500)
    assert Thresholds(min_pmi=-2).sure_cap(1000) == pytest.approx(4000)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.data(), all_thresholds)
def test_edges_among_counted_pairs_are_those_of_the_scalar_comparison(label_counts, data, thresholds):
    pairs = [(i, j) for i, j in product(range(len(label_counts)), repeat=2) if i < j]
    pairs = sorted(data.draw(st.lists(st.sampled_from(pairs), unique=True)))
    n_both = [data.draw(st.integers(1, min(label_counts[i], label_counts[j]))) for i, j in pairs]
    n_sets = data.draw(st.integers(max(label_counts), 200))
    expected = {}
    for (i, j), n in zip(pairs, n_both, strict=True):
        for first, then in ((i, j), (j, i)):
            n_first, n_then = label_counts[first], label_counts[then]
            if thresholds.exceeds_ratio(n_then, n_first) and thresholds.exceeds_pmi(n, n_first, n_then, n_sets):
                expected[first << 32 | then] = n
    keys = np.array([i << 32 | j for i, j in pairs], np.uint64)
    table = edges_among(keys, as_ints(n_both), as_ints(label_counts), n_sets, thresholds, cap=2.5)
    assert isinstance(table, EdgeTable)
    assert dict(zip(table.keys.tolist(), table.n_both.tolist(), strict=True)) == expected
    assert len(table.keys) == len(expected)
    assert table.cap == 2.5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"min_ratio": 0.5}, ValueError, "min_ratio must be at least 1, got 0.5."),
        ({"min_ratio": Fraction(99, 100)}, ValueError, "min_ratio must be at least 1, got 99/100."),
        ({"min_ratio": float("nan")}, ValueError, "min_ratio must be a finite number, got nan."),
        ({"min_ratio": float("inf")}, ValueError, "min_ratio must be a finite number, got inf."),
        ({"min_pmi": float("-inf")}, ValueError, "min_pmi must be a finite number, got -inf."),
        ({"min_pmi": 1001}, ValueError, "min_pmi must be a number of bits between -1000 and 1000, got 1001."),
        ({"min_pmi": -1e9}, ValueError, "min_pmi must be a number of bits between -1000 and 1000, got -1000000000.0."),
        ({"min_pmi": "1"}, TypeError, "min_pmi must be a number, got '1'."),
        ({"min_pmi": None}, TypeError, "min_pmi must be a number, got None."),
        ({"min_ratio": True}, TypeError, "min_ratio must be a number, got True."),
    ],
)
def test_bad_thresholds_are_named_with_their_value(arguments, error, message):
    with pytest.raises(error) as caught:
        Thresholds(**arguments)
    assert str(caught.value) == message


def test_thresholds_compare_by_value_and_show_what_was_given():
    assert Thresholds() == Thresholds(min_pmi=1, min_ratio=3)
    assert Thresholds(min_ratio=2) != Thresholds()
    assert repr(Thresholds(min_pmi=0.5)) == "Thresholds(min_pmi=0.5, min_ratio=3.0)"
