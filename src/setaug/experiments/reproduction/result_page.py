"""The page of an experiment: an overview, a detailed table for each dataset, and notes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from setaug.datasets import parse_name
from setaug.experiments.page import Line, Page, Picture, Table, panel_table
from setaug.experiments.plots import Panel, mean, spread
from setaug.experiments.reproduction.comparison import N_ROUNDS, PAPER_LEVEL, TESTED, Difference
from setaug.experiments.reproduction.experiment import PLAIN, QUOTED, Experiment
from setaug.experiments.reproduction.outputs import commonest_label
from setaug.experiments.reproduction.results import TITLES, DataResults, RowResults
from setaug.experiments.stored_settings import paper_settings
from setaug.settings import TrainingSettings

_FAIR = ("baseline", "ours", "ablation", "extra")
"""Roles of rows that can be the best."""
_SHOWN = 0.1
"""The precision of tables, in points."""


def make_page(
    experiment: Experiment,
    found: Sequence[DataResults],
    panels: Sequence[Panel],
    *,
    command: str,
    pictures: Sequence[Picture],
) -> Page:
    """Return the page of an experiment."""
    about = [
        f"The paper: {experiment.source}.",
        f"All values in {experiment.unit}; mean ± standard deviation over seeds. Rows that are not in the paper come "
        "last.",
    ]
    return Page(
        title=experiment.title,
        about=about + ([f"`{command}`"] if command else []),
        tables=[
            _overview(experiment, found),
            *(_details(experiment, one) for one in found if one.cells),
            *map(panel_table, panels),
        ],
        pictures=pictures,
        closing=[*experiment.notes, *_trainings(found), *_prompts(found)],
    )


def _overview(experiment: Experiment, found: Sequence[DataResults]) -> Table:
    """Return one score for each row and dataset, beside the paper's."""
    shown = [row for row in experiment.rows if any(_is_known(one.rows[row.name]) for one in found)]
    header = ["row"]
    columns: list[list[str]] = []
    best: dict[int, str] = {}
    for one in found:
        means = one.means()
        for score in (one.score, *([experiment.second_score] if experiment.second_score else [])):
            if fair := one.means(*_FAIR, score=score):
                best[len(header)] = max(fair, key=fair.__getitem__)
            header.append(f"{one.data}: {TITLES[score]}")
            columns.append([_spread(one.rows[row.name], score) for row in shown])
        if experiment.relative_to in means:
            header.append("change")
            base = means[experiment.relative_to]
            others = {name: mean for name, mean in means.items() if name != experiment.relative_to}
            columns.append([_change(others.get(row.name), base) for row in shown])
        if one.has_paper:
            header.append("paper")
            columns.append([_paper_value(one.rows[row.name].paper, one.score) for row in shown])
    lines = []
    for at, row in enumerate(shown):
        is_best = frozenset(place for place, name in best.items() if name == row.name)
        lines.append(Line([row.name, *(column[at] for column in columns)], row.role, is_best))
    notes = [note for one in found for note in _winners(one)]
    return Table("Overview", header, lines, _gains(experiment, found) + notes)


def _gains(experiment: Experiment, found: Sequence[DataResults]) -> list[str]:
    """Return a note on the relative gain of a row on each dataset, and on average."""
    if not experiment.gain:
        return []
    of, over = experiment.gain["of"], experiment.gain["over"]
    what = f" in {TITLES[experiment.second_score]}" if experiment.second_score else ""
    notes = []
    for who, values in (
        ("here", [(one.data, one.means(score=experiment.second_score)) for one in found]),
        ("in the paper", [(one.data, one.paper_values()) for one in found]),
    ):
        gains = {data: 100 * (row[of] / row[over] - 1) for data, row in values if of in row and row.get(over)}
        if gains:
            each = ", ".join(f"{gain:+.0f} % ({data})" for data, gain in gains.items())
            notes.append(f"{of} over {over}{what}, {who}: {each}; on average {mean(list(gains.values())):+.0f} %.")
    return notes


def _is_known(one: RowResults) -> bool:
    return bool(one.cells or one.paper)


