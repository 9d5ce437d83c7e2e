"""A job, the steps of its run, and the report: the protocol between `augment_files` and the engines."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines.fast.blocks import BlockReader
from setaug.engines.fast.label_table import LabelTable
from setaug.engines.fast.pair_writer import PairWriter
from setaug.engines.sources import SourceFile
from setaug.examples import Columns, Skipped
from setaug.orders.arrays import Ints
from setaug.orders.orderings import OrderBatch
from setaug.orders.pair_counts import SpillingPairCounts
from setaug.settings import Progress

_NOTED = ("n_edges", "n_constrained", "log2_orders", "n_uncounted", "n_rushed")


@dataclass(kw_only=True)
class AugmentReport:
    """What was read and written."""

    n_examples: int = 0
    n_labels: int = 0
    """Distinct labels."""
    n_pairs: int = 0
    """Prompt-completion pairs written."""
    n_repeated: int = 0
    """Repeated labels within a set, which were merged."""
    n_edges: int = 0
    """Edges over all sets."""
    n_constrained: int = 0
    """Sets with an edge."""
    log2_orders: float = 0.0
    """Sum of the log2 of the number of orders allowed, over the sets for which it was counted."""
    n_uncounted: int = 0
    """Sets whose graph is too large to count its orders."""
    n_rushed: int = 0
    """Sets too large for uniform sampling, sampled by the quick sampler."""
    joined: tuple[str, str] | None = None
    """A label that looks like several labels in one, and their separator, if most labels do."""
    skipped: Skipped = field(default_factory=Skipped)
    seconds: float = 0.0

    @property
    def mean_log2_orders(self) -> float:
        """Mean log2 of the number of orders that a set allows."""
        n_counted = self.n_examples - self.n_uncounted
        return self.log2_orders / n_counted if n_counted else 0.0

    def notes(self) -> dict[str, int | float]:
        """Return the counts that `note` adds to."""
        return {name: getattr(self, name) for name in _NOTED}

    def add(self, notes: dict[str, int | float]) -> None:
        """Add the notes of another report."""
        for name in _NOTED:
            setattr(self, name, getattr(self, name) + notes[name])

    def note(self, orders: OrderBatch) -> None:
        """Add the statistics of a batch of orders."""
        self.n_edges += int(orders.n_edges.sum())
        self.n_constrained += int(np.count_nonzero(orders.n_edges))
        self.n_rushed += orders.n_rushed
        self.n_uncounted += int(np.isnan(orders.log2_orders).sum())
        self.log2_orders += float(np.nansum(orders.log2_orders))


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What to read, how to augment it, and where to write it."""

    files: Sequence[SourceFile]
    target: str
    augmenter: SetAugmenter
    columns: Columns
    pair_format: PairFormat
    carry: Sequence[str] = ()
    skip_bad: bool = False
    shards: int | None = None
    """The number of files to write; None leaves it to the engine."""

    def reader(self, file: SourceFile, skipped: Skipped | None, *, is_plain: bool = False) -> BlockReader:
        """Return a reader for a file."""
        return BlockReader(
            name=file.name,
            kind=file.kind,
            columns=self.columns,
            carry=self.carry,
            skipped=skipped,
            is_plain=is_plain,
        )


class Run(Protocol):
    """The steps of a job, in this order."""

    def count_labels(self, report: AugmentReport) -> LabelTable:
        """Read all files once, and report what was read."""
        ...

    def count_pairs(self, table: LabelTable, bounds: Ints, cap: float, pairs: SpillingPairCounts) -> None:
        """Count the label pairs whose edge the counts alone do not decide; see `kernels.undecided_keys`."""
        ...

    def write(self, table: LabelTable, pair_writer: PairWriter, report: AugmentReport) -> None:
        """Write the pairs of all examples, and report the sampled orders."""
        ...


class Engine(Protocol):
    """Where a job runs."""

    def start(self, job: Job, progress: Progress | None) -> AbstractContextManager[Run]:
        """Prepare a run; its temporary files and processes end with the context."""
        ...


def check_positive(name: str, value: int | None) -> None:
    """Raise unless a number is None or a positive integer."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
