"""Examples, texts with labels, and their sources: JSONL, CSV, TSV, Parquet or Hugging Face datasets.

Rows are streamed, so memory does not grow with their number.
"""

import csv
import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isfinite, isnan
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias, TypeVar, cast

import orjson

from setaug.errors import DataError, FileError, MissingExtraError
from setaug.storage import BROKEN_ARCHIVE, KINDS, display_name, kind_of, open_input, write_rows
from setaug.tables import as_rows, indicated, is_frame, is_matrix

MAX_LINE = 1 << 28
"""Maximum length of a line of a JSONL file (256 MiB): positions in a block of lines are 32-bit integers."""
_SHOWN = 60
_SURROGATE = re.compile("[\ud800-\udfff]")
_ONE_PER_LINE = "JSON lines have one object per line, not an array of them"
_LONG_NUMBER = re.compile(rb"[0-9]{19}")


_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Example:
    """A text and its label set.

    Labels keep their order; a duplicate label counts once.

    Examples
    --------
    >>> Example("We won!", ["joy", "pride", "joy"]).labels
    ('joy', 'pride')

    """

    text: str
    labels: tuple[str, ...]
    id: str | int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """All other fields of the row."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise DataError(f'"text" must be a string, got {shown(self.text)}.')
        object.__setattr__(self, "labels", check_labels(self.labels, "labels"))

    def to_dict(self) -> dict[str, Any]:
        """Return the example as a row with the fields ``id`` (if any), ``text``, ``labels``, and all others.

        Examples
        --------
        >>> Example("We won!", ["joy", "pride"], fields={"source": "sms"}).to_dict()
        {'text': 'We won!', 'labels': ['joy', 'pride'], 'source': 'sms'}

        """
        for name in ("text", "labels"):
            if name in self.fields:
                raise DataError(f'the other fields of an example must not be named "{name}"; rename it.')
        id_ = {} if self.id is None else {"id": self.id}
        return {**id_, "text": self.text, "labels": list(self.labels), **self.fields, **id_}


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt, and the completion that a model learns to write for it."""

    prompt: str
    completion: str
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Fields carried over from the example's row."""


@dataclass(kw_only=True, slots=True)
class Skipped:
    """The number of skipped rows, and the errors of the first few."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, error: DataError, n_rows: int = 1) -> None:
        """Count one bad row, or several that were read as one."""
        self.count += n_rows
        if len(self.first) < 5:
            self.first.append(str(error))


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """The columns of the text and the labels in a row."""

    text: str = "text"
    labels: str = "labels"
    delimiter: str = ";"
    """The separator between two labels in a cell of a CSV or TSV file."""
    are_labelled: bool = True
    """Whether labels are required; otherwise they are not read."""
    names: Sequence[str] | None = None
    """In Python, the names of labels that are numbers, or of the columns of an indicator matrix."""

    def to_dict(self) -> dict[str, Any]:
        """Return the names as JSON, without what is not set."""
        names = {} if self.names is None else {"names": list(self.names)}
        return {"text": self.text, "labels": self.labels, "delimiter": self.delimiter, **names}

    def example(self, row: Mapping[str, Any]) -> Example:
        """Check a row, and return its example."""
        for name in (self.text, self.labels):
            if name not in row and (self.are_labelled or name != self.labels):
                raise _missing(name, row, "text" if name == self.text else "labels")
        text = row[self.text]
        if not isinstance(text, str):
            raise DataError(f"{shown(self.text)} must be a string, got {shown(text)}.")
        labels = check_labels(row[self.labels], self.labels) if self.are_labelled else ()
        fields = {key: value for key, value in row.items() if key not in (self.text, self.labels)}
        return Example(text, labels, fields.get("id"), fields)


def _missing(name: str, row: Mapping[str, Any], what: str) -> DataError:
    return DataError(f"field {shown(name)} is missing; the row has {listed(row) or 'no fields'}.", missing=what)


def check_labels(labels: object, name: str) -> tuple[str, ...]:
    """Return the distinct labels in the order given; raise if one is invalid."""
    if isinstance(labels, str) or not isinstance(labels, Iterable) or isinstance(labels, Mapping):
        raise DataError(f"{shown(name)} must be a list of strings, got {shown(labels)}.")
    different: dict[str, None] = {}
    for label in labels:
        if not isinstance(label, str):
            raise DataError(f"{shown(name)} must be a list of strings, but contains {shown(label)}.")
        if not label.strip():
            raise DataError(f"{shown(name)} contains an empty or blank label: {shown(label)}.")
        different[label] = None
    return tuple(different)


def shown(value: object) -> str:
    """Return a value as JSON for a message, truncated if long."""
    value = _start(value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return _cut("".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text))


def _start(value: Any, depth: int = 0) -> Any:
    """Return enough of a value to show its start; the rest may be long or deeply nested."""
    if isinstance(value, str | bytes):
        return value[: _SHOWN + 1]
    if isinstance(value, list | tuple | dict) and depth > _SHOWN:
        return None
    if isinstance(value, list | tuple):
        return [_start(item, depth + 1) for item in value[: _SHOWN + 1]]
    if isinstance(value, dict):
        return {_start(key): _start(item, depth + 1) for key, item in islice(value.items(), _SHOWN + 1)}
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def listed(names: Iterable[object]) -> str:
    """List the first few names."""
    first = [shown(name) for name in islice(names, 9)]
    return ", ".join(first[:8] + ["..."] * (len(first) > 8))


class Table(Protocol):
    """A data frame of pandas or polars."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""


