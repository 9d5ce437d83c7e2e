"""The loops of `kernels` in plain Python, for small inputs: the same orders without compilation.

The functions have the same names and arguments. Slow cases are passed on to the compiled loops.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise, permutations
from math import factorial, isnan, nan

import numpy as np
from numpy.typing import NDArray

from setaug.orders.arrays import (
    LEFT_OUT,
    LOG2,
    LOG2_FACTORIALS,
    MAX_BITS,
    MAX_LISTED,
    MAX_QUICK_DOWN_SETS,
    Floats,
    Ints,
    Keys,
)
from setaug.orders.rng import Stream

_MAX_STEPS = 1 << 16
"""After visiting this many down-sets (about half a second), the rest is passed on to the compiled loops."""
_MAX_WORD = 20
"""The orders of a larger component may not fit into 64 bits; the compiled loops sample them differently."""


@cache
def small_tables() -> tuple[Ints, Ints, NDArray[np.int8]]:
    """Return the allowed orders of each graph over at most `MAX_LISTED` labels.

    Labels are sorted so that edges go from left to right; bit ``j * (j - 1) / 2 + i`` of a graph is the edge from i to
    j. Returns, by number of labels and graph, the start and the number of its orders, and the orders of all graphs.
    """
    n_graphs = 1 << MAX_LISTED * (MAX_LISTED - 1) // 2
    first, n_ways = np.zeros((MAX_LISTED + 1, n_graphs), np.int64), np.zeros((MAX_LISTED + 1, n_graphs), np.int64)
    listed = []
    n_listed = 0
    for size in range(MAX_LISTED + 1):
        orders = np.array(list(permutations(range(size))), np.int8).reshape(factorial(size), size)
        place = np.argsort(orders, axis=1)
        broken = np.zeros(len(orders), np.int64)
        for j in range(size):
            for i in range(j):
                broken |= (place[:, i] > place[:, j]).astype(np.int64) << (j * (j - 1) // 2 + i)
        graphs = np.arange(1 << size * (size - 1) // 2)
        graph, order = np.nonzero(graphs[:, None] & broken == 0)
        n_ways[size, : len(graphs)] = np.bincount(graph, minlength=len(graphs))
        first[size, : len(graphs)] = n_listed + np.cumsum(n_ways[size, : len(graphs)]) - n_ways[size, : len(graphs)]
        n_listed += len(order)
        listed.append(np.pad(orders[order], ((0, 0), (0, MAX_LISTED - size))))
    return first, n_ways, np.concatenate(listed)


def undecided_keys(starts: Ints, ids: NDArray[np.int32], bounds: Ints, cap: float) -> Keys:
    """Return the label pairs, smaller id * 2**32 + larger id, whose edge depends on their joint count."""
    ends, labels, limits = starts.tolist(), ids.tolist(), bounds.tolist()
    keys = []
    for start, end in pairwise(ends):
        for j in range(start, end):
            for k in range(j + 1, end):
                a, b = labels[j], labels[k]
                if limits[a][0] < limits[b][0]:
                    a, b = b, a
                if limits[a][0] > limits[b][1] and float(limits[a][0]) * float(limits[b][0]) >= cap:
                    keys.append(min(a, b) << 32 | max(a, b))
    return np.array(keys, np.uint64)


def hash_keys(keys: Keys) -> frozenset[int]:
    """Return the keys as a set."""
    return frozenset(keys.tolist())


class _Edges:
    """Which label must be written before which (Algorithm 1, line 3), as `kernels.is_edge` decides it."""

    def __init__(self, bounds: Ints, cap: float, table: frozenset[int]) -> None:
        self.bounds, self.cap, self.table = bounds.tolist(), cap, table

    def count(self, label: int) -> int:
        return int(self.bounds[label][0]) if label >= 0 else 0

    def __call__(self, first: int, then: int) -> bool:
        if first < 0 or then < 0 or self.bounds[then][0] <= self.bounds[first][1]:
            return False
        if float(self.bounds[then][0]) * float(self.bounds[first][0]) < self.cap:
            return True
        return first << 32 | then in self.table


def list_edges(labels: NDArray[np.int32], bounds: Ints, cap: float, table: frozenset[int]) -> NDArray[np.bool_]:
    """Return for each two labels of a set whether the first must be written before the second."""
    is_edge, members = _Edges(bounds, cap, table), labels.tolist()
    edges = [[i != j and is_edge(a, b) for j, b in enumerate(members)] for i, a in enumerate(members)]
    return np.array(edges, np.bool_).reshape(len(members), len(members))


def _draw_many(n_orders: int, n_different: int | None, draw: Callable[[], list[int]]) -> list[list[int]]:
    """Sample orders; if the number of distinct ones is given, none repeats before all have occurred."""
    orders: list[list[int]] = []
    for j in range(n_orders):
        order = draw()
        while n_different is not None and order in orders[j - j % n_different :]:
            order = draw()
        orders.append(order)
    return orders


def _n_different(log2_orders: float) -> int:
    return int(np.exp2(min(log2_orders, 62.0)) + 0.5)


def _shuffled(size: int, stream: Stream) -> list[int]:
    order = list(range(size))
    stream.shuffle(order)
    return order


def draw_random(starts: Ints, seed: np.uint64, first_index: int, distinct: bool, orders: NDArray[np.int32]) -> None:
    """Fill ``orders[j, starts[i]:starts[i + 1]]`` with uniformly random orders of positions."""
    ends = starts.tolist()
    for i, (start, end) in enumerate(pairwise(ends)):
        stream, size = Stream(int(seed), first_index + i), end - start
        n_different = _n_different(LOG2_FACTORIALS[min(size, MAX_BITS)]) if distinct else None
        drawn = _draw_many(len(orders), n_different, partial(_shuffled, size, stream))
        orders[:, start:end] = np.array(drawn, np.int32).reshape(len(orders), size)


def draw_topological(
    starts: Ints,
    ids: NDArray[np.int32],
    bounds: Ints,
    cap: float,
    table: frozenset[int],
    first_listed: Ints,
    n_listed: Ints,
    listed: NDArray[np.int8],
    seed: np.uint64,
    first_index: int,
    quick: bool,
    distinct: bool,
    orders: NDArray[np.int32],
    n_edges: Ints,
    log2_orders: Floats,
) -> None:
    """Fill `orders`, `n_edges` and `log2_orders` as `kernels.draw_topological` does."""
    ends, labels = starts.tolist(), ids.tolist()
    is_edge, steps_left = _Edges(bounds, cap, table), _MAX_STEPS
    for i, (start, end) in enumerate(pairwise(ends)):
        stream, members = Stream(int(seed), first_index + i), labels[start:end]
        if len(members) > MAX_BITS or (quick and distinct):
            log2_orders[i] = LEFT_OUT
            continue
        graph: _Listed | _Counted
        if len(members) <= MAX_LISTED:
            graph = _Listed(members, is_edge, first_listed, n_listed, listed)
        else:
            graph = _Counted(members, is_edge, MAX_QUICK_DOWN_SETS if quick else steps_left)
            steps_left -= graph.n_steps
            if steps_left <= 0 or (isnan(graph.log2_orders) and not quick):
                from setaug.orders import kernels

                compiled = kernels.hash_keys(np.array(sorted(table), np.uint64))
                kernels.draw_topological(
                    *(starts[i:], ids, bounds, cap, compiled, first_listed, n_listed, listed, seed, first_index + i),
                    *(quick, distinct, orders, n_edges[i:], log2_orders[i:]),
                )
                return
        n_edges[i], log2_orders[i] = graph.n_edges, graph.log2_orders
        draw = graph.draw_quick if quick else graph.draw
        drawn = _draw_many(len(orders), _n_different(graph.log2_orders) if distinct else None, partial(draw, stream))
        orders[:, start:end] = np.array(drawn, np.int32).reshape(len(orders), len(members))


class _Listed:
    """The order graph of a small set, whose orders are listed."""

    def __init__(
        self, labels: list[int], is_edge: _Edges, first_listed: Ints, n_listed: Ints, listed: NDArray[np.int8]
    ) -> None:
        self.size = size = len(labels)
        self.by_count = sorted(range(size), key=lambda at: is_edge.count(labels[at]))  # like all edges
        pairs = [(i, j) for j in range(size) for i in range(j)]  # in the order of the graph's bits
        of_pair = [is_edge(labels[self.by_count[i]], labels[self.by_count[j]]) for i, j in pairs]
        self.graph = sum(1 << bit for bit, is_one in enumerate(of_pair) if is_one)
        self.n_edges = self.graph.bit_count()
        n_ways, first = int(n_listed[size, self.graph]), int(first_listed[size, self.graph])
        self.log2_orders = float(LOG2[n_ways])
        self.rows = listed[first : first + n_ways, :size]

    def draw(self, stream: Stream) -> list[int]:
        """Sample an order uniformly."""
        return [self.by_count[k] for k in self.rows[stream.below(len(self.rows))]]

    def draw_quick(self, stream: Stream) -> list[int]:
        """Sample an order by a random topological sort."""
        before = [self.graph >> (k * (k - 1) // 2) & ((1 << k) - 1) for k in range(self.size)]
        return [self.by_count[k] for k in _draw_quick(before, stream)]


class _Counted:
    """The order graph of a larger set, whose orders are counted component by component."""

    def __init__(self, labels: list[int], is_edge: _Edges, room: int) -> None:
        size = len(labels)
        self.before, after = [0] * size, [0] * size
        for i, j in permutations(range(size), 2):
            if is_edge(labels[i], labels[j]):
                after[i] |= 1 << j
                self.before[j] |= 1 << i
        self.n_edges = sum(mask.bit_count() for mask in after)
        self.log2_orders = float(LOG2_FACTORIALS[size])
        self.n_steps = 0
        self.parts: list[_Part] = []
        for members in _components(self.before, after):
            part = _Part(members, self.before, after, room)
            self.parts.append(part)
            self.n_steps += len(part.masks)
            if len(members) > 1:
                room -= len(part.ways)
                self.log2_orders += part.log2_ways - float(LOG2_FACTORIALS[len(members)])

    def draw(self, stream: Stream) -> list[int]:
        """Sample an order uniformly: an interleaving of the components, each in a sampled order."""
        drawn = [iter(part.draw(stream)) for part in self.parts]
        tags = [at for at, part in enumerate(self.parts) for _ in range(part.size)]
        stream.shuffle(tags)
        return [next(drawn[tag]) for tag in tags]

    def draw_quick(self, stream: Stream) -> list[int]:
        """Sample an order by a random topological sort."""
        return _draw_quick(self.before, stream)


class _Part:
    """A connected component of an order graph, and its down-sets if there is room for them.

    Labels with the same neighbours form a group; down-sets that differ only within groups are one.
    """

    def __init__(self, members: list[int], before: list[int], after: list[int], room: int) -> None:
        self.size = len(members)
        groups: dict[tuple[int, int], list[int]] = {}
        for i in members:
            groups.setdefault((before[i], after[i]), []).append(i)
        self.groups = list(groups.values())
        self.masks: list[int] = []
        self.follows: list[list[tuple[int, int, int]]] = []
        """Per down-set: a group with a free label, the number of labels left, and the down-set with one more."""
        self.ways: list[int] = []
        self.log2_ways = nan
        if self.size > 1 and self._find_down_sets([need for need, _ in groups], room):
            self._count()

    def _find_down_sets(self, needs: list[int], room: int) -> bool:
        twins = [sum(1 << i for i in group) for group in self.groups]
        self.masks = [0][:room]
        known = {0: 0}
        for mask in self.masks:  # it grows
            follows = []
            for g, (members, need) in enumerate(zip(twins, needs, strict=True)):
                left = members & ~mask
                if not left or need & ~mask:
                    continue
                larger = mask | (left & -left)
                if larger not in known:
                    if len(self.masks) == room:
                        return False
                    known[larger] = len(self.masks)
                    self.masks.append(larger)
                follows.append((g, left.bit_count(), known[larger]))
            self.follows.append(follows)
        return room > 0

    def _count(self) -> None:
        self.ways = [1] * len(self.masks)
        for at in range(len(self.masks) - 2, -1, -1):
            self.ways[at] = sum(n_left * self.ways[then] for _, n_left, then in self.follows[at])
        value = 0.0
        for limb in reversed(_limbs(self.ways[0])) if self.size > _MAX_WORD else [self.ways[0]]:
            value = value * 4294967296.0 + float(limb)
        self.log2_ways = float(np.log2(value))

    def draw(self, stream: Stream) -> list[int]:
        """Sample an order uniformly."""
        if self.size == 1:
            return list(self.groups[0])
        queues = [list(group) for group in self.groups]
        for queue in queues:
            stream.shuffle(queue)
            queue.reverse()  # the first is popped first
        below = stream.below if self.size <= _MAX_WORD else partial(_below_large, stream)
        order, at = [], 0
        for _ in range(self.size):
            rest = below(self.ways[at])
            for g, n_left, then in self.follows[at]:
                share = n_left * self.ways[then]
                if rest < share:
                    order.append(queues[g].pop())
                    at = then
                    break
                rest -= share
        return order


def _components(before: list[int], after: list[int]) -> Iterator[list[int]]:
    seen = 0
    for start in range(len(before)):
        if seen >> start & 1:
            continue
        part = reached = 1 << start
        while reached:
            fringe, reached = reached, 0
            for i in range(len(before)):
                if fringe >> i & 1:
                    reached |= before[i] | after[i]
            reached &= ~part
            part |= reached
        seen |= part
        yield [i for i in range(len(before)) if part >> i & 1]


def _draw_quick(before: list[int], stream: Stream) -> list[int]:
    order: list[int] = []
    written = 0
    while len(order) < len(before):
        free = [j for j, need in enumerate(before) if not (written >> j & 1 or need & ~written)]
        order.append(free[stream.below(len(free))])
        written |= 1 << order[-1]
    return order


def _limbs(number: int) -> list[int]:
    """Return the 32-bit limbs of a large integer, the lowest first."""
    return [number >> at & 0xFFFFFFFF for at in range(0, max(number.bit_length(), 1), 32)]


def _below_large(stream: Stream, bound: int) -> int:
    """Draw an integer below the bound as `kernels.below_large` does: 32 bits at a time, the lowest first."""
    n_limbs = len(_limbs(bound))
    mask = (1 << bound.bit_length()) - 1
    while True:
        drawn = sum((stream.next() >> 32) << 32 * k for k in range(n_limbs)) & mask
        if drawn < bound:
            return drawn
