"""The loops in plain Python draw what the compiled ones draw."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from setaug.orders import EdgeTable, SetBatch, kernels, make_ordering, plain_kernels
from setaug.orders.arrays import pack_keys


def draw_sets(rng: np.random.Generator, sizes: list[int], n_labels: int) -> SetBatch:
    return SetBatch.of(rng.choice(n_labels, size=size, replace=False) for size in sizes)


def draw_edges(rng: np.random.Generator, n_labels: int, share: float, cap: float) -> EdgeTable:
    """Draw a table in which edges go from rare to frequent labels."""
    counts = np.sort(rng.integers(1, 200, n_labels))
    first, then = np.nonzero(np.triu(rng.random((n_labels, n_labels)) < share, 1))
    is_rarer = counts[first] < counts[then]
    keys = pack_keys(first[is_rarer], then[is_rarer])
    return EdgeTable(np.stack([counts, counts], axis=1), keys, np.ones(len(keys), np.int64), cap)


def cases() -> Iterator[tuple[int, list[int], float, float]]:
    small, middle = [0, 1, 2, 3, 4, 5] * 5, [6, 7, 8, 9, 12, 3, 6] * 3
    for seed, share in enumerate([0.0, 0.05, 0.2, 0.6, 1.0]):
        for cap in (0.0, 2000.0):
            yield seed, small, share, cap
            yield seed, middle, share, cap
    yield 7, [22, 40, 64, 65, 80, 25], 0.01, 0.0  # more orders than 64 bits hold
    yield 8, [22, 30, 24], 1.0, 0.0
    yield 9, [3, 7, 30, 4, 60, 6], 0.1, 0.0  # too many down-sets: the compiled loops go on
    yield 10, [26, 30] * 3, 0.04, 0.0


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("sampler", ["uniform", "quick"])
@pytest.mark.parametrize("name", ["topological", "reversed", "random"])
@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_both_kinds_of_loops_draw_the_same_orders(
    case: tuple[int, list[int], float, float], name: str, sampler: str, distinct: bool
) -> None:
    seed, sizes, share, cap = case
    if distinct and sampler == "quick" and max(sizes) > 12:
        pytest.skip("the quick sampler may never reach some orders of a large set")
    rng = np.random.default_rng(seed)
    batch, edges = draw_sets(rng, sizes, 90), draw_edges(rng, 90, share, cap)
    plain, compiled = (
        make_ordering(name, labels=[], edges=edges, sampler=sampler, distinct=distinct, is_plain=is_plain).orders(
            batch, 4, seed=2**63 - 1 - seed, first_index=5
        )
        for is_plain in (True, False)
    )
    np.testing.assert_array_equal(plain.positions, compiled.positions)
    np.testing.assert_array_equal(plain.n_edges, compiled.n_edges)
    np.testing.assert_allclose(plain.log2_orders, compiled.log2_orders, rtol=1e-12)
    assert plain.n_rushed == compiled.n_rushed


@pytest.mark.parametrize("cap", [0.0, 500.0, 5000.0, 1e9])
def test_both_kinds_of_loops_find_the_same_undecided_pairs(cap: float) -> None:
    rng = np.random.default_rng(3)
    batch, counts = draw_sets(rng, [0, 1, 2, 5, 9, 30], 40), rng.integers(1, 200, 40)
    bounds = np.stack([counts, 2 * counts], axis=1)
    arguments = batch.starts, batch.ids, bounds, cap
    assert plain_kernels.undecided_keys(*arguments).tolist() == kernels.undecided_keys(*arguments).tolist()


def test_small_sets_are_drawn_without_numba() -> None:
    code = """
import sys
import numpy as np
from setaug.orders import EdgeTable, SetBatch, make_ordering
edges = EdgeTable(np.array([[1, 3], [9, 27], [40, 120]] * 10), np.array([1], np.uint64), np.array([1]))
batch = SetBatch.of([[0, 1, 2], range(7)])
make_ordering("topological", labels=[], edges=edges, is_plain=True).orders(batch, 2, seed=0, first_index=0)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
