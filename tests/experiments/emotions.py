"""A small data set in GoEmotions' files, and results stored as a run would store them."""

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from setaug.experiments.cells import CELLS, Cell, Result
from setaug.experiments.reproduction.experiment import read_experiment
from setaug.experiments.reproduction.reproduce import make_plan
from setaug.experiments.reproduction.training_cells import Setup, predictions_path
from setaug.metrics import evaluate
from setaug.predictions import Prediction, write_predictions
from setaug.sample import sample_examples

SIZES = {"train": 40, "dev": 6, "test": 6}


def write_emotions(folder: Path) -> Path:
    """Write the files; the folder is one for --data-dir."""
    place = folder / "goemotions"
    place.mkdir(parents=True)
    splits = {name: list(sample_examples(n, seed=seed)) for seed, (name, n) in enumerate(SIZES.items())}
    labels = sorted({label for examples in splits.values() for example in examples for label in example.labels})
    (place / "labels.txt").write_text("\n".join(labels) + "\n")
    for name, examples in splits.items():
        lines = [
            f"{example.text}\t{','.join(str(labels.index(label)) for label in example.labels)}\t{name}{number}\n"
            for number, example in enumerate(examples)
        ]
        (place / f"{name}.tsv").write_text("".join(lines))
    return folder


def store(folder: Path, cells: Iterable[Cell], make_result: Callable[[Cell], Result]) -> None:
    """Add a line per cell to the stored results."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CELLS).open("a") as stream:
        for cell in cells:
            stream.write(json.dumps({"cell": cell, "result": make_result(cell)}) + "\n")


def store_experiment(name: str, setup: Setup, folder: Path, data: str, rows: Iterable[str] = ()) -> list[Cell]:
    """Store results of an experiment in which SETAUG keeps more labels of the true sets than its baselines."""
    made = make_plan(read_experiment(name), setup, [data])[data]
    cells = [cell for row, each in made.items() if not rows or row in rows for cell in each]
    unique = {json.dumps(cell): cell for cell in cells}
    store(folder, unique.values(), lambda cell: _result(cell, setup, folder))
    return cells


def _result(cell: Cell, setup: Setup, folder: Path) -> dict[str, Any]:
    dataset = setup.load(cell["data"])
    rng = random.Random(cell.get("seed", 0))
    share = {"setaug": 0.9, "tf-idf": 1.0}.get(cell["method"], 0.6)
    predictions = []
    for example in dataset.test:
        kept = tuple(label for label in example.labels if rng.random() < share)
        predictions.append(Prediction(labels=kept, size=len(example.labels), repeated=(), id=example.id))
    path = predictions_path(folder, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_predictions(path, predictions)
    scores = evaluate(dataset.test, predictions, keyphrases="one2set").to_dict()
    return {**scores, "n_train": len(dataset.train), "n_test": len(dataset.test)}
