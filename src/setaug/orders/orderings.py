"""Orderings choose orders for label sets: TSAMPLE, its reverse and the paper's baselines.

`registry.ORDERINGS` names them, and points to the functions at the end of this module.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from math import log2, nan
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from setaug.orders.arrays import LEFT_OUT, Floats, Ints, SetBatch
from setaug.orders.edges import EdgeTable
from setaug.orders.linear_extensions import LinearExtensions
from setaug.orders.plain_kernels import small_tables
from setaug.orders.rng import Stream
from setaug.orders.statistics import frequency_order
from setaug.registry import DEFAULT_SAMPLER, ORDERINGS, SAMPLERS, check_choice

Positions: TypeAlias = NDArray[np.int32]
MAX_UNIFORM = 200
"""Sets with a larger connected component use the quick sampler: uniform sampling takes too long."""
_MAX_STATES = 10_000
"""Large sets with more down-sets are sampled without counting, which would take longer."""


@dataclass(frozen=True, slots=True)
class OrderBatch:
    """Orders for a batch of sets."""

    positions: Positions
    """Row j is the j-th order of each set, one set after the other: positions within the set as given."""
    n_edges: Ints
    """The number of edges that constrain each set."""
    log2_orders: Floats
    """The log2 of the number of allowed orders of each set; nan if the set is too large to count them."""
    n_rushed: int = 0
    """The number of sets that were too large for uniform sampling and used the quick sampler."""


class Ordering(Protocol):
    """A way to choose orders for label sets."""

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Return `n_orders` orders for each set.

        They depend only on the seed, the set and its index (`first_index` for the first set).
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderingInputs:
    """The arguments for creating an ordering."""

    labels: list[str]
    """The labels; the position of a label is its id. Empty for orderings that do not need names."""
    edges: EdgeTable
    sampler: str = DEFAULT_SAMPLER
    distinct: bool = False
    """Whether an order may repeat only after all others of the set have occurred."""
    is_plain: bool = False
    """Whether to sample in plain Python, without compilation; the orders are the same."""


def make_ordering(
    name: str,
    *,
    labels: list[str],
    edges: EdgeTable,
    sampler: str = DEFAULT_SAMPLER,
    distinct: bool = False,
    is_plain: bool = False,
) -> Ordering:
    """Return the ordering with a name in the registry, for counted labels."""
    check_choice("ordering", name, ORDERINGS)
    check_choice("sampler", sampler, SAMPLERS)
    inputs = OrderingInputs(labels=labels, edges=edges, sampler=sampler, distinct=distinct, is_plain=is_plain)
    return cast(Ordering, ORDERINGS[name].load()(inputs))


def load_kernels(is_plain: bool) -> Any:
    """Import the loops over label sets: compiled or in plain Python."""
    return import_module("setaug.orders.plain_kernels" if is_plain else "setaug.orders.kernels")


@dataclass(frozen=True)
class TopologicalOrdering:
    """Orders that the order graph allows: specific labels before general ones (TSAMPLE)."""

    edges: EdgeTable
    sampler: str = DEFAULT_SAMPLER
    distinct: bool = False
    reverse: bool = False
    """Whether to reverse each order: the paper's check that the direction matters."""
    is_plain: bool = False

    @cached_property
    def _table(self) -> Any:
        return load_kernels(self.is_plain).hash_keys(self.edges.keys)

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Sample orders with the chosen sampler."""
        positions = np.empty((n_orders, len(batch.ids)), np.int32)
        n_edges, log2_orders = np.empty(len(batch), np.int64), np.empty(len(batch))
        found = OrderBatch(positions, n_edges, log2_orders)
        load_kernels(self.is_plain).draw_topological(
            batch.starts,
            batch.ids,
            self.edges.bounds,
            self.edges.cap,
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
        large = np.flatnonzero(log2_orders == LEFT_OUT).tolist()
        n_rushed = sum(self._draw_large(batch, at, Stream(seed, first_index + at), found) for at in large)
        if self.reverse:
            last = np.repeat(batch.starts[1:] + batch.starts[:-1] - 1, batch.sizes)
            positions = positions[:, last - np.arange(len(batch.ids))]
        return OrderBatch(positions, n_edges, log2_orders, n_rushed)

    def _draw_large(self, batch: SetBatch, at: int, stream: Stream, found: OrderBatch) -> bool:
        """Fill the orders of one set that the compiled loop left out; return whether the quick sampler was used."""
        start, end = batch.starts[at], batch.starts[at + 1]
        kernels = load_kernels(self.is_plain)
        is_edge = kernels.list_edges(batch.ids[start:end], self.edges.bounds, self.edges.cap, self._table)
        edges = [(int(i), int(j)) for i, j in np.argwhere(is_edge)]
        extensions = LinearExtensions(int(end - start), edges, max_states=_MAX_STATES)
        is_hard = extensions.count is None and extensions.largest_part > MAX_UNIFORM
        is_quick = is_hard or self.sampler == "quick"
        n_orders = len(found.positions)
        drawn = extensions.draw_many(n_orders, stream, quick=is_quick, distinct=self.distinct)
        found.positions[:, start:end] = np.array(drawn, np.int32).reshape(n_orders, end - start)
        found.n_edges[at] = len(edges)
        found.log2_orders[at] = nan if extensions.count is None else log2(extensions.count)
        return is_hard and self.sampler != "quick"


@dataclass(frozen=True)
class RandomOrdering:
    """All orders, each with the same probability."""

    distinct: bool = False
    is_plain: bool = False

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Sample random orders."""
        draw_random = load_kernels(self.is_plain).draw_random
        positions = np.empty((n_orders, len(batch.ids)), np.int32)
        draw_random(batch.starts, np.uint64(seed % (1 << 64)), first_index, self.distinct, positions)
        sizes = batch.sizes
        log2_factorials = np.cumsum(np.log2(np.maximum(np.arange(sizes.max(initial=0) + 1), 1)))
        return OrderBatch(positions, np.zeros(len(batch), np.int64), log2_factorials[sizes])


