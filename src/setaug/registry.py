"""Registry of orderings, samplers and written forms: names, help, traits and defaults.

Imports nothing heavy. A new ordering or form is one entry and the function or class that it points to.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

DEFAULT_ORDERING = "topological"
DEFAULT_SAMPLER = "uniform"
BASELINE_ORDERING = "random"
"""The ordering that others are compared to."""
DEFAULT_N_ORDERS = 2
DEFAULT_MIN_PMI = 1.0
DEFAULT_MIN_RATIO = 3.0
DEFAULT_FORM = "separated"
DEFAULT_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class OrderingEntry:
    """Description of an ordering, available without importing it."""

    help: str
    """A phrase for help texts."""
    make: str | Callable[..., Any]
    """Returns the ordering for an `OrderingInputs`: a function, or ``module:function``, imported on first use."""
    needs_edges: bool = False
    """Whether it reads the order graph."""
    needs_names: bool = True
    """Whether it reads the names of labels; without them, large vocabularies stay compact."""
    is_reversed: bool = False
    """Whether its orders are those of the graph, reversed."""
    is_deterministic: bool = False
    """Whether each set has exactly one order."""
    is_diagnosed: bool = False
    """Whether `diagnose` compares it with random orders."""
    proposal: str | None = None
    """Its name as a proposal for the likelihood of a set; None unless it samples uniformly from a countable support."""

    def load(self) -> Callable[..., Any]:
        """Return the function that creates the ordering."""
        return _load(self.make)


@dataclass(frozen=True, slots=True)
class FormEntry:
    """Description of a written form, available without importing it."""

    help: str
    """A phrase for help texts."""
    make: str | Callable[..., Any]
    """The `WrittenForm`: a class, or ``module:class``, imported on first use."""
    takes_separator: bool = False
    """Whether the separator can be set."""

    def load(self) -> Callable[..., Any]:
        """Return the class of the form."""
        return _load(self.make)


def _load(make: str | Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(make, str):
        return make
    module, _, name = make.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


_HOME = "setaug.orders.orderings"
ORDERINGS: dict[str, OrderingEntry] = {
    "topological": OrderingEntry(
        "specific labels first (TSAMPLE)",
        f"{_HOME}:topological",
        needs_edges=True,
        needs_names=False,
        is_diagnosed=True,
        proposal="topological",
    ),
    "reversed": OrderingEntry(
        "general labels first",
        f"{_HOME}:topological_reversed",
        needs_edges=True,
        needs_names=False,
        is_reversed=True,
        is_diagnosed=True,
        proposal="reversed",
    ),
    "random": OrderingEntry("uniformly random order", f"{_HOME}:random", needs_names=False, proposal="uniform"),
    "frequency": OrderingEntry(
        "frequent labels first", f"{_HOME}:frequency", is_deterministic=True, is_diagnosed=True, proposal="frequency"
    ),
    "given": OrderingEntry(
        "as in the data", f"{_HOME}:given", needs_names=False, is_deterministic=True, proposal="given"
    ),
}
SAMPLERS = {
    "uniform": "each allowed order with the same probability",
    "quick": "random topological sort, which is not uniform",
}
FORMS: dict[str, FormEntry] = {
    "separated": FormEntry("2 | joy | love", "setaug.forms.separated:SeparatedForm", takes_separator=True),
    "json": FormEntry('{"size": 2, "labels": ["joy", "love"]}', "setaug.forms.json_list:JsonForm"),
}
"""Formats of a set as text."""
DEFAULT_PAIR_FORMAT = "prompt-completion"
PAIR_FORMATS = {
    "prompt-completion": "two texts",
    "chat": "one list of chat messages",
    "chat-prompt-completion": "two lists of chat messages",
    "columns": "two texts with column names of your choice",
}
"""Formats of a training pair as a row."""


def proposals() -> dict[str, str]:
    """Return the proposals for the likelihood of a set, each with the name of its ordering."""
    return {entry.proposal: name for name, entry in ORDERINGS.items() if entry.proposal is not None}


def describe(choices: Mapping[str, OrderingEntry | FormEntry | str], *, default: str) -> str:
    """Return a help text for named choices.

    Examples
    --------
    >>> describe({"up": "rare labels first", "down": "frequent labels first"}, default="up")
    'up: rare labels first; down: frequent labels first [up]'

    """
    texts = (f"{name}: {entry if isinstance(entry, str) else entry.help}" for name, entry in choices.items())
    return f"{'; '.join(texts)} [{default}]"


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise a `ValueError` unless a named value is one of the choices."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
