"""What an engine is asked to do, and what it reports.

Augmenting takes three steps: count the labels; count the pairs of labels whose order the labels' counts do not decide;
write the pairs of each example. An `Engine` says where these run; `augment_files` puts them together.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Protocol

import numpy as np

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines.blocks import BlockReader
from setaug.engines.labels import LabelTable
from setaug.engines.rewriting import Rewriter
from setaug.engines.sources import SourceFile, find_files
from setaug.engines.writers import check_rows
from setaug.examples import Columns, Skipped
from setaug.orders.edges import EdgeTable, Ints, edges_among, fixed
from setaug.orders.orderings import OrderBatch
from setaug.orders.pairs import SpillingPairCounts

Progress = Callable[[str, int, int | None], None]
"""Is told the stage, the number of examples done, and their total where it is known."""

_NOTED = ("n_edges", "n_constrained", "log2_orders", "n_uncounted", "n_rushed")


@dataclass(kw_only=True)
class AugmentReport:
    """Say what was read and written."""

    n_examples: int = 0
    n_labels: int = 0
    """Different labels."""
    n_pairs: int = 0
    """Prompt-completion pairs written."""
    n_repeated: int = 0
    """Labels that their set held already, and that were merged."""
    n_edges: int = 0
    """Edges over all sets."""
    n_constrained: int = 0
    """Sets with an edge."""
    log2_orders: float = 0.0
    """Sum of the log2 of the number of orders allowed, over the sets for which it was counted."""
    n_uncounted: int = 0
    """Sets whose graph is too large to count its orders."""
    n_rushed: int = 0
    """Sets that are so large that their orders were drawn the quick way."""
    skipped: Skipped = field(default_factory=Skipped)
    seconds: float = 0.0

    @property
    def mean_log2_orders(self) -> float:
        """Mean log2 of the number of orders that a set allows."""
        n_counted = self.n_examples - self.n_uncounted
        return self.log2_orders / n_counted if n_counted else 0.0

    def notes(self) -> dict[str, int | float]:
        """Give what `note` added."""
        return {name: getattr(self, name) for name in _NOTED}

    def add(self, notes: dict[str, int | float]) -> None:
        """Add what another report noted."""
        for name in _NOTED:
            setattr(self, name, getattr(self, name) + notes[name])

    def note(self, orders: OrderBatch) -> None:
        """Add what is known of some sets' orders."""
        self.n_edges += int(orders.n_edges.sum())
        self.n_constrained += int(np.count_nonzero(orders.n_edges))
        self.n_rushed += orders.n_rushed
        self.n_uncounted += int(np.isnan(orders.log2_orders).sum())
        self.log2_orders += float(np.nansum(orders.log2_orders))


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Say what to read, how to augment it, and where to write it."""

    files: Sequence[SourceFile]
    target: str
    augmenter: SetAugmenter
    columns: Columns
    pair_format: PairFormat
    carry: Sequence[str] = ()
    skip_bad: bool = False
    shards: int | None = None
    """In how many files to write the pairs; None leaves it to the engine."""

    def reader(self, file: SourceFile, skipped: Skipped | None) -> BlockReader:
        """Make what reads a file."""
        return BlockReader(name=file.name, kind=file.kind, columns=self.columns, carry=self.carry, skipped=skipped)


class Run(Protocol):
    """Do the steps of a job, one after the other."""

    def count_labels(self, report: AugmentReport) -> LabelTable:
        """Read everything once; note in the report what was read."""
        ...

    def count_pairs(self, table: LabelTable, bounds: Ints, cap: float, pairs: SpillingPairCounts) -> None:
        """Count the pairs of labels whose edge the counts alone do not decide; see `kernels.undecided_keys`."""
        ...

    def write(self, table: LabelTable, rewriter: Rewriter, report: AugmentReport) -> None:
        """Write the pairs of all examples; note in the report what was drawn."""
        ...


class Engine(Protocol):
    """Say where a job runs."""

    def start(self, job: Job, progress: Progress | None) -> AbstractContextManager[Run]:
        """Get ready; what only serves the run is gone when the context ends."""
        ...


def augment_files(
    sources: str | Path | Iterable[str | Path],
    target: str | Path,
    augmenter: SetAugmenter | None = None,
    *,
    columns: Columns | None = None,
    kind: str | None = None,
    pair_format: PairFormat | None = None,
    carry: Sequence[str] = (),
    skip_bad: bool = False,
    shards: int | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> AugmentReport:
    """Write the pairs of all examples in some files, as if these were one.

    Parameters
    ----------
    sources
        Files whose names tell their kind and compression, folders of such files, addresses of either
        (``s3://bucket/folder``); ``-`` is standard input.
    target
        The file to write, in a folder or behind an address. It appears once it is whole.
    augmenter
        How to augment. It need not be fitted: the orders rest on the labels of the sources.
    kind
        The kind of the sources, where their names do not tell.
    carry
        Fields of a row that its pairs shall have too; null where a row has no such field.
    skip_bad
        Whether to leave bad rows out, and count them, instead of stopping at the first.
    shards
        Write so many files instead of one: for ``pairs.jsonl``, ``pairs-00000-of-00008.jsonl`` and so on. One behind
        the other, they are the one file.
    engine
        Where to run: here (`LocalEngine`), or on Ray (`RayEngine`).

    """
    from setaug.engines.local import LocalEngine

    check_positive("shards", shards)
    augmenter = (augmenter or SetAugmenter()).check()
    job = Job(
        files=find_files(sources, kind),
        target=str(target),
        augmenter=augmenter,
        columns=columns or Columns(),
        pair_format=(pair_format or PairFormat()).check_carried(carry),
        carry=carry,
        skip_bad=skip_bad,
        shards=shards,
    )
    check_rows(target, job.pair_format)
    report = AugmentReport()
    start = perf_counter()
    with (engine or LocalEngine()).start(job, progress) as run:
        table = run.count_labels(report)
        report.n_labels = table.n_labels
        report.n_pairs = report.n_examples * (augmenter.n_orders + 1)
        labels = table.labels() if augmenter.ordering == "frequency" else []
        ordering = augmenter.make_ordering(labels, _find_edges(run, table, job, report.n_examples))
        run.write(table, Rewriter.of(augmenter, job.pair_format, carry, ordering, table), report)
    report.seconds = perf_counter() - start
    return report


def check_positive(name: str, value: int | None) -> None:
    """Raise if a number that was given is no whole one above zero."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} must be a whole number above zero, got {value!r}.")


def _find_edges(run: Run, table: LabelTable, job: Job, n_sets: int) -> EdgeTable:
    """Find the edges within these sets; between labels that share none of them, the result says nothing."""
    thresholds = job.augmenter.thresholds
    bounds, cap = thresholds.bounds(table.counts), thresholds.sure_cap(n_sets)
    fixed(bounds)
    with SpillingPairCounts() as pairs:
        if job.augmenter.ordering in ("topological", "reversed"):
            run.count_pairs(table, bounds, cap, pairs)
        return EdgeTable.joined(
            edges_among(keys, n_both, table.counts, n_sets, thresholds, cap=cap) for keys, n_both in pairs.parts()
        )
