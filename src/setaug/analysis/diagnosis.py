"""Will order help on this data? Measured on the label sets alone, before any training (paper, section 3.1).

The bits of held-out sets (`order_cost`) are compared over orderings and thresholds, and turned into advice.
``docs/diagnosis.md`` describes what the measure can and cannot show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setaug.analysis.advice import Advice, Candidate, Trial, advise, choose, has_gain, told_difference, told_thresholds
from setaug.analysis.order_cost import FoldedSets, OrderingScore, measure
from setaug.examples import Columns, LabelSets, as_sets
from setaug.orders.edges import Thresholds
from setaug.registry import BASELINE_ORDERING, DEFAULT_ORDERING, ORDERINGS

NO_GAIN, TOO_LITTLE_DATA = "no-gain", "too-little-data"
MIN_HELD_OUT = 50
"""With fewer held-out sets there is no verdict."""
ENOUGH_HELD_OUT = 2000
"""With this many held-out sets scored, the other folds are skipped."""
TRIED = ((1, 3), (1, 2), (1, 1), (0, 3), (0, 1))
"""Other thresholds that are tried, the paper's first: min_pmi and min_ratio."""
MAX_TRIED, ENOUGH_TRIED = 5000, 1000
"""The maximum number of sets of two or more labels in a trial, and the number of held-out sets that is enough."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The measured answer to "will order help on this data?"."""

    verdict: str
    """The ordering that helps most at the given thresholds, or ``no-gain`` if none beats random orders, or
    ``too-little-data``."""
    sentence: str
    """The verdict in plain English."""
    scores: dict[str, OrderingScore]
    """The scores by ordering, random orders included; empty if there is too little data."""
    helps: tuple[str, ...]
    """All orderings that beat random orders, best first."""
    constrained: float
    """The fraction of held-out sets with an edge; without edges, topological orders are random."""
    n_sets: int
    """The number of sets used, of any size."""
    n_fit: int
    """The number of sets, of 2 to 16 labels, that the models of one fold were fitted on."""
    n_held_out: int
    """The number of sets that were held out and scored."""
    trials: tuple[Trial, ...]
    """Other thresholds, each with the scores of the orderings that read the label graph."""
    advice: Advice
    """What to train with, and what to expect."""

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis for JSON."""
        return asdict(self)


def diagnose(
    label_sets: LabelSets,
    *,
    columns: Columns | None = None,
    thresholds: Thresholds | None = None,
    n_folds: int = 5,
    n_orders: int = 2,
    max_sets: int = 20_000,
    seed: int = 0,
) -> Diagnosis:
    """Measure which orderings make label sets easier to predict than random orders do.

    The orderings are those that the registry marks as diagnosed. Sets with fewer than 2 labels count in the order
    graph, as in training, but are not compared, and neither are sets with more than 16. Labels of held-out sets that
    occur in no fitted set are dropped.

    Parameters
    ----------
    label_sets
        Label sets, an indicator matrix, or anything that has labels: examples, rows, a data frame.
    columns
        The name of the label column of rows, and the names of labels that are numbers.
    thresholds
        When two labels have a fixed order; the paper's by default.
    n_folds
        Each set is held out once, from models fitted on the other folds, until 2,000 held-out sets are scored.
    n_orders
        The number of orders sampled for each set, to fit and to score.
    max_sets
        Maximum number of sets of two or more labels; larger datasets are sampled.

    Examples
    --------
    >>> from random import Random
    >>> draw = Random(0)
    >>> diagnose(draw.sample("abcdefghijkl", 3) for _ in range(500)).verdict
    'no-gain'
    >>> diagnose([{"match", "event"}, {"person"}]).sentence
    'Too little data: 0 held-out sets could be scored, but at least 50 are required.'

    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}.")
    if n_orders < 1:
        raise ValueError(f"n_orders must be at least 1, got {n_orders}.")
    thresholds = thresholds or Thresholds()
    folded = FoldedSets.of(as_sets(label_sets, columns), n_folds=n_folds, max_sets=max_sets, seed=seed)
    compared = [name for name, entry in ORDERINGS.items() if entry.is_diagnosed]
    costs = measure(folded, thresholds, (BASELINE_ORDERING, *compared), n_orders=n_orders, enough=ENOUGH_HELD_OUT)
    scores: dict[str, OrderingScore] = {}
    trials: tuple[Trial, ...] = ()
    constrained = 0.0
    if costs.n_held_out >= MIN_HELD_OUT:
        scores = costs.scores()
        trials = _try_thresholds(folded, thresholds, n_orders)
        constrained = float(np.mean(costs.n_edges[DEFAULT_ORDERING] > 0))
    helps = sorted((name for name in scores if has_gain(scores[name])), key=lambda name: scores[name].bits)
    sizes, n_by_size = np.unique(folded.sets.sizes, return_counts=True)
    return Diagnosis(
        verdict=helps[0] if helps else NO_GAIN if scores else TOO_LITTLE_DATA,
        sentence=_state(scores, helps, choose(scores, trials, thresholds), costs.n_held_out),
        scores=scores,
        helps=tuple(helps),
        constrained=constrained,
        n_sets=len(folded.sets),
        n_fit=costs.n_fit,
        n_held_out=costs.n_held_out,
        trials=trials,
        advice=advise(
            scores,
            trials,
            thresholds,
            constrained=constrained,
            sizes=dict(zip(sizes.tolist(), n_by_size.tolist(), strict=True)),
            share_unseen=folded.share_unseen,
        ),
    )


