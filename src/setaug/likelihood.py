"""The likelihood of a set under a model that writes sequences: the order is a latent variable (paper, section 3.1).

    log2 p(Y | x) = log2 of the sum of p(z | x) over all n! orders z of the n labels in Y

Small sets are summed up exactly. For any set, K orders z_1 ... z_K drawn from a proposal q give bounds:

    elbo  = mean of  log2 p(z_k | x) - log2 q(z_k)
    bound = log2 of the mean of  p(z_k | x) / q(z_k)       (importance-weighted, Burda et al. 2016)

Expected values never exceed the likelihood, and `bound` comes closer with each draw. It comes as close as the proposal
allows: what the model puts on orders that the proposal never draws is out of its reach (``docs/likelihood.md``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf, isnan, log2
from typing import Any, TypeAlias

from setaug.examples import Example
from setaug.orders.edges import Thresholds
from setaug.orders.graph import OrderGraph
from setaug.orders.orderings import make_ordering
from setaug.orders.statistics import LabelStatistics, SetBatch

PROPOSALS = {
    "topological": "topological",
    "uniform": "random",
    "reversed": "reversed",
    "frequency": "frequency",
    "given": "given",
}
"""Distributions over the orders of a set, each uniform over those that an ordering may choose; its name."""
MAX_EXACT = 7
"""Sets with more labels than this have too many orders to score them all: 8 labels have 40,320."""
_BY_GRAPH = ("topological", "reversed")
"""Where a graph has no edge, these are uniform, and the same orders are drawn: proposals differ by what they are."""
_WINDOW = 256
"""So many sets are ordered at once;"""
_AT_ONCE = 4096
"""and about so many orders are scored at once."""

Order: TypeAlias = tuple[str, ...]
Score: TypeAlias = Callable[[Sequence[Example], Sequence[Sequence[Order]]], Sequence[Sequence[float]]]
"""Give log2 p(order | text) for each of the orders of each example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLikelihood:
    """Hold what is known about log2 p(set | text). All values are in bits; what is not known is None."""

    proposal: str
    """Where the orders were drawn from."""
    samples: int
    """How many were drawn."""
    n_labels: int
    log2_orders: float | None
    """The log2 of the number of orders that the proposal may draw; None where the set is too large to count them, and
    then there are no bounds."""
    elbo: float | None
    """The mean of log2 p / q over the draws."""
    bound: float | None
    """The log2 of the mean of p / q over the draws."""
    exact: float | None = None
    """The log2 of the sum over all orders, where they were all scored."""
    allowed: float | None = None
    """The log2 of the sum over the orders that the proposal may draw: what `bound` goes to with many draws."""
    id: str | int | None = None
    """The example's id, where it has one."""

    @property
    def gap(self) -> float | None:
        """The distance from the bound to the likelihood; by luck of the draw it may be below zero."""
        return None if self.exact is None or self.bound is None else self.exact - self.bound

    def as_row(self) -> dict[str, Any]:
        """Give what depends on the proposal as a JSON object; what is None is left out."""
        names = ("log2_orders", "elbo", "bound", "allowed")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def log2_sum(values: Sequence[float]) -> float:
    """Add numbers that are given by their log2.

    Examples
    --------
    >>> log2_sum([-1.0, -2.0, -2.0])
    0.0
    >>> log2_sum([-5000.0, -5000.0])
    -4999.0

    """
    largest = max(values, default=-inf)
    if largest == -inf:
        return -inf
    return largest + log2(sum(2.0 ** (value - largest) for value in values))


def elbo_of(values: Sequence[float], log2_orders: float) -> float:
    """Give the evidence lower bound of log2 p for drawn orders, each of which is one of so many.

    Examples
    --------
    >>> elbo_of([-2.0, -4.0], log2_orders=1.0)
    -2.0

    """
    return sum(values) / len(values) + log2_orders


def bound_of(values: Sequence[float], log2_orders: float) -> float:
    """Give the importance-weighted bound of log2 p for drawn orders, each of which is one of so many.

    Examples
    --------
    >>> bound_of([-2.0, -2.0], log2_orders=1.0)
    -1.0

    """
    return log2_sum(values) - log2(len(values)) + log2_orders


def set_likelihoods(
    examples: Sequence[Example],
    score: Score,
    *,
    statistics: LabelStatistics,
    thresholds: Thresholds | None = None,
    proposals: Sequence[str] = ("topological",),
    samples: int = 16,
    max_exact: int = MAX_EXACT,
    seed: int = 0,
    first_index: int = 0,
) -> Iterator[dict[str, SetLikelihood]]:
    """Give the likelihood of each example's set, by proposal, one example after the other.

    Parameters
    ----------
    score
        Score orders; each different one of an example is asked for once.
    statistics, thresholds
        What order graphs are made of.
    samples
        How many orders are drawn from each proposal: independently, so the same one may come again.
    max_exact
        Sets of up to so many labels are summed up exactly; 0 for none but the empty one.
    seed, first_index
        An example's draws depend on the seed and its index (the first one's is `first_index`), and on nothing else.

    Examples
    --------
    >>> example = Example("They won in five sets.", ["event", "match"])
    >>> half = lambda examples, orders: [[-1.0 for order in each] for each in orders]
    >>> found = next(set_likelihoods([example], half, statistics=LabelStatistics(), proposals=["uniform", "given"]))
    >>> found["uniform"].exact, found["uniform"].bound, found["given"].bound
    (0.0, 0.0, -1.0)

    """
    check_scoring(proposals, samples, max_exact, seed)
    scorer = _Scorer(statistics, thresholds or Thresholds(), tuple(dict.fromkeys(proposals)), samples, max_exact)
    return scorer.score_all(scorer.plans(examples, seed, first_index), score)


