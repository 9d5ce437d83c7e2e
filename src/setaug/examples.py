"""A text with its labels, and where it comes from: JSONL, CSV, TSV, Parquet or Hugging Face data sets.

Rows are read one after the other, so memory does not grow with their number.
"""

import csv
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar, cast

import orjson

from setaug.errors import DataError, FileError, MissingExtraError
from setaug.files import BROKEN_ARCHIVE, KINDS, display_name, kind_of, open_input


@dataclass(frozen=True, slots=True)
class Example:
    """Hold a text and its label set.

    Labels keep the order in which they were given; a label that is given twice counts once.

    Examples
    --------
    >>> Example("We won!", ["joy", "pride", "joy"]).labels
    ('joy', 'pride')

    """

    text: str
    labels: tuple[str, ...]
    id: str | int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Whatever else the row holds."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise DataError(f'"text" must be a string, got {shown(self.text)}.')
        object.__setattr__(self, "labels", check_labels(self.labels, "labels"))


@dataclass(frozen=True, slots=True)
class Pair:
    """Hold a prompt and the completion that a model learns to write for it."""

    prompt: str
    completion: str
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Fields of the example's row that were carried along."""


@dataclass(kw_only=True, slots=True)
class Skipped:
    """Count rows that were left out, and keep what was wrong with the first few."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, error: DataError) -> None:
        """Note one row."""
        self.count += 1
        if len(self.first) < 5:
            self.first.append(str(error))


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Say where in a row the text and the labels stand."""

    text: str = "text"
    labels: str = "labels"
    delimiter: str = ";"
    """What separates the labels in one cell of a CSV or TSV file."""
    are_labelled: bool = True
    """Whether labels are needed; without them, examples have none."""

    def example(self, row: Mapping[str, Any]) -> Example:
        """Check a row and make an example of it."""
        for name in (self.text, self.labels):
            if name not in row and (self.are_labelled or name != self.labels):
                raise DataError(f'field "{name}" is missing; the row has {_listed(row) or "no field at all"}.')
        text = row[self.text]
        if not isinstance(text, str):
            raise DataError(f'"{self.text}" must be a string, got {shown(text)}.')
        labels = check_labels(row[self.labels], self.labels) if self.are_labelled else ()
        fields = {key: value for key, value in row.items() if key not in (self.text, self.labels)}
        return Example(text, labels, fields.get("id"), fields)


def check_labels(labels: object, name: str) -> tuple[str, ...]:
    """Give the different labels in the order given, or say what is wrong with them."""
    if isinstance(labels, str) or not isinstance(labels, Iterable) or isinstance(labels, Mapping):
        raise DataError(f'"{name}" must be a list of strings, got {shown(labels)}.')
    different: dict[str, None] = {}
    for label in labels:
        if not isinstance(label, str):
            raise DataError(f'"{name}" must be a list of strings, got {shown(label)} in it.')
        if not label.strip():
            raise DataError(f'"{name}" holds an empty or blank label: {shown(label)}.')
        different[label] = None
    return tuple(different)


