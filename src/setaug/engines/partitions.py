"""Parts of files that can be read independently."""

import io
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from setaug.engines.fast.blocks import BlockReader
from setaug.engines.sources import SourceFile
from setaug.errors import FileError
from setaug.storage import COMPRESSED, as_file_errors, filesystem, open_input, open_stored

_SEARCHED = 1 << 16


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of a file: the lines that start in a byte range, a range of row groups, or the whole file."""

    file: SourceFile
    start: int = 0
    end: int | None = None
    checksum: int | None = None
    """The checksum of its bytes, once read."""

    def part_of(self, reader: BlockReader) -> BlockReader:
        """Return a reader of this part, from a reader of the file."""
        if self.file.kind == "parquet" and self.end is not None:
            return replace(reader, row_groups=range(self.start, self.end))
        return replace(reader, is_start=self.start == 0)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the stream for such a reader."""
        if self.end is None or self.file.kind == "parquet":
            with open_input(self.file.path) as stream:
                yield stream
            return
        with open_stored(self.file.path) as stored:
            first, last = _line_start(stored, self.start), _line_start(stored, self.end)
            stored.seek(first)
            yield cast(BinaryIO, _Cut(stored, last - first))

    def lines_before(self) -> int:
        """Return the number of lines of its file that come before it; for messages."""
        if self.start == 0 or self.file.kind != "jsonl":
            return 0
        with open_stored(self.file.path) as stored:
            left = _line_start(stored, self.start)
            stored.seek(0)
            n_lines = 0
            while left and (piece := stored.read(min(left, _SEARCHED))):
                n_lines += piece.count(b"\n")
                left -= len(piece)
            return n_lines


def plan_partitions(files: Sequence[SourceFile], size: int, *, at_least: int = 1) -> tuple[list[Partition], list[str]]:
    """Split files into parts of at most `size` bytes; also return a state per file that changes with the file.

    There are `at_least` that many parts if the files allow it: only uncompressed JSONL and Parquet can be divided. A
    compressed file has no seekable positions, and a line of a CSV file may start in the middle of a row.
    """
    stored = [_stored(file) for file in files]
    size = min(size, max(1, -(-sum(n_bytes for n_bytes, _ in stored) // at_least)))
    partitions = []
    for file, (n_bytes, _) in zip(files, stored, strict=True):
        n_units = _n_units(file, n_bytes)
        n_parts = min(n_units, -(-n_bytes // size))
        if n_parts <= 1:
            partitions.append(Partition(file))
            continue
        cuts = [n_units * k // n_parts for k in range(n_parts + 1)]
        partitions += [Partition(file, start, end) for start, end in itertools.pairwise(cuts)]
    return partitions, [state for _, state in stored]


def _n_units(file: SourceFile, n_bytes: int) -> int:
    """Return the number of positions where a file can be divided."""
    match file.kind:
        case "jsonl":
            return 1 if Path(file.path).suffix.lower() in COMPRESSED else n_bytes
        case "parquet":
            try:
                from pyarrow import parquet

                with open_input(file.path) as stream:
                    return int(parquet.ParquetFile(stream).num_row_groups)
            except Exception:  # reported when the rows are read
                return 1
        case _:
            return 1


def _stored(file: SourceFile) -> tuple[int, str]:
    """Return the size of a file, and a state that changes with the file."""
    if file.path == "-":
        raise FileError("standard input cannot be read by several workers; write it to a file first.")
    with as_file_errors("read", file.path):
        system, name = filesystem(file.path)
        size = int(system.size(name))
        return size, f"{size} {system.ukey(name)}"


def _line_start(stream: BinaryIO, at: int) -> int:
    """Return the first position, from `at` on, where a line starts or the file ends."""
    if at == 0:
        return 0
    stream.seek(at - 1)
    at -= 1
    while piece := stream.read(_SEARCHED):
        if (found := piece.find(b"\n")) >= 0:
            return at + found + 1
        at += len(piece)
    return at


class _Cut(io.RawIOBase):
    """The next `size` bytes of a stream."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes, zero at the end."""
        n_read = self._stream.readinto(memoryview(buffer)[: self._left]) if self._left else 0
        self._left -= n_read
        return int(n_read)
