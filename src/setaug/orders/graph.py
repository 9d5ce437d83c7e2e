"""Order graphs (Algorithm 1): which labels must be written before which, for one set or for the whole label space."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, log2

import numpy as np

from setaug.orders.arrays import unpack_keys
from setaug.orders.edges import Thresholds
from setaug.orders.linear_extensions import LinearExtensions
from setaug.orders.rng import Stream
from setaug.orders.statistics import LabelStatistics
from setaug.registry import DEFAULT_SAMPLER, SAMPLERS, check_choice


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge: one label is written before another, and why."""

    before: str
    """The more specific label: rarer, and informative about the other."""
    after: str
    """The more general label."""
    n_both: int = field(default=0, compare=False)
    """The number of sets that contain both."""
    pmi: float = field(default=inf, compare=False)
    """Their pointwise mutual information, in bits."""
    ratio: float = field(default=inf, compare=False)
    """The frequency of the later label divided by that of the earlier one."""


@dataclass(frozen=True)
class OrderGraph:
    """The labels of a set and the edges between them.

    Parameters
    ----------
    labels
        The labels, in the given order.
    edges
        Which label goes before which; acyclic, as Algorithm 1 guarantees.

    Examples
    --------
    >>> graph = OrderGraph(("event", "match", "home"), (Edge("match", "event"),))
    >>> graph.n_orders
    3
    >>> graph.draw(2, seed=0, distinct=True)
    [('match', 'home', 'event'), ('match', 'event', 'home')]
    >>> graph.allows(("event", "match", "home"))
    False

    """

    labels: tuple[str, ...]
    edges: tuple[Edge, ...] = ()

    @classmethod
    def of_set(
        cls, labels: Iterable[str], statistics: LabelStatistics, thresholds: Thresholds | None = None
    ) -> "OrderGraph":
        """Return the graph of one set (Algorithm 1, lines 1 to 6)."""
        if isinstance(labels, str):
            raise TypeError(f"expected a set of labels, got the string {labels!r}.")
        thresholds = thresholds or Thresholds()
        names = tuple(dict.fromkeys(labels))
        edges = [
            _explained(first, then, statistics)
            for first in names
            for then in names
            if first != then and statistics.precedes(first, then, thresholds)
        ]
        return cls(names, tuple(edges))

    @classmethod
    def of_space(
        cls, statistics: LabelStatistics, thresholds: Thresholds | None = None, *, top: int | None = None
    ) -> "OrderGraph":
        """Return the graph over the whole label space, its edges sorted from frequent to rare.

        With `top`, keep the most frequent edges over at most `top` labels, and drop labels without an edge.
        """
        thresholds = thresholds or Thresholds()
        if top is None:
            return cls(tuple(statistics.labels), tuple(strongest_edges(statistics, thresholds)))
        kept: dict[str, None] = {}
        chosen = []
        for n_both, first, then in _ranked(statistics, thresholds):
            new = {first, then} - kept.keys()
            if len(kept) + len(new) <= top:
                kept.update(dict.fromkeys((first, then)))
                chosen.append(_explained(first, then, statistics))
            elif n_both == 1:
                break  # the long tail: edges from a single set do not change the picture
        return cls(tuple(kept), tuple(chosen))

    @classmethod
    def around(
        cls, label: str, statistics: LabelStatistics, thresholds: Thresholds | None = None, *, top: int = 30
    ) -> "OrderGraph":
        """Return the graph of a label and its most frequent neighbours, at most `top` labels in total.

        All edges among these labels are included, not only those of the label.
        """
        thresholds = thresholds or Thresholds()
        table = statistics.edges(thresholds)
        center = statistics.ids.get(label, -1)
        first, then = unpack_keys(table.keys)
        touching = np.flatnonzero((first == center) | (then == center))
        others = np.where(first[touching] == center, then[touching], first[touching]).tolist()
        strength = table.n_both[touching].tolist()
        names = statistics.labels
        ranked = sorted(zip(strength, others, strict=True), key=lambda pair: (-pair[0], names[pair[1]]))
        return cls.of_set([label, *(names[at] for _, at in ranked[: top - 1])], statistics, thresholds)

    @cached_property
    def _extensions(self) -> LinearExtensions:
        place = {label: at for at, label in enumerate(self.labels)}
        return LinearExtensions(len(self.labels), [(place[edge.before], place[edge.after]) for edge in self.edges])

    @property
    def n_orders(self) -> int | None:
        """The exact number of allowed orders; None if the graph is too large to count them."""
        return self._extensions.count

    @property
    def log2_orders(self) -> float | None:
        """The log2 of `n_orders`."""
        return None if self.n_orders is None else log2(self.n_orders)

    def allows(self, order: Iterable[str]) -> bool:
        """Return whether an order contains each label once and respects all edges."""
        names = tuple(order)
        place = {label: at for at, label in enumerate(names)}
        if len(place) != len(names) or place.keys() != set(self.labels):
            return False
        return all(place[edge.before] < place[edge.after] for edge in self.edges)

    def draw(
        self, n: int = 1, *, seed: int | np.random.Generator = 0, sampler: str = DEFAULT_SAMPLER, distinct: bool = False
    ) -> list[tuple[str, ...]]:
        """Sample orders that the graph allows.

        Parameters
        ----------
        seed
            An integer, or a numpy generator that draws one.
        sampler
            ``uniform``: each order with exactly the same probability; ``quick``: random topological sort, which is not
            uniform.
        distinct
            Never repeat an order before all have occurred.

        """
        check_choice("sampler", sampler, SAMPLERS)
        stream = Stream(int(seed.integers(1 << 62)) if isinstance(seed, np.random.Generator) else seed)
        drawn = self._extensions.draw_many(n, stream, quick=sampler == "quick", distinct=distinct)
        return [tuple(self.labels[i] for i in order) for order in drawn]


def strongest_edges(statistics: LabelStatistics, thresholds: Thresholds) -> Iterator[Edge]:
    """Yield the edges of the label space by descending co-occurrence count; ties by name."""
    for _, first, then in _ranked(statistics, thresholds):
        yield _explained(first, then, statistics)


def _ranked(statistics: LabelStatistics, thresholds: Thresholds) -> Iterator[tuple[int, str, str]]:
    table = statistics.edges(thresholds)
    names = statistics.labels
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    first, then = unpack_keys(table.keys)
    order = np.lexsort((rank[then], rank[first], -table.n_both))
    for n_both, i, j in zip(table.n_both[order].tolist(), first[order].tolist(), then[order].tolist(), strict=True):
        yield n_both, names[i], names[j]


def _explained(first: str, then: str, statistics: LabelStatistics) -> Edge:
    return Edge(
        first,
        then,
        statistics.pair_count(first, then),
        statistics.pmi(first, then),
        float(statistics.ratio(then, first)),
    )
