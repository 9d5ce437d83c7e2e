"""Will order help on this data? Measured on the label sets alone, before any training (paper, section 3.1).

For each way to order labels, a small model of label sequences is fitted on part of the sets, and the bits that it
needs for each of the other sets are compared. With an ordering q that draws one of e orders, each with the same
chance, a set of size m costs (the negative ELBO of section 3.1, given the size, which is written first)

    bits(set) = mean over q of -log2 p(order | m)  -  log2 e

The model is log-linear: the next label is y with a probability proportional to

    exp(bias[y] + context[labels left, class of y] + context[class of last label, class of y] + sum of weight[h, y])

over the labels h already written; labels already written are left out. Classes are bands of label frequency, so that
"rare ones first" is quick to learn; the weights are for pairs of labels that occur together more or less often than
chance. Mixtures of n-grams were tried first: they cannot say that a label will *not* come yet, and so count
against each order that has a rule. ``docs/diagnosis.md`` says what the measure can and cannot tell.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from setaug.orders.edges import LOW, SHIFT, EdgeTable, Ints, Keys, Thresholds, edges_among
from setaug.orders.orderings import make_ordering
from setaug.orders.statistics import SetBatch

Floats: TypeAlias = NDArray[np.float64]
Verdict: TypeAlias = Literal["topological", "reversed", "frequency", "no-gain", "too-little-data"]
COMPARED: tuple[Verdict, ...] = ("topological", "reversed", "frequency")
"""The orderings that are compared with random orders."""
MAX_SIZE = 16
"""Sets with more labels are not compared: their orders cannot always be counted."""
MIN_HELD_OUT = 50
"""With fewer held-out sets there is no verdict."""
ENOUGH_HELD_OUT = 2000
"""When so many held-out sets are scored, the other folds are not needed."""
MIN_GAIN = 0.02
"""An ordering helps where it saves at least this share of the bits that random orders need,"""
MIN_BITS = 0.05
"""and at least so many bits per set. Less than that, the model is not exact enough to tell."""

_N_CLASSES = 16
_MAX_PASSES = 30
_MIN_PROGRESS = 0.01  # in bits per label: a pass that saves less is the last
_MIN_EVIDENCE = 8.0  # twice the log-likelihood ratio against chance: by chance, 1 pair in 200 has more
_MANY = 4  # pairs seen so often or more are trusted alike
_MIN_LIFT = 0.25  # in bits: a pair that is trusted less far from chance gets no weight
_PAIR_PRIOR, _BIAS_PRIOR, _CONTEXT_PRIOR = 1.0, 0.05, 1.0  # in observations


@dataclass(frozen=True, slots=True)
class OrderingScore:
    """Hold what the held-out sets cost under one ordering."""

    bits: float
    """The mean number of bits per set."""
    difference: float
    """The mean difference to random orders, in bits per set; below zero, the ordering helps."""
    low: float
    """The lower end of the difference's 95 % interval (paired over sets)."""
    high: float
    """The upper end."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Hold the measured answer to "will order help on this data?"."""

    verdict: Verdict
    """The ordering that helps most, or ``no-gain`` where none beats random orders, or ``too-little-data``."""
    sentence: str
    """The verdict in plain English."""
    scores: dict[str, OrderingScore]
    """The scores by ordering, random orders included; empty where there is too little data."""
    helps: tuple[str, ...]
    """All orderings that beat random orders, best first."""
    constrained: float
    """The share of held-out sets in which the order graph has an edge; elsewhere, topological orders are random."""
    n_sets: int
    """The sets that were looked at, of any size."""
    n_fit: int
    """The sets of 2 to 16 labels that the models of one fold were fitted on."""
    n_held_out: int
    """The sets that were scored, each by models that had not seen it."""

    def to_dict(self) -> dict[str, Any]:
        """Give the diagnosis in a form that JSON can hold."""
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
    """Measure whether topological, reversed or frequency orders make label sets easier to predict than random ones.

    Sets with fewer than 2 labels have no order: they count in the order graph, as in training, but are not compared,
    and neither are sets with more than 16. A label of a held-out set that no fitted set holds is left out of that
    set, whatever the ordering.

    Parameters
    ----------
    thresholds
        Which labels have a fixed order; the paper's by default.
    n_folds
        Each set is held out once, from models fitted on the other folds; after 2,000 held-out sets no fold is added.
    n_orders
        How many orders are drawn for each set, to fit and to score.
    max_sets
        How many sets of two or more labels are looked at; of a larger data set, a random part.

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
    # Folds are dealt within each size, so that small data sets are split evenly.
    by_size = np.lexsort((np.random.default_rng(seed).random(len(sets)), np.diff(sets.starts)))
    fold = np.empty(len(sets), np.int64)
    fold[by_size] = np.arange(len(sets)) % n_folds
    n_fit, n_held_out = 0, 0
    bits: dict[str, list[Floats]] = {name: [] for name in ("random", *COMPARED)}
    n_edges: list[Ints] = []
    for held_out in range(n_folds if len(labels) > 1 else 0):
        split = _split(sets, fold != held_out, len(labels), thresholds or Thresholds())
        if len(split.fitted) == 0 or len(split.held_out) == 0:
            continue
        n_fit, n_held_out = max(n_fit, len(split.fitted)), n_held_out + len(split.held_out)
        for name, scored in bits.items():
            costs, edges = _score(name, split, labels, n_orders, np.random.default_rng([seed, held_out]))
            scored.append(costs)
            if name == "topological":
                n_edges.append(edges)
        if n_held_out >= ENOUGH_HELD_OUT:
            break
    if n_held_out < MIN_HELD_OUT:
        sentence = (
            f"Too little data: {n_held_out} held-out sets could be scored, and at least {MIN_HELD_OUT} are needed."
        )
        return Diagnosis("too-little-data", sentence, {}, (), 0.0, len(sets), n_fit, n_held_out)
    scores = _compare({name: np.concatenate(scored) for name, scored in bits.items()})
    limit = -max(MIN_GAIN * scores["random"].bits, MIN_BITS)
    helps = [name for name in COMPARED if scores[name].difference <= limit and scores[name].high < 0]
    helps.sort(key=lambda name: scores[name].bits)
    return Diagnosis(
        verdict=helps[0] if helps else "no-gain",
        sentence=_state(scores, helps, n_held_out),
        scores=scores,
        helps=tuple(helps),
        constrained=float(np.mean(np.concatenate(n_edges) > 0)),
        n_sets=len(sets),
        n_fit=n_fit,
        n_held_out=n_held_out,
    )


def _encode(label_sets: Iterable[Iterable[str]], max_sets: int, seed: int) -> tuple[SetBatch, list[str]]:
    """Give labels numbers by name, so that nothing depends on the order in which a set lists them."""
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


def _take(sets: SetBatch, chosen: NDArray[np.bool_], known: NDArray[np.bool_] | None = None) -> SetBatch:
    """Take some sets, and of these the labels that are known."""
    wanted = np.repeat(chosen, np.diff(sets.starts))
    if known is not None:
        wanted &= known[sets.ids]
    ends = np.concatenate([[0], np.cumsum(wanted)])[sets.starts]
    return SetBatch(np.concatenate([[0], ends[1:][chosen]]), sets.ids[wanted])


def _comparable(sets: SetBatch) -> SetBatch:
    sizes = np.diff(sets.starts)
    return _take(sets, (sizes >= 2) & (sizes <= MAX_SIZE))


@dataclass(frozen=True, slots=True)
class _Split:
    """Hold the sets of one fold, and the graphs that order them."""

    fitted: SetBatch
    held_out: SetBatch
    edges: EdgeTable
    held_out_edges: EdgeTable


def _split(sets: SetBatch, is_fitted: NDArray[np.bool_], n_labels: int, thresholds: Thresholds) -> _Split:
    """Split sets, and find the order graph of the fitted part.

    A set in the training data counts itself: two rare labels that it alone holds have an edge. So that the orders of
    held-out sets are alike, each of them counts itself too, but no other held-out set.
    """
    counted = _take(sets, is_fitted)
    counts = np.bincount(counted.ids, minlength=n_labels)
    pairs, n_both = _pairs(counted)
    fitted = _comparable(counted)
    known = np.bincount(fitted.ids, minlength=n_labels) > 0
    held_out = _comparable(_take(sets, ~is_fitted, known))
    own_pairs, _ = _pairs(held_out)
    own_both = _look_up(pairs, n_both, own_pairs) + 1
    return _Split(
        fitted,
        held_out,
        edges_among(pairs, n_both, counts, len(counted), thresholds),
        edges_among(own_pairs, own_both, counts + 1, len(counted) + 1, thresholds),
    )


def _pairs(sets: SetBatch) -> tuple[Keys, Ints]:
    from setaug.orders.kernels import pair_keys

    return np.unique(pair_keys(sets.starts, sets.ids), return_counts=True)


def _look_up(pairs: Keys, n_both: Ints, wanted: Keys) -> Ints:
    found = np.searchsorted(pairs, wanted)
    return np.where(np.append(pairs, LOW)[found] == wanted, np.append(n_both, 0)[found], 0)  # no pair is LOW


def _score(name: str, split: _Split, labels: list[str], n_orders: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Fit a model on orders of the fitted sets; give each held-out set's bits and its number of edges."""
    n_orders = 1 if name == "frequency" else n_orders  # it would repeat its one order
    fit_seed, score_seed = rng.integers(1 << 62, size=2).tolist()
    ordering = make_ordering(name, labels=labels, edges=split.edges)
    orders = ordering.orders(split.fitted, n_orders, seed=fit_seed, first_index=0)
    model = SequenceModel.fit(split.fitted, orders.positions, len(labels))
    ordering = make_ordering(name, labels=labels, edges=split.held_out_edges)
    orders = ordering.orders(split.held_out, n_orders, seed=score_seed, first_index=0)
    return model.bits(split.held_out, orders.positions).mean(axis=0) - orders.log2_orders, orders.n_edges


