"""Count and augment files on one machine, in two passes: memory grows with the labels, not with the examples.

The first pass finds and numbers the labels and leaves the sets, as numbers, in a temporary file. What the counts do
not decide about an edge is looked up there: a pair of one of these sets occurs at least once, so its edge is certain
where one occurrence is enough, and only the other pairs have to be counted. The second pass reads the files again and
copies each text, as it is written there, next to the labels in their new orders.
"""

import itertools
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from setaug.engines.blocks import Block, BlockReader
from setaug.engines.jobs import AugmentReport, Job, Progress
from setaug.engines.labels import LabelTable
from setaug.engines.rewriting import Rewriter
from setaug.engines.shards import Shards
from setaug.engines.sources import SourceFile, find_files
from setaug.engines.spill import Spill
from setaug.engines.threads import read_ahead
from setaug.engines.writers import open_rows
from setaug.examples import Columns, Skipped
from setaug.files import open_again
from setaug.orders.edges import Ints
from setaug.orders.pairs import SpillingPairCounts
from setaug.orders.statistics import LabelStatistics, SetBatch

_SPILL_IN_MEMORY = 1 << 25
"""The first pass leaves so many bytes in memory before it starts a file (32 MB)."""


class LocalEngine:
    """Run a job on this machine, with one thread that computes, one that reads and one that writes."""

    @contextmanager
    def start(self, job: Job, progress: Progress | None) -> Iterator["LocalRun"]:
        """Open the sources, and a temporary file."""
        with _reading(job.files) as files, tempfile.SpooledTemporaryFile(_SPILL_IN_MEMORY) as spill:
            yield LocalRun(job, files, Spill(cast(BinaryIO, spill)), progress)


