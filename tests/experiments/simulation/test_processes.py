"""The processes of appendix G, checked against what they are defined to be."""

from collections import Counter
from itertools import chain, combinations
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.examples import Example
from setaug.experiments.simulation.processes import (
    PROCESSES,
    apportion,
    block_symbols,
    paired_log2_probability,
    paired_symbols,
    shuffled,
    sized_symbols,
)
from setaug.orders import LabelStatistics

BLOCKS = {1: 8, 2: 4, 3: 3, 4: 2}


def numbers(example: Example) -> list[int]:
    return [int(label[1:]) for label in example.labels]


@pytest.mark.parametrize("process", PROCESSES)
def test_the_same_seed_gives_the_same_data_and_another_one_other_data(process: str) -> None:
    make = PROCESSES[process]
    assert list(make(20, seed=3)) == list(make(20, seed=3))
    assert list(make(20, seed=3)) != list(make(20, seed=4))
    assert list(make(10, seed=3)) == list(make(20, seed=3))[:10]


@pytest.mark.parametrize("process", PROCESSES)
def test_labels_are_different_and_ids_count_on(process: str) -> None:
    for number, example in enumerate(PROCESSES[process](200, seed=1)):
        assert len(set(example.labels)) == len(example.labels)
        assert example.id == number


@pytest.mark.parametrize("block_size", BLOCKS)
def test_without_noise_each_suffix_follows_from_its_prefix(block_size: int) -> None:
    settings = {"n_symbols": 20, "n_blocks": BLOCKS[block_size], "block_size": block_size, "noise": 0.0}
    for example in block_symbols(100, **settings):
        found = numbers(example)
        assert len(found) == block_size * BLOCKS[block_size]
        for start in range(0, len(found), block_size):
            *prefix, suffix = found[start : start + block_size]
            assert prefix == sorted(prefix)
            assert block_size == 1 or suffix == (sum(prefix) + 1) % 20


def test_noise_is_how_often_a_suffix_is_drawn_from_all_symbols() -> None:
    blocks = [
        found[start : start + 2]
        for found in map(numbers, block_symbols(3000, n_symbols=40, n_blocks=1, noise=0.5, concentration=1.0))
        for start in range(0, len(found), 2)
    ]
    follows = sum(suffix == (prefix + 1) % 40 for prefix, suffix in blocks) / len(blocks)
    # A suffix that is drawn is the right one in 1 of 40 cases; one that equals its prefix is drawn again.
    right = (0.5 + 0.5 / 40) / (1 - 0.5 / 40)
    assert abs(follows - right) < 4 * (right * (1 - right) / len(blocks)) ** 0.5


def test_blocks_of_one_come_in_any_order_with_the_same_chance() -> None:
    # Drawn one after the other, likely symbols would come first; the order must not tell.
    first_is_likelier = [
        example.fields["x"][numbers(example)[0]] > example.fields["x"][numbers(example)[1]]
        for example in block_symbols(3000, n_symbols=10, n_blocks=2, block_size=1, with_input=True)
    ]
    assert abs(np.mean(first_is_likelier) - 0.5) < 4 * 0.5 / 3000**0.5


def test_a_single_symbol_comes_as_often_as_the_input_says() -> None:
    examples = list(block_symbols(4000, n_symbols=5, n_blocks=1, block_size=1, concentration=0.7, with_input=True))
    for symbol in range(5):
        came = [numbers(one)[0] == symbol for one in examples]
        chance = [one.fields["x"][symbol] for one in examples]
        spread = sum(p * (1 - p) for p in chance) ** 0.5
        assert abs(sum(came) - sum(chance)) < 4 * spread


def test_two_symbols_come_without_putting_back() -> None:
    examples = list(block_symbols(6000, n_symbols=3, n_blocks=2, block_size=1, concentration=1.0, with_input=True))
    for left_out in range(3):
        others = [symbol for symbol in range(3) if symbol != left_out]
        chances = []
        for one in examples:
            a, b = (one.fields["x"][symbol] for symbol in others)
            chances.append(a * b / (1 - a) + a * b / (1 - b))
        came = sum(left_out not in numbers(one) for one in examples)
        assert abs(came - sum(chances)) < 4 * sum(p * (1 - p) for p in chances) ** 0.5


