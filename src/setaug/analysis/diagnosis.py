"""Will order help on this data? Measured on the label sets alone, before any training (paper, section 3.1).

For each ordering, a small model of label sequences is fitted on part of the sets, and the bits that it needs for each
of the other sets are compared. With an ordering q that is uniform over e orders, a set of size m costs (the negative
ELBO of section 3.1, given the size, which is written first)

    bits(set) = mean over q of -log2 p(order | m)  -  log2 e

``docs/diagnosis.md`` describes what the measure can and cannot show.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setaug.analysis.label_sequence_model import MAX_SIZE, LabelSequenceModel, count_pairs, look_up
from setaug.orders.arrays import Floats, Ints, Mask, SetBatch
from setaug.orders.edges import EdgeTable, Thresholds, edges_among
from setaug.orders.orderings import make_ordering
from setaug.registry import BASELINE_ORDERING, DEFAULT_ORDERING, ORDERINGS

NO_GAIN, TOO_LITTLE_DATA = "no-gain", "too-little-data"
MIN_HELD_OUT = 50
"""With fewer held-out sets there is no verdict."""
ENOUGH_HELD_OUT = 2000
"""With this many held-out sets scored, the other folds are skipped."""
MIN_GAIN = 0.02
"""The minimum fraction of the bits of random orders that an ordering must save to help."""
MIN_BITS = 0.05
"""The minimum bits per set that an ordering must save to help: the model is not precise enough for less."""


@dataclass(frozen=True, slots=True)
class OrderingScore:
    """The cost of the held-out sets under one ordering."""

    bits: float
    """The mean number of bits per set."""
    difference: float
    """The mean difference to random orders, in bits per set; negative if the ordering helps."""
    low: float
    """The lower end of the 95 % interval of the difference (paired over sets)."""
    high: float
    """The upper end of the interval."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The measured answer to "will order help on this data?"."""

    verdict: str
    """The ordering that helps most, or ``no-gain`` if none beats random orders, or ``too-little-data``."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis for JSON."""
        return asdict(self)


def diagnose(
    label_sets: Iterable[Iterable[str]],
    *,
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
    thresholds
        When two labels have a fixed order; the paper's by default.
    n_folds
        Each set is held out once, from models fitted on the other folds, until 2,000 held-out sets are scored.
    n_orders
        The number of orders sampled for each set, to fit and to score.
    max_sets
        Maximum number of sets of two or more labels; larger data sets are sampled.

    Examples
    --------
    >>> from random import Random
    >>> draw = Random(0)
    >>> diagnose(draw.sample("abcdefghijkl", 3) for _ in range(500)).verdict
    'no-gain'
    >>> diagnose([{"match", "event"}, {"person"}]).sentence
    'Too little data: 0 held-out sets could be scored, and at least 50 are needed.'

    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}.")
    if n_orders < 1:
        raise ValueError(f"n_orders must be at least 1, got {n_orders}.")
    sets, labels = _encode(label_sets, max_sets, seed)
    # Folds are stratified by size, so that small data sets are split evenly.
    by_size = np.lexsort((np.random.default_rng(seed).random(len(sets)), sets.sizes))
    fold = np.empty(len(sets), np.int64)
    fold[by_size] = np.arange(len(sets)) % n_folds
    n_fit, n_held_out = 0, 0
    compared = [name for name, entry in ORDERINGS.items() if entry.is_diagnosed]
    bits: dict[str, list[Floats]] = {name: [] for name in (BASELINE_ORDERING, *compared)}
    n_edges: list[Ints] = []
    for held_out in range(n_folds if len(labels) > 1 else 0):
        split = _split(sets, fold != held_out, len(labels), thresholds or Thresholds())
        if len(split.fitted) == 0 or len(split.held_out) == 0:
            continue
        n_fit, n_held_out = max(n_fit, len(split.fitted)), n_held_out + len(split.held_out)
        for name, scored in bits.items():
            costs, edges = _score(name, split, labels, n_orders, np.random.default_rng([seed, held_out]))
            scored.append(costs)
            if name == DEFAULT_ORDERING:
                n_edges.append(edges)
        if n_held_out >= ENOUGH_HELD_OUT:
            break
    if n_held_out < MIN_HELD_OUT:
        sentence = (
            f"Too little data: {n_held_out} held-out sets could be scored, and at least {MIN_HELD_OUT} are needed."
        )
        return Diagnosis(TOO_LITTLE_DATA, sentence, {}, (), 0.0, len(sets), n_fit, n_held_out)
    scores = _compare({name: np.concatenate(scored) for name, scored in bits.items()})
    limit = -max(MIN_GAIN * scores[BASELINE_ORDERING].bits, MIN_BITS)
    helps = [name for name in compared if scores[name].difference <= limit and scores[name].high < 0]
    helps.sort(key=lambda name: scores[name].bits)
    return Diagnosis(
        verdict=helps[0] if helps else NO_GAIN,
        sentence=_state(scores, helps, n_held_out),
        scores=scores,
        helps=tuple(helps),
        constrained=float(np.mean(np.concatenate(n_edges) > 0)),
        n_sets=len(sets),
        n_fit=n_fit,
        n_held_out=n_held_out,
    )


