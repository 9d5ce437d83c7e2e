"""What an experiment found: panels of points, which become a table and a picture, and checks of what was claimed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Series:
    """Hold what was measured under one name: for each place on the x axis, a value per seed."""

    name: str
    points: dict[str, list[float]]
    paper: dict[str, float] = field(default_factory=dict)
    """The paper's values, where it gives any."""
    is_dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Hold the series that are drawn into one picture and make up one table."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    is_log: bool = False
    are_bars: bool = False
    digits: int = 2

    @property
    def places(self) -> list[str]:
        """The places on the x axis."""
        return list(dict.fromkeys(place for series in self.series for place in series.points))


@dataclass(frozen=True)
class Check:
    """Say whether a statement holds, and by which numbers."""

    statement: str
    holds: bool
    evidence: str
    is_control: bool = False
    """Whether the paper does not say it, but it helps to understand what it says; no part of the verdict."""


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Write the mean over seeds, and their standard deviation.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0])
    '2.00 ± 1.00'

    """
    middle = f"{np.mean(values):.{digits}f}"
    return middle if len(values) < 2 else f"{middle} ± {deviation(values):.{digits}f}"


def deviation(values: Sequence[float]) -> float:
    """Give the standard deviation over seeds; 0 where there is one only."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


POINT = 0.01
"""Overlaps and shares that differ by less count as equal."""


def are_below(values: Sequence[float], others: Sequence[float], *, by: float = 0.0) -> bool:
    """Tell whether each value is below the other one of the same seed, by more than so much.

    Examples
    --------
    >>> are_below([1, 2], [2, 3]), are_below([1, 3], [2, 3]), are_below([1, 2], [2, 3], by=1)
    (True, False, False)

    """
    return all(value + by < other for value, other in zip(values, others, strict=True))


def verdict(checks: Sequence[Check]) -> str:
    """Sum checks up.

    Examples
    --------
    >>> verdict([Check("a", True, ""), Check("b", False, "")])
    'holds in part'

    """
    claimed = [check.holds for check in checks if not check.is_control]
    if all(claimed):
        return "holds"
    return "holds in part" if any(claimed) else "does not hold"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |

    """
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def panel_table(panel: Panel) -> str:
    """Write a panel as a table: a row per place, a column per series, the paper's values beside."""
    header = [panel.x]
    for series in panel.series:
        header += [series.name, f"{series.name}, paper"] if series.paper else [series.name]
    rows = []
    for place in panel.places:
        row = [place]
        for series in panel.series:
            row.append(spread(series.points[place], panel.digits) if place in series.points else "")
            if series.paper:
                row.append(f"{series.paper[place]:.{panel.digits}f}" if place in series.paper else "")
        rows.append(row)
    return markdown_table(header, rows)


def checks_table(checks: Sequence[Check]) -> str:
    """Write what was checked as a table."""
    rows = [
        [check.statement + (" (control)" if check.is_control else ""), "yes" if check.holds else "no", check.evidence]
        for check in checks
    ]
    return markdown_table(["claim", "holds", "measured"], rows)
