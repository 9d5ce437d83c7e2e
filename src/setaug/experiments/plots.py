"""Panels of measured values: the numbers behind a table and a plot, and the plot itself (matplotlib)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import zip_longest
from math import fsum, sqrt
from pathlib import Path
from typing import Any

from setaug.errors import MissingExtraError

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""The palette of Okabe and Ito, safe for colour-blind readers."""
_MARKERS = "os^Dv<"


@dataclass(frozen=True)
class Series:
    """Measured values under one name: for each position on the x axis, one value per seed."""

    name: str
    points: dict[str, list[float]]
    paper: dict[str, float] = field(default_factory=dict)
    """The paper's values, by position."""
    is_dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The series of one plot, or of one table."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    is_log: bool = False
    are_bars: bool = False
    digits: int = 2

    @property
    def positions(self) -> list[str]:
        """The positions on the x axis."""
        return list(dict.fromkeys(position for series in self.series for position in series.points))


def mean(values: Sequence[float]) -> float:
    """Return the mean over seeds."""
    return fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation over seeds; 0 for a single seed."""
    middle = mean(values)
    return sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1)) if len(values) > 1 else 0.0


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Format the mean over seeds and the standard deviation.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0])
    '2.00 ± 1.00'

    """
    middle = f"{mean(values):.{digits}f}"
    return middle if len(values) < 2 else f"{middle} ± {deviation(values):.{digits}f}"


def check_plots() -> None:
    """Raise if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("Drawing plots", "experiments")


def draw_panels(panels: Sequence[Panel], title: str, note: str, path: Path) -> list[Path]:
    """Draw panels in two columns; return the paths of the SVG and the PNG file."""
    check_plots()
    from textwrap import fill

    from matplotlib import rc_context
    from matplotlib.figure import Figure  # without pyplot: no windows, no global state

    from setaug.storage import open_output

    with rc_context({"svg.hashsalt": "setaug", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        n_columns = min(len(panels), 2)
        n_rows = -(-len(panels) // n_columns)
        width = 7.0 if len(panels) == 1 else 5.2 * n_columns
        figure = Figure(figsize=(width, 4.2 * n_rows + 0.5), layout="constrained")
        figure.suptitle(fill(title, round(width * 9)), fontsize=12)
        figure.supxlabel(note, fontsize=8, color="#444444")
        for panel, axes in zip_longest(panels, figure.subplots(n_rows, n_columns, squeeze=False).flat):
            if panel is None:
                axes.set_axis_off()
            else:
                _draw(panel, axes)
        written = []
        for kind, metadata in (("svg", {"Date": None}), ("png", {})):
            written.append(path.with_name(f"{path.name}.{kind}"))
            with open_output(written[-1]) as stream:
                figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
    return written


def _draw(panel: Panel, axes: Any) -> None:
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(axis="y", which="both", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    (_draw_bars if panel.are_bars else _draw_lines)(panel, axes)
    if panel.is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.tick_params(axis="y", which="minor", labelsize=7)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(panel.positions)), panel.positions)
    if panel.are_bars:
        axes.set_ylim(top=axes.get_ylim()[1] * 1.25)
        axes.legend(frameon=False, fontsize=9, loc="upper center", ncols=2)
    else:
        axes.legend(frameon=False, fontsize=9)


def _draw_lines(panel: Panel, axes: Any) -> None:
    # Series that differ only after a comma share a colour.
    names = list(dict.fromkeys(series.name.partition(",")[0] for series in panel.series))
    for series in panel.series:
        at = [panel.positions.index(position) for position in series.points]
        number = names.index(series.name.partition(",")[0])
        colour = _COLOURS[number % len(_COLOURS)]
        axes.errorbar(
            at,
            list(map(mean, series.points.values())),
            yerr=list(map(deviation, series.points.values())),
            label=series.name,
            color=colour,
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle="--" if series.is_dashed else "-",
            fillstyle="none" if series.is_dashed else "full",
            markersize=5,
            capsize=3,
        )
        _draw_paper(axes, series, at, colour, f"{series.name}, paper")


def _draw_bars(panel: Panel, axes: Any) -> None:
    width = 0.8 / len(panel.series)
    is_named = False
    for number, series in enumerate(panel.series):
        shift = (number - (len(panel.series) - 1) / 2) * width
        at = [panel.positions.index(position) + shift for position in series.points]
        heights, errors = (list(map(each, series.points.values())) for each in (mean, deviation))
        axes.bar(at, heights, width * 0.92, yerr=errors, capsize=3, label=series.name, color=_COLOURS[number])
        _draw_paper(axes, series, at, "black", None if is_named else "paper")
        is_named = is_named or bool(series.paper)


def _draw_paper(axes: Any, series: Series, at: Sequence[float], colour: str, label: str | None) -> None:
    known = [
        (x, series.paper[position]) for x, position in zip(at, series.points, strict=True) if position in series.paper
    ]
    if known:
        axes.scatter(*zip(*known, strict=True), marker="D", color="white", edgecolors=colour, zorder=3, label=label)
