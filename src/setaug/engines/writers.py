"""Writers that convert JSON lines to the kind of the output file."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from setaug.augmenter import PairFormat
from setaug.engines.threads import write_behind
from setaug.errors import FileError, MissingExtraError
from setaug.examples import Pair, read_valid_row, shown
from setaug.storage import kind_of, open_output

Write = Callable[[memoryview], None]
_HELD = 100_000
"""How many rows of a Parquet file are buffered until the column types are known."""


@contextmanager
def open_rows(target: str | Path, pair_format: PairFormat, carry: Sequence[str]) -> Iterator[Write]:
    """Open a file; yield a function that writes JSON lines in the format of the file.

    Another thread writes while the caller prepares the next lines, so lines must not change until the call after
    next.
    """
    kind = check_rows(target, pair_format)
    with open_output(target) as stream:
        match kind:
            case "jsonl":
                with write_behind(stream.write) as write:
                    yield write
            case "parquet":
                with _parquet(stream, pair_format, carry) as write:
                    yield write
            case _:
                yield _delimited(stream, [*pair_format.names, *carry], "\t" if kind == "tsv" else ",")


def check_rows(target: str | Path, pair_format: PairFormat) -> str:
    """Return the kind of a file; raise if it cannot represent the pairs."""
    kind = kind_of(target)
    if kind in ("csv", "tsv") and pair_format.is_chat:
        raise FileError(f"{target}: chat messages do not fit into a {kind.upper()} cell; write .jsonl or .parquet.")
    return kind


def _rows(lines: memoryview) -> Iterator[dict[str, Any]]:
    for line in lines.tobytes().split(b"\n")[:-1]:
        yield read_valid_row(line)


def _delimited(stream: BinaryIO, names: Sequence[str], separator: str) -> Write:
    # Not the csv module's writer, which up to Python 3.12 leaves a carriage return unquoted: it would end the row.
    # A byte order mark without quotes, at the start of the file, would be dropped.
    is_special = re.compile(f'["\r\n\ufeff{separator}]').search

    def cell(value: Any) -> str:
        if value is None:
            return ""
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
        return '"' + text.replace('"', '""') + '"' if is_special(text) else text

    def write_rows(rows: Iterable[Iterable[Any]]) -> None:
        stream.write("".join([separator.join(map(cell, row)) + "\n" for row in rows]).encode())

    write_rows([names])
    return lambda lines: write_rows([row[name] for name in names] for row in _rows(lines))


@contextmanager
def _parquet(stream: BinaryIO, pair_format: PairFormat, carry: Sequence[str]) -> Iterator[Write]:
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
            schemas.append(pyarrow.Table.from_pylist(rows).schema)
            schemas[:] = [pyarrow.unify_schemas(schemas, promote_options="permissive")]
            if len(held) > _HELD or not any(_is_open(column.type) for column in schemas[0]):
                start()

    def start() -> None:
        writers.append(parquet.ParquetWriter(stream, schemas[0], write_page_checksum=True))
        write_rows(held)
        held.clear()

    def write_rows(rows: list[dict[str, Any]]) -> None:
        table = pyarrow.Table.from_pylist(rows, schema=schemas[0])
        for name in carry:
            _check_kept([row[name] for row in rows], table[name].to_pylist(), name)
        writers[0].write_table(table)

    try:
        yield write
        with _arrow_as_file_errors():
            if not schemas:  # a file without rows has columns, too
                schemas.append(pyarrow.Table.from_pylist([pair_format.row(Pair("", "", dict.fromkeys(carry)))]).schema)
            if not writers:
                start()
    finally:
        if writers:
            writers[0].close()


@contextmanager
def _arrow_as_file_errors() -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f"Parquet cannot hold a carried field: values of different kinds, or too large ({reason})."
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
            f"Parquet cannot hold the field {shown(name)}, which is carried: {shown(value)} would become {shown(kept)};"
            " write .jsonl instead."
        )
