"""The likelihood of a set under a sequence model: the order is a latent variable (paper, section 3.1).

    log2 p(Y | x) = log2 of the sum of p(z | x) over all n! orders z of the n labels in Y

For small sets the sum is exact. For any set, K orders z_1 ... z_K sampled from a proposal q give lower bounds:

    elbo  = mean of  log2 p(z_k | x) - log2 q(z_k)
    bound = log2 of the mean of  p(z_k | x) / q(z_k)       (importance-weighted, Burda et al. 2016)

In expectation neither exceeds the likelihood, and `bound` is tighter with more samples. It cannot include the
probability of orders outside the support of the proposal (``docs/likelihood.md``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import isnan, log2
from typing import Any, TypeAlias

import numpy as np

from setaug.examples import Example
from setaug.orders.arrays import SetBatch
from setaug.orders.edges import Thresholds
from setaug.orders.graph import OrderGraph
from setaug.orders.orderings import make_ordering
from setaug.orders.statistics import LabelStatistics
from setaug.registry import BASELINE_ORDERING, DEFAULT_ORDERING, ORDERINGS, OrderingEntry, check_choice
from setaug.registry import proposals as known_proposals

MAX_EXACT = 7
"""The maximum size for exact likelihoods: 7 labels have 5,040 orders, 8 have 40,320."""
_WINDOW = 256
"""Sets per batch of orders."""
_AT_ONCE = 4096
"""Approximate number of orders per scored batch."""

Order: TypeAlias = tuple[str, ...]
Score: TypeAlias = Callable[[Sequence[Example], Sequence[Sequence[Order]]], Sequence[Sequence[float]]]
"""Returns log2 p(order | text) for each order of each example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLikelihood:
    """The likelihood log2 p(set | text) and its bounds, in bits; None where unknown."""

    proposal: str
    """The name of the proposal."""
    samples: int
    """The number of sampled orders."""
    n_labels: int
    log2_orders: float | None
    """The log2 of the size of the proposal's support; if the set is too large to count it, this and the bounds are
    None."""
    elbo: float | None
    """The mean of log2 p / q over the samples."""
    bound: float | None
    """The log2 of the mean of p / q over the samples."""
    exact: float | None = None
    """The log2 of the sum over all orders, if all were scored."""
    allowed: float | None = None
    """The log2 of the sum over the support of the proposal: the limit of `bound`."""
    id: str | int | None = None
    """The id of the example, if any."""

    @property
    def gap(self) -> float | None:
        """The likelihood minus the bound; sampling noise may make it negative."""
        return None if self.exact is None or self.bound is None else self.exact - self.bound

    def to_dict(self) -> dict[str, Any]:
        """Return the known values that depend on the proposal, for JSON."""
        names = ("log2_orders", "elbo", "bound", "allowed")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def elbo_of(values: Sequence[float], log2_orders: float) -> float:
    """Return the evidence lower bound of log2 p from the log2 p of sampled orders, out of ``2**log2_orders``.

    Examples
    --------
    >>> elbo_of([-2.0, -4.0], log2_orders=1.0)
    -2.0

    """
    return sum(values) / len(values) + log2_orders


def bound_of(values: Sequence[float], log2_orders: float) -> float:
    """Return the importance-weighted bound of log2 p from the log2 p of sampled orders, out of ``2**log2_orders``.

    Examples
    --------
    >>> bound_of([-2.0, -2.0], log2_orders=1.0)
    -1.0

    """
    return _log2_sum(values) - log2(len(values)) + log2_orders


def _log2_sum(values: Sequence[float]) -> float:
    return float(np.logaddexp2.reduce(np.asarray(values, np.float64)))


def set_likelihoods(
    examples: Sequence[Example],
    score: Score,
    *,
    statistics: LabelStatistics,
    thresholds: Thresholds | None = None,
    proposals: Sequence[str] = (DEFAULT_ORDERING,),
    samples: int = 16,
    max_exact: int = MAX_EXACT,
    seed: int = 0,
    first_index: int = 0,
) -> Iterator[dict[str, SetLikelihood]]:
    """Yield the likelihood of each example's set, by proposal.

    Parameters
    ----------
    score
        Scores orders; each distinct order of an example is scored once.
    statistics, thresholds
        The basis of the order graphs.
    samples
        The number of orders sampled independently from each proposal; they may repeat.
    max_exact
        Maximum set size for exact likelihoods; 0 for the empty set only.
    seed, first_index
        The samples of an example depend only on the seed and its index (`first_index` for the first example).

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
    """Raise if an argument is invalid."""
    if isinstance(proposals, str) or not proposals:
        raise ValueError(f"proposals must be a list of at least one name, got {proposals!r}.")
    for name in proposals:
        check_choice("proposal", name, known_proposals())
    if type(samples) is not int or samples < 1:
        raise ValueError(f"samples must be an integer of at least 1, got {samples!r}.")
    if type(max_exact) is not int or not 0 <= max_exact <= MAX_EXACT:
        raise ValueError(f"max_exact must be an integer from 0 to {MAX_EXACT}, got {max_exact!r}.")
    if type(seed) is not int or not 0 <= seed < 1 << 63:
        raise ValueError(f"seed must be an integer from 0 to 2**63 - 1, got {seed!r}.")


@dataclass(frozen=True)
class _Plan:
    """The orders to score for one example."""

    example: Example
    drawn: dict[str, list[Order]]
    """The sampled orders, by proposal."""
    log2_orders: dict[str, float]
    is_exact: bool
    orders: list[Order]
    """The distinct orders to score."""


@dataclass(frozen=True)
class _Scorer:
    """Samples orders, and computes likelihoods from their scores."""

    statistics: LabelStatistics
    thresholds: Thresholds
    proposals: tuple[str, ...]
    samples: int
    max_exact: int

    @cached_property
    def _orderings(self) -> dict[str, str]:
        return known_proposals()

    def _entry(self, proposal: str) -> OrderingEntry:
        return ORDERINGS[self._orderings[proposal]]

    def plans(self, examples: Sequence[Example], seed: int, first_index: int) -> Iterator[_Plan]:
        edges = self.statistics.edges(self.thresholds)
        labels, ids = self.statistics.labels, self.statistics.ids
        names = dict.fromkeys([*(self._orderings[name] for name in self.proposals), BASELINE_ORDERING])
        orderings = {name: make_ordering(name, labels=labels, edges=edges) for name in names}
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
                counts, drawn = {}, {}
                for name in self.proposals:
                    batch_orders = found[self._orderings[name]]
                    counts[name] = float(batch_orders.log2_orders[at])
                    if isnan(counts[name]):
                        continue  # not counted and perhaps not sampled uniformly: q is unknown
                    if self._entry(name).needs_edges and batch_orders.n_edges[at] == 0:
                        batch_orders = found[BASELINE_ORDERING]  # without an edge, the proposals are the same
                    rows = batch_orders.positions[:, here].tolist()
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
        exact = _log2_sum(values) if plan.is_exact else None
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
        """Return the log2 of the sum over the support of a proposal."""
        entry = self._entry(name)
        if entry.is_deterministic:
            return table[plan.drawn[name][0]]
        if not entry.needs_edges:
            return _log2_sum(list(table.values()))
        graph = OrderGraph.of_set(plan.example.labels, self.statistics, self.thresholds)
        step = -1 if entry.is_reversed else 1
        return _log2_sum([value for order, value in table.items() if graph.allows(order[::step])])


def _groups(plans: Iterator[_Plan]) -> Iterator[list[_Plan]]:
    """Group sets until there are enough orders to score."""
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
