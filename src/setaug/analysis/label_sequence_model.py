"""A small model of label sequences: cheap to fit, smoothed, and quick to learn rules of order.

It is log-linear: the next label is y with probability proportional to

    exp(bias[y] + context[labels left, class of y] + context[class of last label, class of y] + sum of weight[h, y])

with a sum over the labels h already written, which cannot occur again. Classes are bands of label frequency, so that
"rare labels first" is quick to learn; weights exist for label pairs that co-occur more or less often than by chance.
Mixtures of n-grams cannot express that a label will *not* come yet, and so penalize every order with a rule.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.orders.arrays import Floats, Ints, Keys, SetBatch, unpack_keys

MAX_SIZE = 16
"""The maximum set size: the orders of larger sets cannot always be counted."""

_N_CLASSES = 16
_MAX_PASSES = 30
_MIN_PROGRESS = 0.01  # in bits per label: fitting stops after a pass that saves less
_MIN_EVIDENCE = 8.0  # twice the log-likelihood ratio against chance: by chance, 1 label pair in 200 has more
_MANY = 4  # label pairs with this count or more are trusted alike
_MIN_LIFT = 0.25  # in bits: a label pair closer to chance has no weight
_PAIR_PRIOR, _BIAS_PRIOR, _CONTEXT_PRIOR = 1.0, 0.05, 1.0  # in observations


def count_pairs(sets: SetBatch) -> tuple[Keys, Ints]:
    """Return the label pairs as sorted keys, and the number of sets that contain each."""
    from setaug.orders.kernels import pair_keys

    return np.unique(pair_keys(sets.starts, sets.ids), return_counts=True)


def look_up(pairs: Keys, n_both: Ints, wanted: Keys) -> Ints:
    """Return the number of sets that contain each of the given label pairs."""
    found = np.searchsorted(pairs, wanted)
    beyond = np.iinfo(np.uint64).max  # no key
    return np.where(np.append(pairs, beyond)[found] == wanted, np.append(n_both, 0)[found], 0)


@dataclass(frozen=True, slots=True)
class LabelSequenceModel:
    """Predicts the next label from the labels written so far and the number of labels left."""

    rows: Ints
    """The label pairs with a weight, by first label: those of label h are ``rows[h]`` to ``rows[h + 1]``."""
    columns: Ints
    """The second label of each of these pairs."""
    classes: Ints
    """The frequency band of each label."""
    weights: Floats
    biases: Floats
    context: Floats
    """The gain of each class: a row per number of labels left, then one per class of the last label."""

    @classmethod
    def fit(cls, sets: SetBatch, positions: NDArray[np.int32], n_labels: int) -> "LabelSequenceModel":
        """Fit the model on orders of sets, by iterative scaling.

        Each pass moves each parameter by the log of observed over expected counts (both with a prior that pulls to
        independence), in a step that halves when the sign changes or the cost rises.
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
        """Return -log2 of the probability of each order (a row) of each set (a column)."""
        return self._sweep(sets, positions, [], [])

    def _sweep(
        self, sets: SetBatch, positions: NDArray[np.int32], seen: list[Floats], expected: list[Floats]
    ) -> Floats:
        pairs = (self.rows, self.columns, np.exp(self.weights))
        labels, context = (self.classes, np.exp(self.biases)), np.exp(self.context)
        nothing = (np.zeros(0), np.zeros(0), np.zeros((0, 0)))
        sums = (tuple(seen) or nothing, tuple(expected) or nothing)
        bits = np.empty((len(positions), len(sets)))
        for row, order in zip(bits, sets.ids[sets.first_positions + positions].astype(np.int64), strict=True):
            _compiled_sweep()(order, sets.starts, pairs, labels, context, len(seen) > 0, *sums, row)
        return bits


