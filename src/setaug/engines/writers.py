"""Rows that are already JSON lines, written to the kind of file that is asked for."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from setaug.augmenter import PairFormat
from setaug.engines.threads import write_behind
from setaug.errors import FileError, MissingExtraError
from setaug.examples import Pair
from setaug.files import kind_of, open_output

Write = Callable[[memoryview], None]


@contextmanager
def open_rows(target: str | Path, pair_format: PairFormat, carry: Sequence[str]) -> Iterator[Write]:
    """Open a file; give a function that takes JSON lines and writes them in the file's own way.

    Writing goes on in another thread while the caller prepares the next lines, so lines must stay as they are until
    the call after next.
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
    """Give the kind of a file; raise if it cannot hold the pairs."""
    kind = kind_of(target)
    if kind in ("csv", "tsv") and pair_format.is_chat:
        raise FileError(f"{target}: chat messages do not fit into a {kind.upper()} cell; write .jsonl or .parquet.")
    return kind


def _rows(lines: memoryview) -> Iterator[dict[str, Any]]:
    return map(orjson.loads, lines.tobytes().split(b"\n")[:-1])


def _delimited(stream: BinaryIO, names: Sequence[str], separator: str) -> Write:
    def write_rows(rows: Callable[[Any], None]) -> None:
        text = io.StringIO(newline="")
        rows(csv.DictWriter(text, names, delimiter=separator, lineterminator="\n"))
        stream.write(text.getvalue().encode())

    write_rows(lambda writer: writer.writeheader())
    return lambda lines: write_rows(lambda writer: writer.writerows(_rows(lines)))


@contextmanager
def _parquet(stream: BinaryIO, pair_format: PairFormat, carry: Sequence[str]) -> Iterator[Write]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("Writing Parquet", "parquet") from None
    writers: list[Any] = []

    def write(lines: memoryview) -> None:
        write_rows(list(_rows(lines)))

    def write_rows(rows: list[dict[str, Any]], n_rows: int | None = None) -> None:
        try:
            table = pyarrow.Table.from_pylist(rows, schema=writers[0].schema if writers else None)[:n_rows]
        except pyarrow.ArrowException as error:
            raise FileError(f"a field that is carried has values of different kinds: {error}") from None
        if not writers:
            writers.append(parquet.ParquetWriter(stream, table.schema))
        writers[0].write_table(table)

    try:
        yield write
        if not writers:  # a file without rows has columns, too
            write_rows([pair_format.row(Pair("", "", dict.fromkeys(carry)))], 0)
    finally:
        if writers:
            writers[0].close()