Data: TypeAlias = Iterable[Example] | Iterable[Mapping[str, Any]] | Mapping[str, Any] | Table
"""Examples or rows; a data frame, a mapping of columns or a Hugging Face dataset."""
LabelSets: TypeAlias = Any
"""Label sets: a list or column of collections of labels, or an indicator matrix (array, sparse array, data frame)."""


def as_examples(data: Any, columns: Columns | None = None, *, labels: LabelSets | None = None) -> Iterator[Example]:
    """Yield examples from examples, rows (any mappings), a Hugging Face ``Dataset``, a data frame or columns.

    Class labels that a dataset stores as numbers become names; other numbers become strings, with a warning.

    Parameters
    ----------
    columns
        The names of the text and label columns, and of the labels if they are numbers.
    labels
        The label sets, if the data has texts only.

    Examples
    --------
    >>> list(as_examples([{"text": "We won!", "labels": ["joy"]}]))
    [Example(text='We won!', labels=('joy',), id=None, fields={})]
    >>> list(as_examples(["We won!"], labels=[{"pride", "joy"}]))
    [Example(text='We won!', labels=('joy', 'pride'), id=None, fields={})]

    """
    columns = checked_columns(columns)
    if labels is not None:
        yield from _join(data, labels, columns)
        return
    if isinstance(data, str | Path):
        raise TypeError(f"expected examples, rows or a table, got {str(data)!r}; read a file with read_examples(path).")
    read = LabelReader.of(data, columns)
    for number, item in enumerate(as_rows(data), 1):
        if isinstance(item, Example):
            yield item
            continue
        if not isinstance(item, Mapping):
            raise TypeError(f"line {number} of the data: {_unexpected(item, are_labelled=columns.are_labelled)}")
        try:
            yield columns.example(read.row(item, columns.labels) if columns.are_labelled else item)
        except DataError as error:
            raise error.located(source="the data", line=number) from None


def checked_columns(columns: Columns | None) -> Columns:
    """Return the names of columns, by default ``text`` and ``labels``."""
    if columns is not None and not isinstance(columns, Columns):
        raise TypeError(f"columns must be Columns(text=..., labels=...), got {columns!r}.")
    return columns or Columns()


def _unexpected(item: object, *, are_labelled: bool) -> str:
    if not are_labelled:
        return f"expected a text or a row (a mapping), got {shown(item)}."
    hint = "; with texts, pass their label sets too, as in fit(texts, label_sets)" if isinstance(item, str) else ""
    return f"expected examples or rows (mappings), got {shown(item)}{hint}."


def make_examples(data: Any, labels: LabelSets | None = None, columns: Columns | None = None) -> list[Example]:
    """Return examples from anything that `as_examples` takes, from texts and label sets, or from a tuple of these."""
    if labels is None and isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], Example | Mapping):
        data, labels = data
    return list(as_examples(data, columns, labels=labels))


