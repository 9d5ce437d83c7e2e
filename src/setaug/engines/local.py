"""Count and augment files on one machine, in two passes: memory grows with the labels, not with the examples.

The first pass finds and numbers the labels and leaves the sets, as numbers, in a temporary file. What the counts do
not decide about an edge is looked up there: a pair of one of these sets occurs at least once, so its edge is certain
where one occurrence is enough, and only the other pairs have to be counted. The second pass reads the file again and
copies each text, as it is written there, next to the labels in their new orders.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import BinaryIO, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines import jsonl
from setaug.engines.blocks import Block, BlockReader
from setaug.engines.labels import LabelTable
from setaug.engines.spill import Spill
from setaug.engines.threads import read_ahead
from setaug.engines.writers import open_rows
from setaug.examples import Columns, Skipped
from setaug.files import display_name, kind_of, open_again
from setaug.orders.edges import EdgeTable, Thresholds, edges_among
from setaug.orders.orderings import OrderBatch
from setaug.orders.statistics import LabelStatistics, PairCounts, SetBatch

_SPILL_IN_MEMORY = 1 << 25
"""The first pass leaves so many bytes in memory before it starts a file (32 MB)."""
Progress = Callable[[str, int, int | None], None]
"""Is told the stage, the number of examples done, and their total where it is known."""


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

    def note(self, orders: OrderBatch) -> None:
        """Add what is known of some sets' orders."""
        self.n_edges += int(orders.n_edges.sum())
        self.n_constrained += int(np.count_nonzero(orders.n_edges))
        self.n_rushed += orders.n_rushed
        self.n_uncounted += int(np.isnan(orders.log2_orders).sum())
        self.log2_orders += float(np.nansum(orders.log2_orders))


@dataclass(frozen=True, slots=True)
class CountedFile:
    """Hold the label sets of a file as numbers, and the counts of their labels."""

    table: LabelTable
    spill: Spill
    n_sets: int
    n_repeated: int

    def edges(self, thresholds: Thresholds) -> EdgeTable:
        """Find the edges within these sets; between labels that share none of them, the result says nothing."""
        from setaug.orders.kernels import undecided_keys

        counts = self.table.counts
        bounds, cap = thresholds.bounds(counts), thresholds.sure_cap(self.n_sets)
        pairs = PairCounts()
        for batch in self.spill.batches():
            pairs.add(undecided_keys(batch.starts, batch.ids, bounds, cap))
        return edges_among(*pairs.sorted(), counts, self.n_sets, thresholds, cap=cap)

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
def count_file(
    source: str | Path,
    *,
    columns: Columns | None = None,
    kind: str | None = None,
    skipped: Skipped | None = None,
    progress: Progress | None = None,
) -> Iterator[CountedFile]:
    """Read the label sets of a file; they stay readable within the context."""
    reader = _reader(source, kind, columns, (), skipped)
    with open_again(source) as open_source, open_source() as stream, _count(reader, stream, progress) as counted:
        yield counted


@contextmanager
def _count(reader: BlockReader, stream: BinaryIO, progress: Progress | None) -> Iterator[CountedFile]:
    table = LabelTable()
    n_sets = n_repeated = 0
    with tempfile.SpooledTemporaryFile(_SPILL_IN_MEMORY) as file:
        spill = Spill(cast(BinaryIO, file))
        for block in read_ahead(reader.read(stream)):
            ids = table.number(block.bytes, block.label_spans)
            n_repeated += table.merge_repeats(block.label_starts, ids)
            spill.add(block, SetBatch(block.label_starts, ids[: block.label_starts[-1]]))
            n_sets += len(block)
            if progress:
                progress("reading", n_sets, None)
        table.finish()
        yield CountedFile(table, spill, n_sets, n_repeated)


