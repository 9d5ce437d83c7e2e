"""What a finding of the simulation study is: cells to run, how to read their results, and at which scale."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from setaug.errors import FileError
from setaug.experiments.cells import Cell, Result, cell_key
from setaug.experiments.report import Check, Panel
from setaug.models.settings import SEEDS


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Say how much to train on, and what."""

    model: str
    n_train: dict[str, int]
    """Training examples, by process."""
    n_symbols: dict[str, int]
    n_test: int
    training: dict[str, Any]
    n_words: int = 16
    added_orders: tuple[int, ...] = (0, 1, 3)
    """How many random orders are added to training data (Findings 2 and 3)."""


_FEW = {"blocks": 20, "partners": 12, "sizes": 12}
SCALES = {
    "quick": Scale(
        model="mini",
        n_train={"blocks": 1000, "partners": 1000, "sizes": 1000},
        n_symbols=_FEW,
        n_test=80,
        training={"epochs": 3, "batch_size": 16, "learning_rate": 3e-3},
        added_orders=(0, 2),
    ),
    "small": Scale(
        model="mini",
        n_train={"blocks": 6000, "partners": 12_000, "sizes": 12_000},
        n_symbols=_FEW,
        n_test=300,
        training={"epochs": 3, "batch_size": 8},
    ),
    "paper": Scale(
        model="base-from-scratch",
        n_train={"blocks": 50_000, "partners": 50_000, "sizes": 50_000},
        n_symbols={"blocks": 100, "partners": 100, "sizes": 100},
        n_test=1000,
        training={"epochs": 10, "batch_size": 32},
        n_words=64,
        added_orders=(0, 1, 2, 3, 4),
    ),
}
"""The paper gives the shape of its model, but no sizes of its data: those of ``paper`` are ours."""


class Rows:
    """Hold the results of cells, to be found by what the cells are."""

    def __init__(self, cells: Sequence[Cell], results: Sequence[Result]) -> None:
        self._found = {cell_key(cell): result for cell, result in zip(cells, results, strict=True)}

    def values(self, make: Callable[[int], Cell], *path: str) -> list[float]:
        """Give one number per seed of the cells that a function makes."""
        found = []
        for seed in SEEDS:
            value: Any = self._found[cell_key(make(seed))]
            try:
                for name in path:
                    value = value[name]
                found.append(float(value))
            except (KeyError, TypeError):
                raise FileError(
                    f"a result has no {' / '.join(path)}: another version of setaug wrote it; use another folder."
                ) from None
        return found


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Say what is claimed, what has to be run to check it, and how to read the results."""

    title: str
    claim: str
    """What the paper says."""
    cells: Callable[[Scale, int], list[Cell]]
    """Give the cells of a scale, for one seed."""
    panels: Callable[[Scale, Rows], list[Panel]]
    checks: Callable[[Scale, Rows], list[Check]]

    def all_cells(self, scale: Scale) -> list[Cell]:
        """Give the cells of all seeds."""
        return [cell for seed in SEEDS for cell in self.cells(scale, seed)]


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
    """Describe one training: its data, its orders and how to train."""
    return {
        "process": process,
        "data": {
            "n_train": scale.n_train[process],
            "n_test": scale.n_test,
            "n_symbols": scale.n_symbols[process],
            **data,
        },
        "model": model or scale.model,
        "orders": orders,
        "training": {**scale.training, **training},
        "seed": seed,
    }