def _spread(one: RowResults, score: str) -> str:
    values = one.values(score)
    return spread(values, 2 if score.startswith("bits_") else 1) if values else ""


def _change(value: float | None, base: float) -> str:
    return "" if value is None or not base else f"{100 * (value - base) / base:+.0f} %"


def _paper_value(paper: Mapping[str, float], score: str) -> str:
    if score in paper:
        return f"{paper[score]:.1f}"
    other = next((name for name in ("samples_f1", "micro_f1") if name in paper), None)
    return f"{paper[other]:.1f} ({TITLES[other]})" if other else ""


def _winners(found: DataResults) -> list[str]:
    """Return a note if a baseline, or a plain classifier, is better than the paper's method."""
    ours = found.means("ours")
    if not ours or found.score not in TESTED:
        return []
    best = max(ours, key=ours.__getitem__)
    means = {name: mean for name, mean in found.means("baseline", "extra").items() if mean - ours[best] >= _SHOWN / 2}
    plain = {name: mean for name, mean in means.items() if found.rows[name].row.method in (*PLAIN, "classifier")}
    written = {
        name: mean for name, mean in means.items() if name not in plain and found.rows[name].row.role == "baseline"
    }
    notes = []
    for what, rows in (("a plain classifier wins", plain), ("a baseline that writes wins", written)):
        if rows:
            name = max(rows, key=rows.__getitem__)
            notes.append(f"On {found.data} {what}: {name} is {rows[name] - ours[best]:.1f} points above {best}.")
    return notes


def _details(experiment: Experiment, found: DataResults) -> Table:
    """Return all measured scores of each row on a dataset, and the tests of differences."""
    differences = found.differences()
    columns = [column for column in experiment.columns if any(one.values(column) for one in found.rows.values())]
    header = ["row", *(TITLES[column] for column in columns), "seeds"]
    if differences:
        header += ["difference", "p, paired", "p, proportions"]
    lines = []
    for name, one in found.rows.items():
        if _is_known(one):
            cells = [name, *(_beside(one, column) for column in columns), str(len(one.cells) or "")]
            lines.append(Line(cells + (_tested(differences.get(name)) if differences else []), one.row.role))
    return Table(found.data, header, lines, _notes(found, columns, has_differences=bool(differences)))


def _beside(one: RowResults, column: str) -> str:
    """Format the measured value, and the paper's in brackets."""
    paper = f"({one.paper[column]:.1f})" if column in one.paper else ""
    return f"{_spread(one, column)} {paper}".strip()


def _tested(difference: Difference | None) -> list[str]:
    if difference is None:
        return ["", "", ""]
    paired, proportions = (
        f"{value:.4f}" if value > 0.0002 else "≤ 0.0002" for value in (difference.p_paired, difference.p_proportions)
    )
    mark = " *" if difference.p_proportions < PAPER_LEVEL else ""
    return [f"{100 * difference.points:+.1f}", paired, proportions + mark]


