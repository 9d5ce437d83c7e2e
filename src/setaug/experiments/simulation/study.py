"""Run a finding of the simulation study, and write its page and plots."""

from dataclasses import dataclass
from pathlib import Path

from setaug.experiments.cells import CELLS
from setaug.experiments.page import Line, Page, Picture, Table, panel_table
from setaug.experiments.plots import Panel, check_plots, draw_panels
from setaug.experiments.runner import run_cells
from setaug.experiments.simulation.design import POINT, SCALES, Check, Rows, verdict
from setaug.experiments.simulation.findings import FINDINGS
from setaug.experiments.simulation.simulated_run import simulate
from setaug.settings import SEEDS, Progress


@dataclass(frozen=True)
class Study:
    """The outcome of a finding."""

    page: Page
    panels: list[Panel]
    checks: list[Check]
    paths: list[Path]
    """The files written."""

    @property
    def verdict(self) -> str:
        """Whether the finding holds here."""
        return verdict(self.checks)


def check_study(name: str, scale: str, workers: int) -> None:
    """Raise if there is no such study, or if its plots cannot be drawn."""
    for given, choices, what in ((name, FINDINGS, "finding"), (scale, SCALES, "scale")):
        if given not in choices:
            raise ValueError(f"{what} must be one of {', '.join(choices)}, got {given!r}.")
    if type(workers) is not int or workers < 1:
        raise ValueError(f"workers must be a positive integer, got {workers!r}.")
    check_plots()


def run_finding(
    name: str, folder: str | Path, *, scale: str = "quick", workers: int = 1, progress: Progress | None = None
) -> Study:
    """Run the cells of a finding that are not stored yet; write its page and plots.

    Parameters
    ----------
    name
        One of `FINDINGS`.
    folder
        Where ``cells.jsonl`` and the pages and plots of all findings go.
    scale
        ``quick`` (a minute), ``small`` (half an hour on two cores) or ``paper`` (for a GPU).
    workers
        The number of trainings to run in parallel.

    """
    check_study(name, scale, workers)
    finding, size, place = FINDINGS[name], SCALES[scale], Path(folder)
    groups = [[cell] for seed in SEEDS for cell in finding.cells(size, seed)]
    rows = Rows(run_cells(groups, simulate, place / CELLS, workers=workers, progress=progress), size, SEEDS)
    panels, checks = finding.panels(rows), finding.checks(rows)
    command, path = f"setaug simulate {name} --scale {scale}", place / f"{name}-{scale}"
    note = f"{command}: mean and standard deviation over {len(SEEDS)} seeds"
    plots = draw_panels(panels, f"Claim: {finding.title} ({verdict(checks)} here)", note, path)
    about = [
        f"Claim: {finding.claim}",
        f"`{command}`, seeds {', '.join(map(str, SEEDS))}; mean ± standard deviation over the seeds. A claim holds if "
        f"it holds for each seed (overlaps and shares: by more than {POINT}). Controls do not count for the verdict.",
    ]
    tables = [*map(panel_table, panels), _checks_table(checks)]
    pictures = [Picture(one.name, finding.title) for one in plots if one.suffix == ".svg"]
    page = Page(title=f"{name}: {finding.title}", about=about, tables=tables, pictures=pictures)
    return Study(page, panels, checks, page.write(path) + plots)


def _checks_table(checks: list[Check]) -> Table:
    lines = [
        Line([one.claim + (" (control)" if one.is_control else ""), "yes" if one.holds else "no", one.evidence])
        for one in checks
    ]
    return Table(f"Here the finding {verdict(checks)}", ["claim", "holds", "measured"], lines)