def test_prefixes_can_stay_unsorted() -> None:
    drawn = [numbers(one) for one in block_symbols(100, n_blocks=1, block_size=4, sort_prefix=False)]
    assert any(found[:3] != sorted(found[:3]) for found in drawn)


@pytest.mark.parametrize("process", PROCESSES)
def test_texts_hold_each_symbol_in_proportion(process: str) -> None:
    for example in PROCESSES[process](50, seed=2, with_input=True):
        words = example.text.split()
        counts = apportion(np.array(example.fields["x"]), len(words))
        assert Counter(words) == {f"s{symbol}": n for symbol, n in enumerate(counts.tolist()) if n}
        assert words == sorted(words, key=lambda word: int(word[1:]))


@pytest.mark.parametrize("process", PROCESSES)
def test_texts_can_be_shuffled(process: str) -> None:
    found = list(PROCESSES[process](20, seed=2, shuffle_text=True))
    assert any(one.text.split() != sorted(one.text.split(), key=lambda word: int(word[1:])) for one in found)
    assert all("x" not in one.fields for one in found)


def test_a_partner_never_comes_alone_and_is_half_as_frequent() -> None:
    examples = list(paired_symbols(2000, n_symbols=6, n_blocks=2, concentration=1.0))
    for example in examples:
        assert all(f"s{label[1:]}" in example.labels for label in example.labels if label.startswith("p"))
    statistics = LabelStatistics().update(example.labels for example in examples)
    for symbol in range(6):
        share = statistics.pair_count(f"s{symbol}", f"p{symbol}") / statistics.count(f"s{symbol}")
        assert 0.45 < share < 0.65  # a half, or three quarters where it was drawn twice


def all_paired_sets(n_symbols: int) -> list[list[str]]:
    symbols = range(n_symbols)
    subsets = list(chain.from_iterable(combinations(symbols, size) for size in range(n_symbols + 1)))
    return [
        [*(f"s{one}" for one in subset), *(f"p{one}" for one in partners)] for subset in subsets for partners in subsets
    ]


@pytest.mark.parametrize("n_blocks", [1, 2, 3])
def test_the_probabilities_of_all_sets_with_partners_sum_to_one(n_blocks: int) -> None:
    x = [0.5, 0.3, 0.2]
    total = sum(2 ** paired_log2_probability(labels, x, n_blocks=n_blocks) for labels in all_paired_sets(3))
    assert isclose(total, 1, abs_tol=1e-12)


def test_sets_with_partners_come_as_often_as_their_probabilities_say() -> None:
    examples = list(paired_symbols(4000, n_symbols=3, n_blocks=2, concentration=1.0, with_input=True))
    for labels in (["s0"], ["s1", "p1"], ["s0", "s2"], ["s0", "s2", "p2"], ["s1", "s2", "p1", "p2"]):
        chances = [2 ** paired_log2_probability(labels, one.fields["x"], n_blocks=2) for one in examples]
        came = sum(set(one.labels) == set(labels) for one in examples)
        assert abs(came - sum(chances)) < 4 * sum(p * (1 - p) for p in chances) ** 0.5


def test_a_single_symbol_has_its_partner_unless_no_block_joined_it() -> None:
    # With one symbol there is nothing but its partner to draw: three blocks, each joined half of the time.
    found = Counter(len(one.labels) for one in paired_symbols(4000, n_symbols=1))
    expected = 2 ** paired_log2_probability(["s0", "p0"], [1.0])
    assert isclose(expected, 1 - 0.5**3)
    assert abs(found[2] / 4000 - expected) < 4 * (expected * (1 - expected) / 4000) ** 0.5