def _compare(bits: dict[str, Floats]) -> dict[str, OrderingScore]:
    scores = {}
    for name, costs in bits.items():
        differences = costs - bits["random"]
        mean, margin = differences.mean(), 1.96 * differences.std(ddof=1) / len(differences) ** 0.5
        scores[name] = OrderingScore(*(float(value) for value in (costs.mean(), mean, mean - margin, mean + margin)))
    return scores


def _state(scores: dict[str, OrderingScore], helps: list[Verdict], n_held_out: int) -> str:
    name = helps[0] if helps else min(COMPARED, key=lambda name: scores[name].bits)
    score, base = scores[name], max(scores["random"].bits, MIN_BITS)
    measured = (
        f"{abs(score.difference):.2f} bits ({100 * abs(score.difference) / base:.1f} %) "
        f"{'fewer' if score.difference < 0 else 'more'} per set than random ones "
        f"(95 % interval {score.low:+.2f} to {score.high:+.2f}; {n_held_out:,} held-out sets)."
    )
    if not helps:
        return f"Order will not help: no order clearly beats random ones. The best, {name} orders, need {measured}"
    others = f" Also better than random: {', '.join(helps[1:])}." if len(helps) > 1 else ""
    return f"Order helps: {name} orders need {measured}{others}"


@dataclass(frozen=True, slots=True)
class SequenceModel:
    """Predict the next label from the labels written so far and the number of labels left."""

    rows: Ints
    """The pairs with a weight, by first label: those of label h are ``rows[h]`` to ``rows[h + 1]``."""
    columns: Ints
    """The second label of each pair."""
    classes: Ints
    """The band of frequency of each label."""
    weights: Floats
    biases: Floats
    context: Floats
    """What each class gains: a row for each number of labels left, then one for each class of the last label."""

    @classmethod
    def fit(cls, sets: SetBatch, positions: NDArray[np.int32], n_labels: int) -> "SequenceModel":
        """Fit the model on orders of sets, by iterative scaling.

        Each pass moves each parameter by the log of what was seen over what the model expects (both with a
        prior that pulls to independence), in a step that halves whenever the sign turns or the cost rises.
        """
        counts = np.bincount(sets.ids, minlength=n_labels).astype(float)
        share = counts / counts.sum()
        classes = _classes(counts)
        rows, columns, trusted = _neighbours(sets, n_labels)
        shapes = (len(columns), n_labels, (MAX_SIZE + 2 + _N_CLASSES, _N_CLASSES))
        values = [np.zeros(shape) for shape in shapes]
        values[1] = np.log(np.maximum(share, 1e-300))
        start, priors = values[1], (_PAIR_PRIOR * share[columns], _BIAS_PRIOR, _CONTEXT_PRIOR)
        steps, last = [np.full(shape, 0.3) for shape in shapes], [np.zeros(shape) for shape in shapes]
        cost = np.inf
        for _ in range(_MAX_PASSES):
            model = cls(rows, columns, classes, *values)
            seen, expected = ([np.zeros(shape) for shape in shapes] for _ in range(2))
            previous, cost = cost, model._sweep(sets, positions, seen, expected).mean()
            if 0 <= previous - cost < _MIN_PROGRESS * len(sets.ids) / len(sets):
                break
            if cost > previous:
                steps = [step / 2 for step in steps]
            seen[0] *= trusted
            for i, prior in enumerate(priors):
                pull = prior * np.exp(values[i] - (start if i == 1 else 0.0))
                ratio = (seen[i] / len(positions) + prior) / (np.maximum(expected[i], 0) / len(positions) + pull)
                move = np.clip(np.log(ratio), -2, 2)
                steps[i] = np.where(move * last[i] < 0, steps[i] / 2, np.minimum(1.1 * steps[i], 1))
                values[i], last[i] = values[i] + steps[i] * move, move
        return model

    def bits(self, sets: SetBatch, positions: NDArray[np.int32]) -> Floats:
        """Give -log2 of the probability of each order (a row) of each set (a column)."""
        return self._sweep(sets, positions, [], [])

    def _sweep(
        self, sets: SetBatch, positions: NDArray[np.int32], seen: list[Floats], expected: list[Floats]
    ) -> Floats:
        pairs = (self.rows, self.columns, np.exp(self.weights))
        labels, context = (self.classes, np.exp(self.biases)), np.exp(self.context)
        nothing = (np.zeros(0), np.zeros(0), np.zeros((0, 0)))
        sums = (tuple(seen) or nothing, tuple(expected) or nothing)
        firsts = np.repeat(sets.starts[:-1], np.diff(sets.starts))
        bits = np.empty((len(positions), len(sets)))
        for row, order in zip(bits, sets.ids[firsts + positions].astype(np.int64), strict=True):
            _compiled_sweep()(order, sets.starts, pairs, labels, context, len(seen) > 0, *sums, row)
        return bits


