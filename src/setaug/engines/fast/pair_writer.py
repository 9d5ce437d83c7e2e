"""Writes the pairs of examples as bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson
from numpy.typing import NDArray

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines.fast.blocks import Block
from setaug.engines.fast.label_table import LabelTable
from setaug.engines.fast.plain_scan import load_scan
from setaug.forms.form import WrittenForm
from setaug.orders.arrays import Ints, SetBatch, freeze
from setaug.orders.orderings import OrderBatch, Ordering


@dataclass(slots=True)
class PairWriter:
    """Writes the pairs of examples, once labels and pairs are counted."""

    ordering: Ordering
    n_orders: int
    seed: int
    head: NDArray[np.uint8]
    middle: NDArray[np.uint8]
    foot: NDArray[np.uint8]
    keys: NDArray[np.uint8]
    key_starts: NDArray[np.int64]
    form: WrittenForm
    labels: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
    is_plain: bool
    _buffers: list[NDArray[np.uint8]] = field(default_factory=lambda: [np.empty(0, np.uint8), np.empty(0, np.uint8)])

    def __post_init__(self) -> None:
        freeze(self.head, self.middle, self.foot, self.keys, self.key_starts, *self.labels)

    @classmethod
    def of(
        cls,
        augmenter: SetAugmenter,
        pair_format: PairFormat,
        carry: Sequence[str],
        ordering: Ordering,
        table: LabelTable,
    ) -> "PairWriter":
        """Prepare the parts that all pairs share."""
        before, after = (_in_json(text) for text in augmenter.around_text)
        head, middle, foot = pair_format.around()
        keys = [b"," + orjson.dumps(name) + b":" for name in carry]
        return cls(
            ordering,
            augmenter.n_orders,
            augmenter.random_state,
            _array(head + before),
            _array(after + middle),
            _array(foot),
            _array(b"".join(keys)),
            np.cumsum([0, *map(len, keys)]),
            augmenter.codec.form,
            table.encoded(augmenter.codec.form),
            table.is_plain,
        )

    def pairs(self, block: Block, batch: SetBatch, first_index: int) -> tuple[memoryview, OrderBatch]:
        """Return the pairs of a block's rows, as JSON lines, and their orders.

        The lines stay valid until the call after next. `first_index` is the index of the first row among all.
        """
        orders = self.ordering.orders(batch, self.n_orders, seed=self.seed, first_index=first_index)
        label_bytes, label_starts, label_ends = self.labels
        sizes = batch.sizes
        openings, opening_starts = self._openings(sizes)
        between, last = (_array(_in_json(text)) for text in (self.form.between, self.form.last))
        freeze(openings, opening_starts, between, last)
        around = int(np.diff(opening_starts)[sizes].sum()) + len(between) * len(batch.ids) + len(last) * len(batch)
        bound = (len(orders.positions) + 1) * (around + self._size(block, batch))
        out = self._buffers.pop(0)
        if bound > len(out) or not out.flags.writeable:  # as it comes out of a pickle
            out = np.empty(bound + bound // 8, np.uint8)
        self._buffers.append(out)
        size = load_scan(self.is_plain).put_pairs(
            block.bytes,
            block.texts,
            block.carried,
            batch.starts,
            batch.ids,
            orders.positions,
            label_bytes,
            label_starts,
            label_ends,
            openings,
            opening_starts,
            between,
            last,
            self.head,
            self.middle,
            self.foot,
            self.keys,
            self.key_starts,
            out,
        )
        return out.data[:size], orders

    def _openings(self, sizes: Ints) -> tuple[NDArray[np.uint8], Ints]:
        """Return the openings of sets of these sizes, and where that of each size starts; others have no bytes."""
        counts = np.bincount(sizes, minlength=1)
        texts = {size: _in_json(self.form.opening(size)) for size in np.flatnonzero(counts).tolist()}
        starts = np.zeros(len(counts) + 1, np.int64)
        starts[np.array([*texts], np.int64) + 1] = [*map(len, texts.values())]
        return _array(b"".join(texts.values())), np.cumsum(starts)

    def _size(self, block: Block, batch: SetBatch) -> int:
        """Return a bound on the bytes of one pair of each row, without what the form puts around labels."""
        _, label_starts, label_ends = self.labels
        around = len(self.head) + len(self.middle) + len(self.foot) + len(self.keys) + 2
        copied = np.sum(block.texts[:, 1] - block.texts[:, 0]) + np.sum(block.carried[..., 1] - block.carried[..., 0])
        labels = np.sum((label_ends - label_starts)[batch.ids])
        return int(len(batch) * around + copied + 4 * block.carried[..., 0].size + labels)


def _in_json(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]


def _array(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8)