@dataclass(frozen=True)
class FixedOrdering:
    """One order per set: by the rank of each label, or as given."""

    ranks: Ints | None = None
    """The rank of each label, by id. Unknown labels come last."""

    def orders(self, batch: SetBatch, n_orders: int, *, seed: int, first_index: int) -> OrderBatch:
        """Return the same order `n_orders` times."""
        in_order = np.arange(len(batch.ids))
        if self.ranks is not None:
            ranks = np.append(self.ranks, len(self.ranks))[batch.ids]  # the id -1 indexes the last
            in_order = np.lexsort((ranks, np.repeat(np.arange(len(batch)), batch.sizes)))
        positions = (in_order - batch.first_positions).astype(np.int32)
        return OrderBatch(np.tile(positions, (n_orders, 1)), np.zeros(len(batch), np.int64), np.zeros(len(batch)))


def topological(inputs: OrderingInputs) -> Ordering:
    """Return the ordering ``topological``."""
    return TopologicalOrdering(inputs.edges, inputs.sampler, inputs.distinct, is_plain=inputs.is_plain)


def topological_reversed(inputs: OrderingInputs) -> Ordering:
    """Return the ordering ``reversed``."""
    return TopologicalOrdering(inputs.edges, inputs.sampler, inputs.distinct, reverse=True, is_plain=inputs.is_plain)


def random(inputs: OrderingInputs) -> Ordering:
    """Return the ordering ``random``."""
    return RandomOrdering(inputs.distinct, inputs.is_plain)


def frequency(inputs: OrderingInputs) -> Ordering:
    """Return the ordering ``frequency``."""
    ranks = np.empty(len(inputs.labels), np.int64)
    ranks[frequency_order(inputs.labels, inputs.edges.bounds[:, 0])] = np.arange(len(ranks))
    return FixedOrdering(ranks)


def given(inputs: OrderingInputs) -> Ordering:
    """Return the ordering ``given``."""
    return FixedOrdering()
