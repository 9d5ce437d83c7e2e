"""Rows of any kind of file as blocks of JSON lines, with the positions of text, labels and other fields."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Any, BinaryIO, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from setaug import examples
from setaug.engines.fast.plain_scan import ACCEPTED, DECLINED, REFUSED, VALID, load_scan
from setaug.errors import DataError, FileError
from setaug.examples import Columns, Skipped, parse_json_row, read_rows, shown, too_long
from setaug.orders.arrays import freeze
from setaug.storage import BROKEN_ARCHIVE

BLOCK_SIZE = 1 << 21
"""Large enough that threads rarely wait for each other, small enough to save memory."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """Rows, and the spans of their fields in the bytes."""

    bytes: NDArray[np.uint8]
    texts: NDArray[np.int32]
    """The span of each row's text, without the quotes."""
    carried: NDArray[np.int32]
    """The span of the value of each carried field; -1 where a row has none."""
    label_spans: NDArray[np.int32]
    label_starts: NDArray[np.int64]
    """Row i has the labels from ``label_starts[i]`` to ``label_starts[i + 1]``."""
    is_source: bool
    """Whether the bytes are those of the file; otherwise the rows were converted to JSON."""
    n_lines: int = 0
    """The number of lines of the file, if rows are lines."""

    def __post_init__(self) -> None:
        freeze(self.bytes, self.texts, self.carried)

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, start: int, end: int) -> "Block":
        """Return a range of the rows, without the spans of their labels."""
        return replace(self, texts=self.texts[start:end], carried=self.carried[start:end])


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockReader:
    """Reads blocks from a file.

    Parameters
    ----------
    name
        The file's name in messages.
    carry
        Other fields to find.
    skipped
        If given, bad rows are counted there and skipped; otherwise the first one raises `DataError`.
    is_start
        Whether this is the start of the file, where a byte order mark may be.
    row_groups
        Which row groups of a Parquet file to read; by default all.
    is_plain
        Whether to scan lines in plain Python, without compiling anything; the blocks are the same.

    """

    name: str
    kind: str
    columns: Columns
    carry: Sequence[str] = ()
    skipped: Skipped | None = None
    is_start: bool = True
    row_groups: range | None = None
    is_plain: bool = False

    def read(self, stream: BinaryIO) -> Generator[Block]:
        """Yield the blocks of an open file."""
        if self.kind == "jsonl":
            return self._read_lines(stream)
        return self._read_rows(stream)

    def _read_rows(self, stream: BinaryIO) -> Generator[Block]:
        """Convert rows to JSON lines with field names of our own."""
        names = [b"text", b"labels", *(b"%d" % k for k in range(len(self.carry)))]
        lines, size = [], 0
        for line in read_rows(
            stream,
            self.name,
            self.kind,
            self.columns,
            self.skipped,
            self._line,
            carry=self.carry,
            row_groups=self.row_groups,
        ):
            lines.append(line)
            size += len(line)
            if size >= BLOCK_SIZE:
                yield self._written(lines, names)
                lines, size = [], 0
        if lines:
            yield self._written(lines, names)

    def _line(self, row: Mapping[str, Any]) -> bytes:
        example = self.columns.example(row)
        fields = {str(k): row[name] for k, name in enumerate(self.carry) if name in row}
        for k, value in fields.items():
            check_numbers(value, self.carry[int(k)])
        plain = {"text": example.text, "labels": list(row[self.columns.labels]), **fields}
        try:
            line = orjson.dumps(plain, plain_time, orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:
            raise DataError(f"a carried field cannot be written as JSON ({error}).") from None
        if len(line) > examples.MAX_LINE:
            raise too_long()
        return line

    def _written(self, lines: list[bytes], names: Sequence[bytes]) -> Block:
        buffer = np.frombuffer(b"".join(lines), np.uint8)
        found = self._scan(buffer, 0, len(buffer), names, np.full(len(lines), VALID, np.int8))
        return self._checked(found, 0).block(is_source=False)

    def _read_lines(self, stream: BinaryIO) -> Generator[Block]:
        names = [name.encode() for name in (self.columns.text, self.columns.labels, *self.carry)]
        line_number = 1
        try:
            for lines, size in _whole_lines(stream, self.name, load_scan(self.is_plain).last_line_end):
                is_marked = self.is_start and line_number == 1 and lines[:3].tobytes() == _BOM
                first = len(_BOM) if is_marked else 0
                found = self._scan(lines, first, size, names)
                if size > examples.MAX_LINE:
                    found.check_lengths(line_number)
                if (found.status == DECLINED).any():
                    self._parse_declined(found, line_number)
                    found = self._checked(self._scan(lines, first, size, names, found.status), line_number)
                yield found.block(is_source=True)
                line_number += len(found.status)
        except DataError as error:
            raise error.located(source=self.name, line=error.line or line_number) from None

    def _scan(
        self,
        buffer: NDArray[np.uint8],
        first: int,
        size: int,
        names: Sequence[bytes],
        known: NDArray[np.int8] | None = None,
    ) -> "_Scanned":
        """Find the fields in the lines of a buffer; the status of some lines may be known."""
        loops = load_scan(self.is_plain)
        n_newlines, n_quotes, is_ascii = loops.count_marks(buffer, size)
        lines = np.empty((n_newlines + 1, 2), np.int64)
        status = np.zeros(n_newlines + 1, np.int8)
        if known is not None:
            status[: len(known)] = known
        spans = np.empty((n_newlines + 1, len(names), 2), np.int32)
        label_spans = np.empty((n_quotes // 2, 2), np.int32)
        label_starts = np.empty(n_newlines + 2, np.int64)
        n_lines = loops.scan(
            buffer,
            first,
            size,
            np.frombuffer(b"".join(names), np.uint8),
            np.cumsum([0, *map(len, names)]),
            lines,
            status,
            spans,
            label_spans,
            label_starts,
        )
        status = status[:n_lines]
        if known is None and not (is_ascii or _is_utf8(buffer[:size])):
            for number, (start, end) in enumerate(lines[:n_lines].tolist()):
                if status[number] == ACCEPTED and not _is_utf8(buffer[start:end]):
                    status[number] = DECLINED
        return _Scanned(
            buffer[:size], lines[:n_lines], status, spans[:n_lines], label_spans, label_starts[: n_lines + 1]
        )

    def _parse_declined(self, found: "_Scanned", first_line: int) -> None:
        """Parse the lines that the scan declined, and set their status."""
        for at in np.flatnonzero(found.status == DECLINED).tolist():
            start, end = found.lines[at].tolist()
            try:
                self.columns.example(parse_json_row(found.bytes[start:end].tobytes()))
                found.status[at] = VALID
            except DataError as error:
                located = error.located(source=self.name, line=first_line + at)
                if self.skipped is None:
                    raise located from None
                self.skipped.add(located)
                found.status[at] = REFUSED

    def _checked(self, found: "_Scanned", first_line: int) -> "_Scanned":
        """Raise if a valid line was declined: without this check, a row would be lost."""
        for at in np.flatnonzero(found.status == DECLINED).tolist():
            start, end = found.lines[at].tolist()
            line = found.bytes[start : min(end, start + 200)].tobytes()
            raise RuntimeError(
                f"an error in setaug: a valid row of {self.name}, near line {first_line + at}, was not understood;"
                f" please report it: {line!r}"
            )
        return found


def plain_time(value: Any) -> datetime:
    """Return a time of pandas as one of Python, unless it has nanoseconds, which would be lost."""
    if getattr(value, "nanosecond", None) != 0:
        raise TypeError(f"Type is not JSON serializable: {type(value).__name__}")
    return cast(datetime, value.to_pydatetime())


def check_numbers(value: object, name: str) -> None:
    """Raise if a value contains a number that JSON cannot represent."""
    if isinstance(value, float) and not isfinite(value):
        raise DataError(f"the carried field {shown(name)} is {value}, which is not valid JSON.")
    if isinstance(value, list | tuple):
        for item in value:
            check_numbers(item, name)
    if isinstance(value, dict):
        check_numbers(list(value.values()), name)


@dataclass(frozen=True, slots=True)
class _Scanned:
    """The result of a scan."""

    bytes: NDArray[np.uint8]
    lines: NDArray[np.int64]
    status: NDArray[np.int8]
    spans: NDArray[np.int32]
    label_spans: NDArray[np.int32]
    label_starts: NDArray[np.int64]

    def check_lengths(self, first_line: int) -> None:
        """Raise if a line is too long."""
        for at in np.flatnonzero(self.lines[:, 1] - self.lines[:, 0] >= examples.MAX_LINE).tolist():
            raise too_long(first_line + at)

    def block(self, *, is_source: bool) -> Block:
        """Return the accepted lines as a block; the others have no labels, so their starts can be dropped."""
        is_row = self.status == ACCEPTED
        rows = self.spans if is_row.all() else self.spans[is_row]
        starts = np.append(self.label_starts[:-1][is_row], self.label_starts[-1])
        label_spans = self.label_spans[: starts[-1]]
        texts, carried = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 2:])
        n_lines = len(self.status) if is_source else 0
        return Block(self.bytes, texts, carried, label_spans, starts, is_source, n_lines)


def _whole_lines(
    stream: BinaryIO, name: str, last_line_end: Callable[[NDArray[np.uint8], int], int]
) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Yield pieces of a file that end with a line: a buffer, and the number of bytes used."""
    rest = np.zeros(0, np.uint8)
    try:
        while True:
            buffer = np.empty(BLOCK_SIZE + min(2 * len(rest), examples.MAX_LINE), np.uint8)
            buffer[: len(rest)] = rest
            n_read = stream.readinto(buffer.data[len(rest) :])  # type: ignore[attr-defined]
            size = len(rest) + n_read
            end = last_line_end(buffer, size) if n_read else size
            if end:
                yield buffer, end
            if not n_read:
                return
            rest = buffer[end:size]
            if len(rest) > examples.MAX_LINE:
                raise too_long()
    except BROKEN_ARCHIVE as error:
        raise FileError(f"{name} is damaged: {error}.") from None


def _is_utf8(lines: NDArray[np.uint8]) -> bool:
    try:
        str(lines.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
