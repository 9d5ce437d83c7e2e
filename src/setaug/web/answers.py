"""What the API answers, as its description says it. The answers themselves are written without these classes."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Problem(BaseModel):
    """Say why a request was refused."""

    error: str


class About(BaseModel):
    """Say which data set it is."""

    id: str
    name: str
    n_examples: int
    fields: dict[str, str]


class Model(BaseModel):
    """Say which model predicts."""

    name: str
    kind: Literal["generator", "classifier", "set-search"]


class Health(BaseModel):
    """Say that all is well."""

    status: Literal["ok"]
    version: str
    model: Model | None
    dataset: About | None
    limits: dict[str, float]


class Statistics(BaseModel):
    """Give what ``setaug inspect --json`` gives."""

    model_config = ConfigDict(extra="allow")
    n_sets: int
    n_labels: int
    n_edges: int
    mean_size: float | None
    mean_log2_orders: float
    mean_log2_all_orders: float
    diagnosis: dict[str, Any] | None


class Label(BaseModel):
    """Say how many sets hold a label."""

    label: str
    count: int


class Labels(BaseModel):
    """Give labels, and how many there are in all."""

    n: int
    labels: list[Label]


class Edge(BaseModel):
    """Say that one label is written before another, and why."""

    before: str
    after: str
    n_both: int
    pmi: float
    ratio: float


class Graph(BaseModel):
    """Give labels, the edges between them, and a picture."""

    labels: list[str]
    edges: list[Edge]
    svg: str


class Orders(Graph):
    """Give the graph of a set and some of its orders; the number of all is a string, as it may be huge."""

    n_orders: str | None
    log2_orders: float | None
    orders: list[list[str]]
    completions: list[str]


class Example(BaseModel):
    """Give an example, its text cut off at 2,000 characters."""

    index: int
    text: str
    labels: list[str]


class Examples(BaseModel):
    """Give examples, and how many there are in all."""

    n: int
    examples: list[Example]


class Prediction(BaseModel):
    """Give a predicted set, and what it rests on."""

    model_config = ConfigDict(extra="allow")
    labels: list[str]


class Predictions(BaseModel):
    """Give the set of each text."""

    predictions: list[Prediction]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals that a request may meet."""
    return {status: {"model": Problem} for status in sorted({401, 403, 408, 413, 422, *statuses})}
