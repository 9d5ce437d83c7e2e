"""The page of an experiment: an overview, a detailed table for each data set, and what has to be said plainly."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from setaug.benchmarks.names import parse_name
from setaug.experiments.comparison import N_ROUNDS, PAPER_LEVEL, TESTED, Difference
from setaug.experiments.experiment import PLAIN, QUOTED, Experiment
from setaug.experiments.measured import DataResults, Measured
from setaug.experiments.page import Line, Page, Picture, Table
from setaug.experiments.prompts import describe_prompt
from setaug.experiments.report import spread
from setaug.experiments.runs import Setup
from setaug.experiments.scores import TITLES, field_of
from setaug.models.settings import TrainingSettings

FAIR = ("baseline", "ours", "ablation", "extra")
"""The rows of which one can be the best."""
SHOWN = 0.1
"""Points that tables show."""


def make_page(
    experiment: Experiment,
    setup: Setup,
    found: Sequence[DataResults],
    folder: Path,
    *,
    command: str,
    pictures: Sequence[Picture],
) -> Page:
    """Put together all that is to be told about an experiment."""
    tables = [_overview(experiment, found)]
    tables += [_details(experiment, setup, one, folder) for one in found if one.results]
    about = [
        f"The paper: {experiment.source}.",
        "All values in per cent; mean ± standard deviation over seeds. Rows that are not in the paper come last.",
    ]
    if command:
        about.append(f"`{command}`")
    closing = [*experiment.notes, *_trainings(found), *_prompts(found)]
    return Page(title=experiment.title, about=about, tables=tables, pictures=pictures, closing=closing)


def _overview(experiment: Experiment, found: Sequence[DataResults]) -> Table:
    """Give one score for each row and data set, the paper's beside it."""
    shown = [row for row in experiment.rows if any(_is_known(one.rows[row.name]) for one in found)]
    header = ["row"]
    columns: list[list[str]] = []
    best: dict[int, str] = {}
    for one in found:
        means = one.means()
        fair = one.means(*FAIR)
        if fair:
            best[len(header)] = max(fair, key=fair.__getitem__)
        header.append(f"{one.data}: {TITLES[one.score]}")
        columns.append([_spread(one.rows[row.name], one.score) for row in shown])
        if experiment.relative_to in means:
            header.append("change")
            base = means[experiment.relative_to]
            columns.append(
                ["" if row.name == experiment.relative_to else _change(means.get(row.name), base) for row in shown]
            )
        if one.has_paper:
            header.append("paper")
            columns.append([_paper_value(one.rows[row.name].paper, one.score) for row in shown])
    lines = []
    for at, row in enumerate(shown):
        is_best = frozenset(place for place, name in best.items() if name == row.name)
        lines.append(Line([row.name, *(column[at] for column in columns)], row.role, is_best))
    return Table("Overview", header, lines, [note for one in found for note in _winners(one)])


def _is_known(one: Measured) -> bool:
    return bool(one.results or one.paper)


def _spread(one: Measured, score: str) -> str:
    values = one.values(score)
    return spread(values, 1) if values else ""


def _change(value: float | None, base: float) -> str:
    return "" if value is None or not base else f"{100 * (value - base) / base:+.0f} %"


def _paper_value(paper: Mapping[str, float], score: str) -> str:
    if score in paper:
        return f"{paper[score]:.1f}"
    return f"{paper['micro_f1']:.1f} (micro)" if "micro_f1" in paper and score in TESTED else ""


def _winners(found: DataResults) -> list[str]:
    """Say it where a baseline, or something that only classifies, is better than the paper's method."""
    ours = found.means("ours")
    if not ours or found.score not in TESTED:
        return []
    best = max(ours, key=ours.__getitem__)
    means = {name: mean for name, mean in found.means("baseline", "extra").items() if mean - ours[best] >= SHOWN / 2}
    plain = {name: mean for name, mean in means.items() if found.rows[name].row.method in (*PLAIN, "classifier")}
    written = {
        name: mean for name, mean in means.items() if name not in plain and found.rows[name].row.role == "baseline"
    }
    said = []
    for what, rows in (("a plain classifier wins", plain), ("a baseline that writes wins", written)):
        if rows:
            name = max(rows, key=rows.__getitem__)
            said.append(f"On {found.data} {what}: {name} is {rows[name] - ours[best]:.1f} points above {best}.")
    return said


