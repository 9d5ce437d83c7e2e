"""The paper's tables as `paper_tables.toml` transcribes them."""

import tomllib
from pathlib import Path

Table = dict[str, dict[str, float]]
"""The printed values, by row and column; cells with a dash are absent."""

_PATH = Path(__file__).with_suffix(".toml")
_THOUSAND = "k"


def read_tables() -> dict[str, Table]:
    """Read all tables of the transcription."""
    tables = {}
    for name, given in tomllib.loads(_PATH.read_text("utf-8")).items():
        columns = given.pop("columns")
        tables[name] = {row: _cells(columns, printed.split()) for row, printed in given.items()}
    return tables


def _cells(columns: list[str], printed: list[str]) -> dict[str, float]:
    return {column: _value(cell) for column, cell in zip(columns, printed, strict=True) if cell != "-"}


def _value(cell: str) -> float:
    return 1000 * float(cell.removesuffix(_THOUSAND)) if cell.endswith(_THOUSAND) else float(cell)
