"""How long cells will take, roughly: arithmetic to be done over the speed of the machine.

The speed is guessed until cells are finished; from then on it is that of the cells that are.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from setaug.examples import Example
from setaug.experiments.cells import Cell, Result, cell_key
from setaug.experiments.runs import Setup, name_model

_CHARACTERS_PER_TOKEN = 4
_CPU, _GPU = 5e10, 1e13
"""Operations per second of one core, and of a graphics card, while it trains."""
_BASE_WEIGHTS = 140e6
"""BART-base has so many; a model that is not on this machine is taken to be like it."""
_BYTES_PER_WEIGHT = 4
_ANSWER = 2.0
"""Seconds that a language model takes to answer, as long as nothing is known."""


class Estimate:
    """Estimate the seconds that groups of cells take, by those that are finished."""

    def __init__(self, setup: Setup, done: Mapping[str, Result], cells: Sequence[Cell], *, has_gpu: bool) -> None:
        self._setup = setup
        self._speed = _GPU if has_gpu else _CPU
        pairs = [(cell, done[cell_key(cell)]) for cell in cells if "training" in cell and cell_key(cell) in done]
        ratios = [result["train_seconds"] / (self._training(cell) / self._speed) for cell, result in pairs]
        asked = [done[cell_key(cell)] for cell in cells if "prompt" in cell and cell_key(cell) in done]
        taken = [result["predict_seconds"] / result["n_test"] for result in asked]
        self._answer = median(taken) if taken else _ANSWER / setup.prompts.endpoint.concurrency
        self.is_measured = bool(ratios or taken)
        self._factor = median(ratios) if ratios else 1.0

    def seconds(self, cells: Sequence[Cell]) -> float:
        """Estimate the seconds of cells that share a training which has to be done."""
        if "prompt" in cells[0]:
            return len(self._setup.load(cells[0]["data"]).test) * self._answer
        if "model" not in cells[0]:
            return 60.0  # a linear model
        operations = self._training(cells[0]) + sum(map(self._prediction, cells))
        return self._factor * operations / self._speed

    def _training(self, cell: Cell) -> float:
        """Count the operations of a training: about six per weight and token, half of the weights on each side."""
        text, labels = _tokens(self._setup.load(cell["data"]).train)
        epochs = int(cell["training"]["epochs"])
        if cell["method"] == "classifier":
            return 6 * self._weights(cell) * epochs * text
        n_targets = 1 + int(cell["augmenter"]["n_orders"])
        return 3 * self._weights(cell) * epochs * (text + n_targets * labels)

    def _prediction(self, cell: Cell) -> float:
        text, labels = _tokens(self._setup.load(cell["data"]).test)
        decoding = cell["decoding"]
        times = decoding.get("samples", 0) or (5 if decoding.get("name") == "beam" else 1)
        return self._weights(cell) * (text + times * labels)

    def _weights(self, cell: Cell) -> float:
        paths = (Path(model) for model in self._setup.models.values() if name_model(model) == cell["model"])
        folder = next(paths, Path())
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors")) if folder.is_dir() else 0
        return size / _BYTES_PER_WEIGHT or _BASE_WEIGHTS


def _tokens(examples: Sequence[Example]) -> tuple[float, float]:
    text = sum(min(len(example.text) / _CHARACTERS_PER_TOKEN, 120) for example in examples)
    labels = sum(2 + sum(1 + len(label) / _CHARACTERS_PER_TOKEN for label in example.labels) for example in examples)
    return text, labels
