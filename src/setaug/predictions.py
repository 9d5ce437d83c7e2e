"""Predicted sets with their evidence; reading and writing them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setaug.errors import DataError, FileError
from setaug.examples import Columns, check_labels, json_lines, parse_json_row, read_rows, shown
from setaug.storage import BROKEN_ARCHIVE, display_name, open_input, write_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The set that a model predicts for a text, and its evidence.

    Fields that a model does not provide are None.
    """

    labels: tuple[str, ...]
    """The predicted set, in the order written (or by descending probability)."""
    size: int | None = None
    """The size that the model wrote before the labels."""
    probabilities: Mapping[str, float] | None = None
    """Probability of each label; missing labels have negligible probability."""
    sizes: Mapping[int, float] | None = None
    """The model's own distribution over sizes."""
    generation: str | None = None
    """The text that the model wrote."""
    repeated: tuple[str, ...] | None = None
    """Repeated labels, once per repetition."""
    unknown: tuple[str, ...] | None = None
    """Labels that are not in the model's vocabulary."""
    malformed: tuple[str, ...] | None = None
    """The parts of the text that are not labels."""
    id: str | int | None = None
    """The example's id, if any."""

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as a JSON object, without the fields that are None.

        Examples
        --------
        >>> Prediction(labels=("joy",), size=1, sizes={1: 0.75, 2: 0.25}, id=7).to_dict()
        {'id': 7, 'labels': ['joy'], 'size': 1, 'sizes': {'1': 0.75, '2': 0.25}}

        """
        row: dict[str, Any] = {"id": self.id, "labels": list(self.labels), "size": self.size}
        row["generation"] = self.generation
        for name in ("repeated", "unknown", "malformed"):
            value = getattr(self, name)
            row[name] = None if value is None else list(value)
        row["probabilities"] = None if self.probabilities is None else dict(self.probabilities)
        row["sizes"] = None if self.sizes is None else {str(size): share for size, share in self.sizes.items()}
        return {name: value for name, value in row.items() if value is not None}

    def keep_top(self, n: int) -> "Prediction":
        """Return the prediction with the probabilities of the n most probable labels, and of those in the set.

        Examples
        --------
        >>> Prediction(labels=("joy",), probabilities={"fear": 0.1, "joy": 0.9}).keep_top(1).probabilities
        {'joy': 0.9}

        """
        if self.probabilities is None:
            raise ValueError("top requires probabilities: choose expected-f1, or draw 16 samples, for example.")
        ranked = sorted(self.probabilities.items(), key=lambda item: -item[1])
        kept = {label: share for at, (label, share) in enumerate(ranked) if at < n or label in self.labels}
        return replace(self, probabilities=kept)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> "Prediction":
        """Return the prediction of a JSON object; only ``labels`` is required."""
        if "labels" not in row:
            raise DataError('field "labels" is missing.')
        lists = {
            name: _check_strings(row[name], name)
            for name in ("repeated", "unknown", "malformed")
            if row.get(name) is not None
        }
        size = row.get("size")
        if size is not None and (type(size) is not int or size < 0):
            raise DataError(f'"size" must be an integer, got {shown(size)}.')
        return cls(
            labels=check_labels(row["labels"], "labels"),
            size=size,
            probabilities=_check_shares(row.get("probabilities"), "probabilities"),
            sizes=_check_sizes(row.get("sizes")),
            generation=row.get("generation"),
            id=row.get("id"),
            **lists,
        )


def _check_strings(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DataError(f'"{name}" must be a list of strings, got {shown(value)}.')
    return tuple(value)


def _check_shares(value: object, name: str) -> dict[str, float] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(_is_share(share) for share in value.values()):
        raise DataError(f'the values of "{name}" must be numbers from 0 to 1, got {shown(value)}.')
    return value


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _check_sizes(value: object) -> dict[int, float] | None:
    shares = _check_shares(value, "sizes")
    if shares is None:
        return None
    if not all(size.isascii() and size.isdigit() for size in shares):
        raise DataError(f'the keys of "sizes" must be integers, got {shown(list(shares))}.')
    return {int(size): share for size, share in shares.items()}


_JSON_CELLS = ("size", "repeated", "unknown", "malformed", "probabilities", "sizes")
"""The columns of a CSV or TSV file of predictions whose cells are JSON."""


def read_predictions(path: str | Path, *, delimiter: str = ";") -> Iterator[Prediction]:
    """Yield the predictions of a file one by one.

    Parameters
    ----------
    path
        A ``.csv``, ``.tsv`` or ``.parquet`` file of ``setaug predict``; any other file is read as JSON lines (also
        ``.gz``, ``.zst``, or ``-``).
    delimiter
        The separator between two labels in a CSV or TSV cell.

    """
    name = display_name(path)
    kind = next((kind for kind in ("csv", "tsv", "parquet") if f".{kind}" in Path(name).suffixes[-2:]), "jsonl")
    if kind != "jsonl":
        columns = Columns(text="labels", delimiter=delimiter)  # only the labels are required
        make = _of_cells if kind != "parquet" else _of_values
        with open_input(path) as stream:
            yield from read_rows(stream, name, kind, columns, None, make)
        return
    number = 0
    try:
        with open_input(path) as stream:
            for number, line in json_lines(stream):  # noqa: B007 (used in the error message)
                yield Prediction.from_dict(parse_json_row(line))
    except DataError as error:
        raise error.located(source=name, line=error.line or number) from None
    except BROKEN_ARCHIVE as error:
        raise FileError(f"{name} is damaged: {error}.") from None


def _of_cells(row: Mapping[str, Any]) -> Prediction:
    cells = {name: row[name] for name in ("id", "generation") if row.get(name)}
    for name in _JSON_CELLS:
        if row.get(name):
            try:
                cells[name] = json.loads(row[name])
            except ValueError:
                raise DataError(f"{shown(name)} must be JSON, got {shown(row[name])}.") from None
    return Prediction.from_dict({"labels": row["labels"], **cells})


def _of_values(row: Mapping[str, Any]) -> Prediction:
    shares = {name: dict(row[name]) for name in ("probabilities", "sizes") if row.get(name) is not None}
    return Prediction.from_dict({**row, **shares})


def write_predictions(path: str | Path, predictions: Iterable[Prediction]) -> None:
    """Write predictions to a JSONL file (also ``.gz``, ``.zst``, or ``-``), atomically; `read_predictions` reads it."""
    write_rows(path, (prediction.to_dict() for prediction in predictions))