def _classes(counts: Floats) -> Ints:
    """Cut the labels, from frequent to rare, into bands that occur equally often."""
    order = np.argsort(-counts, kind="stable")
    n_seen = np.count_nonzero(counts)
    middle = np.cumsum(counts[order]) - counts[order] / 2
    bands = np.arange(len(counts)) if n_seen <= _N_CLASSES else (middle / counts.sum() * _N_CLASSES).astype(np.int64)
    classes = np.empty(len(counts), np.int64)
    classes[order] = np.minimum(bands, _N_CLASSES - 1)
    return classes


def _neighbours(sets: SetBatch, n_labels: int) -> tuple[Ints, Ints, Floats]:
    """Find the pairs of labels that occur together more or less often than chance, by first label.

    With each comes the share of its count to reckon with: of what pairs seen once (twice, ...) in one half of the sets
    have over chance, so much comes back in the other half. Of independent labels, that is next to nothing.
    """
    trust = _trust(sets, n_labels)
    pairs, n_both, chance = _strong_pairs(sets, n_labels)
    share = (chance + trust[np.minimum(n_both, _MANY)] * (n_both - chance)) / n_both
    kept = np.abs(np.log2(share * n_both / chance)) > _MIN_LIFT
    low, high = (pairs[kept] >> SHIFT).astype(np.int64), (pairs[kept] & LOW).astype(np.int64)
    first, then, share = np.concatenate([low, high]), np.concatenate([high, low]), np.tile(share[kept], 2)
    order = np.lexsort((then, first))
    rows = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=n_labels))])
    return rows, then[order], share[order]


