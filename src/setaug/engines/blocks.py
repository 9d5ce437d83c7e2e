"""Rows of any kind of file as blocks of JSON lines in which the text, the labels and other fields are found."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from setaug.engines import jsonl
from setaug.errors import DataError, FileError
from setaug.examples import Columns, Example, Skipped, parse_json_row, read_stream
from setaug.files import BROKEN_ARCHIVE
from setaug.orders.edges import fixed

BLOCK_SIZE = 1 << 21
"""Large enough to keep the threads from waiting for each other, small enough to take little memory."""
_ROWS = 4096
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """Hold rows, and the spans of their fields in the bytes."""

    bytes: NDArray[np.uint8]
    texts: NDArray[np.int32]
    """The span of each row's text, as it stands between its quotes."""
    carried: NDArray[np.int32]
    """The span of each further field, value and all; -1 where a row has none."""
    label_spans: NDArray[np.int32]
    label_starts: NDArray[np.int64]
    """Row i has the labels from ``label_starts[i]`` to ``label_starts[i + 1]``."""
    n_source_bytes: int
    """How many bytes of the file it covers."""
    is_source: bool
    """Whether these are its bytes; otherwise the rows were written anew."""

    n_lines: int = 0
    """How many lines of the file it covers, where rows are lines."""

    def __post_init__(self) -> None:
        fixed(self.bytes, self.texts, self.carried)

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, start: int, end: int) -> "Block":
        """Give some of the rows, without their labels' spans."""
        return replace(self, texts=self.texts[start:end], carried=self.carried[start:end])


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockReader:
    """Read blocks from a file.

    Parameters
    ----------
    name
        What messages call the file.
    carry
        Further fields to find.
    skipped
        Where given, bad rows are noted there and left out; otherwise the first one raises `DataError`.
    is_start
        Whether the bytes are those from the start of the file, where a mark of their order may stand.
    row_groups
        Which ones of a Parquet file to read, if not all.

    """

    name: str
    kind: str
    columns: Columns
    carry: Sequence[str] = ()
    skipped: Skipped | None = None
    is_start: bool = True
    row_groups: range | None = None

    def read(self, stream: BinaryIO) -> Generator[Block]:
        """Give the blocks of an open file."""
        if self.kind == "jsonl":
            return self._read_lines(stream)
        return self._read_rows(stream)

    def _read_rows(self, stream: BinaryIO) -> Generator[Block]:
        rows = read_stream(stream, self.name, self.kind, self.columns, self.skipped, self.row_groups)
        for first in rows:
            chunk = chain([first], (row for _, row in zip(range(_ROWS - 1), rows, strict=False)))
            lines = b"".join(self._line(example, repeated) for repeated, example in chunk)
            yield self._scan(np.frombuffer(lines, np.uint8), len(lines), trusted=True).block(0, is_source=False)

    def _read_lines(self, stream: BinaryIO) -> Generator[Block]:
        line_number = 1
        for lines, size in _whole_lines(stream, self.name):
            is_source = line_number > 1 or not (self.is_start and lines[:3].tobytes().startswith(_BOM))
            found = self._scan(lines if is_source else lines[3:], size if is_source else size - 3, trusted=False)
            n_lines = len(found.status)
            line_number += n_lines
            if (found.status == jsonl.DECLINED).any():
                is_source = False
                plain = self._parse_declined(found, line_number - n_lines)
                found = self._scan(np.frombuffer(plain, np.uint8), len(plain), trusted=True)
            yield found.block(size, is_source=is_source, n_lines=n_lines)

    def _parse_declined(self, found: "_Scanned", first_line: int) -> bytes:
        """Read the lines that the scan was not sure of with a parser; give all good lines, those in a plain form."""
        good = []
        states = zip(found.lines.tolist(), found.status.tolist(), strict=True)
        for number, ((start, end), state) in enumerate(states, first_line):
            line = found.bytes[start:end].tobytes()
            if state == jsonl.ACCEPTED:
                good.append(line + b"\n")
            elif state == jsonl.DECLINED:
                try:
                    row = parse_json_row(line)
                    example = self.columns.example(row)
                    good.append(self._line(example, len(row[self.columns.labels]) - len(example.labels)))
                except DataError as error:
                    located = DataError(error.problem, source=self.name, line=number)
                    if self.skipped is None:
                        raise located from None
                    self.skipped.add(located)
        return b"".join(good)

    def _line(self, example: Example, n_repeated: int) -> bytes:
        """Write an example as a plain JSON line; a label that it repeated is repeated, to be counted like any."""
        labels = [*example.labels, *example.labels[:1] * n_repeated]
        row = {name: example.fields[name] for name in self.carry if name in example.fields}
        row |= {self.columns.text: example.text, self.columns.labels: labels}
        try:
            return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:
            raise DataError(f"a field that is carried cannot be written as JSON ({error}).") from None

    def _scan(self, lines: NDArray[np.uint8], size: int, *, trusted: bool) -> "_Scanned":
        """Find the fields in lines, which fill so many bytes."""
        names = [name.encode() for name in (self.columns.text, self.columns.labels, *self.carry)]
        n_newlines, n_quotes, is_ascii = jsonl.count_marks(lines, size)
        found = np.empty((n_newlines + 1, 2), np.int64)
        status = np.empty(n_newlines + 1, np.int8)
        spans = np.empty((n_newlines + 1, len(names), 2), np.int32)
        label_spans = np.empty((n_quotes // 2, 2), np.int32)
        label_starts = np.empty(n_newlines + 2, np.int64)
        n_lines = jsonl.scan(
            lines,
            size,
            np.frombuffer(b"".join(names), np.uint8),
            np.cumsum([0, *map(len, names)]),
            trusted,
            found,
            status,
            spans,
            label_spans,
            label_starts,
        )
        status = status[:n_lines]
        if not (trusted or is_ascii or _is_utf8(lines[:size])):
            for number, (start, end) in enumerate(found[:n_lines].tolist()):
                if status[number] == jsonl.ACCEPTED and not _is_utf8(lines[start:end]):
                    status[number] = jsonl.DECLINED
        return _Scanned(
            lines[:size], found[:n_lines], status, spans[:n_lines], label_spans, label_starts[: n_lines + 1]
        )


@dataclass(frozen=True, slots=True)
class _Scanned:
    """Hold what `jsonl.scan` found."""

    bytes: NDArray[np.uint8]
    lines: NDArray[np.int64]
    status: NDArray[np.int8]
    spans: NDArray[np.int32]
    label_spans: NDArray[np.int32]
    label_starts: NDArray[np.int64]

    def block(self, n_source_bytes: int, *, is_source: bool, n_lines: int = 0) -> Block:
        """Keep the lines that were accepted; the others (blank ones) have no labels, so their starts may go."""
        is_row = self.status == jsonl.ACCEPTED
        rows = self.spans if is_row.all() else self.spans[is_row]
        starts = np.append(self.label_starts[:-1][is_row], self.label_starts[-1])
        label_spans = self.label_spans[: starts[-1]]
        texts, carried = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 2:])
        return Block(self.bytes, texts, carried, label_spans, starts, n_source_bytes, is_source, n_lines)


def _whole_lines(stream: BinaryIO, name: str) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Read pieces of a file that end where a line ends: a buffer, and how many bytes of it they fill."""
    rest = np.zeros(0, np.uint8)
    try:
        while True:
            buffer = np.empty(BLOCK_SIZE + 2 * len(rest), np.uint8)
            buffer[: len(rest)] = rest
            n_read = stream.readinto(buffer.data[len(rest) :])  # type: ignore[attr-defined]
            size = len(rest) + n_read
            end = jsonl.last_line_end(buffer, size) if n_read else size
            if end:
                yield buffer, end
            if not n_read:
                return
            rest = buffer[end:size]
    except BROKEN_ARCHIVE as error:
        raise FileError(f"{name} is damaged: {error}.") from None


def _is_utf8(lines: NDArray[np.uint8]) -> bool:
    try:
        str(lines.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