def shown(value: object) -> str:
    """Show a value in a message as JSON, cut short where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(names: Iterable[object]) -> str:
    """List the first few names."""
    first = [shown(name) for name in islice(names, 9)]
    return ", ".join(first[:8] + ["..."] * (len(first) > 8))


Data: TypeAlias = Iterable[Example] | Iterable[Mapping[str, Any]]
"""Examples, or rows such as those of a Hugging Face data set."""


def as_examples(data: Data, columns: Columns | None = None) -> Iterator[Example]:
    """Give examples from examples, from rows (any mappings) or from a Hugging Face ``Dataset``.

    Class labels that a data set stores as numbers come back by name.

    Examples
    --------
    >>> list(as_examples([{"text": "We won!", "labels": ["joy"]}]))
    [Example(text='We won!', labels=('joy',), id=None, fields={})]

    """
    columns = columns or Columns()
    names = _class_names(data, columns.labels)
    for number, item in enumerate(data, 1):
        if isinstance(item, Example):
            yield item
            continue
        if not isinstance(item, Mapping):
            raise TypeError(f"expected examples or rows (mappings), got {shown(item)}.")
        try:
            yield columns.example(item if names is None else _with_names(item, columns.labels, names))
        except DataError as error:
            raise DataError(error.problem, source="the data", line=number) from None


def make_examples(data: Data | Iterable[str], labels: Iterable[Collection[str]] | None = None) -> list[Example]:
    """Make examples of examples, of rows, or of texts and label sets."""
    if labels is None:
        return list(as_examples(cast(Data, data)))
    texts, sets = list(data), list(labels)
    if len(texts) != len(sets):
        raise ValueError(f"there are {len(texts)} texts and {len(sets)} label sets.")
    # The order of a Python set changes from run to run, and the order in which labels are given is trained on.
    ordered = [sorted(found) if isinstance(found, Set) else found for found in sets]
    return [Example(text, found) for text, found in zip(texts, ordered, strict=True)]  # type: ignore[arg-type]


def make_texts(data: Data | Iterable[str]) -> tuple[list[str], Sequence[str | int | None]]:
    """Give the texts of texts, examples or rows, and their ids."""
    if isinstance(data, str):
        raise TypeError(f"expected texts, got the string {data!r}.")
    items = cast(Data, [Example(item, ()) if isinstance(item, str) else item for item in data])
    examples = list(as_examples(items, Columns(are_labelled=False)))
    return [example.text for example in examples], [example.id for example in examples]


def _with_names(row: Mapping[str, Any], column: str, names: list[str]) -> Mapping[str, Any]:
    labels = row[column]
    if not isinstance(labels, list):
        raise DataError(f'"{column}" must be a list of class labels, got {shown(labels)}.')
    for label in labels:
        if type(label) is not int or not 0 <= label < len(names):
            raise DataError(f'"{column}" holds {shown(label)}, which is no class label of the {len(names)}.')
    return {**row, column: [names[label] for label in labels]}


def _class_names(data: object, column: str) -> list[str] | None:
    """Look up the names of a data set's class labels (``List(ClassLabel(...))``)."""
    features = getattr(data, "features", None) or {}
    inner = getattr(features.get(column), "feature", None)
    return getattr(inner, "names", None)


def read_examples(
    path: str | Path,
    *,
    text_field: str = "text",
    labels_field: str = "labels",
    are_labelled: bool = True,
    delimiter: str = ";",
    kind: str | None = None,
    skipped: Skipped | None = None,
) -> Iterator[Example]:
    """Read the examples of a file one after the other.

    Parameters
    ----------
    path
        A ``.jsonl``, ``.csv``, ``.tsv`` or ``.parquet`` file, the first three also with ``.gz`` or ``.zst``
        behind; ``-`` is standard input.
    are_labelled
        Whether to read labels; without them, only texts are needed, and examples have no labels.
    kind
        The kind of file, where its name does not tell.
    delimiter
        What separates the labels in a CSV or TSV cell; white space around a label is dropped there.
    skipped
        Where given, rows that are bad are noted there and left out; otherwise the first one raises `DataError`.

    """
    columns = Columns(text=text_field, labels=labels_field, delimiter=delimiter, are_labelled=are_labelled)
    with open_input(path) as stream:
        for _, example in read_stream(stream, display_name(path), kind or kind_of(path), columns, skipped):
            yield example


def read_stream(
    stream: BinaryIO,
    name: str,
    kind: str,
    columns: Columns,
    skipped: Skipped | None,
    row_groups: range | None = None,
) -> Iterator[tuple[int, Example]]:
    """Read the examples of an open file, each with the number of labels that it repeated.

    Of a Parquet file, only some row groups are read where these are given.
    """
    if kind not in _READERS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    try:
        # The rows have no name here: an error would keep them, and with them the stream.
        for line, read_row in _READERS[kind](stream, columns, row_groups):
            try:
                row = read_row()
                example = columns.example(row)
                n_given = len(row[columns.labels]) if columns.are_labelled else 0
                yield n_given - len(example.labels), example
            except DataError as error:
                located = DataError(error.problem, source=name, line=line)
                if skipped is None:
                    raise located from None
                skipped.add(located)
    except BROKEN_ARCHIVE as error:
        raise FileError(f"{name} is damaged: {error}.") from None
    except DataError as error:
        raise DataError(error.problem, source=name, line=error.line) from None
    except FileError as error:
        raise FileError(f"{name}: {error}") from None


_Wrapper = TypeVar("_Wrapper", io.BufferedReader, io.TextIOWrapper)
Rows: TypeAlias = Iterator[tuple[int, Callable[[], Mapping[str, Any]]]]
"""Line numbers, each with a function that reads the row there or raises `DataError`."""


def _jsonl_rows(stream: BinaryIO, *_: object) -> Rows:
    for number, line in json_lines(stream):
        yield number, lambda line=line: parse_json_row(line)  # type: ignore[misc]


