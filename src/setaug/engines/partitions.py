"""Parts of files that can be read one without the others, and what was found in them."""

import io
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from setaug.engines.blocks import BlockReader
from setaug.engines.sources import SourceFile
from setaug.errors import FileError
from setaug.files import COMPRESSED, open_input, open_stored
from setaug.urls import filesystem, telling

_SEARCHED = 1 << 16


@dataclass(frozen=True, slots=True)
class Partition:
    """Name a part of a file: the lines that begin in a range of its bytes, a range of row groups, or all of it."""

    file: SourceFile
    start: int = 0
    end: int | None = None

    def part_of(self, reader: BlockReader) -> BlockReader:
        """Let a reader of the file read only this part."""
        if self.file.kind == "parquet" and self.end is not None:
            return replace(reader, row_groups=range(self.start, self.end))
        return replace(reader, is_start=self.start == 0)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open what such a reader reads from."""
        if self.end is None or self.file.kind == "parquet":
            with open_input(self.file.path) as stream:
                yield stream
            return
        with open_stored(self.file.path) as stored:
            first, last = _line_start(stored, self.start), _line_start(stored, self.end)
            stored.seek(first)
            yield cast(BinaryIO, _Cut(stored, last - first))


def plan_partitions(files: Sequence[SourceFile], size: int, *, at_least: int = 1) -> tuple[list[Partition], list[str]]:
    """Divide files into parts of so many bytes or less; give also what tells whether a file has changed.

    There are `at_least` so many, where the files allow it: only plain JSON lines and Parquet can be divided. In a
    compressed file no place is known, in a CSV file a line may be the middle of a row.
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
    """Give the number of places where a file can be divided."""
    match file.kind:
        case "jsonl":
            return 1 if Path(file.path).suffix.lower() in COMPRESSED else n_bytes
        case "parquet":
            try:
                from pyarrow import parquet

                with open_input(file.path) as stream:
                    return int(parquet.ParquetFile(stream).num_row_groups)
            except Exception:  # whoever reads the rows will tell
                return 1
        case _:
            return 1


def _stored(file: SourceFile) -> tuple[int, str]:
    """Give the size of a file, and what changes when the file does."""
    if file.path == "-":
        raise FileError("standard input cannot be read by several workers; write it to a file first.")
    with telling("read", file.path):
        system, name = filesystem(file.path)
        size = int(system.size(name))
        return size, f"{size} {system.ukey(name)}"


def _line_start(stream: BinaryIO, at: int) -> int:
    """Give the first place, from `at` on, where a line begins or the file ends."""
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
    """Read so many bytes of a stream, and no more."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; give the number of bytes, zero at the end."""
        n_read = self._stream.readinto(memoryview(buffer)[: self._left]) if self._left else 0
        self._left -= n_read
        return int(n_read)
