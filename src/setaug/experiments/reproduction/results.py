"""The results of an experiment on a dataset: scores of each row, and differences to the strongest baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import fmean

from setaug.datasets import Dataset, parse_name
from setaug.errors import FileError
from setaug.experiments.cells import Cell, Results
from setaug.experiments.plots import deviation, mean
from setaug.experiments.reproduction.comparison import TESTED, Difference, compare_rows
from setaug.experiments.reproduction.experiment import Experiment, Row
from setaug.experiments.reproduction.outputs import OUTPUT_SCORES, score_outputs
from setaug.experiments.reproduction.training_cells import predictions_path
from setaug.metrics import match
from setaug.predictions import Prediction, read_predictions

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
    "ill_formed": "with an ill-formed label",
    "commonest_first": "outputs that begin with the commonest label",
    "commonest": "outputs with the commonest label",
    **{f"{kind}_f1_at_{k}": f"{kind} F1@{k.upper()}" for k in ("m", "5") for kind in ("present", "absent")},
    "curve_mean": "dev F, mean over updates",
    "curve_half": "dev F, half way",
    "curve_last": "dev F, last",
    "bits_elbo": "ELBO",
    "bits_bound": "bound",
    "bits_allowed": "allowed",
    "bits_exact": "exact",
    "bits_gap": "exact - bound",
    "bits_bound_all": "bound, all sets",
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
    dataset: Dataset
    folder: Path

    def values(self, score: str) -> list[float]:
        """Return a score in per cent or in bits, one value per seed; none where a row lacks it (such as a size)."""
        if score.startswith("bits_"):
            return [value for cell in self.cells if (value := _mean_bits(self.bits(cell), score)) is not None]
        found: list[float | None]
        if score.startswith("curve_"):
            found = [_curve_value(list(self.curve(cell).values()), score) for cell in self.cells]
        elif score in OUTPUT_SCORES:
            found = [score_outputs(self.predictions(cell), self.dataset)[score] for cell in self.cells]
        elif score.startswith(("present_", "absent_")):
            kind, _, rest = score.partition("_")
            found = [self.stored.value(cell, "keyphrases", kind, rest) for cell in self.cells]
        else:
            found = [
                self.stored.value(cell, "sets" if score in self.stored.value(cell, "sets") else "sizes", score)
                for cell in self.cells
                if score not in _LATER or score in self.stored.value(cell, "sizes")
            ]
        return [100 * float(value) for value in found if value is not None]

    def curve(self, cell: Cell) -> dict[int, float]:
        """Return the dev score of a cell by the number of updates."""
        return {point["updates"]: point["f1"] for point in self.stored.value(cell, "curve")}

    def bits(self, cell: Cell) -> dict[str, list[float | None]]:
        """Return the likelihoods and bounds of each test set, by name."""
        found: dict[str, list[float | None]] = self.stored.value(cell, "likelihood")
        return found

    def predictions(self, cell: Cell) -> list[Prediction]:
        """Return the stored predictions of a cell, in the order of the test examples."""
        path = predictions_path(self.folder, cell)
        if not path.exists():
            raise FileError(f"{path} is missing; remove its line from cells.jsonl to run the cell again.")
        return match(self.dataset.test, read_predictions(path))


def _curve_value(values: Sequence[float], score: str) -> float:
    return {"curve_mean": fmean(values), "curve_half": values[len(values) // 2], "curve_last": values[-1]}[score]


def _mean_bits(bits: Mapping[str, Sequence[float | None]], score: str) -> float | None:
    """Return the mean over the sets with an exact value, or over all sets with a bound."""
    name = score.removeprefix("bits_")
    if name == "bound_all":
        known = [value for value in bits["bound"] if value is not None]
    else:
        gaps = [None if None in pair else pair[0] - pair[1] for pair in zip(bits["exact"], bits["bound"], strict=True)]  # type: ignore[operator]
        values = {**bits, "gap": gaps}[name]
        pairs = zip(values, gaps, strict=True)
        known = [value for value, gap in pairs if value is not None and gap is not None]
    return fmean(known) if known else None


@dataclass(frozen=True, kw_only=True)
class DataResults:
    """The results of all rows on one dataset."""

    data: str
    dataset: Dataset
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

    def means(self, *roles: str, score: str | None = None) -> dict[str, float]:
        """Return the mean score over seeds of rows with these roles (default: all)."""
        return {
            name: mean(values)
            for name, one in self.rows.items()
            if (values := one.values(score or self.score)) and (not roles or one.row.role in roles)
        }

    def paper_values(self) -> dict[str, float]:
        """Return the paper's value of each row that has one, in the score that rows are compared by."""
        return {name: one.paper[self.score] for name, one in self.rows.items() if self.score in one.paper}

    @property
    def strongest_baseline(self) -> str | None:
        """The baseline of the paper with the highest mean."""
        means = self.means("baseline")
        return max(means, key=means.__getitem__, default=None)

    def reference(self, name: str) -> str:
        """Return the row that a row is compared with; itself if there is none."""
        is_paired = any(one.row.against for one in self.rows.values())
        return self.rows[name].row.against or (name if is_paired else self.strongest_baseline or name)

    def differences(self) -> dict[str, Difference]:
        """Compare each row with its reference, over the seeds that both have."""
        if self.score not in TESTED:
            return {}
        gold = [example.labels for example in self.dataset.test]
        found = {}
        for name in self.rows:
            reference = self.reference(name)
            pairs = [] if reference == name else _same_seeds(self.rows[reference].cells, self.rows[name].cells)
            if pairs:
                sides = zip((self.rows[reference], self.rows[name]), zip(*pairs, strict=True), strict=True)
                first, second = ([_sets(row.predictions(cell)) for cell in cells] for row, cells in sides)
                found[name] = compare_rows(first, second, gold, score=self.score)
        return found

    def bound_differences(self) -> dict[str, tuple[float, float, int]]:
        """Return how much tighter a row's bound is than its reference's: mean, standard error, number of sets."""
        found = {}
        for name, one in self.rows.items():
            other = self.rows[self.reference(name)]
            changes = [
                mean_change
                for first, second in _same_seeds(other.cells, one.cells)
                if name != other.row.name and (mean_change := _changes(other.bits(first), one.bits(second)))
            ]
            if changes:
                each = [fmean(values) for values in zip(*changes, strict=True)]
                found[name] = fmean(each), deviation(each) / sqrt(len(each)), len(each)
        return found


