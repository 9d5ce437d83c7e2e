"""Run an experiment of the paper on the benchmarks, and tell what came out beside the paper's values."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from setaug.benchmarks.names import parse_name
from setaug.errors import FileError
from setaug.experiments.cells import Cell, Result, cell_key, read_results, run_groups
from setaug.experiments.experiment import Experiment, read_experiment
from setaug.experiments.measured import DataResults, measure
from setaug.experiments.page import Page, Picture
from setaug.experiments.pictures import check_pictures, draw_panels
from setaug.experiments.report import Panel, Series
from setaug.experiments.runs import Setup, Trainings, group_cells, make_cells, training_key
from setaug.experiments.scores import TITLES
from setaug.experiments.telling import make_page
from setaug.metrics import find_present
from setaug.models.settings import Progress

CELLS = "cells.jsonl"
"""The file that holds all results in a folder; experiments that need the same cell share it."""


def check_rows(experiment: Experiment, rows: Iterable[str]) -> None:
    """Raise if an experiment has no row of such a name."""
    names = [row.name for row in experiment.rows]
    if unknown := [name for name in rows if name not in names]:
        raise ValueError(f"{experiment.name} has no row {unknown[0]!r}; there are {'; '.join(names)}.")


def plan_groups(
    experiment: Experiment, setup: Setup, data: Iterable[str], rows: Collection[str] = ()
) -> list[list[Cell]]:
    """Give all cells (or those of some rows), those that share a training together, those of the first seed first."""
    check_rows(experiment, rows)
    made = [
        cells for one in data for name, cells in make_cells(experiment, setup, one).items() if not rows or name in rows
    ]
    n_seeds = max(map(len, made), default=0)
    return group_cells(cells[at] for at in range(n_seeds) for cells in made if at < len(cells))


def run_experiment(
    name: str,
    setup: Setup,
    folder: str | Path,
    *,
    data: Sequence[str] = (),
    rows: Collection[str] = (),
    workers: int = 1,
    only_report: bool = False,
    command: str = "",
    progress: Progress | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
) -> tuple[Page, list[Path]]:
    """Run what an experiment needs and is not in the folder yet; write its page, and give it and the files written.

    Parameters
    ----------
    name
        One of the experiments, as in `NAMES`.
    folder
        Where ``cells.jsonl``, ``predictions/`` and the pages go.
    data
        The data sets; by default those of the experiment.
    rows
        Where given, run only the rows of these names; all that is finished is told anyway.
    only_report
        Run nothing: tell what is finished.
    command
        What a reader can call to get the same; it is shown on the page.
    tell
        Is given each line of ``cells.jsonl`` as it is added.

    """
    experiment = read_experiment(name)
    chosen = [str(parse_name(one)) for one in data or experiment.data]
    if experiment.has_picture:
        check_pictures()
    if experiment.vocabulary == "open":
        list(find_present([], []))  # says what is missing before anything is trained
    place = Path(folder)
    if only_report:
        done = read_results(place / CELLS)
    else:
        setup.check_models()
        done = _run(plan_groups(experiment, setup, chosen, rows), setup, place, workers, progress, tell)
    found = [measure(experiment, setup, one, done) for one in chosen]
    if not any(one.results for one in found):
        raise FileError(f"nothing of {name} is finished in {folder} with these data sets, models and settings.")
    place.mkdir(parents=True, exist_ok=True)
    drawn = _draw(experiment, found, place) if experiment.has_picture else []
    pictures = [Picture(path.name, experiment.title) for path in drawn if path.suffix == ".svg"]
    page = make_page(experiment, setup, found, place, command=command, pictures=pictures)
    return page, page.write(place / name) + drawn


def _run(
    groups: list[list[Cell]],
    setup: Setup,
    place: Path,
    workers: int,
    progress: Progress | None,
    tell: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Result]:
    """Run cells; a model is removed once all of its cells are kept."""
    run = Trainings(setup, place)
    done = read_results(place / CELLS)
    left = Counter(training_key(cell) for group in groups for cell in group if cell_key(cell) not in done)

    def kept(row: dict[str, Any]) -> None:
        key = training_key(row["cell"])
        left[key] -= 1
        if not left[key]:
            run.forget(row["cell"])
        if tell is not None:
            tell(row)

    return run_groups(groups, run, place / CELLS, workers=workers, progress=progress, tell=kept)


def _draw(experiment: Experiment, found: Sequence[DataResults], place: Path) -> list[Path]:
    """Draw the score over the number of orders, a line per method."""
    panels = []
    for one in found:
        lines: dict[str, dict[str, list[float]]] = {}
        for row in one.rows.values():
            if values := row.values(one.score):
                lines.setdefault(row.row.method, {})[str(row.row.n_orders)] = values
        if lines:
            series = [Series(name, points) for name, points in lines.items()]
            y = f"{TITLES[one.score]} (%)"
            panels.append(Panel(title=one.data, x="sampled orders per example", y=y, series=series))
    note = f"setaug reproduce {experiment.name}: mean and standard deviation over seeds"
    return draw_panels(panels, experiment.title, note, place / experiment.name) if panels else []
