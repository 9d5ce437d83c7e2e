"""Run a finding of the simulation study, and tell what came out as a page, a table and a picture."""

from dataclasses import dataclass
from pathlib import Path

from setaug.experiments.cells import run_cells
from setaug.experiments.design import SCALES, Finding, Rows
from setaug.experiments.findings import FINDINGS
from setaug.experiments.pictures import check_pictures, draw_panels
from setaug.experiments.report import POINT, Check, Panel, checks_table, panel_table, verdict
from setaug.experiments.trial import run_cell
from setaug.files import open_output
from setaug.models.settings import SEEDS, Progress

CELLS = "cells.jsonl"
"""The file that holds all results in a folder; findings that need the same cell share it."""


@dataclass(frozen=True)
class Study:
    """Hold what a finding came to."""

    name: str
    scale: str
    finding: Finding
    panels: list[Panel]
    checks: list[Check]
    paths: list[Path]
    """The files that were written: the page and the pictures."""

    @property
    def verdict(self) -> str:
        """Whether the finding holds here."""
        return verdict(self.checks)

    def as_markdown(self) -> str:
        """Write a page: the claim, tables beside the paper's values, and whether it holds."""
        finding = self.finding
        parts = [
            f"# {self.name}: {finding.title}",
            f"Claim: {finding.claim}",
            f"`setaug simulate {self.name} --scale {self.scale}`, seeds {', '.join(map(str, SEEDS))}; "
            "mean ± standard deviation over the seeds. A comparison holds where it does for each seed (overlaps and "
            f"shares by more than {POINT}); controls are no part of the verdict.",
        ]
        for panel in self.panels:
            parts += [f"**{panel.title}**: {panel.y}", panel_table(panel)]
        parts += [f"Here it {self.verdict}:", checks_table(self.checks)]
        return "\n\n".join(parts) + "\n"


def check_study(name: str, scale: str, workers: int) -> None:
    """Raise if there is no such study, or it could not be told."""
    for given, choices, what in ((name, FINDINGS, "finding"), (scale, SCALES, "scale")):
        if given not in choices:
            raise ValueError(f"{what} must be one of {', '.join(choices)}, got {given!r}.")
    if type(workers) is not int or workers < 1:
        raise ValueError(f"workers must be a whole number from 1 on, got {workers!r}.")
    check_pictures()


def run_finding(
    name: str, folder: str | Path, *, scale: str = "quick", workers: int = 1, progress: Progress | None = None
) -> Study:
    """Run what a finding needs and is not in the folder yet; write its page and its pictures.

    Parameters
    ----------
    name
        ``finding-1`` to ``finding-6``, ``proposals`` or ``objectives``.
    folder
        Where ``cells.jsonl`` and the page and pictures of each finding go.
    scale
        ``quick`` (a minute), ``small`` (half an hour on two cores) or ``paper`` (for a GPU).
    workers
        How many trainings to run at once.

    """
    check_study(name, scale, workers)
    finding, size = FINDINGS[name], SCALES[scale]
    cells = finding.all_cells(size)
    place = Path(folder)
    rows = Rows(cells, run_cells(cells, run_cell, place / CELLS, workers=workers, progress=progress))
    panels, checks = finding.panels(size, rows), finding.checks(size, rows)
    path = place / f"{name}-{scale}"
    note = f"setaug simulate {name} --scale {scale}: mean and standard deviation over {len(SEEDS)} seeds"
    title = f"Claim: {finding.title} ({verdict(checks)} here)"
    pictures = draw_panels(panels, title, note, path)
    page = path.with_name(f"{path.name}.md")
    study = Study(name, scale, finding, panels, checks, [page, *pictures])
    with open_output(page) as stream:
        stream.write(study.as_markdown().encode())
    return study
