"""The pairs of examples, put together as bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson
from numpy.typing import NDArray

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines import jsonl
from setaug.engines.blocks import Block
from setaug.engines.labels import LabelTable
from setaug.orders.edges import fixed
from setaug.orders.orderings import OrderBatch, Ordering
from setaug.orders.statistics import SetBatch


@dataclass(slots=True)
class Rewriter:
    """Write the pairs of examples, given all that was counted."""

    ordering: Ordering
    n_orders: int
    seed: int
    head: NDArray[np.uint8]
    middle: NDArray[np.uint8]
    foot: NDArray[np.uint8]
    keys: NDArray[np.uint8]
    key_starts: NDArray[np.int64]
    separator: NDArray[np.uint8]
    with_size: bool
    labels: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
    _buffers: list[NDArray[np.uint8]] = field(default_factory=lambda: [np.empty(0, np.uint8), np.empty(0, np.uint8)])

    def __post_init__(self) -> None:
        parts = (self.head, self.middle, self.foot, self.keys, self.key_starts, self.separator, *self.labels)
        fixed(*parts)

    @classmethod
    def of(
        cls,
        augmenter: SetAugmenter,
        pair_format: PairFormat,
        carry: Sequence[str],
        ordering: Ordering,
        table: LabelTable,
    ) -> "Rewriter":
        """Prepare what all pairs share."""
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
            _array(_in_json(augmenter.separator)),
            augmenter.size,
            table.encoded(augmenter.codec),
        )

    def pairs(self, block: Block, batch: SetBatch, first_index: int) -> tuple[memoryview, OrderBatch]:
        """Give the pairs of a block's rows, as JSON lines, and their orders.

        The lines stay valid until the call after next. The first row's index, among all, is `first_index`.
        """
        orders = self.ordering.orders(batch, self.n_orders, seed=self.seed, first_index=first_index)
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
        if bound > len(out) or not out.flags.writeable:  # as it comes out of a pickle
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
        return out.data[:size], orders


def _in_json(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]


def _array(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8)
