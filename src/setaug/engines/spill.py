"""What a first pass over a file found, kept in a temporary file for the second: memory need not hold it."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from setaug.engines.blocks import Block
from setaug.engines.labels import INPUT_CHANGED
from setaug.errors import FileError
from setaug.orders.statistics import SetBatch

_HEAD = 5


class Spill:
    """Keep label sets, and where in the source each row's text stands."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, block: Block, batch: SetBatch) -> None:
        """Keep a block; its bytes only if they are not the source's own."""
        own = np.zeros(0, np.uint8) if block.is_source else block.bytes
        head = [block.n_source_bytes, len(own), len(block), block.carried.shape[1], len(batch.ids)]
        parts = (np.array(head, np.int64), batch.starts, batch.ids, block.texts, block.carried, own)
        self._file.write(b"".join([part.tobytes() for part in parts]))

    def batches(self) -> Iterator[SetBatch]:
        """Give the label sets, one block's after the other."""
        self._file.seek(0)
        while head := self._file.read(8 * _HEAD):
            _, n_own, n_rows, n_carried, n_ids = np.frombuffer(head, np.int64).tolist()
            yield self._read_batch(n_rows, n_ids)
            self._file.seek(8 * n_rows * (1 + n_carried) + n_own, 1)

    def blocks(self, source: BinaryIO) -> Iterator[tuple[Block, SetBatch]]:
        """Give the blocks and the label sets again, while reading the source again from its start."""
        self._file.seek(0)
        while head := self._file.read(8 * _HEAD):
            n_source, n_own, n_rows, n_carried, n_ids = np.frombuffer(head, np.int64).tolist()
            batch = self._read_batch(n_rows, n_ids)
            spans = np.frombuffer(self._file.read(8 * n_rows * (1 + n_carried)), np.int32)
            texts, carried = spans[: 2 * n_rows].reshape(-1, 2), spans[2 * n_rows :].reshape(n_rows, n_carried, 2)
            lines = np.frombuffer(self._file.read(n_own), np.uint8)
            if n_source:
                source_lines = _read_exactly(source, n_source)
                lines = lines if n_own else source_lines
            yield Block(lines, texts, carried, np.zeros((0, 2), np.int32), batch.starts, n_source, n_own == 0), batch

    def _read_batch(self, n_rows: int, n_ids: int) -> SetBatch:
        record = self._file.read(8 * (n_rows + 1) + 4 * n_ids)
        return SetBatch(
            np.frombuffer(record, np.int64, n_rows + 1), np.frombuffer(record, np.int32, n_ids, 8 * (n_rows + 1))
        )


def _read_exactly(source: BinaryIO, size: int) -> NDArray[np.uint8]:
    buffer = np.empty(size, np.uint8)
    filled = 0
    while filled < size:
        n_read = source.readinto(buffer.data[filled:])  # type: ignore[attr-defined]
        if not n_read:
            raise FileError(INPUT_CHANGED)
        filled += n_read
    return buffer