def _try_thresholds(folded: FoldedSets, thresholds: Thresholds, n_orders: int) -> tuple[Trial, ...]:
    """Measure the orderings that read the label graph at other thresholds; each graph once."""
    folded = folded.sample(MAX_TRIED)
    names = [name for name, entry in ORDERINGS.items() if entry.is_diagnosed and entry.needs_edges]
    graphs = {folded.edges(thresholds).keys.tobytes()}
    tried: list[tuple[Thresholds, int]] = []
    for min_pmi, min_ratio in TRIED:
        other = Thresholds(min_pmi=min_pmi, min_ratio=min_ratio)
        keys = folded.edges(other).keys
        if len(keys) and keys.tobytes() not in graphs:
            graphs.add(keys.tobytes())
            tried.append((other, len(keys)))
    if not tried:
        return ()
    base = measure(folded, thresholds, (BASELINE_ORDERING,), n_orders=n_orders, enough=ENOUGH_TRIED)
    trials = []
    for other, n_edges in tried:
        costs = measure(folded, other, names, n_orders=n_orders, enough=ENOUGH_TRIED)
        trials.append(
            Trial(
                float(other.min_pmi),
                float(other.min_ratio),
                n_edges,
                float(np.mean(costs.n_edges[DEFAULT_ORDERING] > 0)),
                costs.n_held_out,
                costs.scores(base.bits[BASELINE_ORDERING], n_compared=len(tried) * len(names)),
            )
        )
    return tuple(trials)


def _state(scores: Mapping[str, OrderingScore], helps: Sequence[str], chosen: Candidate | None, n_held_out: int) -> str:
    if not scores:
        return f"Too little data: {n_held_out} held-out sets could be scored, but at least {MIN_HELD_OUT} are required."
    compared = [name for name in scores if name != BASELINE_ORDERING]
    name = helps[0] if helps else min(compared, key=lambda name: scores[name].bits)
    score = scores[name]
    interval = f"95 % interval {score.low:+.2f} to {score.high:+.2f}; {n_held_out:,} held-out sets"
    measured = f"{told_difference(score)} ({interval})."
    if helps:
        others = f" Also better than random: {', '.join(helps[1:])}." if len(helps) > 1 else ""
        if DEFAULT_ORDERING in helps:
            return f"Order helps: {name} orders need {measured}{others}"
        default = told_difference(scores[DEFAULT_ORDERING])
        clearly = "clearly " if scores[DEFAULT_ORDERING].difference < 0 else ""
        return (
            f"The default order does not {clearly}help: {DEFAULT_ORDERING} orders need {default}. "
            f"Another order helps: {name} orders need {measured}{others}"
        )
    if chosen is not None:
        return (
            f"Order helps with other thresholds only: with {told_thresholds(chosen.min_pmi, chosen.min_ratio)}, "
            f"{chosen.ordering} orders need {told_difference(chosen.score)}."
        )
    return f"Order will not help: no order clearly beats random ones. The best, {name} orders, need {measured}"
