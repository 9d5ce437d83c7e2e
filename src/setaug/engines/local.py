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
from dataclasses import dataclass, field
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
        if job.shards is not None:
            Shards(job.target, job.shards).check()
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
        yield _Files([stack.enter_context(open_again(file.path)) for file in files])


@dataclass(frozen=True, slots=True)
class _Files:
    """Open files from their starts, each time one is asked for."""

    openers: Sequence[Any]
    sizes: list[int] = field(default_factory=list)
    """How many bytes of each are to be read again."""

    @contextmanager
    def again(self) -> Iterator[BinaryIO]:
        """Open them again, as if they were one."""
        stream = _Chain(zip(self.openers, self.sizes, strict=True))
        try:
            yield cast(BinaryIO, stream)
        finally:
            stream.close()


class _Chain:
    """Read so many bytes of each file, one behind the other; some may have grown since."""

    def __init__(self, files: Iterator[tuple[Any, int]]) -> None:
        self._files = files
        self._opened = ExitStack()
        self._stream: Any = None
        self._left = 0

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer as far as the file goes that is being read; give the number of bytes, zero at the end."""
        while not self._left:
            self.close()
            opener, self._left = next(self._files, (None, 0))
            if opener is None:
                return 0
            if self._left:
                self._stream = self._opened.enter_context(opener())
        n_read = int(self._stream.readinto(buffer[: self._left]))
        self._left -= n_read
        return n_read

    def close(self) -> None:
        """Close the file that is being read."""
        self._opened.close()


def _number(
    files: _Files, readers: Sequence[BlockReader], spill: Spill, progress: Progress | None
) -> tuple[LabelTable, int, int]:
    """Give the labels of all files, and how many sets and repeated labels there are; keep the sets."""
    table = LabelTable()
    n_sets = n_repeated = 0
    for opener, reader in zip(files.openers, readers, strict=True):
        n_bytes = 0
        with opener() as stream, read_ahead(reader.read(stream)) as blocks:
            for block in blocks:
                n_bytes += block.n_source_bytes
                batch, n_dropped = table.number_sets(block)
                spill.add(block, batch)
                n_sets += len(block)
                n_repeated += n_dropped
                if progress:
                    progress("reading", n_sets, None)
        files.sizes.append(n_bytes)
    table.finish()
    return table, n_sets, n_repeated


def _cut(blocks: Iterable[tuple[Block, SetBatch]], ends: Sequence[int]) -> Generator[tuple[Block, SetBatch]]:
    """Cut blocks so that each of the given numbers of rows ends one; leave out those without rows."""
    done = 0
    for block, batch in blocks:
        cuts = [0, *(end - done for end in sorted(set(ends)) if done < end < done + len(batch)), len(batch)]
        for start, end in itertools.pairwise(cuts):
            if 0 < end - start < len(batch):
                yield block.rows(start, end), batch.sets(start, end)
            elif end > start:
                yield block, batch
        done += len(batch)
