"""What the rows of an experiment came to on a data set, and how they compare with the strongest baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from setaug.benchmarks import Benchmark
from setaug.benchmarks.names import parse_name
from setaug.errors import FileError
from setaug.experiments.cells import Cell, Result, cell_key
from setaug.experiments.comparison import TESTED, Difference, compare_rows
from setaug.experiments.experiment import Experiment, Row
from setaug.experiments.runs import Setup, make_cells, predictions_path
from setaug.experiments.scores import own_score, score_of
from setaug.metrics import match
from setaug.predictions import read_predictions


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Hold what a row came to: a result per seed, of those that are finished."""

    row: Row
    cells: Sequence[Cell]
    results: Sequence[Result]
    paper: Mapping[str, float]
    """The paper's values, in per cent, by score."""

    def values(self, score: str) -> list[float]:
        """Give a score in per cent, one value per seed."""
        found = [score_of(result, score) for result in self.results]
        return [value for value in found if value is not None]


@dataclass(frozen=True, kw_only=True)
class DataResults:
    """Hold what all rows came to on one data set."""

    data: str
    score: str
    """The score that rows are compared by here."""
    rows: Mapping[str, Measured]

    @property
    def results(self) -> list[Result]:
        """All results."""
        return [result for one in self.rows.values() for result in one.results]

    @property
    def has_paper(self) -> bool:
        """Whether the paper gives any value."""
        return any(one.paper for one in self.rows.values())

    def means(self, *roles: str) -> dict[str, float]:
        """Give the mean of the score over seeds, for rows of some roles (of all, where none is named)."""
        return {
            name: fmean(values)
            for name, one in self.rows.items()
            if (values := one.values(self.score)) and (not roles or one.row.role in roles)
        }

    @property
    def strongest_baseline(self) -> str | None:
        """The baseline of the paper with the highest mean."""
        means = self.means("baseline")
        return max(means, key=means.__getitem__, default=None)

    def pairs(self, name: str) -> list[tuple[Cell, Cell]]:
        """Pair the cells of what a row is compared with and its own, seed by seed."""
        baseline = self.partner(name)
        return [] if baseline == name else _same_seeds(self.rows[baseline].cells, self.rows[name].cells)

    def partner(self, name: str) -> str:
        """Say what a row is compared with."""
        has_partners = any(one.row.against for one in self.rows.values())
        return self.rows[name].row.against or (name if has_partners else self.strongest_baseline or name)

    def differences(self, benchmark: Benchmark, folder: Path) -> dict[str, Difference]:
        """Compare each row with its partner, or the strongest baseline, for the seeds that both have."""
        if self.score not in TESTED:
            return {}
        gold = [example.labels for example in benchmark.test]
        found = {}
        for name in self.rows:
            pairs = self.pairs(name)
            if pairs:
                first, second = ([_sets(cell, benchmark, folder) for cell in side] for side in zip(*pairs, strict=True))
                found[name] = compare_rows(first, second, gold, score=self.score)
        return found


def _same_seeds(first: Sequence[Cell], second: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Pair cells of the same seed; what has no seed goes with all."""
    seeds = {cell.get("seed"): cell for cell in second}
    partners = [(cell, seeds.get(cell.get("seed"), seeds.get(None))) for cell in first]
    return [(cell, partner) for cell, partner in partners if partner is not None]


def _sets(cell: Cell, benchmark: Benchmark, folder: Path) -> list[tuple[str, ...]]:
    path = predictions_path(folder, cell)
    if not path.exists():
        raise FileError(f"{path} is missing, which belongs to a line of {folder}; remove that line to run it again.")
    return [prediction.labels for prediction in match(read_predictions(path), benchmark.test)]


def measure(experiment: Experiment, setup: Setup, data: str, done: Mapping[str, Result]) -> DataResults:
    """Collect what is finished of an experiment on a data set."""
    made: Mapping[str, list[Any]] = make_cells(experiment, setup, data)
    paper = experiment.paper.get(str(replace(parse_name(data), n_train=None, n_test=None)), {})
    rows = {}
    for row in experiment.rows:
        cells = [cell for cell in made.get(row.name, ()) if cell_key(cell) in done]
        results = [done[cell_key(cell)] for cell in cells]
        rows[row.name] = Measured(row=row, cells=cells, results=results, paper=paper.get(row.name, {}))
    return DataResults(data=data, score=experiment.score or own_score(data), rows=rows)
