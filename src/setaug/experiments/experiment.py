"""An experiment of the paper as a small file: which rows, on which data sets, beside which of the paper's values."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from typing import Any

ROLES = {
    "baseline": "a baseline of the paper",
    "ours": "the paper's method",
    "ablation": "the paper's method without one of its parts",
    "extra": "not in the paper",
    "sweep": "one of several values of which the test data would have to choose",
    "oracle": "told what nobody can know",
}
LANGUAGE_MODEL = "language-model"
"""A model that is prompted with examples, not trained."""
MODELS = ("encoder-decoder", "encoder", LANGUAGE_MODEL)
PLAIN = ("tf-idf", "most-frequent")
"""The baselines without a pretrained model; they have no seed."""
QUOTED = "none"
"""A row that is only quoted from the paper."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Say what a row of a table is: how to train, and how to get sets from what was trained."""

    name: str
    method: str
    """One of `METHODS`, one of `PLAIN`, or ``none`` where the paper's values are all there is."""
    size: bool | None = None
    n_orders: int = 2
    model: str = "encoder-decoder"
    """Which model: the ``encoder-decoder`` or the ``encoder``, which are trained, or the ``language-model``."""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    """What is asked of ``predict``; without more, greedy text (the paper's) or the k best labels."""
    role: str = "baseline"
    """One of `ROLES`."""
    against: str | None = None
    """The row that it is compared with; by default the strongest baseline."""

    def __post_init__(self) -> None:
        if self.role not in ROLES or self.model not in MODELS:
            raise ValueError(f"the row {self.name} has an unknown role or model: {self.role!r}, {self.model!r}.")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Hold what a file says about one table or figure."""

    name: str
    title: str
    source: str
    """Where in the paper it is."""
    data: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    """The scores of the detailed tables."""
    score: str | None = None
    """The score of the first table, where it is not the data set's own."""
    relative_to: str | None = None
    """The row that others are compared with in per cent."""
    has_picture: bool = False
    """Whether to draw the score over the number of orders."""
    vocabulary: str = "closed"
    paper: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """The paper's values in per cent: by data set, row and score."""
    notes: tuple[str, ...] = ()
    """What a reader of the paper's values has to know."""


FEW_SHOT = "few-shot"
NAMES = ("main", "ablation", "reversed", "permutations", "multilabel-k", "sampling", "keyphrases", "size", FEW_SHOT)
"""The experiments that train or ask models, each in a file of its name."""


def read_experiment(name: str) -> Experiment:
    """Read the file of an experiment.

    Examples
    --------
    >>> experiment = read_experiment("permutations")
    >>> experiment.rows[0].name, experiment.rows[0].n_orders, len(experiment.rows)
    ('random + size, n = 2', 2, 18)

    """
    if name not in NAMES:
        raise ValueError(f"experiment must be one of {', '.join(NAMES)}, got {name!r}.")
    found = tomllib.loads((files("setaug.experiments") / "tables" / f"{name}.toml").read_text("utf-8"))
    rows = tuple(row for given in found.pop("rows") for row in _expand(given))
    data, columns, notes = (tuple(found.pop(key, ())) for key in ("data", "columns", "notes"))
    return Experiment(name=name, rows=rows, data=data, columns=columns, notes=notes, **found)


def _expand(given: dict[str, Any]) -> Iterator[Row]:
    """Make a row of each value in a list (of each combination, where there are several); its name can name them."""
    decoding = given.pop("decoding", {})
    settings = {**decoding, "n_orders": given.pop("n_orders", 2)}
    lists = [value if isinstance(value, list) else [value] for value in settings.values()]
    for values in product(*lists):
        chosen = dict(zip(settings, values, strict=True))
        name = given["name"].format(**chosen)
        yield Row(**{**given, "name": name}, n_orders=chosen.pop("n_orders"), decoding=chosen)