def _same_seeds(first: Sequence[Cell], second: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Pair cells of the same seed; a cell without a seed pairs with all."""
    seeds = {cell.get("seed"): cell for cell in second}
    partners = [(cell, seeds.get(cell.get("seed"), seeds.get(None))) for cell in first]
    return [(cell, partner) for cell, partner in partners if partner is not None]


def _sets(predictions: Sequence[Prediction]) -> list[tuple[str, ...]]:
    return [prediction.labels for prediction in predictions]


def _changes(first: Mapping[str, Sequence[float | None]], second: Mapping[str, Sequence[float | None]]) -> list[float]:
    pairs = zip(first["bound"], second["bound"], strict=True)
    return [after - before for before, after in pairs if before is not None and after is not None]


def collect(
    experiment: Experiment, dataset: Dataset, made: Mapping[str, Sequence[Cell]], stored: Results, folder: Path
) -> DataResults:
    """Collect the stored results of an experiment on a dataset."""
    variant = parse_name(dataset.name)
    paper = experiment.paper.get(str(replace(variant, form=None, n_train=None, n_test=None)), {})
    rows = {
        row.name: RowResults(
            row=row,
            cells=[cell for cell in made.get(row.name, ()) if cell in stored],
            stored=stored,
            paper=paper.get(row.name, {}),
            dataset=dataset,
            folder=folder,
        )
        for row in experiment.rows
    }
    score = experiment.score or variant.entry.score
    return DataResults(data=dataset.name, dataset=dataset, score=score, rows=rows)
