"""Writers that convert JSON lines to the format of the output file."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from setaug.augmenter import PairFormat
from setaug.engines.threads import write_behind
from setaug.errors import FileError, MissingExtraError
from setaug.examples import Pair, read_valid_row, shown
from setaug.storage import kind_of, open_output

Write = Callable[[memoryview], None]
_HELD = 100_000
"""Rows of a Parquet file that are buffered until the column types are known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFormat:
    """The columns of a file of rows."""

    names: Sequence[str]
    carry: Sequence[str] = ()
    """Columns with user data: a Parquet file must store their values unchanged."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Types of Parquet columns: text, number, strings or shares (a map); other types are inferred from the rows."""
    cells: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    """How to write values into a CSV or TSV cell, if not as JSON."""

    @classmethod
    def of_pairs(cls, pair_format: PairFormat, carry: Sequence[str]) -> "RowFormat":
        """Return the columns of pairs."""
        return cls(names=[*pair_format.names, *carry], carry=carry)


@contextmanager
def open_rows(target: str | Path, pair_format: PairFormat, carry: Sequence[str]) -> Iterator[Write]:
    """Open a file for pairs; see `open_table`."""
    check_rows(target, pair_format)
    empty = pair_format.row(Pair("", "", dict.fromkeys(carry)))
    with open_table(target, RowFormat.of_pairs(pair_format, carry), empty=empty) as write:
        yield write


@contextmanager
def open_table(target: str | Path, row_format: RowFormat, *, empty: Mapping[str, Any] | None = None) -> Iterator[Write]:
    """Open a file; yield a function that writes JSON lines in the format of the file.

    Another thread writes while the caller prepares the next lines, so lines must not change until the call after
    next.

    Parameters
    ----------
    empty
        A row whose types a Parquet file without rows has.

    """
    kind = kind_of(target)
    with open_output(target) as stream:
        match kind:
            case "jsonl":
                with write_behind(stream.write) as write:
                    yield write
            case "parquet":
                with _parquet(stream, row_format, empty or {}) as write:
                    yield write
            case _:
                yield _delimited(stream, row_format, "\t" if kind == "tsv" else ",")


def check_rows(target: str | Path, pair_format: PairFormat) -> str:
    """Return the kind of a file; raise if it cannot represent the pairs."""
    kind = kind_of(target)
    if kind in ("csv", "tsv") and pair_format.is_chat:
        raise FileError(f"{target}: chat messages do not fit into a {kind.upper()} cell; write .jsonl or .parquet.")
    return kind


def _rows(lines: memoryview) -> Iterator[dict[str, Any]]:
    for line in lines.tobytes().split(b"\n")[:-1]:
        yield read_valid_row(line)


def _delimited(stream: BinaryIO, row_format: RowFormat, separator: str) -> Write:
    # Not the csv module's writer, which up to Python 3.12 leaves a carriage return unquoted: it would end the row.
    # A byte order mark without quotes, at the start of the file, would be dropped.
    is_special = re.compile(f'["\r\n\ufeff{separator}]').search

    def cell(value: Any, write: Callable[[Any], str] | None = None) -> str:
        if value is None:
            return ""
        is_nested = isinstance(value, list | dict)
        text = write(value) if write else json.dumps(value, ensure_ascii=False) if is_nested else str(value)
        return '"' + text.replace('"', '""') + '"' if is_special(text) else text

    names = row_format.names
    cells = [row_format.cells.get(name) for name in names]

    def write_rows(rows: Iterable[dict[str, Any]]) -> None:
        written = [separator.join(map(cell, map(row.get, names), cells)) + "\n" for row in rows]
        stream.write("".join(written).encode())

    stream.write((separator.join(map(cell, names)) + "\n").encode())
    return lambda lines: write_rows(_rows(lines))


@contextmanager
def _parquet(stream: BinaryIO, row_format: RowFormat, empty: Mapping[str, Any]) -> Iterator[Write]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("Writing Parquet", "parquet") from None
    writers: list[Any] = []
    held: list[dict[str, Any]] = []
    schemas: list[Any] = []

    def write(lines: memoryview) -> None:
        rows = list(_rows(lines))
        with _arrow_as_file_errors():
            if writers:
                write_rows(rows)
                return
            # A column whose values are all null so far, or empty lists, has no type yet.
            held.extend(rows)
            schemas.append(_schema(rows, row_format))
            schemas[:] = [pyarrow.unify_schemas(schemas, promote_options="permissive")]
            if len(held) > _HELD or not any(_is_open(column.type) for column in schemas[0]):
                start()

    def start() -> None:
        writers.append(parquet.ParquetWriter(stream, schemas[0], write_page_checksum=True))
        write_rows(held)
        held.clear()

    def write_rows(rows: list[dict[str, Any]]) -> None:
        table = pyarrow.Table.from_pylist([_with_items(row, row_format) for row in rows], schema=schemas[0])
        for name in row_format.carry:
            _check_kept([row.get(name) for row in rows], table[name].to_pylist(), name)
        writers[0].write_table(table)

    try:
        yield write
        with _arrow_as_file_errors():
            if not schemas:  # a file without rows still has columns
                schemas.append(_schema([empty], row_format))
            if not writers:
                start()
    finally:
        if writers:
            writers[0].close()


def _schema(rows: Sequence[Mapping[str, Any]], row_format: RowFormat) -> Any:
    """Return the types of all columns; unknown ones are inferred from these rows, if possible."""
    import pyarrow

    types = {"text": pyarrow.string(), "number": pyarrow.int64(), "strings": pyarrow.list_(pyarrow.string())}
    types["shares"] = pyarrow.map_(pyarrow.string(), pyarrow.float64())
    unknown = [name for name in row_format.names if name not in row_format.types]
    found = pyarrow.Table.from_pylist([{name: row.get(name) for name in unknown} for row in rows]).schema
    known = {name: pyarrow.field(name, types[kind]) for name, kind in row_format.types.items()}
    return pyarrow.schema([known[name] if name in known else found.field(name) for name in row_format.names])


def _with_items(row: Mapping[str, Any], row_format: RowFormat) -> dict[str, Any]:
    """Return a row whose shares are lists of pairs, as a map column takes them."""
    shares = [name for name, kind in row_format.types.items() if kind == "shares" and row.get(name) is not None]
    return {**row, **{name: list(row[name].items()) for name in shares}}


@contextmanager
def _arrow_as_file_errors() -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f"Parquet cannot store a carried field: its values have different types, or are too large ({reason})."
        ) from None


def _is_open(column: Any) -> bool:
    """Return whether a type contains null or a struct without fields."""
    if not column.num_fields:
        return str(column) in ("null", "struct<>")
    return any(_is_open(column.field(k).type) for k in range(column.num_fields))


def _check_kept(value: Any, kept: Any, name: str) -> None:
    """Raise if a column changed a value; keys that only other rows have are null."""
    if isinstance(value, dict) and isinstance(kept, dict) and value.keys() <= kept.keys():
        for key, item in value.items():
            _check_kept(item, kept[key], name)
    elif isinstance(value, list) and isinstance(kept, list) and len(value) == len(kept):
        for item, kept_item in zip(value, kept, strict=True):
            _check_kept(item, kept_item, name)
    elif isinstance(value, bool) is not isinstance(kept, bool) or value != kept:
        raise FileError(
            f"Parquet cannot store the carried field {shown(name)}: {shown(value)} would become {shown(kept)};"
            " write .jsonl instead."
        )
