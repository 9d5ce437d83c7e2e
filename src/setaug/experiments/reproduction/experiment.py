"""An experiment of the paper as a small TOML file: rows, datasets, columns, and the paper's values."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from typing import Any

EXPERIMENTS = {
    "defaults": "setaug train and setaug predict with default settings, against alternatives, and each part's share",
    "main": "Table 2: set search, classifiers, seq2seq, random orders and SETAUG, with and without size",
    "ablation": "without size, without TSAMPLE, random orders, frequent labels first",
    "reversed": "TSAMPLE's orders reversed",
    "permutations": "2 to 10 orders per example, TSAMPLE's against random ones",
    "thresholds": "other thresholds of the order graph, alpha and beta",
    "curves": "learning curves: score on dev data by the number of updates",
    "multilabel-k": "classifiers that take the k best labels, or the true number of labels",
    "sampling": "five ways of decoding",
    "choices": "ways to choose a set from samples",
    "keyphrases": "KP20k: present and absent F1@M, beside One2Set's",
    "size": "how often the stated size is right, and respected; ill-formed labels",
    "likelihood": "the likelihood of the test sets, and the bounds of proposals",
    "few-shot": "TSAMPLE's orders against random ones in the prompts of a language model; no training",
}
"""The experiments that train or prompt models, each in a file of its name."""
GRAPHS = "graphs"
"""The label graphs, which need no model."""
FEW_SHOT = "few-shot"
ROLES = {
    "baseline": "a baseline of the paper",
    "ours": "the paper's method",
    "ablation": "the paper's method without one of its parts",
    "extra": "not in the paper",
    "sweep": "one of several values, of which test data would have to choose",
    "oracle": "uses information that is not available in practice",
}
LANGUAGE_MODEL = "language-model"
"""A model that is prompted with examples, not trained."""
MODELS = ("encoder-decoder", "encoder", LANGUAGE_MODEL)
PLAIN = ("tf-idf", "tf-idf-label-words", "most-frequent")
"""The baselines without a pretrained model and without a seed."""
PARTS = ("decoder", "companion", "calibration")
"""What can be left out when a set is chosen from probabilities."""
PICTURES = ("orders", "updates")
"""What a score can be plotted over."""
QUOTED = "none"
"""The method of a row that is only quoted from the paper."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table: how to train, and how to predict."""

    name: str
    method: str
    """One of `METHODS` or `PLAIN`, or `QUOTED`."""
    size: bool | None = None
    n_orders: int = 2
    model: str = "encoder-decoder"
    """One of `MODELS`."""
    orders: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of `SetAugmenter`, such as its thresholds."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Training settings. With the default recipe, dev data are used as `setaug train` uses them."""
    without: str | None = None
    """A part that is left out when a set is chosen: one of `PARTS`."""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    """Options of ``predict``; by default the paper's: greedy text, or the k best labels."""
    likelihood: Mapping[str, Any] = field(default_factory=dict)
    """Options of ``log_likelihood``. If there are any, test sets are scored and nothing is predicted."""
    role: str = "baseline"
    """One of `ROLES`."""
    against: str | None = None
    """The row to compare with; by default the strongest baseline."""

    def __post_init__(self) -> None:
        if self.role not in ROLES or self.model not in MODELS or self.without not in (None, *PARTS):
            named = f"{self.role!r}, {self.model!r}, {self.without!r}"
            raise ValueError(f"the row {self.name} has an unknown role, model or part: {named}.")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    source: str
    """Where it is in the paper."""
    data: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    """The scores of the detailed tables."""
    score: str | None = None
    """The score of the overview and of tests; by default that of the data set."""
    second_score: str | None = None
    """Another score of the overview, and that of the gain."""
    n_dev: int | None = None
    """The number of dev examples that models are given; by default all."""
    relative_to: str | None = None
    """The row that changes in per cent refer to."""
    gain: Mapping[str, str] = field(default_factory=dict)
    """The row whose relative gain is averaged over datasets (``of``), and the row to compare with (``over``)."""
    picture: str | None = None
    """What the score is plotted over: one of `PICTURES`."""
    curve: Mapping[str, int] = field(default_factory=dict)
    """Learning curves: the number of ``points``, and of dev examples (``n_dev``) that are scored at each."""
    unit: str = "per cent"
    """The unit of all values."""
    vocabulary: str = "closed"
    """``open`` for keyphrases."""
    paper: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """The paper's values in per cent: by dataset, row and score."""
    notes: tuple[str, ...] = ()

    def check_rows(self, names: Iterable[str]) -> None:
        """Raise if a row does not exist."""
        known = [row.name for row in self.rows]
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"{self.name} has no row {unknown[0]!r}; use one of {'; '.join(known)}.")


def read_table(name: str) -> dict[str, Any]:
    """Read a TOML file of this package."""
    return tomllib.loads((files("setaug.experiments.reproduction") / "tables" / f"{name}.toml").read_text("utf-8"))


def read_experiment(name: str) -> Experiment:
    """Read the file of an experiment.

    Examples
    --------
    >>> experiment = read_experiment("permutations")
    >>> experiment.rows[0].name, experiment.rows[0].n_orders, len(experiment.rows)
    ('random + size, n = 2', 2, 21)

    """
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {name!r}.")
    found = read_table(name)
    rows = tuple(row for given in found.pop("rows") for row in _expand(given))
    data, columns, notes = (tuple(found.pop(key, ())) for key in ("data", "columns", "notes"))
    return Experiment(name=name, rows=rows, data=data, columns=columns, notes=notes, **found)


_LISTED = ("decoding", "orders", "likelihood")
"""The tables of a row whose values can be lists."""


def _expand(given: dict[str, Any]) -> Iterator[Row]:
    """Return one row per combination of listed values; names are templates of them."""
    settings: dict[tuple[str, str], Any] = {
        (table, name): value for table in _LISTED for name, value in given.get(table, {}).items()
    }
    settings["", "n_orders"] = given.get("n_orders", 2)
    lists = [value if isinstance(value, list) else [value] for value in settings.values()]
    for values in product(*lists):
        chosen: dict[tuple[str, str], Any] = dict(zip(settings, values, strict=True))
        named = {name: value for (_, name), value in chosen.items()}
        tables = {
            table: {name: value for (place, name), value in chosen.items() if place == table} for table in _LISTED
        }
        row = {**given, **tables, "n_orders": named["n_orders"], "name": given["name"].format(**named)}
        if "against" in given:
            row["against"] = given["against"].format(**named)
        yield Row(**row)
