"""Count and augment files on one machine in two passes; memory grows with the labels, not with the examples.

The first pass numbers the labels and writes the sets, as numbers, to a temporary file. Label pairs whose edge the
counts do not decide are counted from that file: each pair of a set occurs at least once, so where one occurrence is
enough for an edge, nothing has to be counted. The second pass reads the files again and
copies the bytes of each text next to the labels in their new orders.
"""

import errno
import itertools
import os
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from setaug.engines.fast.blocks import Block, BlockReader
from setaug.engines.fast.label_table import LabelTable
from setaug.engines.fast.pair_writer import PairWriter
from setaug.engines.fast.spill import Spill
from setaug.engines.job import AugmentReport, Job
from setaug.engines.shards import Shards
from setaug.engines.sources import SourceFile, find_files
from setaug.engines.threads import read_ahead
from setaug.engines.writers import open_rows
from setaug.errors import FileError
from setaug.examples import Columns, Skipped
from setaug.orders.arrays import Ints, SetBatch
from setaug.orders.orderings import load_kernels
from setaug.orders.pair_counts import SpillingPairCounts
from setaug.orders.statistics import LabelStatistics
from setaug.settings import Progress
from setaug.storage import BROKEN_ARCHIVE, COMPRESSED, is_address, open_again

SMALL_INPUT = 1 << 20
"""Up to this many bytes of input (1 MiB), pure Python is faster than compiling the loops.
A compressed file counts ten times."""
_SPILL_IN_MEMORY = 1 << 25
"""Bytes that the first pass keeps in memory before it spills to disk (32 MB)."""


class LocalEngine:
    """Runs a job on this machine, with one thread each to compute, read and write."""

    @contextmanager
    def start(self, job: Job, progress: Progress | None) -> Iterator["LocalRun"]:
        """Open the sources and a temporary file."""
        if job.shards is not None:
            Shards(job.target, job.shards).check()
        with _reading(job.files) as files, tempfile.SpooledTemporaryFile(_SPILL_IN_MEMORY) as spill:
            yield LocalRun(job, files, Spill(cast(BinaryIO, spill)), progress, is_plain=files.n_bytes() <= SMALL_INPUT)


@dataclass(frozen=True, slots=True)
class LocalRun:
    """The steps of a job on this machine."""

    job: Job
    files: "_Files"
    spill: Spill
    progress: Progress | None
    is_plain: bool = False

    def count_labels(self, report: AugmentReport) -> LabelTable:
        """Read all files once, and keep the sets as numbers."""
        skipped = report.skipped if self.job.skip_bad else None
        readers = [self.job.reader(file, skipped, is_plain=self.is_plain) for file in self.job.files]
        table, report.n_examples, report.n_repeated = _number(
            self.files, readers, self.spill, self.progress, is_plain=self.is_plain
        )
        return table

    def count_pairs(self, table: LabelTable, bounds: Ints, cap: float, pairs: SpillingPairCounts) -> None:
        """Count them in the sets that were kept."""
        kernels = load_kernels(self.is_plain)
        for batch in self.spill.batches():
            pairs.add(kernels.undecided_keys(batch.starts, batch.ids, bounds, cap))

    def write(self, table: LabelTable, pair_writer: PairWriter, report: AugmentReport) -> None:
        """Read all files again, and write the pairs."""
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
                        lines, orders = pair_writer.pairs(block, batch, done)
                        write(lines)
                        report.note(orders)
                        done += len(batch)
                        if self.progress:
                            self.progress("writing", done, report.n_examples)


@dataclass(frozen=True, slots=True)
class CountedFiles:
    """The label sets of files as numbers, and the counts of their labels."""

    table: LabelTable
    spill: Spill
    n_sets: int
    n_repeated: int

    def batches(self) -> Iterator[SetBatch]:
        """Yield the label sets; a label's id is its position in `statistics`."""
        places = np.cumsum(self.table.counts > 0) - 1  # further spellings of a label are never counted
        for batch in self.spill.batches():
            yield SetBatch(batch.starts, places[batch.ids].astype(np.int32))

    def statistics(self) -> LabelStatistics:
        """Return the label statistics, with all label pairs counted."""
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
    """Read the label sets of one or more files; they can be read within the context."""
    files = find_files(source, kind)
    readers = [BlockReader(name=f.name, kind=f.kind, columns=columns or Columns(), skipped=skipped) for f in files]
    with _reading(files) as opened, tempfile.SpooledTemporaryFile(_SPILL_IN_MEMORY) as file:
        spill = Spill(cast(BinaryIO, file))
        table, n_sets, n_repeated = _number(opened, readers, spill, progress)
        yield CountedFiles(table, spill, n_sets, n_repeated)