def _notes(found: DataResults, columns: Sequence[str], *, has_differences: bool) -> list[str]:
    stored, first = next((one.stored, one.cells[0]) for one in found.rows.values() if one.cells)
    n_train, n_test = (stored.value(first, name) for name in ("n_train", "n_test"))
    macro = ""
    if any(column.startswith("macro_") for column in columns):
        n_labels = stored.value(first, "sets", "n_macro_labels")
        macro = f"; macro scores are averaged over the {n_labels:,} labels in the test sets"
    notes = [
        f"{n_train:,} training and {n_test:,} test examples{macro}."
        + (" In brackets: the paper" if found.has_paper else "")
        + (", which trained on all there are" if found.has_paper and parse_name(found.data).n_train else "")
        + ("." if found.has_paper else "")
    ]
    if has_differences:
        partners = [name for name, one in found.rows.items() if one.cells and one.row.against not in (None, name)]
        to = "the row named below" if partners else f"{found.strongest_baseline}, the strongest baseline here"
        is_prompted = any("prompt" in cell for cell in found.cells)
        kind = "prompt" if is_prompted else "model"
        what = f"{'prompts' if is_prompted else 'trained models'} (another seed is another {kind})"
        notes.append(
            f"Differences are in {TITLES[found.score]}, to {to}, for the seeds that both have. Paired: what the two "
            f"predict for an example is exchanged ({N_ROUNDS:,} rounds, two-sided). Proportions: as the paper tests, "
            f"one-sided, F taken for a share of the test examples; * where p < {PAPER_LEVEL:g}, its level. Both are "
            f"about these {what}, and not corrected for the number of rows."
        )
        notes += [_by_seed(found, name) for name in partners]
    if "commonest" in columns:
        label = commonest_label(found.dataset.train)
        share = 100 * mean([float(label in example.labels) for example in found.dataset.test])
        notes.append(f"The commonest label of the training sets is {label}; {share:.1f} % of the test sets have it.")
    if found.score.startswith("bits_"):
        notes += [
            f"{name}, against {found.reference(name)}: {change:+.2f} ± {error:.2f} bits per set, the standard error "
            f"over {n:,} sets."
            for name, (change, error, n) in found.bound_differences().items()
        ]
    missing = [name for name, one in found.rows.items() if not one.cells and one.row.method != QUOTED]
    return [*notes, "Not run: " + "; ".join(missing) + "."] if missing else notes


def _by_seed(found: DataResults, name: str) -> str:
    """Return the difference of a row to its reference, by seed."""
    other = found.reference(name)
    first, second = (
        {cell.get("seed"): value for cell, value in zip(one.cells, one.values(found.score), strict=True)}
        for one in (found.rows[other], found.rows[name])
    )
    pairs = {seed: (value, second.get(seed, second.get(None))) for seed, value in first.items()}
    changes = [f"{after - before:+.1f} (seed {seed})" for seed, (before, after) in pairs.items() if after is not None]
    return f"{name}, against {other}: {', '.join(changes)}."


def describe_prompt(prompt: Mapping[str, Any]) -> str:
    """Describe in a few words how a model is prompted.

    Examples
    --------
    >>> describe_prompt({"shots": 24, "kind": "chat", "max_tokens": 64, "request": {"top_p": 0.9}})
    '24 examples, chat, at most 64 tokens, top_p 0.9'

    """
    parts = [f"{prompt['shots']} examples", prompt["kind"], f"at most {prompt['max_tokens']} tokens"]
    return ", ".join([*parts, *(f"{name} {value}" for name, value in prompt["request"].items())])


def _prompts(found: Sequence[DataResults]) -> list[str]:
    """Return a note on which language models were prompted, and how."""
    cells = [cell for one in found for cell in one.cells if "prompt" in cell]
    ways = dict.fromkeys(f"{cell['model']} ({describe_prompt(cell['prompt'])})" for cell in cells)
    return ["Asked, with nothing trained: " + "; ".join(ways) + "."] if ways else []


def _trainings(found: Sequence[DataResults]) -> list[str]:
    """Return notes on what was trained, and how."""
    ways: dict[str, None] = {}
    takes_last = False
    for cell in (cell for one in found for cell in one.cells if "training" in cell):
        kind = "classifier" if cell["method"] == "classifier" else "writes sets"
        recipe = cell["training"].get("recipe", "paper")
        default = paper_settings() if recipe == "paper" else TrainingSettings(recipe=recipe)
        usual = asdict(default) | default.lengths
        settings = {name: value for name, value in cell["training"].items() if name in usual and name != "seed"}
        changes = [f"{name} {value}" for name, value in settings.items() if usual[name] != value]
        ways[", ".join([f"{cell['model']} ({kind})", *changes])] = None
        takes_last |= recipe == "paper" and "curve" not in cell  # a curve is of dev scores, which choose the checkpoint
    if not ways:
        return []
    trained = "Trained, with what differs from the default: " + "; ".join(ways) + "."
    if not takes_last:
        return [trained]
    return [
        trained,
        "Models that write sets are taken as they are after the last epoch; dev data choose the checkpoint, k and "
        "threshold of classifiers, and all there is to choose of TF-IDF, which also reads whole texts where the others "
        "read their beginning.",
    ]