def _join(data: Any, labels: LabelSets, columns: Columns) -> Iterator[Example]:
    texts, ids = make_texts(data, columns)
    sets = list(as_sets(labels, columns))
    if len(texts) != len(sets):
        raise ValueError(f"texts and label sets must have the same length, got {len(texts)} and {len(sets)}.")
    for text, found, key in zip(texts, sets, ids, strict=True):
        yield Example(text, found, key)


def make_texts(data: Any, columns: Columns | None = None) -> tuple[list[str], Sequence[str | int | None]]:
    """Return the texts of texts, or of anything that `as_examples` takes, and their ids."""
    if isinstance(data, str | Path):
        raise TypeError(f"expected texts, got the string {str(data)!r}; put a single text into a list.")
    items = [Example(str(item), ()) if isinstance(item, str) else item for item in as_rows(data)]
    examples = list(as_examples(items, replace(checked_columns(columns), are_labelled=False)))
    return [example.text for example in examples], [example.id for example in examples]


def as_sets(data: LabelSets, columns: Columns | None = None) -> Iterator[tuple[str, ...]]:
    """Yield label sets from label sets, an indicator matrix, or anything with labels: examples, predictions, rows.

    Examples
    --------
    >>> list(as_sets([["love", "joy"], {"pride", "joy"}, Example("Hello", [])]))
    [('love', 'joy'), ('joy', 'pride'), ()]

    """
    columns = checked_columns(columns)
    read = LabelReader.of(data, columns)
    for number, item in enumerate(as_items(data, columns), 1):
        if isinstance(item, Mapping) and columns.labels not in item:
            raise _missing(columns.labels, item, "labels").located(source="the data", line=number)
        given = item[columns.labels] if isinstance(item, Mapping) else getattr(item, "labels", item)
        try:
            yield read(given, columns.labels)
        except DataError as error:
            raise error.located(source="the data", line=number) from None


def as_items(data: Any, columns: Columns) -> Iterable[Any]:
    """Return the label sets of an indicator matrix, the rows of a table, or any other data unchanged."""
    if isinstance(data, str):
        raise TypeError(f"expected label sets, got the string {data!r}.")
    is_indicator = is_frame(data) and columns.labels not in data.columns
    return indicated(data, columns.names) if is_indicator or is_matrix(data) else as_rows(data)


class LabelReader:
    """Reads the label sets of Python objects, which may be numbers, and whose order may vary between runs.

    Parameters
    ----------
    names
        The names of the numbers; without them, numbers become strings, which is reported once.

    """

    def __init__(self, names: Sequence[str] | None) -> None:
        self._names = names
        self._has_told = False

    @classmethod
    def of(cls, data: object, columns: Columns) -> "LabelReader":
        """Return the reader for a dataset: its features may name its class labels."""
        return cls(_class_names(data, columns.labels) or columns.names)

    def row(self, row: Mapping[str, Any], column: str) -> Mapping[str, Any]:
        """Return a row with its labels read, if it has any."""
        return {**row, column: self(row[column], column)} if column in row else row

    def __call__(self, given: Any, column: str) -> tuple[str, ...]:
        """Read a label set."""
        if isinstance(given, str):
            raise DataError(
                f"{shown(column)} must be a list of strings, got {shown(given)}; split joined labels first, and put a "
                "single label into a list."
            )
        if given is None or (isinstance(given, float) and isnan(given)):
            raise DataError(f"{shown(column)} must be a list of strings, got {shown(given)}; an empty set is [].")
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            return check_labels(given, column)
        given = given if isinstance(given, Set) else list(given)
        if self._are_indicators(given):
            raise DataError(
                f"{shown(column)} repeats a number: {shown(given)}; rows of 0 and 1 must be an array (numpy, scipy)."
            )
        labels = [self._label(label, column) for label in given]
        # The order of a Python set varies between runs, and models are trained on the given order.
        return check_labels(sorted(labels) if isinstance(given, Set) and _are_strings(labels) else labels, column)

    def _are_indicators(self, given: Collection[Any]) -> bool:
        """Return whether labels are rather a row of an indicator matrix: a number is repeated."""
        if not given or not all(isinstance(label, Real) for label in given) or len(set(given)) == len(given):
            return False
        return self._names is not None or all(label in (0, 1) for label in given)

    def _label(self, label: Any, column: str) -> Any:
        if isinstance(label, str):
            return label if type(label) is str else str(label)
        if self._names is not None:
            if not isinstance(label, Integral) or isinstance(label, bool) or not 0 <= int(label) < len(self._names):
                raise DataError(
                    f"{shown(column)} contains {shown(label)}, not one of the {len(self._names)} class labels."
                )
            return self._names[int(label)]
        if not isinstance(label, Real) or isinstance(label, bool) or not isfinite(label):
            return label
        number = int(label) if isinstance(label, Integral) else float(label)
        written = str(int(number) if number == int(number) else number)
        if not self._has_told:
            self._has_told = True
            warnings.warn(f"numeric labels are converted to strings, such as {written!r}.", stacklevel=2)
        return written


