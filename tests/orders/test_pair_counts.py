"""Counts of pairs: the same whether they fit into memory or not."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.orders import pair_counts
from setaug.orders.pair_counts import PairCounts, SpillingPairCounts, add_counts
from tests.strategies import pair_keys

tables = st.dictionaries(st.integers(0, 9), st.integers(1, 9))


def as_table(counted: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    keys = sorted(counted)
    return np.array(keys, np.uint64), np.array([counted[key] for key in keys], np.int64)


@given(tables, tables)
def test_tables_of_counts_add_up(one, two):
    keys, counts = add_counts(*as_table(one), *as_table(two))
    assert keys.tolist() == sorted(one | two)
    assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == Counter(one) + Counter(two)


@given(st.lists(st.lists(pair_keys) | tables, max_size=12))
def test_counts_that_do_not_fit_into_memory_are_those_of_a_counter(pieces):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_MAX_PENDING", 3), ("MAX_IN_MEMORY", 4), ("_MERGED", 6), ("_PART", 5)):
            patch.setattr(pair_counts, name, value)
        in_memory, expected = PairCounts(), Counter()
        with SpillingPairCounts() as spilling:
            for piece in pieces:
                for counts in (spilling, in_memory):
                    if isinstance(piece, dict):
                        counts.add_counts(*as_table(piece))
                    else:
                        counts.add(np.array(piece, np.uint64))
                expected.update(piece)
            parts = list(spilling.parts())
    assert in_memory.sorted()[0].tolist() == sorted(expected)
    assert [key for keys, _ in parts for key in keys.tolist()] == sorted(expected)
    assert [n for _, counts in parts for n in counts.tolist()] == [expected[key] for key in sorted(expected)]


def test_many_runs_are_merged_a_part_at_a_time(monkeypatch):
    monkeypatch.setattr(pair_counts, "MAX_IN_MEMORY", 1000)
    monkeypatch.setattr(pair_counts, "_MERGED", 500)
    monkeypatch.setattr(pair_counts, "_MAX_PENDING", 1000)
    generator = np.random.default_rng(0)
    noted = [generator.integers(0, 20_000, 1500).astype(np.uint64) for _ in range(20)]
    with SpillingPairCounts() as counted:
        for keys in noted:
            counted.add(keys)
        parts = list(counted.parts())
    assert len(parts) > 10
    assert max(len(keys) for keys, _ in parts) <= 1000
    keys, counts = np.unique(np.concatenate(noted), return_counts=True)
    assert np.array_equal(np.concatenate([part[0] for part in parts]), keys)
    assert np.array_equal(np.concatenate([part[1] for part in parts]), counts)
