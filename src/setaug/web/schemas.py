"""The requests and answers of the API, as its description has them. Answers are written without these classes."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

_SURROGATE = re.compile("[\ud800-\udfff]")


def _check_unicode(text: str) -> str:
    if not text.isascii() and _SURROGATE.search(text):
        raise PydanticCustomError("surrogate", "a lone surrogate is no character; send valid Unicode.")
    return text


Text = Annotated[str, AfterValidator(_check_unicode)]
"""A string of whole characters: JSON can also spell halves of them, which tokenizers refuse."""


class Problem(BaseModel):
    """Why a request was refused; of a failure, the id in the log."""

    error: str
    id: str | None = None


class Joined(BaseModel):
    """A label that looks like several, and the separator between them; ``[`` for a list as text."""

    label: str
    separator: str


class About(BaseModel):
    """A data set."""

    id: str
    name: str
    kind: str
    n_examples: int
    fields: dict[str, str]
    joined: Joined | None
    """Given if most labels look like several in one."""


class Model(BaseModel):
    """A model."""

    name: str
    kind: Literal["generator", "classifier", "set-search", "ensemble"]


class Health(BaseModel):
    """The state of the server, and what it serves."""

    status: Literal["ok", "failing"]
    version: str
    model: Model | None
    dataset: About | None
    limits: dict[str, float]
    choices: dict[str, list[str]]
    """Values of the parameters that take a name."""


class Status(BaseModel):
    """The state of the server."""

    status: Literal["ok"]


class Statistics(BaseModel):
    """What ``setaug inspect --json`` prints."""

    model_config = ConfigDict(extra="allow")
    n_sets: int
    n_labels: int
    n_edges: int
    mean_size: float | None
    mean_log2_orders: float
    mean_log2_all_orders: float
    diagnosis: dict[str, Any] | None
    """The scores of the orderings, and ``advice`` with its ``sentences``."""
    command: str | None
    """The command that trains by the advice."""


class Label(BaseModel):
    """A label, and how many sets have it."""

    label: str
    count: int


class Labels(BaseModel):
    """Labels, and how many there are in all."""

    n: int
    labels: list[Label]


class Typed(BaseModel):
    """Labels of a text, each with the number of sets that contain it: 0 if it is unknown."""

    labels: list[Label]


class Edge(BaseModel):
    """One label is written before another, with the counts that decide it."""

    before: str
    after: str
    n_both: int
    pmi: float
    ratio: float


class Graph(BaseModel):
    """Labels, the edges between them, and a picture."""

    labels: list[str]
    edges: list[Edge]
    svg: str


class Orders(Graph):
    """The graph of a set and some of its orders; their number is a string, as it may be huge."""

    n_orders: str | None
    log2_orders: float | None
    orders: list[list[str]]
    completions: list[str]


class Example(BaseModel):
    """An example; its text is cut at 2,000 characters."""

    index: int
    text: str
    labels: list[str]


class Examples(BaseModel):
    """Examples, and how many there are in all."""

    n: int
    examples: list[Example]


class Prediction(BaseModel):
    """A predicted set, with its evidence."""

    model_config = ConfigDict(extra="allow")
    labels: list[str]


class Predictions(BaseModel):
    """The set of each text."""

    predictions: list[Prediction]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of refusals that a request may meet."""
    return {status: {"model": Problem} for status in sorted({401, 403, 408, 413, 415, 422, *statuses})}