def json_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a JSONL file that are not blank, with their numbers."""
    with _borrowed(io.BufferedReader(cast(Any, stream), 1 << 20)) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield number, line


@contextmanager
def _borrowed(wrapper: _Wrapper) -> Iterator[_Wrapper]:
    """Give back what a wrapper reads from, unclosed: it is somebody else's."""
    try:
        yield wrapper
    finally:
        wrapper.detach()


def parse_json_row(line: bytes) -> dict[str, Any]:
    """Read one line of a JSONL file."""
    line = line.rstrip(b"\r\n")
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        try:
            line.decode()
        except UnicodeDecodeError as undecodable:
            at = undecodable.start
            around = line[max(at - 20, 0) : at + 20]
            raise DataError(f"invalid UTF-8, byte {line[at]:#04x} at column {at + 1}: {around!r}.") from None
        raise DataError(f"not valid JSON, {error.msg} at column {error.colno}: {_excerpt(line)}") from None
    if not isinstance(row, dict):
        raise DataError(f"must be a JSON object, got {shown(row)}.")
    return row


def _excerpt(line: bytes) -> str:
    text = "".join(char if char.isprintable() else " " for char in line.decode(errors="replace").strip())
    return text if len(text) <= 60 else text[:57] + "..."


def _csv_rows(stream: BinaryIO, columns: Columns, _: object) -> Rows:
    yield from _delimited_rows(stream, columns, ",")


def _tsv_rows(stream: BinaryIO, columns: Columns, _: object) -> Rows:
    yield from _delimited_rows(stream, columns, "\t")


def _delimited_rows(stream: BinaryIO, columns: Columns, separator: str) -> Rows:
    csv.field_size_limit(sys.maxsize)  # a text may be longer than the module's 128 KiB
    # Bytes that are no UTF-8 become lone surrogates, so that one bad row does not end the reading.
    with _borrowed(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")) as text:
        # Strict, or a quote that is never closed would silently make one row of all that follow.
        reader = csv.reader(text, delimiter=separator, strict=True)
        header = _next_cells(reader)
        if isinstance(header, DataError):
            raise DataError(header.problem, line=1)
        if header is None:
            return
        for name in (columns.text, columns.labels):
            if name not in header and (columns.are_labelled or name != columns.labels):
                raise DataError(f'column "{name}" is missing; the header has {_listed(header)}.', line=1)
        start = reader.line_num + 1
        while (cells := _next_cells(reader)) is not None:
            if cells:
                yield start, lambda cells=cells: _csv_row(header, cells, columns)  # type: ignore[misc]
            start = reader.line_num + 1


def _next_cells(reader: Iterator[list[str]]) -> list[str] | DataError | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        return DataError(f"quotes that do not fit together ({error}).")


def _csv_row(header: list[str], cells: list[str] | DataError, columns: Columns) -> Mapping[str, Any]:
    if isinstance(cells, DataError):
        raise cells
    for cell in cells:
        if not cell.isascii() and any("\ud800" <= char <= "\udfff" for char in cell):
            around = cell.encode(errors="surrogateescape")[:40]
            raise DataError(f"invalid UTF-8 in {around!r}.")
    if len(cells) > len(header):
        raise DataError(f"{len(cells)} cells where the header has {len(header)}: {shown(cells[len(header)])}.")
    row: dict[str, Any] = dict(zip(header, cells, strict=False))
    if columns.labels in row:
        cell = row[columns.labels]
        row[columns.labels] = [label.strip() for label in cell.split(columns.delimiter)] if cell.strip() else []
    return row


def _parquet_rows(stream: BinaryIO, columns: Columns, row_groups: range | None) -> Rows:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtraError("Reading Parquet", "parquet") from None
    try:
        table = parquet.ParquetFile(stream)
        groups = range(table.num_row_groups) if row_groups is None else row_groups
        n_before = sum(table.metadata.row_group(k).num_rows for k in range(groups.start))
        batches = table.iter_batches(batch_size=1024, row_groups=list(groups))
        for number, row in enumerate(chain.from_iterable(batch.to_pylist() for batch in batches), n_before + 1):
            yield number, lambda row=row: row  # type: ignore[misc]
    except (ArrowException, OSError) as error:
        raise FileError(f"not a Parquet file that can be read ({error}).") from None


_READERS: dict[str, Callable[[BinaryIO, Columns, range | None], Rows]] = {
    "jsonl": _jsonl_rows,
    "csv": _csv_rows,
    "tsv": _tsv_rows,
    "parquet": _parquet_rows,
}
