"""Rows of tables: data frames of pandas or polars, and mappings of columns. No library is imported."""

from collections.abc import Iterable, Mapping
from typing import Any


def as_rows(data: Any) -> Iterable[Any]:
    """Return the rows of a table; any other data is returned unchanged.

    Examples
    --------
    >>> as_rows({"text": ["We won!", "Hello"], "labels": [["joy"], []]})
    [{'text': 'We won!', 'labels': ['joy']}, {'text': 'Hello', 'labels': []}]

    """
    if isinstance(data, Mapping):
        return _zipped(data)
    if hasattr(data, "columns") and hasattr(data, "iter_rows"):  # polars
        return data.iter_rows(named=True)  # type: ignore[no-any-return]
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # pandas
        return data.to_dict("records")  # type: ignore[no-any-return]
    return data  # type: ignore[no-any-return]


def _zipped(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    for name, values in columns.items():
        if hasattr(values, "column_names"):
            raise TypeError(f"expected one data set, got a mapping of splits; choose one, such as data[{name!r}].")
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise TypeError(
                f"expected columns, got {type(values).__name__} for {name!r}; put a single row into a list."
            )
    values = {name: list(column) for name, column in columns.items()}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have the same length, got {lengths}.")
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
