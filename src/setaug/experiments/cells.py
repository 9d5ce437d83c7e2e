"""Cells of experiments, and the look-up of their stored results."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from setaug.errors import FileError

Cell: TypeAlias = dict[str, Any]
"""Everything that a result depends on, as JSON."""
Result: TypeAlias = dict[str, Any]
Row: TypeAlias = dict[str, Any]
"""A stored line: the cell, its result, the seconds it took, versions and commit."""
CELLS = "cells.jsonl"
"""The file of results in an output folder."""


def cell_key(cell: Cell) -> str:
    """Return the key of a cell: its JSON with sorted keys."""
    return json.dumps(cell, sort_keys=True)


class Results:
    """Stored results, by cell."""

    def __init__(self, path: Path) -> None:
        self._found: dict[str, Result] = {}
        # A last line without a line feed was cut off.
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1] if path.exists() else (), start=1):
            try:
                self.add(json.loads(line))
            except (ValueError, TypeError, KeyError):
                raise FileError(
                    f"line {number} of {path} is not the result of an experiment; use another folder."
                ) from None

    def add(self, row: Row) -> None:
        """Add a stored line."""
        self._found[cell_key(row["cell"])] = row["result"]

    def __contains__(self, cell: Cell) -> bool:
        return cell_key(cell) in self._found

    def __len__(self) -> int:
        return len(self._found)

    def value(self, cell: Cell, *path: str, convert: Callable[[Any], Any] | None = None) -> Any:
        """Look up a value in the result of a cell."""
        found: Any = self._found[cell_key(cell)]
        try:
            for name in path:
                found = found[name]
            return found if convert is None else convert(found)
        except (KeyError, TypeError):
            raise FileError(
                f"a result has no {' / '.join(path)}: it was written by another version of setaug; use another folder."
            ) from None
