"""Count and sample the orders that a graph allows (its linear extensions).

The paper's proposal is uniform over these orders. A random topological sort (repeatedly picking any label whose
predecessors are written) is not: with edges a -> b and a -> c and a free label d, it returns ``d a b c`` with
probability 1/4 and ``a b c d`` with 1/12, instead of 1/8 each. Both samplers are here, as *uniform* and *quick*.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from math import factorial

import numpy as np

from setaug.orders.rng import Stream

MAX_STATES = 50_000
"""Connected graphs with more down-sets than this are not counted; their orders are still sampled uniformly."""
MAX_LABELS = 300
"""Connected graphs with more labels than this are not counted (the recursion is one call deep per label)."""
_MAX_TRIES = 1000
_MAX_LISTED = 10_000


class _TooManyError(Exception):
    """There are too many down-sets to count."""


class LinearExtensions:
    """The orders of ``range(size)`` in which i comes before j for each edge (i, j).

    Counting is dynamic programming over down-sets, with two exact shortcuts: connected components are counted
    separately and interleaved, and labels with the same neighbours are interchangeable.

    Examples
    --------
    >>> extensions = LinearExtensions(4, [(0, 1), (0, 2)])
    >>> extensions.count
    8
    >>> extensions.draw(Stream(seed=3))
    [3, 0, 1, 2]

    """

    def __init__(self, size: int, edges: Iterable[tuple[int, int]], *, max_states: int = MAX_STATES) -> None:
        self._size = size
        self._max_states = max_states
        self._before, self._after = _close(size, edges)
        twins: dict[tuple[int, int], int] = {}
        for i, neighbours in enumerate(zip(self._before, self._after, strict=True)):
            twins[neighbours] = twins.get(neighbours, 0) | 1 << i
        # Interchangeable labels, as bits, with the labels before and after them.
        self._twins = [(members, before, after) for (before, after), members in twins.items()]
        self._ways: dict[int, int] = {}

    @cached_property
    def count(self) -> int | None:
        """The exact number of orders; None if there are too many down-sets to count them."""
        parts = [self._count_part(part) for part in self._parts]
        if any(part is None for part in parts):
            return None
        total = factorial(self._size)
        for part, ways in zip(self._parts, parts, strict=True):
            total = total // factorial(part.bit_count()) * (ways or 1)
        return total

    def draw(self, stream: Stream) -> list[int]:
        """Sample an order exactly uniformly."""
        drawn = [
            self._draw_whole(part, stream) if self._count_part(part) is not None else self._draw_uncounted(part, stream)
            for part in self._parts
        ]
        return self._shuffle_twins(_interleave(drawn, stream), stream)

    def draw_quick(self, stream: Stream) -> list[int]:
        """Sample an order by a random topological sort, which is not uniform."""
        order: list[int] = []
        left = (1 << self._size) - 1
        while left:
            free = [i for i in _bits(left) if not self._before[i] & left]
            order.append(free[stream.below(len(free))])
            left &= ~(1 << order[-1])
        return order

    def draw_many(self, n: int, stream: Stream, *, quick: bool = False, distinct: bool = False) -> list[list[int]]:
        """Sample n orders; distinct ones do not repeat before all have occurred."""
        draw = self.draw_quick if quick else self.draw
        orders: list[list[int]] = []
        since = n_tries = 0
        while len(orders) < n:
            order = draw(stream)
            if distinct and order in orders[since:]:
                n_tries += 1
                if n_tries < _MAX_TRIES:
                    continue
                order = self._another(orders[since:], stream) or order
            n_tries = 0
            orders.append(order)
            if len(orders) - since == self.count:
                since = len(orders)
        return orders

    def _another(self, seen: list[list[int]], stream: Stream) -> list[int] | None:
        """Sample one of the orders not seen yet, if all can be enumerated."""
        if self.count is None or self.count > _MAX_LISTED:
            return None
        unseen = [order for order in self if order not in seen]
        return unseen[stream.below(len(unseen))]

    def __iter__(self) -> Iterator[list[int]]:
        """Yield all orders, in lexicographic order."""
        return self._extend([], (1 << self._size) - 1)

    def _extend(self, order: list[int], left: int) -> Iterator[list[int]]:
        if not left:
            yield list(order)
        for i in _bits(left):
            if not self._before[i] & left:
                yield from self._extend([*order, i], left & ~(1 << i))

    @property
    def largest_part(self) -> int:
        """The number of labels in the largest connected component."""
        return max((part.bit_count() for part in self._parts), default=0)

    @cached_property
    def _parts(self) -> list[int]:
        return self._split((1 << self._size) - 1)

    def _split(self, left: int) -> list[int]:
        """Split labels into connected components."""
        parts = []
        while left:
            part = 0
            fringe = left & -left
            while fringe:
                part |= fringe
                reached = 0
                for members, before, after in self._twins:
                    if members & fringe:
                        reached |= before | after
                fringe = reached & left & ~part
            parts.append(part)
            left &= ~part
        return parts

    def _count_part(self, part: int) -> int | None:
        if part.bit_count() > MAX_LABELS:
            return None
        try:
            return self._count(part)
        except _TooManyError:
            self._max_states = 0  # another attempt would also fail, only later
            return None

    def _count(self, left: int) -> int:
        """Return the number of orders of the labels that are left."""
        if left & (left - 1) == 0:
            return 1
        if left in self._ways:
            return self._ways[left]
        if len(self._ways) >= self._max_states:
            raise _TooManyError
        parts = self._split(left)
        if len(parts) == 1:
            ways = sum(weight * self._count(left & ~(1 << i)) for i, weight in self._ends(left)[1])
        else:
            ways = factorial(left.bit_count())
            for part in parts:
                ways = ways // factorial(part.bit_count()) * self._count(part)
        self._ways[left] = ways
        return ways

    def _ends(self, left: int) -> tuple[bool, list[tuple[int, int]]]:
        """Return the labels that may come first, or those that may come last, whichever are fewer.

        One of each group of interchangeable labels represents it, with the group's size. Removing the root of a
        hierarchy, at either end, splits it into components.
        """
        first, last = [], []
        for members, before, after in self._twins:
            here = members & left
            if here and not before & left:
                first.append((here.bit_length() - 1, here.bit_count()))
            if here and not after & left:
                last.append((here.bit_length() - 1, here.bit_count()))
        return (True, first) if len(first) <= len(last) else (False, last)

    def _draw_whole(self, left: int, stream: Stream) -> list[int]:
        start: list[int] = []
        end: list[int] = []
        while left:
            parts = self._split(left)
            if len(parts) > 1:
                start += _interleave([self._draw_whole(part, stream) for part in parts], stream)
                break
            rest = stream.below(self._count(left))
            is_first, choices = self._ends(left)
            for i, weight in choices:
                share = weight * self._count(left & ~(1 << i))
                if rest < share:
                    break
                rest -= share
            (start if is_first else end).append(i)
            left &= ~(1 << i)
        return start + end[::-1]

    def _draw_uncounted(self, part: int, stream: Stream) -> list[int]:
        from setaug.orders.kernels import draw_huber

        members = sorted(_bits(part), key=lambda i: self._before[i].bit_count())
        before = np.array([[bool(self._after[i] >> j & 1) for j in members] for i in members])
        order = np.empty(len(members), np.int64)
        state = np.array([stream.next()], np.uint64)
        draw_huber(state, before, np.arange(len(members)), order)
        return [members[k] for k in order]

    def _shuffle_twins(self, order: list[int], stream: Stream) -> list[int]:
        """Shuffle interchangeable labels, which were sampled as one, among their positions."""
        for members, _, _ in self._twins:
            places = [at for at, i in enumerate(order) if members >> i & 1]
            shuffled = list(_bits(members))
            stream.shuffle(shuffled)
            for at, i in zip(places, shuffled, strict=True):
                order[at] = i
        return order


def _close(size: int, edges: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the transitive closure: for each label, as bits, all labels before it and all after it."""
    after = [0] * size
    for i, j in edges:
        after[i] |= 1 << j
    for k in range(size):
        for i in range(size):
            if after[i] >> k & 1:
                after[i] |= after[k]
    before = [0] * size
    for i in range(size):
        if after[i] >> i & 1:
            raise ValueError("the edges form a cycle, so no order satisfies them.")
        for j in _bits(after[i]):
            before[j] |= 1 << i
    return before, after


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _interleave(parts: list[list[int]], stream: Stream) -> list[int]:
    """Interleave components uniformly at random, keeping the order within each."""
    tags = [at for at, part in enumerate(parts) for _ in part]
    stream.shuffle(tags)
    sources = [iter(part) for part in parts]
    return [next(sources[tag]) for tag in tags]
