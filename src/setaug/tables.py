"""Rows of tables, and label sets of indicator matrices, of several libraries; none of them is imported."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
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
    if is_frame(data):
        if repeated := _repeated(data.columns):
            raise ValueError(f"the data frame has more than one column {repeated[0]!r}; rename all but one.")
        rows = data.iter_rows(named=True) if hasattr(data, "iter_rows") else data.to_dict("records")
        return rows  # type: ignore[no-any-return]
    if hasattr(data, "column_names") and hasattr(data, "to_pylist"):  # pyarrow
        return data.to_pylist()  # type: ignore[no-any-return]
    if not isinstance(data, Iterable):
        raise TypeError(f"expected texts, examples, rows or a table, got {data!r}.")
    return data


def _repeated(names: Iterable[Any]) -> list[Any]:
    return [name for name, n in Counter(names).items() if n > 1]


def is_frame(data: Any) -> bool:
    """Return whether data is a data frame of pandas or polars."""
    return hasattr(data, "columns") and (hasattr(data, "iter_rows") or hasattr(data, "to_dict"))


def _zipped(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    for name, values in columns.items():
        if hasattr(values, "column_names"):
            raise TypeError(f"expected one dataset, got a mapping of splits; choose one, such as data[{name!r}].")
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise TypeError(
                f"expected columns, got {type(values).__name__} for {name!r}; put a single row into a list."
            )
    values = {name: list(column) for name, column in columns.items()}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have the same length, got {lengths}.")
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def is_matrix(data: Any) -> bool:
    """Return whether data is a two-dimensional array of numbers, dense or sparse; a data frame is none."""
    if is_frame(data) or getattr(data, "ndim", None) != 2:
        return False
    return hasattr(data, "tocsr") or getattr(getattr(data, "dtype", None), "kind", None) in tuple("biuf")


def indicated(matrix: Any, names: Sequence[Any] | None) -> list[list[Any]]:
    """Return the label set of each row of an indicator matrix: the names of the columns that are 1.

    Parameters
    ----------
    matrix
        A two-dimensional array (numpy), a sparse one (scipy), or a data frame, whose columns are the names.

    Examples
    --------
    >>> import numpy as np
    >>> indicated(np.array([[1, 0], [1, 1], [0, 0]]), ["joy", "love"])
    [['joy'], ['joy', 'love'], []]

    """
    if is_frame(matrix):
        names, matrix = list(matrix.columns), matrix.to_numpy()
    if names is None:
        raise TypeError("an indicator matrix needs column names: pass columns=Columns(names=[...]), or a data frame.")
    if matrix.shape[1] != len(names):
        raise ValueError(f"the indicator matrix has {matrix.shape[1]} columns, but there are {len(names)} names.")
    if repeated := _repeated(names):
        raise ValueError(f"the labels of an indicator matrix must be distinct, but {repeated[0]!r} is repeated.")
    if hasattr(matrix, "tocsr"):
        rows = matrix.tocsr(copy=True)
        rows.sum_duplicates()
        ends, places, values = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
        pairs = [list(zip(places[a:b], values[a:b], strict=True)) for a, b in pairwise(ends)]
    else:
        pairs = [list(enumerate(row)) for row in matrix.tolist()]
    return [[names[at] for at, value in sorted(row) if _is_one(value, names[at])] for row in pairs]


def _is_one(value: Any, name: Any) -> bool:
    if value not in (0, 1) or isinstance(value, str):
        raise ValueError(f"an indicator matrix must contain only 0 and 1, got {value!r} in the column {name!r}.")
    return bool(value)