def _classes(counts: Floats) -> Ints:
    """Return a band for each label, from frequent to rare; all bands occur equally often."""
    order = np.argsort(-counts, kind="stable")
    n_seen = np.count_nonzero(counts)
    middle = np.cumsum(counts[order]) - counts[order] / 2
    bands = np.arange(len(counts)) if n_seen <= _N_CLASSES else (middle / counts.sum() * _N_CLASSES).astype(np.int64)
    classes = np.empty(len(counts), np.int64)
    classes[order] = np.minimum(bands, _N_CLASSES - 1)
    return classes


def _neighbours(sets: SetBatch, n_labels: int) -> tuple[Ints, Ints, Floats]:
    """Return the label pairs that co-occur more or less often than by chance, by first label.

    Also return the fraction of each count to trust: the excess over chance that label pairs seen once (twice, ...) in
    one half of the sets still have in the other half. For independent labels it is close to zero.
    """
    trust = _trust(sets, n_labels)
    pairs, n_both, chance = _strong_pairs(sets, n_labels)
    share = (chance + trust[np.minimum(n_both, _MANY)] * (n_both - chance)) / n_both
    kept = np.abs(np.log2(share * n_both / chance)) > _MIN_LIFT
    low, high = unpack_keys(pairs[kept])
    first, then, share = np.concatenate([low, high]), np.concatenate([high, low]), np.tile(share[kept], 2)
    order = np.lexsort((then, first))
    rows = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=n_labels))])
    return rows, then[order], share[order]


def _strong_pairs(sets: SetBatch, n_labels: int) -> tuple[Keys, Ints, Floats]:
    """Return the label pairs that chance does not explain, their counts, and their counts by chance."""
    pairs, n_both = count_pairs(sets)
    chance = _chance(sets, pairs, n_labels)
    strong = 2 * (n_both * np.log(n_both / chance) - n_both + chance) > _MIN_EVIDENCE
    return pairs[strong], n_both[strong], chance[strong]


def _chance(sets: SetBatch, pairs: Keys, n_labels: int) -> Floats:
    counts = np.bincount(sets.ids, minlength=n_labels).astype(float)
    sizes = sets.sizes.astype(float)
    per_pair = float(np.sum(sizes * (sizes - 1))) / max(float(np.sum(sizes)), 1.0) ** 2
    low, high = unpack_keys(pairs)
    chance: Floats = counts[low] * counts[high] * per_pair
    return chance


def _trust(sets: SetBatch, n_labels: int) -> Floats:
    again, before = np.zeros(_MANY + 1), np.zeros(_MANY + 1)
    is_even = np.arange(len(sets)) % 2 == 0
    for chosen in (is_even, ~is_even):
        here, there = sets.select(chosen), sets.select(~chosen)
        pairs, n_both, chance = _strong_pairs(here, n_labels)
        chance_there = _chance(there, pairs, n_labels)
        excess, excess_there = n_both - chance, look_up(*count_pairs(there), pairs) - chance_there
        group = np.minimum(n_both, _MANY)
        again += np.bincount(group, np.sign(excess) * excess_there, _MANY + 1)
        before += np.bincount(group, np.abs(excess) * chance_there / chance, _MANY + 1)
    share: Floats = np.clip(again / np.maximum(before, 1), 0, 1)
    return share


def _sweep(  # noqa: C901 - splitting a compiled loop costs a call per step
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
    """Fill the bits of each sequence of labels and, when learning, the observed and expected counts.

    Labels for which the written ones have no weight are handled by one sum per class.
    """
    rows, columns, lifts = pairs
    classes, odds = labels
    seen_pairs, seen_labels, seen_context = seen
    expected_pairs, expected_labels, expected_context = expected
    n_labels, n_classes = len(odds), context.shape[1]
    total = np.zeros(n_classes)  # of the odds of all labels, by class
    for y in range(n_labels):
        total[classes[y]] += odds[y]
    # Each label that is written, or next, or that a written one has a weight for, has a slot.
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
            lift[slots[y]] = 0.0  # written labels do not occur again
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

    return njit(cache=True, nogil=True)(_sweep)
