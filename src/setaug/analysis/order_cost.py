"""The bits that held-out label sets cost under an ordering (paper, section 3.1).

For each ordering, a small model of label sequences is fitted on part of the sets, and the bits that it needs for each
of the other sets are compared. With an ordering q that is uniform over e orders, a set of size m costs (the negative
ELBO of section 3.1, given the size, which is written first)

    bits(set) = mean over q of -log2 p(order | m)  -  log2 e
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from setaug.analysis.label_sequence_model import MAX_SIZE, LabelSequenceModel, count_pairs, look_up
from setaug.orders.arrays import Floats, Ints, Mask, SetBatch
from setaug.orders.edges import EdgeTable, Thresholds, edges_among
from setaug.orders.orderings import make_ordering
from setaug.registry import BASELINE_ORDERING, ORDERINGS


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

    @property
    def share(self) -> float:
        """The difference as a fraction of the bits of random orders."""
        return self.difference / max(self.bits - self.difference, 1e-9)


@dataclass(frozen=True, slots=True)
class FoldedSets:
    """Label sets as ids, divided into folds."""

    sets: SetBatch
    labels: list[str]
    """The label of each id, sorted."""
    fold: Ints
    """The fold of each set. Folds are stratified by size, so that small datasets are split evenly."""
    n_folds: int
    seed: int

    @classmethod
    def of(cls, label_sets: Iterable[Iterable[str]], *, n_folds: int, max_sets: int, seed: int) -> "FoldedSets":
        """Encode label sets; with more than `max_sets` sets of two or more labels, a random sample."""
        sets = [set(members) for members in label_sets]
        n_orderable = sum(len(members) > 1 for members in sets)
        if n_orderable > max_sets:
            n_kept = len(sets) * max_sets // n_orderable
            kept = np.random.default_rng(seed).choice(len(sets), n_kept, replace=False)
            sets = [sets[at] for at in np.sort(kept)]
        labels = sorted(set().union(*sets))  # by name, so that the order within a set has no influence
        ids = {label: at for at, label in enumerate(labels)}
        batch = SetBatch.of(sorted(ids[label] for label in members) for members in sets)
        by_size = np.lexsort((np.random.default_rng(seed).random(len(batch)), batch.sizes))
        fold = np.empty(len(batch), np.int64)
        fold[by_size] = np.arange(len(batch)) % n_folds
        return cls(batch, labels, fold, n_folds, seed)

    def sample(self, max_sets: int) -> "FoldedSets":
        """Return at most about `max_sets` sets of two or more labels, in the same folds."""
        n_orderable = int(np.count_nonzero(self.sets.sizes > 1))
        if n_orderable <= max_sets:
            return self
        chosen = np.zeros(len(self.sets), np.bool_)
        n_kept = len(self.sets) * max_sets // n_orderable
        chosen[np.random.default_rng(self.seed).choice(len(self.sets), n_kept, replace=False)] = True
        return replace(self, sets=self.sets.select(chosen), fold=self.fold[chosen])

    def edges(self, thresholds: Thresholds) -> EdgeTable:
        """Return the label graph of all sets."""
        counts = np.bincount(self.sets.ids, minlength=len(self.labels))
        return edges_among(*count_pairs(self.sets), counts, len(self.sets), thresholds)

    @property
    def share_unseen(self) -> float:
        """The fraction of labels of held-out sets that occur in no set of the other folds."""
        fold, n_labels = np.repeat(self.fold, self.sets.sizes), len(self.labels)
        counts = np.bincount(fold * n_labels + self.sets.ids, minlength=self.n_folds * n_labels)
        counts = counts.reshape(self.n_folds, n_labels)
        return float(counts[counts == counts.sum(axis=0)].sum() / max(counts.sum(), 1))


@dataclass(frozen=True, slots=True)
class Costs:
    """The bits of each held-out set."""

    bits: dict[str, Floats]
    """The bits, by ordering."""
    n_edges: dict[str, Ints]
    """The number of edges, by ordering."""
    n_fit: int
    """The maximum number of sets that the models of one fold were fitted on."""
    n_held_out: int

    def scores(self, base: Floats | None = None, *, n_compared: int = 1) -> dict[str, OrderingScore]:
        """Return the mean bits by ordering, with the difference to the bits of random orders.

        With `n_compared` above 1, the intervals hold for that many comparisons at once (Bonferroni).
        """
        z = NormalDist().inv_cdf(1 - 0.025 / n_compared)
        base = self.bits[BASELINE_ORDERING] if base is None else base
        scores = {}
        for name, costs in self.bits.items():
            differences = costs - base
            mean, margin = differences.mean(), z * differences.std(ddof=1) / len(differences) ** 0.5
            values = (costs.mean(), mean, mean - margin, mean + margin)
            scores[name] = OrderingScore(*(float(value) for value in values))
        return scores


def measure(folded: FoldedSets, thresholds: Thresholds, names: Sequence[str], *, n_orders: int, enough: int) -> Costs:
    """Return the bits of held-out sets under some orderings: fold after fold, until `enough` sets are scored."""
    bits: Mapping[str, list[Floats]] = {name: [] for name in names}
    n_edges: Mapping[str, list[Ints]] = {name: [] for name in names}
    n_fit, n_held_out = 0, 0
    for held_out in range(folded.n_folds if len(folded.labels) > 1 else 0):
        split = split_sets(folded.sets, folded.fold != held_out, len(folded.labels), thresholds)
        if len(split.fitted) == 0 or len(split.held_out) == 0:
            continue
        n_fit, n_held_out = max(n_fit, len(split.fitted)), n_held_out + len(split.held_out)
        for name in names:
            rng = np.random.default_rng([folded.seed, held_out])
            costs, edges = _score(name, split, folded.labels, n_orders, rng)
            bits[name].append(costs)
            n_edges[name].append(edges)
        if n_held_out >= enough:
            break
    if not n_held_out:
        return Costs({}, {}, n_fit, 0)
    return Costs(
        {name: np.concatenate(found) for name, found in bits.items()},
        {name: np.concatenate(found) for name, found in n_edges.items()},
        n_fit,
        n_held_out,
    )


@dataclass(frozen=True, slots=True)
class Split:
    """The sets of one fold, and the edges that order them."""

    fitted: SetBatch
    held_out: SetBatch
    edges: EdgeTable
    held_out_edges: EdgeTable


def split_sets(sets: SetBatch, is_fitted: Mask, n_labels: int, thresholds: Thresholds) -> Split:
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
    return Split(
        fitted,
        held_out,
        edges_among(pairs, n_both, counts, len(counted), thresholds),
        edges_among(own_pairs, own_both, counts + 1, len(counted) + 1, thresholds),
    )


def _comparable(sets: SetBatch) -> SetBatch:
    return sets.select((sets.sizes >= 2) & (sets.sizes <= MAX_SIZE))


def _score(name: str, split: Split, labels: list[str], n_orders: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Fit a model on orders of the fitted sets; return the bits and the number of edges of each held-out set."""
    n_orders = 1 if ORDERINGS[name].is_deterministic else n_orders
    fit_seed, score_seed = rng.integers(1 << 62, size=2).tolist()
    ordering = make_ordering(name, labels=labels, edges=split.edges)
    orders = ordering.orders(split.fitted, n_orders, seed=fit_seed, first_index=0)
    model = LabelSequenceModel.fit(split.fitted, orders.positions, len(labels))
    ordering = make_ordering(name, labels=labels, edges=split.held_out_edges)
    orders = ordering.orders(split.held_out, n_orders, seed=score_seed, first_index=0)
    return model.bits(split.held_out, orders.positions).mean(axis=0) - orders.log2_orders, orders.n_edges
