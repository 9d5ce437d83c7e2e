"""Schemas of requests and responses, for the API description. Responses are written by `reply`, without them."""

import re
from typing import Annotated, Any, Literal

import orjson
from fastapi import Response
from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

_SURROGATE = re.compile("[\ud800-\udfff]")


def _check_unicode(text: str) -> str:
    if not text.isascii() and _SURROGATE.search(text):
        raise PydanticCustomError("surrogate", "a lone surrogate is not a valid character; send valid Unicode.")
    return text


Text = Annotated[str, AfterValidator(_check_unicode)]
"""A string without lone surrogates: JSON allows them, but tokenizers reject them."""


class Problem(BaseModel):
    """Why a request was rejected; for an internal error, also the id in the log."""

    error: str
    id: str | None = None


class Joined(BaseModel):
    """A label that looks like several labels in one, and their separator; ``[`` for a list as text."""

    label: str
    separator: str


class About(BaseModel):
    """A dataset."""

    id: str
    name: str
    kind: str
    n_examples: int
    fields: dict[str, str]
    joined: Joined | None
    """Set if most labels look like several labels in one."""


class Model(BaseModel):
    """A model."""

    name: str
    kind: Literal["generator", "classifier", "set-search", "ensemble"]


class Health(BaseModel):
    """The state of the server, its dataset and its model."""

    status: Literal["ok", "failing"]
    version: str
    model: Model | None
    dataset: About | None
    limits: dict[str, float]
    choices: dict[str, list[str]]
    """Allowed values of named parameters."""


class Status(BaseModel):
    """The state of the server."""

    status: Literal["ok"]


class Statistics(BaseModel):
    """The output of ``setaug inspect --json``."""

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
    """The training command of the advice."""


class Label(BaseModel):
    """A label, and the number of sets that contain it."""

    label: str
    count: int


class Labels(BaseModel):
    """Labels, and their total number."""

    n: int
    labels: list[Label]


class Typed(BaseModel):
    """Labels of a text, each with the number of sets that contain it; 0 if it is unknown."""

    labels: list[Label]


class Edge(BaseModel):
    """An edge: one label is written before another, with the counts that decide it."""

    before: str
    after: str
    n_both: int
    pmi: float
    ratio: float


class Graph(BaseModel):
    """Labels, the edges between them, and an image."""

    labels: list[str]
    edges: list[Edge]
    svg: str


class Orders(Graph):
    """The graph of a set and some of its orders; their number is a string, because it may be huge."""

    n_orders: str | None
    log2_orders: float | None
    orders: list[list[str]]
    completions: list[str]


class Example(BaseModel):
    """An example; its text is truncated to 2,000 characters."""

    index: int
    text: str
    labels: list[str]


class Examples(BaseModel):
    """Examples, and their total number."""

    n: int
    examples: list[Example]


class Prediction(BaseModel):
    """A predicted set, with its probabilities."""

    model_config = ConfigDict(extra="allow")
    labels: list[str]


class Predictions(BaseModel):
    """The set of each text."""

    predictions: list[Prediction]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of the errors of a request."""
    return {status: {"model": Problem} for status in sorted({401, 403, 408, 413, 415, 422, *statuses})}


def reply(content: Any) -> Response:
    """Return content, which may have numbers of numpy, as a JSON response."""
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")