def _encode(label_sets: Iterable[Iterable[str]], max_sets: int, seed: int) -> tuple[SetBatch, list[str]]:
    """Encode labels as ids, sorted by name, so that the order within a set has no influence."""
    sets: list[set[str]] = []
    for members in label_sets:
        if isinstance(members, str):
            raise TypeError(f"expected sets of labels, got the string {members!r}.")
        sets.append(set(members))
    n_orderable = sum(len(members) > 1 for members in sets)
    if n_orderable > max_sets:
        n_kept = len(sets) * max_sets // n_orderable
        kept = np.random.default_rng(seed).choice(len(sets), n_kept, replace=False)
        sets = [sets[at] for at in np.sort(kept)]
    labels = sorted(set().union(*sets))
    ids = {label: at for at, label in enumerate(labels)}
    return SetBatch.of(sorted(ids[label] for label in members) for members in sets), labels


def _comparable(sets: SetBatch) -> SetBatch:
    return sets.select((sets.sizes >= 2) & (sets.sizes <= MAX_SIZE))


@dataclass(frozen=True, slots=True)
class _Split:
    """The sets of one fold, and the edges that order them."""

    fitted: SetBatch
    held_out: SetBatch
    edges: EdgeTable
    held_out_edges: EdgeTable


def _split(sets: SetBatch, is_fitted: Mask, n_labels: int, thresholds: Thresholds) -> _Split:
    """Split sets, and find the edges of the fitted part.

    A training set counts itself: two rare labels that occur only there have an edge. For equal treatment, each
    held-out set counts itself too, but no other held-out set.
    """
    counted = sets.select(is_fitted)
    counts = np.bincount(counted.ids, minlength=n_labels)
    pairs, n_both = count_pairs(counted)
    fitted = _comparable(counted)
    known = np.bincount(fitted.ids, minlength=n_labels) > 0
    held_out = _comparable(sets.select(~is_fitted, known))
    own_pairs, _ = count_pairs(held_out)
    own_both = look_up(pairs, n_both, own_pairs) + 1
    return _Split(
        fitted,
        held_out,
        edges_among(pairs, n_both, counts, len(counted), thresholds),
        edges_among(own_pairs, own_both, counts + 1, len(counted) + 1, thresholds),
    )


def _score(name: str, split: _Split, labels: list[str], n_orders: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Fit a model on orders of the fitted sets; return the bits and the number of edges of each held-out set."""
    n_orders = 1 if ORDERINGS[name].is_deterministic else n_orders
    fit_seed, score_seed = rng.integers(1 << 62, size=2).tolist()
    ordering = make_ordering(name, labels=labels, edges=split.edges)
    orders = ordering.orders(split.fitted, n_orders, seed=fit_seed, first_index=0)
    model = LabelSequenceModel.fit(split.fitted, orders.positions, len(labels))
    ordering = make_ordering(name, labels=labels, edges=split.held_out_edges)
    orders = ordering.orders(split.held_out, n_orders, seed=score_seed, first_index=0)
    return model.bits(split.held_out, orders.positions).mean(axis=0) - orders.log2_orders, orders.n_edges


def _compare(bits: dict[str, Floats]) -> dict[str, OrderingScore]:
    scores = {}
    for name, costs in bits.items():
        differences = costs - bits[BASELINE_ORDERING]
        mean, margin = differences.mean(), 1.96 * differences.std(ddof=1) / len(differences) ** 0.5
        scores[name] = OrderingScore(*(float(value) for value in (costs.mean(), mean, mean - margin, mean + margin)))
    return scores


def _state(scores: dict[str, OrderingScore], helps: list[str], n_held_out: int) -> str:
    compared = [name for name in scores if name != BASELINE_ORDERING]
    name = helps[0] if helps else min(compared, key=lambda name: scores[name].bits)
    score, base = scores[name], max(scores[BASELINE_ORDERING].bits, MIN_BITS)
    measured = (
        f"{abs(score.difference):.2f} bits ({100 * abs(score.difference) / base:.1f} %) "
        f"{'fewer' if score.difference < 0 else 'more'} per set than random ones "
        f"(95 % interval {score.low:+.2f} to {score.high:+.2f}; {n_held_out:,} held-out sets)."
    )
    if not helps:
        return f"Order will not help: no order clearly beats random ones. The best, {name} orders, need {measured}"
    others = f" Also better than random: {', '.join(helps[1:])}." if len(helps) > 1 else ""
    return f"Order helps: {name} orders need {measured}{others}"