def augment_file(
    source: str | Path,
    target: str | Path,
    augmenter: SetAugmenter | None = None,
    *,
    columns: Columns | None = None,
    kind: str | None = None,
    pair_format: PairFormat | None = None,
    carry: Sequence[str] = (),
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> AugmentReport:
    """Write the pairs of a file's examples to another file, which appears once it is whole.

    Parameters
    ----------
    source, target
        Files whose names tell their kind and compression; ``-`` is a standard stream.
    augmenter
        How to augment. It need not be fitted: the orders rest on the labels of the source.
    kind
        The kind of the source, where its name does not tell.
    carry
        Fields of a row that its pairs shall have too; null where a row has no such field.
    skip_bad
        Whether to leave bad rows out, and count them, instead of stopping at the first.

    """
    augmenter = (augmenter or SetAugmenter()).check()
    pair_format = (pair_format or PairFormat()).check_carried(carry)
    report = AugmentReport()
    start = perf_counter()
    reader = _reader(source, kind, columns, carry, report.skipped if skip_bad else None)
    with open_again(source) as open_source, open_source() as stream, _count(reader, stream, progress) as counted:
        report.n_examples, report.n_repeated = counted.n_sets, counted.n_repeated
        report.n_labels = counted.table.n_labels
        report.n_pairs = counted.n_sets * (augmenter.n_orders + 1)
        labels = counted.table.labels() if augmenter.ordering == "frequency" else []
        ordering = augmenter.make_ordering(labels, counted.edges(augmenter.thresholds))
        assembler = _Assembler.of(augmenter, pair_format, carry, counted.table)
        with open_source() as stream, open_rows(target, pair_format, carry) as write:
            done = 0
            for block, batch in read_ahead(counted.spill.blocks(stream)):
                orders = ordering.orders(batch, augmenter.n_orders, seed=augmenter.random_state, first_index=done)
                write(assembler.pairs(block, batch, orders))
                report.note(orders)
                done += len(batch)
                if progress:
                    progress("writing", done, counted.n_sets)
    report.seconds = perf_counter() - start
    return report


@dataclass(slots=True)
class _Assembler:
    """Put pairs together as bytes."""

    head: NDArray[np.uint8]
    middle: NDArray[np.uint8]
    foot: NDArray[np.uint8]
    keys: NDArray[np.uint8]
    key_starts: NDArray[np.int64]
    separator: NDArray[np.uint8]
    with_size: bool
    labels: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
    _buffers: list[NDArray[np.uint8]] = field(default_factory=lambda: [np.empty(0, np.uint8), np.empty(0, np.uint8)])

    @classmethod
    def of(
        cls, augmenter: SetAugmenter, pair_format: PairFormat, carry: Sequence[str], table: LabelTable
    ) -> "_Assembler":
        """Prepare what all pairs share."""
        before, after = (_in_json(text) for text in augmenter.around_text)
        head, middle, foot = pair_format.around()
        keys = [b"," + orjson.dumps(name) + b":" for name in carry]
        return cls(
            _array(head + before),
            _array(after + middle),
            _array(foot),
            _array(b"".join(keys)),
            np.cumsum([0, *map(len, keys)]),
            _array(_in_json(augmenter.separator)),
            augmenter.size,
            table.encoded(augmenter.codec),
        )

    def pairs(self, block: Block, batch: SetBatch, orders: OrderBatch) -> memoryview:
        """Give the pairs of a block's rows, as JSON lines; they stay valid until the call after next."""
        label_bytes, label_starts, label_ends = self.labels
        fixed_size = len(self.head) + len(self.middle) + len(self.foot) + len(self.keys) + 2
        bound = jsonl.pairs_size(
            block.texts,
            block.carried,
            batch.starts,
            batch.ids,
            label_starts,
            label_ends,
            len(orders.positions) + 1,
            fixed_size,
            len(self.separator),
        )
        out = self._buffers.pop(0)
        if bound > len(out):
            out = np.empty(bound + bound // 8, np.uint8)
        self._buffers.append(out)
        size = jsonl.put_pairs(
            block.bytes,
            block.texts,
            block.carried,
            batch.starts,
            batch.ids,
            orders.positions,
            label_bytes,
            label_starts,
            label_ends,
            self.with_size,
            self.separator,
            self.head,
            self.middle,
            self.foot,
            self.keys,
            self.key_starts,
            out,
        )
        return out.data[:size]


def _reader(
    source: str | Path, kind: str | None, columns: Columns | None, carry: Sequence[str], skipped: Skipped | None
) -> BlockReader:
    return BlockReader(
        name=display_name(source),
        kind=kind or kind_of(source),
        columns=columns or Columns(),
        carry=carry,
        skipped=skipped,
    )


def _in_json(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]


def _array(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8)