@dataclass(frozen=True, slots=True)
class LocalRun:
    """Do the steps of a job."""

    job: Job
    files: "_Files"
    spill: Spill
    progress: Progress | None

    def count_labels(self, report: AugmentReport) -> LabelTable:
        """Read everything once, and keep the sets as numbers."""
        readers = [self.job.reader(file, report.skipped if self.job.skip_bad else None) for file in self.job.files]
        table, report.n_examples, report.n_repeated = _number(self.files, readers, self.spill, self.progress)
        return table

    def count_pairs(self, table: LabelTable, bounds: Ints, cap: float, pairs: SpillingPairCounts) -> None:
        """Look through the sets."""
        from setaug.orders.kernels import undecided_keys

        for batch in self.spill.batches():
            pairs.add(undecided_keys(batch.starts, batch.ids, bounds, cap))

    def write(self, table: LabelTable, rewriter: Rewriter, report: AugmentReport) -> None:
        """Read everything again, and write the pairs."""
        job, done = self.job, 0
        n_shards = job.shards or 1
        ends = [report.n_examples * (k + 1) // n_shards for k in range(n_shards)]
        shards = nullcontext([job.target]) if job.shards is None else Shards(job.target, job.shards).written()
        with (
            shards as paths,
            self.files.again() as stream,
            read_ahead(_cut(self.spill.blocks(stream), ends)) as blocks,
        ):
            for path, end in zip(paths, ends, strict=True):
                with open_rows(path, job.pair_format, job.carry) as write:
                    while done < end:
                        block, batch = next(blocks)
                        lines, orders = rewriter.pairs(block, batch, done)
                        write(lines)
                        report.note(orders)
                        done += len(batch)
                        if self.progress:
                            self.progress("writing", done, report.n_examples)


@dataclass(frozen=True, slots=True)
class CountedFiles:
    """Hold the label sets of files as numbers, and the counts of their labels."""

    table: LabelTable
    spill: Spill
    n_sets: int
    n_repeated: int

    def batches(self) -> Iterator[SetBatch]:
        """Give the label sets; a label's id is its place in `statistics`."""
        places = np.cumsum(self.table.counts > 0) - 1  # further spellings of a label are never counted
        for batch in self.spill.batches():
            yield SetBatch(batch.starts, places[batch.ids].astype(np.int32))

    def statistics(self) -> LabelStatistics:
        """Count all pairs."""
        labels = [self.table.label(number) for number in np.flatnonzero(self.table.counts).tolist()]
        nothing = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        statistics = LabelStatistics.from_counts(0, labels, np.zeros(len(labels), np.int64), *nothing)
        for batch in self.batches():
            statistics.add(batch)
        return statistics


@contextmanager
def count_files(
    source: str | Path | Iterable[str | Path],
    *,
    columns: Columns | None = None,
    kind: str | None = None,
    skipped: Skipped | None = None,
    progress: Progress | None = None,
) -> Iterator[CountedFiles]:
    """Read the label sets of a file, or of several; they stay readable within the context."""
    files = find_files(source, kind)
    readers = [BlockReader(name=f.name, kind=f.kind, columns=columns or Columns(), skipped=skipped) for f in files]
    with _reading(files) as opened, tempfile.SpooledTemporaryFile(_SPILL_IN_MEMORY) as file:
        spill = Spill(cast(BinaryIO, file))
        table, n_sets, n_repeated = _number(opened, readers, spill, progress)
        yield CountedFiles(table, spill, n_sets, n_repeated)


@contextmanager
def _reading(files: Sequence[SourceFile]) -> Iterator["_Files"]:
    with ExitStack() as stack:
        openers = [stack.enter_context(open_again(file.path)) for file in files]
        yield _Files(openers, [file.kind for file in files])


@dataclass(frozen=True, slots=True)
class _Files:
    """Open files from their starts, each time one is asked for."""

    openers: Sequence[Any]
    kinds: Sequence[str]

    @contextmanager
    def again(self) -> Iterator[BinaryIO]:
        """Open those that are read again, JSON lines, as if they were one."""
        stream = _Chain(opener for opener, kind in zip(self.openers, self.kinds, strict=True) if kind == "jsonl")
        try:
            yield cast(BinaryIO, stream)
        finally:
            stream.close()


class _Chain:
    """Read files one behind the other."""

    def __init__(self, openers: Iterator[Any]) -> None:
        self._openers = openers
        self._opened = ExitStack()
        self._stream: Any = None

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer as far as the file goes that is being read; give the number of bytes, zero at the end."""
        while True:
            if self._stream is not None and (n_read := self._stream.readinto(buffer)):
                return int(n_read)
            self.close()
            if (opener := next(self._openers, None)) is None:
                return 0
            self._stream = self._opened.enter_context(opener())

    def close(self) -> None:
        """Close the file that is being read."""
        self._stream = None
        self._opened.close()


def _number(
    files: _Files, readers: Sequence[BlockReader], spill: Spill, progress: Progress | None
) -> tuple[LabelTable, int, int]:
    """Give the labels of all files, and how many sets and repeated labels there are; keep the sets."""
    table = LabelTable()
    n_sets = n_repeated = 0
    for opener, reader in zip(files.openers, readers, strict=True):
        with opener() as stream, read_ahead(reader.read(stream)) as blocks:
            for block in blocks:
                batch, n_dropped = table.number_sets(block)
                spill.add(block, batch)
                n_sets += len(block)
                n_repeated += n_dropped
                if progress:
                    progress("reading", n_sets, None)
    table.finish()
    return table, n_sets, n_repeated


def _cut(blocks: Iterable[tuple[Block, SetBatch]], ends: Sequence[int]) -> Generator[tuple[Block, SetBatch]]:
    """Cut blocks so that each of the given numbers of rows ends one."""
    done = 0
    for block, batch in blocks:
        cuts = [0, *(end - done for end in sorted(set(ends)) if done < end < done + len(batch)), len(batch)]
        for start, end in itertools.pairwise(cuts):
            if end - start == len(batch):
                yield block, batch
            elif end > start:
                yield block.rows(start, end), batch.sets(start, end)
        done += len(batch)
