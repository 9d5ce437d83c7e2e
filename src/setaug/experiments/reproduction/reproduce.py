"""Run an experiment of the paper on its datasets, and write its page beside the paper's values."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from setaug.datasets import parse_name
from setaug.errors import FileError
from setaug.experiments.cells import CELLS, Cell, Results, Row
from setaug.experiments.page import Page, Picture
from setaug.experiments.plots import Panel, Series, check_plots, draw_panels
from setaug.experiments.reproduction.experiment import Experiment, read_experiment
from setaug.experiments.reproduction.result_page import make_page
from setaug.experiments.reproduction.results import TITLES, DataResults, collect
from setaug.experiments.reproduction.training_cells import Setup, Trainings, make_cells, training_key
from setaug.experiments.runner import run_cells
from setaug.metrics import find_present
from setaug.settings import Progress

Plan = dict[str, dict[str, list[Cell]]]
"""The cells of an experiment: by dataset and row, one per seed."""


def make_plan(experiment: Experiment, setup: Setup, data: Iterable[str]) -> Plan:
    """Return the cells of an experiment on datasets."""
    return {name: make_cells(experiment, setup, name) for name in data}


def group_cells(plan: Plan, rows: Collection[str] = ()) -> list[list[Cell]]:
    """Group the cells (of some rows) that share a training, those of the first seed first."""
    chosen = [cells for made in plan.values() for name, cells in made.items() if not rows or name in rows]
    groups: dict[str, list[Cell]] = {}
    for at in range(max(map(len, chosen), default=0)):
        for cells in chosen:
            for cell in cells[at : at + 1]:
                groups.setdefault(training_key(cell), []).append(cell)
    return list(groups.values())


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
    on_result: Callable[[Row], None] | None = None,
) -> tuple[Page, list[Path]]:
    """Run the cells of an experiment that are not stored yet; return its page and the files written.

    Parameters
    ----------
    name
        One of `EXPERIMENTS`.
    folder
        Where ``cells.jsonl``, ``predictions/`` and the pages go.
    data
        The datasets; by default those of the experiment.
    rows
        The rows to run; by default all. The page shows all stored results.
    only_report
        Run nothing; write the page of the stored results.
    command
        The command that reproduces the page, which shows it.
    on_result
        Called with each line that is added to ``cells.jsonl``.

    """
    experiment = read_experiment(name)
    experiment.check_rows(rows)
    if experiment.picture:
        check_plots()
    if experiment.vocabulary == "open":
        list(find_present([], []))  # raises if a library is missing, before anything is trained
    place = Path(folder)
    if not only_report:
        setup.check_models()
    plan = make_plan(experiment, setup, [str(parse_name(one)) for one in data or experiment.data])
    if only_report:
        stored = Results(place / CELLS)
    else:
        stored = _run(group_cells(plan, rows), setup, place, workers, progress, on_result)
    found = [collect(experiment, setup.load(one), made, stored, place) for one, made in plan.items()]
    if not any(one.cells for one in found):
        raise FileError(f"{folder} has no result of {name} with these datasets, models and settings.")
    place.mkdir(parents=True, exist_ok=True)
    panels = [panel for one in found if (panel := _panel(experiment, one)).series] if experiment.picture else []
    note = f"setaug reproduce {name}: mean and standard deviation over seeds"
    drawn = draw_panels(panels, experiment.title, note, place / name) if panels else []
    pictures = [Picture(path.name, experiment.title) for path in drawn if path.suffix == ".svg"]
    page = make_page(experiment, found, panels, command=command, pictures=pictures)
    return page, page.write(place / name) + drawn


def _run(
    groups: list[list[Cell]],
    setup: Setup,
    place: Path,
    workers: int,
    progress: Progress | None,
    on_result: Callable[[Row], None] | None,
) -> Results:
    """Run cells; remove a model once all of its cells are stored."""
    run = Trainings(setup, place)
    stored = Results(place / CELLS)
    left = Counter(training_key(cell) for group in groups for cell in group if cell not in stored)

    def finish(row: Row) -> None:
        key = training_key(row["cell"])
        left[key] -= 1
        if not left[key]:
            run.forget(row["cell"])
        if on_result is not None:
            on_result(row)

    return run_cells(groups, run, place / CELLS, workers=workers, progress=progress, on_result=finish)


def _panel(experiment: Experiment, found: DataResults) -> Panel:
    """Return the score over the number of orders, a line per method, or over the number of updates, a line per row."""
    if experiment.picture == "updates":
        lines = {}
        for name, one in found.rows.items():
            curves = [one.curve(cell) for cell in one.cells]
            if curves:
                lines[name] = {str(at): [100 * curve[at] for curve in curves] for at in curves[0]}
        x, y = "updates", "F over dev examples (%)"
    else:
        lines = {}
        for name, one in found.rows.items():
            if values := one.values(found.score):
                lines.setdefault(name.rpartition(", n = ")[0], {})[str(one.row.n_orders)] = values
        x, y = "sampled orders per example", f"{TITLES[found.score]} (%)"
    return Panel(title=found.data, x=x, y=y, series=[Series(name, points) for name, points in lines.items()], digits=1)
