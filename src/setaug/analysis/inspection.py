"""Inspection of label sets before training: statistics, the label graph, and whether order will help."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import factorial, log2, nan
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from setaug.analysis.diagnosis import Diagnosis, diagnose
from setaug.engines.local import count_files
from setaug.examples import Columns, Data, LabelSets, Skipped, make_examples
from setaug.orders.arrays import Floats, Ints, SetBatch
from setaug.orders.edges import Thresholds
from setaug.orders.graph import Edge, OrderGraph, strongest_edges
from setaug.orders.orderings import TopologicalOrdering
from setaug.orders.statistics import LabelStatistics
from setaug.settings import Progress
from setaug.vocabulary import warn_of_joined

_SHOWN = 10
_MAX_DIAGNOSED = 20_000
_EXAMPLES, _MAX_EXAMPLE, _CANDIDATES = 4, 6, 100
"""The number of example sets, their maximum size, and the number of candidates."""
Batches: TypeAlias = Callable[[], Iterator[SetBatch]]


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The result of an inspection of label sets."""

    n_sets: int
    n_labels: int
    """The number of distinct labels."""
    n_repeated: int
    """The number of duplicate labels within a set, which were merged."""
    sizes: dict[int, int]
    """The number of sets by size."""
    top_labels: list[tuple[str, int]]
    """The most frequent labels, with the number of sets that contain each."""
    n_once: int
    """The number of labels that occur in one set only."""
    n_edges: int
    """The number of edges of the label graph: label pairs with a fixed order."""
    n_pairs: int
    """The number of label pairs that co-occur in some set."""
    n_constrained_sets: int
    """The number of sets with an edge."""
    n_set_pairs: int
    """The number of label pairs over all sets, with repetitions."""
    n_constrained_pairs: int
    """The number of label pairs over all sets that have a fixed order."""
    mean_log2_orders: float
    """The mean log2 of the number of orders that a set allows."""
    mean_log2_all_orders: float
    """The mean log2 of the number of all orders of a set."""
    thresholds: Thresholds
    top_edges: list[Edge]
    """The edges whose labels co-occur most often."""
    example_sets: list[tuple[str, ...]]
    """A few small, dissimilar sets that the graph constrains most."""
    statistics: LabelStatistics
    diagnosis: Diagnosis | None = None
    skipped: Skipped = field(default_factory=Skipped)

    @property
    def mean_size(self) -> float:
        """The mean number of labels in a set."""
        return sum(size * n for size, n in self.sizes.items()) / self.n_sets if self.n_sets else nan

    def graph(self, labels: Iterable[str] | None = None, *, top: int = 30) -> OrderGraph:
        """Return the order graph of one set, or of the most frequent edges of the label space."""
        if labels is not None:
            return OrderGraph.of_set(labels, self.statistics, self.thresholds)
        return OrderGraph.of_space(self.statistics, self.thresholds, top=top)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the counts, for JSON."""
        names = [name for name in self.__dataclass_fields__ if name not in ("statistics", "diagnosis", "skipped")]
        result = {name: getattr(self, name) for name in names}
        return result | {
            "thresholds": {"min_pmi": float(self.thresholds.min_pmi), "min_ratio": float(self.thresholds.min_ratio)},
            "sizes": {str(size): n for size, n in self.sizes.items()},
            "mean_size": self.mean_size if self.n_sets else None,
            "top_edges": [asdict(edge) for edge in self.top_edges],
            "skipped": self.skipped.count,
            "diagnosis": self.diagnosis.to_dict() if self.diagnosis else None,
        }


def inspect_examples(
    data: Data | Iterable[str],
    labels: LabelSets | None = None,
    *,
    columns: Columns | None = None,
    thresholds: Thresholds | None = None,
    with_diagnosis: bool = True,
    seed: int = 0,
) -> Inspection:
    """Inspect examples, rows or a table; or texts and their label sets. See `SetAugmenter.augment`."""
    statistics = LabelStatistics()
    sets = [example.labels for example in make_examples(data, labels, columns)]
    statistics.update(sets)
    warn_of_joined(statistics.labels)
    batch = SetBatch.of([statistics.ids[label] for label in labels] for labels in sets)
    return _inspect(statistics, lambda: iter([batch]), thresholds, with_diagnosis, seed, 0, Skipped())


def inspect_file(
    source: str | Path | Iterable[str | Path],
    *,
    thresholds: Thresholds | None = None,
    columns: Columns | None = None,
    kind: str | None = None,
    skip_bad: bool = False,
    with_diagnosis: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Inspection:
    """Inspect the examples of a file or of several; see `augment_files` for the parameters."""
    skipped = Skipped()
    with count_files(
        source, columns=columns, kind=kind, skipped=skipped if skip_bad else None, progress=progress
    ) as counted:
        return _inspect(
            counted.statistics(), counted.batches, thresholds, with_diagnosis, seed, counted.n_repeated, skipped
        )


def _inspect(
    statistics: LabelStatistics,
    batches: Batches,
    thresholds: Thresholds | None,
    with_diagnosis: bool,
    seed: int,
    n_repeated: int,
    skipped: Skipped,
) -> Inspection:
    thresholds = thresholds or Thresholds()
    counts = statistics.counts
    edges = statistics.edges(thresholds)
    ordering = TopologicalOrdering(edges)
    sizes: Ints = np.zeros(1, np.int64)
    n_constrained = n_edges = 0
    log2_orders = []
    candidates: dict[tuple[int, ...], float] = {}
    for batch in batches():
        found = np.bincount(batch.sizes, minlength=len(sizes))
        found[: len(sizes)] += sizes
        sizes = found
        orders = ordering.orders(batch, 0, seed=seed, first_index=0)
        n_constrained += int(np.count_nonzero(orders.n_edges))
        n_edges += int(orders.n_edges.sum())
        log2_orders.append(orders.log2_orders)
        candidates = _most_decided(candidates, batch, orders.log2_orders)
    n_sets = statistics.n_sets
    all_sizes = np.arange(len(sizes))
    log2_factorials = np.cumsum(np.log2(np.maximum(all_sizes, 1)))
    return Inspection(
        n_sets=n_sets,
        n_labels=int(np.count_nonzero(counts)),
        n_repeated=n_repeated,
        sizes={int(size): int(sizes[size]) for size in np.flatnonzero(sizes)},
        top_labels=statistics.most_common(_SHOWN),
        n_once=int(np.count_nonzero(counts == 1)),
        n_edges=len(edges.keys),
        n_pairs=len(statistics.pairs[0]),
        n_constrained_sets=n_constrained,
        n_set_pairs=int((sizes * all_sizes * (all_sizes - 1) // 2).sum()),
        n_constrained_pairs=n_edges,
        mean_log2_orders=float(np.nanmean(np.concatenate(log2_orders))) if n_sets else 0.0,
        mean_log2_all_orders=float((sizes * log2_factorials).sum() / n_sets) if n_sets else 0.0,
        thresholds=thresholds,
        top_edges=list(islice(strongest_edges(statistics, thresholds), _SHOWN)),
        example_sets=_different_sets(candidates, statistics.labels),
        statistics=statistics,
        diagnosis=_diagnose(statistics, batches, thresholds, seed) if with_diagnosis else None,
        skipped=skipped,
    )


def _most_decided(
    best: dict[tuple[int, ...], float], batch: SetBatch, log2_orders: Floats
) -> dict[tuple[int, ...], float]:
    """Return the sets whose graph allows the smallest fraction of all orders, with the log2 of that fraction."""
    sizes = batch.sizes
    small = np.flatnonzero((sizes > 1) & (sizes <= _MAX_EXAMPLE))
    shares = log2_orders[small] - np.array([log2(factorial(n)) for n in range(_MAX_EXAMPLE + 1)])[sizes[small]]
    worst = max(best.values()) if len(best) == _CANDIDATES else 0.0
    promising = np.flatnonzero((shares < worst) & (shares < -0.5))  # one edge allows at most half of them
    seen = {frozenset(ids) for ids in best}
    for at in promising[np.argsort(shares[promising], kind="stable")].tolist():
        ids = tuple(batch.ids[batch.starts[small[at]] : batch.starts[small[at] + 1]].tolist())
        if frozenset(ids) not in seen:
            seen.add(frozenset(ids))
            best[ids] = float(shares[at])
            if len(seen) == 2 * _CANDIDATES:
                break
    return dict(sorted(best.items(), key=lambda found: found[1])[:_CANDIDATES])


def _different_sets(candidates: Iterable[tuple[int, ...]], labels: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the first few sets that share at most a third with each other."""
    chosen: list[tuple[int, ...]] = []
    for ids in candidates:
        if len(chosen) < _EXAMPLES and all(3 * len({*ids} & {*other}) <= len(ids) for other in chosen):
            chosen.append(ids)
    return [tuple(labels[at] for at in ids) for ids in chosen]


def _diagnose(statistics: LabelStatistics, batches: Batches, thresholds: Thresholds, seed: int) -> Diagnosis:
    """Measure whether order will help, on all sets or on a random sample."""
    n_sets = statistics.n_sets
    chosen = np.ones(n_sets, np.bool_)
    if n_sets > _MAX_DIAGNOSED:
        chosen[:] = False
        chosen[np.random.default_rng(seed).choice(n_sets, _MAX_DIAGNOSED, replace=False)] = True
    labels = statistics.labels
    sets = []
    first = 0
    for batch in batches():
        for which in np.flatnonzero(chosen[first : first + len(batch)]):
            ids = batch.ids[batch.starts[which] : batch.starts[which + 1]]
            sets.append([labels[at] for at in ids])
        first += len(batch)
    return diagnose(sets, thresholds=thresholds, seed=seed)
