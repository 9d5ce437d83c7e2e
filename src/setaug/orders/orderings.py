"""Ways to choose orders for label sets: TSAMPLE, its reverse and the paper's baselines, behind one protocol."""

from dataclasses import dataclass
from functools import cached_property
from math import log2, nan
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from setaug.orders.edges import EdgeTable, Ints
from setaug.orders.extensions import Extensions
from setaug.orders.statistics import SetBatch
from setaug.orders.streams import Stream

SAMPLERS = ("uniform", "quick")
ORDERINGS = ("topological", "reversed", "random", "frequency", "given")
Positions: TypeAlias = NDArray[np.int32]
MAX_UNIFORM = 200
"""Sets with more labels than this in one connected part are drawn the quick way: uniformly it takes too long."""
_MAX_STATES = 10_000
"""Large sets with more down-sets than this are drawn without counting: it would take longer."""


@dataclass(frozen=True, slots=True)
class OrderBatch:
    """Hold orders for many sets."""

    positions: Positions
    """Row j holds the j-th order of each set, one set after the other: places in the set as given."""
    n_edges: Ints
    """The number of edges that constrain each set."""
    log2_orders: NDArray[np.float64]
    """The log2 of the number of orders that each set allows; nan where it is too large a set to count them."""
    n_rushed: int = 0
    """Sets that were drawn the quick way, although not asked for, because all else would take minutes."""


class Ordering(Protocol):
    """Choose orders for label sets."""

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Choose so many orders for each set.

        They depend on the seed, the set and its index (the first set's is `first_index`), and on nothing else.
        """
        ...


@dataclass(frozen=True)
class TopologicalOrdering:
    """Draw orders that the order graph allows: specific labels before general ones (TSAMPLE)."""

    edges: EdgeTable
    sampler: str = "uniform"
    distinct: bool = False
    reverse: bool = False
    """Whether to turn each order round: the paper's check that the direction matters."""

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        from setaug.orders.kernels import hash_keys

        return hash_keys(self.edges.keys)  # type: ignore[no-any-return]

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Draw orders, each set's uniformly or the quick way."""
        from setaug.orders.kernels import LEFT_OUT, draw_topological, list_edges, small_tables

        positions = np.empty((n_orders, len(batch.ids)), np.int32)
        n_edges, log2_orders = np.empty(len(batch), np.int64), np.empty(len(batch))
        edges = self.edges
        n_rushed = 0
        draw_topological(  # type: ignore[call-arg]
            batch.starts,
            batch.ids,
            edges.bounds,
            edges.cap,
            self._table,
            *small_tables(),
            np.uint64(seed % (1 << 64)),
            first_index,
            self.sampler == "quick",
            self.distinct,
            positions,
            n_edges,
            log2_orders,
        )
        for large in np.flatnonzero(log2_orders == LEFT_OUT).tolist():
            start, end = batch.starts[large], batch.starts[large + 1]
            first, then = np.nonzero(list_edges(batch.ids[start:end], edges.bounds, edges.cap, self._table))
            found = list(zip(first.tolist(), then.tolist(), strict=True))
            extensions = Extensions(int(end - start), found, max_states=_MAX_STATES)
            stream = Stream(seed, first_index + large)
            is_hard = extensions.count is None and extensions.largest_part > MAX_UNIFORM
            is_rushed = is_hard and self.sampler != "quick"
            n_rushed += is_rushed
            is_quick = is_rushed or self.sampler == "quick"
            drawn = extensions.draw_many(n_orders, stream, quick=is_quick, distinct=self.distinct)
            positions[:, start:end] = np.array(drawn, np.int32).reshape(n_orders, end - start)
            n_edges[large] = len(found)
            log2_orders[large] = nan if extensions.count is None else log2(extensions.count)
        if self.reverse:
            sizes = np.diff(batch.starts)
            positions = positions[
                :, np.repeat(batch.starts[1:] + batch.starts[:-1] - 1, sizes) - np.arange(len(batch.ids))
            ]
        return OrderBatch(positions, n_edges, log2_orders, n_rushed)


@dataclass(frozen=True)
class RandomOrdering:
    """Draw any order, each with the same chance."""

    distinct: bool = False

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Draw orders at random."""
        from setaug.orders.kernels import draw_random

        positions = np.empty((n_orders, len(batch.ids)), np.int32)
        draw_random(batch.starts, np.uint64(seed % (1 << 64)), first_index, self.distinct, positions)
        return _unconstrained(batch, positions)


@dataclass(frozen=True)
class FrequencyOrdering:
    """Write frequent labels first; always the same order."""

    ranks: Ints
    """The place of each label, by id, when all are sorted from frequent to rare. Labels never seen come last."""

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Sort each set, so many times over."""
        sizes = np.diff(batch.starts)
        ranks = np.append(self.ranks, len(self.ranks))[batch.ids]  # the id -1 finds the last
        which = np.repeat(np.arange(len(batch)), sizes)
        in_order = np.lexsort((ranks, which))
        positions = (in_order - np.repeat(batch.starts[:-1], sizes)).astype(np.int32)
        return _fixed(batch, np.tile(positions, (n_orders, 1)))


@dataclass(frozen=True)
class GivenOrdering:
    """Keep the order in which the labels were given."""

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Repeat each set as it is, so many times over."""
        starts = np.repeat(batch.starts[:-1], np.diff(batch.starts))
        positions = (np.arange(len(batch.ids)) - starts).astype(np.int32)
        return _fixed(batch, np.tile(positions, (n_orders, 1)))


def frequency_ranks(labels: list[str], counts: Ints) -> Ints:
    """Rank labels from frequent to rare, equally frequent ones by name."""
    ranks = np.empty(len(labels), np.int64)
    ranks[sorted(range(len(labels)), key=lambda at: (-int(counts[at]), labels[at]))] = np.arange(len(labels))
    return ranks


def make_ordering(
    name: str, *, labels: list[str], edges: EdgeTable, sampler: str = "uniform", distinct: bool = False
) -> Ordering:
    """Make an ordering by name, for labels that were counted."""
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}.")
    match name:
        case "topological" | "reversed":
            return TopologicalOrdering(edges, sampler, distinct, reverse=name == "reversed")
        case "random":
            return RandomOrdering(distinct)
        case "frequency":
            return FrequencyOrdering(frequency_ranks(labels, edges.bounds[:, 0]))
        case "given":
            return GivenOrdering()
        case _:
            raise ValueError(f"ordering must be one of {', '.join(ORDERINGS)}, got {name!r}.")


def _unconstrained(batch: SetBatch, positions: Positions) -> OrderBatch:
    sizes = np.diff(batch.starts)
    factorials = np.cumsum(np.log2(np.maximum(np.arange(sizes.max(initial=0) + 1), 1)))
    return OrderBatch(positions, np.zeros(len(batch), np.int64), factorials[sizes])


def _fixed(batch: SetBatch, positions: Positions) -> OrderBatch:
    return OrderBatch(positions, np.zeros(len(batch), np.int64), np.zeros(len(batch)))
