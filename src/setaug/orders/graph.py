"""Order graphs (Algorithm 1): which labels must be written before which, for one set or for the whole label space."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, log2

import numpy as np

from setaug.orders.edges import LOW, SHIFT, Thresholds
from setaug.orders.extensions import Extensions
from setaug.orders.orderings import SAMPLERS
from setaug.orders.statistics import LabelStatistics
from setaug.orders.streams import Stream


@dataclass(frozen=True, slots=True)
class Edge:
    """Say that one label is written before another, and why."""

    before: str
    """The more specific label: it is the rarer one, and says much about the other."""
    after: str
    """The more general label."""
    n_both: int = field(default=0, compare=False)
    """How many sets hold both."""
    pmi: float = field(default=inf, compare=False)
    """Their pointwise mutual information, in bits."""
    ratio: float = field(default=inf, compare=False)
    """How many times as frequent the later label is."""


@dataclass(frozen=True)
class OrderGraph:
    """Hold the labels of a set and the edges between them.

    Parameters
    ----------
    labels
        The labels, in the order in which they were given.
    edges
        Which label goes before which. They must not form a cycle; those of Algorithm 1 never do.

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
        """Build the graph of one set (Algorithm 1, lines 1 to 6)."""
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
        """Build the graph over the whole label space, its edges sorted from frequent to rare.

        With `top`, go through the edges from frequent to rare and keep those that touch at most so many labels in all,
        and no label without an edge.
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
                break  # the long tail: edges that rest on a single set do not change the picture
        return cls(tuple(kept), tuple(chosen))

    @classmethod
    def around(
        cls, label: str, statistics: LabelStatistics, thresholds: Thresholds | None = None, *, top: int = 30
    ) -> "OrderGraph":
        """Build the graph of a label and its neighbours: those that it stands with most often, at most so many in all.

        All edges among them are in it, not only those of the label.
        """
        thresholds = thresholds or Thresholds()
        table = statistics.edges(thresholds)
        center = statistics.ids.get(label, -1)
        first, then = table.keys >> SHIFT, table.keys & LOW
        touching = np.flatnonzero((first == center) | (then == center))
        others = np.where(first[touching] == center, then[touching], first[touching]).astype(np.int64).tolist()
        strength = table.n_both[touching].tolist()
        names = statistics.labels
        ranked = sorted(zip(strength, others, strict=True), key=lambda pair: (-pair[0], names[pair[1]]))
        return cls.of_set([label, *(names[at] for _, at in ranked[: top - 1])], statistics, thresholds)

    @cached_property
    def _extensions(self) -> Extensions:
        place = {label: at for at, label in enumerate(self.labels)}
        return Extensions(len(self.labels), [(place[edge.before], place[edge.after]) for edge in self.edges])

    @property
    def n_orders(self) -> int | None:
        """The exact number of orders that the graph allows; None where it is too large a graph to count them."""
        return self._extensions.count

    @property
    def log2_orders(self) -> float | None:
        """The log2 of `n_orders`."""
        return None if self.n_orders is None else log2(self.n_orders)

    def allows(self, order: Iterable[str]) -> bool:
        """Tell whether an order holds each label once and breaks no edge."""
        names = tuple(order)
        place = {label: at for at, label in enumerate(names)}
        if len(place) != len(names) or place.keys() != set(self.labels):
            return False
        return all(place[edge.before] < place[edge.after] for edge in self.edges)

    def draw(
        self,
        n: int = 1,
        *,
        seed: int | np.random.Generator = 0,
        sampler: str = "uniform",
        distinct: bool = False,
    ) -> list[tuple[str, ...]]:
        """Draw orders that the graph allows.

        Parameters
        ----------
        n
            How many.
        seed
            A whole number, or a numpy generator to take one from.
        sampler
            ``uniform``: each order with exactly the same chance; ``quick``: any label whose turn it may be, again and
            again, which is not uniform.
        distinct
            Whether no order may come again before all have come.

        """
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}.")
        stream = Stream(int(seed.integers(1 << 62)) if isinstance(seed, np.random.Generator) else seed)
        drawn = self._extensions.draw_many(n, stream, quick=sampler == "quick", distinct=distinct)
        return [tuple(self.labels[i] for i in order) for order in drawn]

    def to_dot(self) -> str:
        """Draw the graph in Graphviz's language."""
        from setaug.orders.pictures import dot

        return dot(self.labels, self.edges)

    def to_mermaid(self) -> str:
        """Draw the graph in Mermaid's language, which Markdown pages show."""
        from setaug.orders.pictures import mermaid

        return mermaid(self.labels, self.edges)

    def to_svg(self) -> str:
        """Draw the graph as a picture, from specific on the left to general on the right."""
        from setaug.orders.pictures import svg

        return svg(self.labels, self.edges)


def strongest_edges(statistics: LabelStatistics, thresholds: Thresholds) -> Iterator[Edge]:
    """Give the edges of the label space, those first whose labels stand together most often; ties by name."""
    for _, first, then in _ranked(statistics, thresholds):
        yield _explained(first, then, statistics)


def _ranked(statistics: LabelStatistics, thresholds: Thresholds) -> Iterator[tuple[int, str, str]]:
    table = statistics.edges(thresholds)
    names = statistics.labels
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    first, then = (table.keys >> SHIFT).astype(np.int64), (table.keys & LOW).astype(np.int64)
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