def _are_strings(labels: Iterable[Any]) -> bool:
    return all(isinstance(label, str) for label in labels)


def _class_names(data: object, column: str) -> list[str] | None:
    """Look up the names of the class labels (``List(ClassLabel(...))``) of a dataset, or of one of its columns."""
    features = getattr(data, "features", None)
    feature = features.get(column) if isinstance(features, Mapping) else features
    return getattr(getattr(feature, "feature", None), "names", None)


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
    """Yield the examples of a file.

    Parameters
    ----------
    path
        A ``.jsonl``, ``.csv``, ``.tsv`` or ``.parquet`` file, the first three optionally followed by ``.gz`` or
        ``.zst``; ``-`` is standard input.
    are_labelled
        Whether to read labels; otherwise only texts are required, and examples have no labels.
    kind
        The file format, if not clear from the suffix.
    delimiter
        The separator between two labels in a CSV or TSV cell; white space around labels is stripped.
    skipped
        If given, bad rows are counted there and skipped; otherwise the first one raises `DataError`.

    """
    columns = Columns(text=text_field, labels=labels_field, delimiter=delimiter, are_labelled=are_labelled)
    with open_input(path) as stream:
        for _, example in read_stream(stream, display_name(path), kind or kind_of(path), columns, skipped):
            yield example


def write_examples(path: str | Path, examples: Iterable[Example]) -> None:
    """Write examples to a JSONL file (also ``.gz``, ``.zst``, or ``-``), with all their fields.

    The file is written atomically, and `read_examples` returns the same examples.
    """
    write_rows(path, (example.to_dict() for example in examples))


def read_stream(
    stream: BinaryIO, name: str, kind: str, columns: Columns, skipped: Skipped | None
) -> Iterator[tuple[int, Example]]:
    """Yield the examples of an open file, each with its number of duplicate labels."""

    def make(row: Mapping[str, Any]) -> tuple[int, Example]:
        example = columns.example(row)
        n_given = len(row[columns.labels]) if columns.are_labelled else 0
        return n_given - len(example.labels), example

    return read_rows(stream, name, kind, columns, skipped, make)


def read_rows(
    stream: BinaryIO,
    name: str,
    kind: str,
    columns: Columns,
    skipped: Skipped | None,
    make: Callable[[Mapping[str, Any]], _Made],
    *,
    carry: Sequence[str] = (),
    row_groups: range | None = None,
) -> Iterator[_Made]:
    """Yield ``make(row)`` for each row of an open file; a row for which it raises `DataError` is a bad row.

    Parameters
    ----------
    carry
        Columns that, like those of text and labels, must not be there twice.
    row_groups
        Of a Parquet file, the row groups to read.

    """
    if kind not in _READERS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    try:
        # The rows are not bound to a name: an error would keep them, and thus the stream, alive.
        for line, n_rows, read_row in _READERS[kind](stream, columns, carry, row_groups):
            try:
                made = make(read_row())
            except DataError as error:
                located = error.located(source=name, line=line)
                if skipped is None:
                    raise located from None
                skipped.add(located, n_rows)
                continue
            yield made
    except BROKEN_ARCHIVE as error:
        raise FileError(f"{name} is damaged: {error}.") from None
    except DataError as error:
        raise error.located(source=name, line=error.line) from None
    except FileError as error:
        raise FileError(f"{name}: {error}") from None


_Wrapper = TypeVar("_Wrapper", io.BufferedReader, io.TextIOWrapper)
Rows: TypeAlias = Iterator[tuple[int, int, Callable[[], Mapping[str, Any]]]]
"""Line numbers, each with its number of rows, and a function that reads the row or raises `DataError`."""


