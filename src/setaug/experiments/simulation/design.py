"""The building blocks of a finding: scales, cells, the look-up of results, and checks of what the paper claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from setaug.experiments.cells import Cell, Results
from setaug.experiments.plots import Panel

SHUFFLES = (0, 25, 50, 75, 100)
"""Per cent of a test set's labels that are shuffled."""
PROPOSALS = ("topological", "uniform")
SAMPLES = (1, 4, 16)
"""Numbers of orders drawn for a bound."""
PERFECT = "ideal"
"""The model that knows the process and is not trained."""
DECODINGS = ("greedy", "beam", "random", "top-k", "nucleus")
TENTHS = range(10, 101, 10)
"""Per cent of the updates of a training, for learning curves."""
POINT = 0.01
"""Overlaps and shares that differ by less count as equal."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The size of a study: model, data and training."""

    help: str
    model: str
    n_train: dict[str, int]
    """Training examples, by process."""
    n_symbols: dict[str, int]
    n_test: int
    training: dict[str, Any]
    n_words: int = 16
    added_orders: tuple[int, ...] = (0, 1, 3)
    """Numbers of random orders added to the training data (Findings 2 and 3)."""


_FEW = {"blocks": 20, "partners": 12, "sizes": 12}
SCALES = {
    "quick": Scale(
        help="a minute or two",
        model="mini",
        n_train=dict.fromkeys(_FEW, 1000),
        n_symbols=_FEW,
        n_test=80,
        training={"epochs": 3, "batch_size": 16, "learning_rate": 3e-3},
        added_orders=(0, 2),
    ),
    "small": Scale(
        help="up to half an hour on two cores",
        model="mini",
        n_train={"blocks": 6000, "partners": 12_000, "sizes": 12_000},
        n_symbols=_FEW,
        n_test=300,
        training={"epochs": 3, "batch_size": 8},
    ),
    "paper": Scale(
        help="the shape of BART-base, for a GPU",
        model="base-from-scratch",
        n_train=dict.fromkeys(_FEW, 50_000),
        n_symbols=dict.fromkeys(_FEW, 100),
        n_test=1000,
        training={"epochs": 10, "batch_size": 32},
        n_words=64,
        added_orders=(0, 1, 2, 3, 4),
    ),
}
"""The paper states the shape of its model but not the size of its data; that of ``paper`` is our choice."""


@dataclass(frozen=True)
class Rows:
    """The results of a study at one scale."""

    results: Results
    scale: Scale
    seeds: Sequence[int]

    def values(self, make: Callable[[Scale, int], Cell], *path: str) -> list[float]:
        """Return one number per seed, of the cell that a function makes for the scale and the seed."""
        return [self.results.value(make(self.scale, seed), *path, convert=float) for seed in self.seeds]


@dataclass(frozen=True)
class Check:
    """A claim, whether it holds, and the evidence."""

    claim: str
    holds: bool
    evidence: str
    is_control: bool = False
    """Whether it only helps to explain the result. Controls do not count for the verdict."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A finding of the paper: its claim, the cells to run, and how to read their results."""

    help: str
    title: str
    claim: str
    cells: Callable[[Scale, int], list[Cell]]
    """Return the cells of a scale for one seed."""
    panels: Callable[[Rows], list[Panel]]
    checks: Callable[[Rows], list[Check]]


def make_cell(
    process: str,
    scale: Scale,
    seed: int,
    data: dict[str, Any],
    orders: dict[str, Any],
    *,
    model: str | None = None,
    **training: Any,
) -> Cell:
    """Return the cell of one training: data, orders and settings."""
    sizes = {"n_train": scale.n_train[process], "n_test": scale.n_test, "n_symbols": scale.n_symbols[process]}
    return {
        "process": process,
        "data": {**sizes, **data},
        "model": model or scale.model,
        "orders": orders,
        "training": {**scale.training, **training},
        "seed": seed,
    }


def topological_share(n_added: int) -> float:
    """Return the share of topological orders if this many are added to one random order."""
    return n_added / (n_added + 1)


def are_below(values: Sequence[float], others: Sequence[float], *, by: float = 0.0) -> bool:
    """Return whether each value is below that of the same seed, by more than a margin.

    Examples
    --------
    >>> are_below([1, 2], [2, 3]), are_below([1, 3], [2, 3]), are_below([1, 2], [2, 3], by=1)
    (True, False, False)

    """
    return all(value + by < other for value, other in zip(values, others, strict=True))


def verdict(checks: Sequence[Check]) -> str:
    """Summarize checks.

    Examples
    --------
    >>> verdict([Check("a", True, ""), Check("b", False, "")])
    'holds in part'

    """
    claimed = [check.holds for check in checks if not check.is_control]
    if all(claimed):
        return "holds"
    return "holds in part" if any(claimed) else "does not hold"
