"""Draw panels with matplotlib: lines with the spread over seeds, or bars beside the paper's values."""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from statistics import mean
from textwrap import fill
from typing import Any

from setaug.errors import MissingExtraError
from setaug.experiments.report import Panel, Series, deviation
from setaug.files import open_output

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's, which colour-blind readers can tell apart."""
_MARKERS = "os^Dv<"
_INK = "#444444"


def check_pictures() -> None:
    """Raise if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("Drawing plots", "experiments")


def draw_panels(panels: Sequence[Panel], title: str, note: str, path: Path) -> list[Path]:
    """Draw panels, two in a row; write the picture as SVG and as PNG, and give their paths."""
    check_pictures()
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # without pyplot: no windows, no global state

    with rc_context({"svg.hashsalt": "setaug", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        n_columns = min(len(panels), 2)
        n_rows = -(-len(panels) // n_columns)
        width = 7.0 if len(panels) == 1 else 5.2 * n_columns
        figure = Figure(figsize=(width, 4.2 * n_rows + 0.5), layout="constrained")
        figure.suptitle(fill(title, round(width * 9)), fontsize=12)
        figure.supxlabel(note, fontsize=8, color=_INK)
        places = figure.subplots(n_rows, n_columns, squeeze=False).flat
        for panel, axes in zip_longest(panels, places):
            if panel is None:
                axes.set_axis_off()
            else:
                _draw(panel, axes)
        written = []
        for kind, metadata in (("svg", {"Date": None}), ("png", {})):
            target = path.with_name(f"{path.name}.{kind}")
            with open_output(target) as stream:
                figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
            written.append(target)
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
    axes.set_xticks(range(len(panel.places)), panel.places)
    if panel.are_bars:
        axes.set_ylim(top=axes.get_ylim()[1] * 1.25)
        axes.legend(frameon=False, fontsize=9, loc="upper center", ncols=2)
    else:
        axes.legend(frameon=False, fontsize=9)


def _draw_lines(panel: Panel, axes: Any) -> None:
    colours = {name: _COLOURS[at % len(_COLOURS)] for at, name in enumerate(_colour_names(panel))}
    markers = {name: _MARKERS[at % len(_MARKERS)] for at, name in enumerate(colours)}
    for series in panel.series:
        at = [panel.places.index(place) for place in series.points]
        values = list(series.points.values())
        name = _colour_name(series.name)
        axes.errorbar(
            at,
            [mean(each) for each in values],
            yerr=[deviation(each) for each in values],
            label=series.name,
            color=colours[name],
            marker=markers[name],
            linestyle="--" if series.is_dashed else "-",
            fillstyle="none" if series.is_dashed else "full",
            markersize=5,
            capsize=3,
        )
        _draw_paper(axes, series, at, colours[name], f"{series.name}, paper")


def _draw_bars(panel: Panel, axes: Any) -> None:
    width = 0.8 / len(panel.series)
    is_named = False
    for number, series in enumerate(panel.series):
        at = [panel.places.index(place) + (number - (len(panel.series) - 1) / 2) * width for place in series.points]
        values = list(series.points.values())
        heights, errors = [mean(each) for each in values], [deviation(each) for each in values]
        axes.bar(at, heights, width * 0.92, yerr=errors, capsize=3, label=series.name, color=_COLOURS[number])
        _draw_paper(axes, series, at, "black", None if is_named else "paper")
        is_named = is_named or bool(series.paper)


def _draw_paper(axes: Any, series: Series, at: Sequence[float], colour: str, label: str | None) -> None:
    known = [(x, series.paper[place]) for x, place in zip(at, series.points, strict=True) if place in series.paper]
    if known:
        axes.scatter(*zip(*known, strict=True), marker="D", color="white", edgecolors=colour, zorder=3, label=label)


def _colour_names(panel: Panel) -> list[str]:
    return list(dict.fromkeys(_colour_name(series.name) for series in panel.series))


def _colour_name(name: str) -> str:
    """Series that differ in what stands behind a comma share a colour."""
    return name.partition(",")[0]