def _jsonl_rows(stream: BinaryIO, *_: object) -> Rows:
    for number, line in json_lines(stream):
        yield number, 1, lambda line=line: parse_json_row(line)  # type: ignore[misc]


def json_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of a JSONL file, with their numbers."""
    with _borrowed(io.BufferedReader(cast(Any, stream), 1 << 20)) as lines:
        number = 0
        while line := lines.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise too_long(number)
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip(b" \t\r\n"):  # the white space of JSON
                yield number, line


def too_long(line: int | None = None) -> DataError:
    """Return the error for a row that is too long."""
    return DataError(f"longer than {MAX_LINE:,} bytes; split it.", line=line)


@contextmanager
def _borrowed(wrapper: _Wrapper) -> Iterator[_Wrapper]:
    """Detach a wrapper from its stream on exit, so that the stream stays open: the caller owns it."""
    try:
        yield wrapper
    finally:
        wrapper.detach()


def parse_json_row(line: bytes) -> dict[str, Any]:
    """Read one line of a JSONL file; integers of any size are exact."""
    line = line.rstrip(b"\r\n")
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        try:
            line.decode()
        except UnicodeDecodeError as undecodable:
            at = undecodable.start
            around = line[max(at - 20, 0) : at + 20]
            raise DataError(
                f"invalid UTF-8, byte {line[at]:#04x} at column {at + 1}: {around!r}; convert the file to UTF-8."
            ) from None
        hint = f"{_ONE_PER_LINE}: " if line.strip() in (b"[", b"[{") else ""
        raise DataError(f"not valid JSON, {error.msg} at column {error.colno}: {hint}{_excerpt(line)}") from None
    if not isinstance(row, dict):
        hint = f"; {_ONE_PER_LINE}" if isinstance(row, list) else ""
        raise DataError(f"must be a JSON object, got {shown(row)}{hint}.")
    return read_valid_row(line) if _LONG_NUMBER.search(line) else row


def read_valid_row(line: bytes) -> dict[str, Any]:
    """Read a JSON object that is known to be valid; integers of any size are exact."""
    if not _LONG_NUMBER.search(line):
        return cast(dict[str, Any], orjson.loads(line))
    try:  # orjson converts integers beyond 64 bits to floats
        return cast(dict[str, Any], json.loads(line))
    except RecursionError:
        raise DataError("nested too deeply.") from None


def _excerpt(line: bytes) -> str:
    start = line.lstrip()[: 8 * _SHOWN].decode(errors="replace").strip()
    return _cut("".join(char if char.isprintable() else " " for char in start))


def _csv_rows(stream: BinaryIO, columns: Columns, carry: Sequence[str], _: object) -> Rows:
    yield from _delimited_rows(stream, columns, carry, ",")


def _tsv_rows(stream: BinaryIO, columns: Columns, carry: Sequence[str], _: object) -> Rows:
    yield from _delimited_rows(stream, columns, carry, "\t")


def _delimited_rows(stream: BinaryIO, columns: Columns, carry: Sequence[str], separator: str) -> Rows:
    csv.field_size_limit(sys.maxsize)  # a text may be longer than the default of 128 KiB
    # Invalid UTF-8 becomes lone surrogates, so that one bad row does not stop the reader.
    with _borrowed(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")) as text:
        # Strict: otherwise an unclosed quote would silently merge all following rows into one.
        reader = csv.reader(text, delimiter=separator, strict=True)
        try:
            header = _checked_header(_next_cells(reader), columns, carry)
        except DataError as error:
            raise error.located(line=1) from None
        if header is None:
            return
        start = reader.line_num + 1
        while (cells := _next_cells(reader)) is not None:
            if cells:
                # Rows that were merged by an unclosed quote are lost: count each line.
                n_rows = reader.line_num + 1 - start if isinstance(cells, DataError) else 1
                yield start, n_rows, lambda cells=cells: _csv_row(header, cells, columns)  # type: ignore[misc]
            start = reader.line_num + 1


def _next_cells(reader: Any) -> list[str] | DataError | None:
    start = reader.line_num + 1
    try:
        return cast(list[str] | None, next(reader, None))
    except csv.Error as error:
        end = reader.line_num
        lines = f"; lines {start:,} to {end:,} were read as one row" if end > start else ""
        return DataError(f"unbalanced quotes ({error}){lines}.")


def _checked_header(cells: list[str] | DataError | None, columns: Columns, carry: Sequence[str]) -> list[str] | None:
    if isinstance(cells, DataError):
        raise cells
    if cells is None:
        return None
    _check_utf8(cells)
    for name in (columns.text, columns.labels):
        if name not in cells and (columns.are_labelled or name != columns.labels):
            raise DataError(_missing_column(name, cells), missing="text" if name == columns.text else "labels")
    _check_once(cells, columns, carry)
    return cells


def _missing_column(name: str, cells: list[str]) -> str:
    problem = f"column {shown(name)} is missing; the header has {listed(cells)}"
    mark = next((mark for mark in ";\t|," if mark in cells[0]), None) if len(cells) == 1 else None
    if mark is None:
        return f"{problem}."
    return f"{problem}; columns must be separated by commas in .csv and by tabs in .tsv files, not by {mark!r}."


def _check_once(names: list[str], columns: Columns, carry: Sequence[str]) -> None:
    for name in (columns.text, columns.labels, *carry):
        if names.count(name) > 1:
            raise DataError(f"there are {names.count(name)} columns {shown(name)}; rename all but one.")


def _check_utf8(cells: list[str]) -> None:
    for cell in cells:
        if not cell.isascii() and (found := _SURROGATE.search(cell)):
            around = cell[max(found.start() - 20, 0) : found.start() + 20].encode(errors="surrogateescape")
            raise DataError(f"invalid UTF-8 in {around!r}; convert the file to UTF-8.")


def _csv_row(header: list[str], cells: list[str] | DataError, columns: Columns) -> Mapping[str, Any]:
    if isinstance(cells, DataError):
        raise cells
    _check_utf8(cells)
    if len(cells) > len(header):
        raise DataError(f"{len(cells)} cells, but the header has {len(header)}: {shown(cells[len(header)])}.")
    row: dict[str, Any] = dict(zip(header, cells, strict=False))
    if columns.labels in row:
        cell = row[columns.labels]
        row[columns.labels] = [label.strip() for label in cell.split(columns.delimiter)] if cell.strip() else []
    return row


def _parquet_rows(stream: BinaryIO, columns: Columns, carry: Sequence[str], row_groups: range | None) -> Rows:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtraError("Reading Parquet", "parquet") from None
    try:
        table = parquet.ParquetFile(stream, page_checksum_verification=True)
        _check_once(table.schema_arrow.names, columns, carry)
        _check_times(table.schema_arrow, carry)
        groups = range(table.num_row_groups) if row_groups is None else row_groups
        number = sum(table.metadata.row_group(k).num_rows for k in range(groups.start))
        for batch in table.iter_batches(batch_size=1024, row_groups=list(groups)):
            try:
                rows = batch.to_pylist()
            except (ArrowException, ArithmeticError, ValueError):
                rows = None  # a value cannot be read; find its row
            for at in range(batch.num_rows):
                number += 1
                if rows is None:
                    yield number, 1, lambda batch=batch, at=at: _parquet_row(batch, at)  # type: ignore[misc]
                else:
                    yield number, 1, lambda row=rows[at]: row  # type: ignore[misc]
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise FileError(f"not a valid Parquet file ({_one_line(error)}).") from None


def _check_times(schema: Any, carry: Sequence[str]) -> None:
    """Raise if a carried column has times in nanoseconds: Python's times would drop the last three digits."""
    for name in carry:
        if name in schema.names and "time64[ns]" in str(schema.field(name).type):
            raise FileError(f"the carried field {shown(name)} has times in nanoseconds; convert it to microseconds.")


def _parquet_row(batch: Any, at: int) -> dict[str, Any]:
    row = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            row[name] = column[at].as_py()
        except UnicodeDecodeError as error:
            around = error.object[max(error.start - 20, 0) : error.start + 20]
            raise DataError(f"invalid UTF-8 in {shown(name)}: {around!r}.") from None
        except (ArithmeticError, ValueError) as error:
            raise DataError(f"{shown(name)} cannot be read ({_one_line(error)}).") from None
    return row


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


_READERS: dict[str, Callable[[BinaryIO, Columns, Sequence[str], range | None], Rows]] = {
    "jsonl": _jsonl_rows,
    "csv": _csv_rows,
    "tsv": _tsv_rows,
    "parquet": _parquet_rows,
}