def check_scoring(proposals: Sequence[str], samples: int, max_exact: int, seed: int) -> None:
    """Raise if an argument makes no sense."""
    if isinstance(proposals, str) or not proposals:
        raise ValueError(f"proposals must be a list of at least one name, got {proposals!r}.")
    for name in proposals:
        if name not in PROPOSALS:
            raise ValueError(f"proposal must be one of {', '.join(PROPOSALS)}, got {name!r}.")
    if type(samples) is not int or samples < 1:
        raise ValueError(f"samples must be a whole number from 1 on, got {samples!r}.")
    if type(max_exact) is not int or not 0 <= max_exact <= MAX_EXACT:
        raise ValueError(f"max_exact must be a whole number from 0 to {MAX_EXACT}, got {max_exact!r}.")
    if type(seed) is not int or not 0 <= seed < 1 << 63:
        raise ValueError(f"seed must be a whole number below 2**63, got {seed!r}.")


@dataclass(frozen=True)
class _Plan:
    """Hold what is to be scored for one example, and what it is for."""

    example: Example
    drawn: dict[str, list[Order]]
    """The orders drawn, by proposal."""
    log2_orders: dict[str, float]
    is_exact: bool
    orders: list[Order]
    """All different orders that need a score."""


@dataclass(frozen=True)
class _Scorer:
    """Draw orders, and make likelihoods of their scores."""

    statistics: LabelStatistics
    thresholds: Thresholds
    proposals: tuple[str, ...]
    samples: int
    max_exact: int

    def plans(self, examples: Sequence[Example], seed: int, first_index: int) -> Iterator[_Plan]:
        edges = self.statistics.edges(self.thresholds)
        labels, ids = self.statistics.labels, self.statistics.ids
        names = dict.fromkeys([*self.proposals, "uniform"])
        orderings = {name: make_ordering(PROPOSALS[name], labels=labels, edges=edges) for name in names}
        for begin in range(0, len(examples), _WINDOW):
            window = examples[begin : begin + _WINDOW]
            batch = SetBatch.of([ids.get(label, -1) for label in example.labels] for example in window)
            found = {
                name: ordering.orders(batch, self.samples, seed=seed, first_index=first_index + begin)
                for name, ordering in orderings.items()
            }
            starts = batch.starts.tolist()
            for at, example in enumerate(window):
                here = slice(starts[at], starts[at + 1])
                counts = {name: float(found[name].log2_orders[at]) for name in self.proposals}
                drawn = {}
                for name in self.proposals:
                    if isnan(counts[name]):
                        continue  # neither counted nor, perhaps, drawn uniformly: there is no q
                    is_free = name in _BY_GRAPH and found[name].n_edges[at] == 0
                    rows = found["uniform" if is_free else name].positions[:, here].tolist()
                    drawn[name] = [tuple(example.labels[place] for place in row) for row in rows]
                yield self._plan(example, drawn, counts)

    def _plan(self, example: Example, drawn: dict[str, list[Order]], counts: dict[str, float]) -> _Plan:
        is_exact = len(example.labels) <= self.max_exact
        if is_exact:
            orders = list(permutations(example.labels))
        else:
            orders = list(dict.fromkeys(order for each in drawn.values() for order in each))
        return _Plan(example, drawn, counts, is_exact, orders)

    def score_all(self, plans: Iterator[_Plan], score: Score) -> Iterator[dict[str, SetLikelihood]]:
        for group in _groups(plans):
            scores = score([plan.example for plan in group], [plan.orders for plan in group])
            for plan, values in zip(group, scores, strict=True):
                yield self._likelihoods(plan, values)

    def _likelihoods(self, plan: _Plan, values: Sequence[float]) -> dict[str, SetLikelihood]:
        table = dict(zip(plan.orders, values, strict=True))
        exact = log2_sum(list(table.values())) if plan.is_exact else None
        return {name: self._likelihood(name, plan, table, exact) for name in self.proposals}

    def _likelihood(self, name: str, plan: _Plan, table: dict[Order, float], exact: float | None) -> SetLikelihood:
        drawn = [table[order] for order in plan.drawn.get(name, ())]
        count = plan.log2_orders[name] if drawn else None
        return SetLikelihood(
            proposal=name,
            samples=self.samples,
            n_labels=len(plan.example.labels),
            log2_orders=count,
            elbo=None if count is None else elbo_of(drawn, count),
            bound=None if count is None else bound_of(drawn, count),
            exact=exact,
            allowed=self._allowed(name, plan, table) if plan.is_exact else None,
            id=plan.example.id,
        )

    def _allowed(self, name: str, plan: _Plan, table: dict[Order, float]) -> float:
        """Add up the orders that a proposal may draw."""
        if name in ("frequency", "given"):
            return table[plan.drawn[name][0]]
        if name == "uniform":
            return log2_sum(list(table.values()))
        graph = OrderGraph.of_set(plan.example.labels, self.statistics, self.thresholds)
        step = -1 if name == "reversed" else 1
        return log2_sum([value for order, value in table.items() if graph.allows(order[::step])])


def _groups(plans: Iterator[_Plan]) -> Iterator[list[_Plan]]:
    """Put sets together until there is enough to score."""
    group: list[_Plan] = []
    n_orders = 0
    for plan in plans:
        group.append(plan)
        n_orders += len(plan.orders)
        if n_orders >= _AT_ONCE:
            yield group
            group, n_orders = [], 0
    if group:
        yield group