def _strong_pairs(sets: SetBatch, n_labels: int) -> tuple[Keys, Ints, Floats]:
    """Give the pairs that chance does not explain, how often each occurs, and how often it would by chance."""
    pairs, n_both = _pairs(sets)
    chance = _chance(sets, pairs, n_labels)
    strong = 2 * (n_both * np.log(n_both / chance) - n_both + chance) > _MIN_EVIDENCE
    return pairs[strong], n_both[strong], chance[strong]


def _chance(sets: SetBatch, pairs: Keys, n_labels: int) -> Floats:
    counts = np.bincount(sets.ids, minlength=n_labels).astype(float)
    sizes = np.diff(sets.starts)
    per_pair = np.sum(sizes * (sizes - 1.0)) / max(np.sum(sizes), 1) ** 2.0
    chance: Floats = counts[(pairs >> SHIFT).astype(np.int64)] * counts[(pairs & LOW).astype(np.int64)] * per_pair
    return chance


def _trust(sets: SetBatch, n_labels: int) -> Floats:
    again, before = np.zeros(_MANY + 1), np.zeros(_MANY + 1)
    is_even = np.arange(len(sets)) % 2 == 0
    for chosen in (is_even, ~is_even):
        here, there = _take(sets, chosen), _take(sets, ~chosen)
        pairs, n_both, chance = _strong_pairs(here, n_labels)
        chance_there = _chance(there, pairs, n_labels)
        excess, excess_there = n_both - chance, _look_up(*_pairs(there), pairs) - chance_there
        group = np.minimum(n_both, _MANY)
        again += np.bincount(group, np.sign(excess) * excess_there, _MANY + 1)
        before += np.bincount(group, np.abs(excess) * chance_there / chance, _MANY + 1)
    share: Floats = np.clip(again / np.maximum(before, 1), 0, 1)
    return share