def test_the_probabilities_of_sets_of_larger_blocks_are_those_with_which_they_come() -> None:
    examples = list(paired_symbols(3000, n_symbols=4, n_blocks=2, block_size=3, concentration=1.0, with_input=True))
    came = Counter(frozenset(one.labels) for one in examples)
    for labels, n in came.most_common(6):
        chances = [2 ** paired_log2_probability(labels, one.fields["x"], n_blocks=2, block_size=3) for one in examples]
        assert abs(n - sum(chances)) < 4 * sum(p * (1 - p) for p in chances) ** 0.5


def test_a_partner_of_a_larger_block_comes_with_all_of_its_symbols() -> None:
    partners = 0
    for one in paired_symbols(200, n_blocks=2, block_size=3):
        for label in one.labels:
            if label.startswith("p"):
                partners += 1
                assert {f"s{symbol}" for symbol in label[1:].split("-")} <= set(one.labels)
    assert partners > 100


def test_sizes_follow_from_the_length_of_the_text() -> None:
    found = list(sized_symbols(300, words_per_label=3))
    assert all(len(one.text.split()) == 3 * len(one.labels) for one in found)
    assert {len(one.labels) for one in found} == set(range(1, 9))


@given(st.integers(0, 12), st.floats(0, 1), st.integers(0, 1000))
def test_shuffling_keeps_the_labels_and_leaves_the_rest_in_place(n: int, share: float, seed: int) -> None:
    labels = tuple(f"s{at}" for at in range(n))
    mixed = shuffled(labels, share, np.random.default_rng(seed))
    assert sorted(mixed) == sorted(labels)
    assert sum(one != other for one, other in zip(labels, mixed, strict=True)) <= round(share * n)
    if share == 0:
        assert mixed == labels


def test_shuffling_all_gives_each_order_the_same_chance() -> None:
    rng = np.random.default_rng(0)
    found = Counter(shuffled(("a", "b", "c"), 1.0, rng) for _ in range(6000))
    assert len(found) == 6
    assert all(abs(count - 1000) < 4 * (6000 * 5 / 36) ** 0.5 for count in found.values())


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8), st.integers(1, 50))
def test_apportioned_counts_sum_to_the_total_and_are_off_by_less_than_one(shares: list[float], total: int) -> None:
    values = np.array(shares)
    counts = apportion(values, total)
    assert counts.sum() == total
    assert np.all(np.abs(counts - values / values.sum() * total) < 1)


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (block_symbols, {"noise": 1.5}, "noise must be a probability from 0 to 1, got 1.5"),
        (block_symbols, {"n_symbols": 5}, "6 blocks of 2 need more than 5 symbols"),
        (block_symbols, {"block_size": 0}, "block_size must be an integer from 1 to 1,000,000, got 0"),
        (block_symbols, {"n_words": 1.5}, "n_words must be an integer from 1 to 1,000,000, got 1.5"),
        (block_symbols, {"n_symbols": 10**12}, "n_symbols must be an integer from 1 to 1,000,000"),
        (block_symbols, {"concentration": float("nan")}, "concentration must be a number from 0.001 to 1,000, got nan"),
        (block_symbols, {"noise": float("nan")}, "noise must be a probability from 0 to 1, got nan"),
        (
            block_symbols,  # the suffix of three different symbols of four is always one of them
            {"n_symbols": 4, "n_blocks": 1, "block_size": 4, "noise": 0.0},
            "1 blocks of 4 hardly ever have distinct symbols; use more than 4 symbols",
        ),
        (paired_symbols, {"concentration": 0.0}, "concentration must be a number from 0.001 to 1,000, got 0.0"),
        (paired_symbols, {"block_size": 1}, "block_size must be from 2 to 31, the number of symbols plus one, got 1"),
        (sized_symbols, {"noise": -1}, "noise must be a probability from 0 to 1, got -1"),
        (sized_symbols, {"max_size": 31}, "16 blocks of 2 need more than 30 symbols"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: object, settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        next(make(1, **settings))  # type: ignore[operator]


def test_blocks_that_fill_all_symbols_can_be_drawn() -> None:
    # Each symbol is in a block: few draws fit, so that x is drawn again at times.
    assert all(len(one.labels) == 4 for one in block_symbols(5, n_symbols=4, n_blocks=2, noise=0.0))