def _details(experiment: Experiment, setup: Setup, found: DataResults, folder: Path) -> Table:
    """Give all scores of each row on a data set, and whether it is better than the strongest baseline."""
    differences = found.differences(setup.load(found.data), folder) if found.score in TESTED else {}
    header = ["row", *(TITLES[column] for column in experiment.columns), "seeds"]
    if differences:
        header += ["difference", "p, paired", "p, proportions"]
    lines = []
    for name, one in found.rows.items():
        if not _is_known(one):
            continue
        cells = [name, *(_beside(one, column) for column in experiment.columns), str(len(one.results) or "")]
        lines.append(Line(cells + (_tested(differences.get(name)) if differences else []), one.row.role))
    return Table(found.data, header, lines, _notes(found, has_differences=bool(differences)))


def _beside(one: Measured, column: str) -> str:
    """Write what was measured, and the paper's value in brackets."""
    given = f"({one.paper[column]:.1f})" if column in one.paper else ""
    return f"{_spread(one, column)} {given}".strip()


def _tested(difference: Difference | None) -> list[str]:
    if difference is None:
        return ["", "", ""]
    mark = " *" if difference.p_proportions < PAPER_LEVEL else ""
    return [f"{100 * difference.points:+.1f}", _p(difference.p_paired), _p(difference.p_proportions) + mark]


def _p(value: float) -> str:
    return f"{value:.4f}" if value > 0.0002 else "≤ 0.0002"


def _notes(found: DataResults, *, has_differences: bool) -> list[str]:
    first = found.results[0]
    n_train, n_test = (field_of(first, name) for name in ("n_train", "n_test"))
    notes = [
        f"{n_train:,} training and {n_test:,} test examples; macro scores are averaged over the "
        f"{field_of(first, 'sets', 'n_macro_labels'):,} labels in the test sets."
        + (" In brackets: the paper" if found.has_paper else "")
        + (", which trained on all there are" if found.has_paper and parse_name(found.data).n_train else "")
        + ("." if found.has_paper else "")
    ]
    if has_differences:
        partners = [name for name, one in found.rows.items() if one.row.against and one.results]
        to = "the row named below" if partners else f"{found.strongest_baseline}, the strongest baseline here"
        what = (
            "prompts (another seed is another prompt)" if partners else "trained models (another seed is another model)"
        )
        notes.append(
            f"Differences are in {TITLES[found.score]}, to {to}, for the seeds that both have. Paired: what the two "
            f"predict for an example is exchanged ({N_ROUNDS:,} rounds, two-sided). Proportions: as the paper tests, "
            f"one-sided, F taken for a share of the test examples; * where p < {PAPER_LEVEL:g}, its level. Both are "
            f"about these {what}, and not corrected for the number of rows."
        )
        notes += [_by_seed(found, name) for name in partners]
    missing = [name for name, one in found.rows.items() if not one.results and one.row.method != QUOTED]
    return [*notes, "Not run: " + "; ".join(missing) + "."] if missing else notes


def _by_seed(found: DataResults, name: str) -> str:
    """Say how much a row differs from its partner, seed by seed."""
    other = found.partner(name)
    first, second = (
        {cell["seed"]: value for cell, value in zip(one.cells, one.values(found.score), strict=True)}
        for one in (found.rows[other], found.rows[name])
    )
    told = [f"{second[seed] - first[seed]:+.1f} (seed {seed})" for seed in first if seed in second]
    return f"{name}, against {other}: {', '.join(told)}."


def _prompts(found: Sequence[DataResults]) -> list[str]:
    """Say which language models were asked, and how."""
    cells = [cell for one in found for row in one.rows.values() for cell in row.cells if "prompt" in cell]
    ways = dict.fromkeys(f"{cell['model']} ({describe_prompt(cell['prompt'])})" for cell in cells)
    return ["Asked, with nothing trained: " + "; ".join(ways) + "."] if ways else []


def _trainings(found: Sequence[DataResults]) -> list[str]:
    """Say what was trained, and how."""
    cells = [cell for one in found for row in one.rows.values() for cell in row.cells if "training" in cell]
    usual = {**asdict(TrainingSettings()), "seed": None}
    ways: dict[str, None] = {}
    for cell in cells:
        kind = "classifier" if cell["method"] == "classifier" else "writes sets"
        told = [f"{name} {value}" for name, value in cell["training"].items() if name in usual and usual[name] != value]
        ways[", ".join([f"{cell['model']} ({kind})", *(one for one in told if not one.startswith("seed "))])] = None
    if not ways:
        return []
    return [
        "Trained, with what differs from the default: " + "; ".join(ways) + ".",
        "Models that write sets are taken as they are after the last epoch; dev data choose the checkpoint, k and "
        "threshold of classifiers, and all there is to choose of TF-IDF, which also reads whole texts where the others "
        "read their beginning.",
    ]