@contextmanager
def _reading(files: Sequence[SourceFile]) -> Iterator["_Files"]:
    try:
        with ExitStack() as stack:
            yield _Files(files, [stack.enter_context(open_again(file.path)) for file in files])
    except OSError as error:  # of a temporary file: those of the output are `FileError`s
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        place = tempfile.gettempdir()
        raise FileError(f"cannot write a temporary file in {place}: {error.strerror}; set TMPDIR.") from None


@dataclass(frozen=True, slots=True)
class _Files:
    """Files that can be opened again from the start."""

    files: Sequence[SourceFile]
    openers: Sequence[Any]
    sizes: list[int] = field(default_factory=list)
    """The number of bytes of each to read again."""

    def n_bytes(self) -> float:
        """Return the approximate number of bytes to read; infinity if it is not known in advance."""
        return sum(_n_bytes(file, opener) for file, opener in zip(self.files, self.openers, strict=True))

    @contextmanager
    def again(self) -> Iterator["_Chain"]:
        """Open the files again as one stream."""
        chain = _Chain(zip(self.files, self.openers, self.sizes, strict=True))
        try:
            yield chain
        finally:
            chain.close()


def _n_bytes(file: SourceFile, opener: Any) -> float:
    if is_address(file.path):
        return inf
    if os.path.isfile(file.path):
        is_packed = file.kind == "parquet" or Path(file.path).suffix.lower() in COMPRESSED
        return os.path.getsize(file.path) * (10 if is_packed else 1)
    with opener() as copy:  # of standard input
        return int(copy.seek(0, os.SEEK_END))


class _Chain:
    """Concatenated files of known sizes; one that has shrunk or grown since raises `FileError`."""

    def __init__(self, files: Iterator[tuple[SourceFile, Any, int]]) -> None:
        self._files = files
        self._opened = ExitStack()
        self._stream: Any = None
        self._left = 0

    def read_exactly(self, size: int) -> NDArray[np.uint8]:
        """Read the next bytes, all from one file."""
        while not self._left:
            self.close()
            self._file, opener, self._left = next(self._files)
            if self._left:
                self._stream = self._opened.enter_context(opener())
        buffer = np.empty(size, np.uint8)
        filled = 0
        while filled < size:
            n_read = self._read(buffer.data[filled:])
            if not n_read:
                raise self.changed()
            filled += n_read
        self._left -= size
        if not self._left and self._read(memoryview(bytearray(1))):
            raise self.changed()
        return buffer

    def _read(self, buffer: memoryview) -> int:
        try:
            return int(self._stream.readinto(buffer))
        except BROKEN_ARCHIVE:
            raise self.changed() from None

    def changed(self) -> FileError:
        """Return the error for the file that is being read."""
        return self._file.changed()

    def close(self) -> None:
        """Close the file that is being read."""
        self._opened.close()


def _number(
    files: _Files,
    readers: Sequence[BlockReader],
    spill: Spill,
    progress: Progress | None,
    *,
    is_plain: bool = False,
) -> tuple[LabelTable, int, int]:
    """Read and store the sets of all files as integers; return the labels, and the numbers of sets and duplicates."""
    table = LabelTable(is_plain=is_plain)
    n_sets = n_repeated = 0
    for opener, reader in zip(files.openers, readers, strict=True):
        n_bytes = 0
        with opener() as stream, read_ahead(reader.read(stream)) as blocks:
            for block in blocks:
                n_bytes += len(block.bytes) if block.is_source else 0
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
    """Split blocks so that a block ends at each of the given row numbers; skip empty ones."""
    done = 0
    different = sorted(set(ends))
    for block, batch in blocks:
        cuts = [0, *(end - done for end in different if done < end < done + len(batch)), len(batch)]
        for start, end in itertools.pairwise(cuts):
            if 0 < end - start < len(batch):
                yield block.rows(start, end), batch.sets(start, end)
            elif end > start:
                yield block, batch
        done += len(batch)