def _sweep(  # noqa: C901 - a compiled loop that is cut up pays for each call
    order: Ints,
    starts: Ints,
    pairs: tuple[Ints, Ints, Floats],
    labels: tuple[Ints, Floats],
    context: Floats,
    learns: bool,
    seen: tuple[Floats, Floats, Floats],
    expected: tuple[Floats, Floats, Floats],
    bits: Floats,
) -> None:
    """Go through sequences of labels: give the bits of each and, where it learns, what was seen and expected.

    Labels that the written ones have no weight for are dealt with in one sum for each class.
    """
    rows, columns, lifts = pairs
    classes, odds = labels
    seen_pairs, seen_labels, seen_context = seen
    expected_pairs, expected_labels, expected_context = expected
    n_labels, n_classes = len(odds), context.shape[1]
    total = np.zeros(n_classes)  # of the odds of all labels, by class
    for y in range(n_labels):
        total[classes[y]] += odds[y]
    # The labels that are written, or next, or that a written one has a weight for, each in a slot of its own.
    slots, near, band = np.full(n_labels, -1), np.empty(n_labels, np.int64), np.empty(n_labels, np.int64)
    odd, lift, chance, gain = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    far, mass, factor, base = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes), np.zeros(n_classes)
    for at in range(len(starts) - 1):
        bits[at], n_near, last, low, high = 0.0, 0, n_classes, 0, 0
        far[:] = total
        for i in range(starts[at], starts[at + 1]):
            y = order[i]
            for e in range(low, high + 1):
                x = columns[e] if e < high else y
                if slots[x] < 0:
                    slots[x], near[n_near], band[n_near], odd[n_near] = n_near, x, classes[x], odds[x]
                    lift[n_near], gain[n_near], n_near = 1.0, 0.0, n_near + 1
                    far[classes[x]] -= odds[x]
                if e < high:
                    lift[slots[x]] *= lifts[e]
            left, after, whole = starts[at + 1] - i, MAX_SIZE + 1 + last, 0.0
            for c in range(n_classes):
                factor[c] = context[left, c] * context[after, c]
                mass[c] = factor[c] * max(far[c], 0.0)
                whole += mass[c]
            for j in range(n_near):
                chance[j] = factor[band[j]] * odd[j] * lift[j]
                whole += chance[j]
            share = 1 / whole
            bits[at] -= np.log2(chance[slots[y]] * share)
            if learns:
                seen_labels[y] += 1
                seen_context[left, classes[y]] += 1
                seen_context[after, classes[y]] += 1
                for j in range(n_near):
                    mass[band[j]] += chance[j]
                    gain[j] += share * (chance[j] - factor[band[j]] * odd[j])
                for c in range(n_classes):
                    base[c] += share * factor[c]
                    expected_context[left, c] += share * mass[c]
                    expected_context[after, c] += share * mass[c]
                for k in range(starts[at], i):
                    for e in range(rows[order[k]], rows[order[k] + 1]):
                        expected_pairs[e] += share * chance[slots[columns[e]]]
                        if columns[e] == y:
                            seen_pairs[e] += 1
            lift[slots[y]] = 0.0  # written, it does not come again
            last, low, high = classes[y], rows[y], rows[y + 1]
        for j in range(n_near):
            slots[near[j]] = -1
            if learns:
                expected_labels[near[j]] += gain[j]
    if learns:
        for y in range(n_labels):
            expected_labels[y] += odds[y] * base[classes[y]]


@cache
def _compiled_sweep() -> Any:
    from numba import njit

    return njit(cache=True)(_sweep)
