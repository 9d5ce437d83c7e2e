"""The results of the first pass over a file, in a temporary file for the second."""

from collections.abc import Iterator
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from setaug.engines.fast.blocks import Block
from setaug.errors import FileError
from setaug.orders.arrays import SetBatch

_HEAD = 6


class Source(Protocol):
    """The files that are read a second time."""

    def read_exactly(self, size: int) -> NDArray[np.uint8]:
        """Read the next bytes."""
        ...

    def changed(self) -> FileError:
        """Return the error for a file that changed."""
        ...


class Spill:
    """Label sets, and the positions of each row's text and carried fields in the source."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, block: Block, batch: SetBatch) -> None:
        """Store a block: its bytes, or their number and checksum if they can be read again."""
        own = block.bytes[:0] if block.is_source else block.bytes
        n_source = len(block.bytes) - len(own)
        checksum = _checksum(block.bytes) if n_source else 0
        head = [n_source, checksum, len(own), len(block), block.carried.shape[1], len(batch.ids)]
        parts = (np.array(head, np.int64), batch.starts, batch.ids, block.texts, block.carried, own)
        self._file.write(b"".join([part.tobytes() for part in parts]))

    def batches(self) -> Iterator[SetBatch]:
        """Yield the label sets, block by block."""
        self._file.seek(0)
        while head := self._file.read(8 * _HEAD):
            _, _, n_own, n_rows, n_carried, n_ids = np.frombuffer(head, np.int64).tolist()
            yield self._read_batch(n_rows, n_ids)
            self._file.seek(8 * n_rows * (1 + n_carried) + n_own, 1)

    def blocks(self, source: Source) -> Iterator[tuple[Block, SetBatch]]:
        """Yield the blocks and the label sets while reading the source again from the start."""
        self._file.seek(0)
        while head := self._file.read(8 * _HEAD):
            n_source, checksum, n_own, n_rows, n_carried, n_ids = np.frombuffer(head, np.int64).tolist()
            batch = self._read_batch(n_rows, n_ids)
            spans = np.frombuffer(self._file.read(8 * n_rows * (1 + n_carried)), np.int32)
            texts, carried = spans[: 2 * n_rows].reshape(-1, 2), spans[2 * n_rows :].reshape(n_rows, n_carried, 2)
            lines = np.frombuffer(self._file.read(n_own), np.uint8)
            if n_source:
                lines = source.read_exactly(n_source)
                if _checksum(lines) != checksum:
                    raise source.changed()
            yield Block(lines, texts, carried, np.zeros((0, 2), np.int32), batch.starts, n_source > 0), batch

    def _read_batch(self, n_rows: int, n_ids: int) -> SetBatch:
        record = self._file.read(8 * (n_rows + 1) + 4 * n_ids)
        return SetBatch(
            np.frombuffer(record, np.int64, n_rows + 1), np.frombuffer(record, np.int32, n_ids, 8 * (n_rows + 1))
        )


def _checksum(lines: NDArray[np.uint8]) -> int:
    return xxh3_64_intdigest(lines.data) >> 1  # a signed number holds it
