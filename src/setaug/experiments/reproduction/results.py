"""The results of an experiment on a data set: scores of each row, and differences to the strongest baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from setaug.datasets import Dataset, parse_name
from setaug.errors import FileError
from setaug.experiments.cells import Cell, Results
from setaug.experiments.plots import mean
from setaug.experiments.reproduction.comparison import TESTED, Difference, compare_rows
from setaug.experiments.reproduction.experiment import Experiment, Row
from setaug.experiments.reproduction.training_cells import predictions_path
from setaug.metrics import match
from setaug.predictions import read_predictions

TITLES = {
    **{
        f"{kind}_{score}": f"{kind} {letter}"
        for kind in ("micro", "macro", "samples")
        for score, letter in (("precision", "P"), ("recall", "R"), ("f1", "F"))
    },
    "jaccard": "Jaccard",
    "agreement_generated": "as many generated as stated",
    "agreement_generated_within_one": "generated within one",
    "agreement": "as many distinct as stated",
    "agreement_within_one": "distinct within one",
    "accuracy": "size is right",
    "accuracy_within_one": "size within one",
    "repeated": "outputs with a repeat",
    "unknown": "with an unknown label",
    **{f"{kind}_f1_at_{k}": f"{kind} F1@{k.upper()}" for k in ("m", "5") for kind in ("present", "absent")},
}
"""The names of scores in tables."""
_LATER = ("agreement_generated", "agreement_generated_within_one")
"""Scores that results stored earlier lack."""


@dataclass(frozen=True, kw_only=True)
class RowResults:
    """The stored results of a row, one per seed."""

    row: Row
    cells: Sequence[Cell]
    stored: Results
    paper: Mapping[str, float]
    """The paper's values in per cent, by score."""

    def values(self, score: str) -> list[float]:
        """Return a score in per cent, one value per seed; none where a row lacks it (such as a size)."""
        if score.startswith(("present_", "absent_")):
            kind, _, rest = score.partition("_")
            found = [self.stored.value(cell, "keyphrases", kind, rest) for cell in self.cells]
        else:
            found = [
                self.stored.value(cell, "sets" if score in self.stored.value(cell, "sets") else "sizes", score)
                for cell in self.cells
                if score not in _LATER or score in self.stored.value(cell, "sizes")
            ]
        return [100 * float(value) for value in found if value is not None]


@dataclass(frozen=True, kw_only=True)
class DataResults:
    """The results of all rows on one data set."""

    data: str
    score: str
    """The score that rows are compared by."""
    rows: Mapping[str, RowResults]

    @property
    def cells(self) -> list[Cell]:
        """All stored cells."""
        return [cell for one in self.rows.values() for cell in one.cells]

    @property
    def has_paper(self) -> bool:
        """Whether the paper has any value."""
        return any(one.paper for one in self.rows.values())

    def means(self, *roles: str) -> dict[str, float]:
        """Return the mean score over seeds of rows with these roles (default: all)."""
        return {
            name: mean(values)
            for name, one in self.rows.items()
            if (values := one.values(self.score)) and (not roles or one.row.role in roles)
        }

    @property
    def strongest_baseline(self) -> str | None:
        """The baseline of the paper with the highest mean."""
        means = self.means("baseline")
        return max(means, key=means.__getitem__, default=None)

    def reference(self, name: str) -> str:
        """Return the row that a row is compared with; itself if there is none."""
        is_paired = any(one.row.against for one in self.rows.values())
        return self.rows[name].row.against or (name if is_paired else self.strongest_baseline or name)

    def differences(self, dataset: Dataset, folder: Path) -> dict[str, Difference]:
        """Compare each row with its reference, over the seeds that both have."""
        if self.score not in TESTED:
            return {}
        gold = [example.labels for example in dataset.test]
        found = {}
        for name in self.rows:
            reference = self.reference(name)
            pairs = [] if reference == name else _same_seeds(self.rows[reference].cells, self.rows[name].cells)
            if pairs:
                first, second = ([_sets(cell, dataset, folder) for cell in side] for side in zip(*pairs, strict=True))
                found[name] = compare_rows(first, second, gold, score=self.score)
        return found


def _same_seeds(first: Sequence[Cell], second: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Pair cells of the same seed; a cell without a seed pairs with all."""
    seeds = {cell.get("seed"): cell for cell in second}
    partners = [(cell, seeds.get(cell.get("seed"), seeds.get(None))) for cell in first]
    return [(cell, partner) for cell, partner in partners if partner is not None]


def _sets(cell: Cell, dataset: Dataset, folder: Path) -> list[tuple[str, ...]]:
    path = predictions_path(folder, cell)
    if not path.exists():
        raise FileError(f"{path} is missing; remove its line from cells.jsonl to run the cell again.")
    return [prediction.labels for prediction in match(dataset.test, read_predictions(path))]


def collect(experiment: Experiment, data: str, made: Mapping[str, Sequence[Cell]], stored: Results) -> DataResults:
    """Collect the stored results of an experiment on a data set."""
    variant = parse_name(data)
    paper = experiment.paper.get(str(replace(variant, n_train=None, n_test=None)), {})
    rows = {
        row.name: RowResults(
            row=row,
            cells=[cell for cell in made.get(row.name, ()) if cell in stored],
            stored=stored,
            paper=paper.get(row.name, {}),
        )
        for row in experiment.rows
    }
    return DataResults(data=data, score=experiment.score or variant.entry.score, rows=rows)
