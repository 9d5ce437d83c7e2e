"""A small data set in GoEmotions' files, made of the built-in sample; and results that nobody had to train for."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from setaug.experiments.runs import Setup, predictions_path
from setaug.files import open_output
from setaug.metrics import evaluate
from setaug.predictions import Prediction
from setaug.sample import sample_examples

SIZES = {"train": 40, "dev": 8, "test": 12}


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


@dataclass(frozen=True)
class MadeUp:
    """Stand in for trainings: keep a label of the true sets more often, the better the method is said to be."""

    setup: Setup
    folder: Path

    def forget(self, cell: dict[str, Any]) -> None:
        with (self.folder / "forgotten").open("a") as stream:
            stream.write(cell["method"] + "\n")

    def __call__(self, cells: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        benchmark = self.setup.load(cells[0]["data"])
        for cell in cells:
            rng = random.Random(cell.get("seed", 0))
            share = {"setaug": 0.9, "tf-idf": 1.0}.get(cell["method"], 0.6)
            predictions = []
            for example in benchmark.test:
                kept = tuple(label for label in example.labels if rng.random() < share)
                predictions.append(Prediction(labels=kept, size=len(example.labels), id=example.id))
            path = predictions_path(self.folder, cell)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_output(path) as stream:
                for one in predictions:
                    stream.write(orjson.dumps(one.as_row(), option=orjson.OPT_APPEND_NEWLINE))
            scores = evaluate(predictions, benchmark.test, keyphrases="one2set").as_dict()
            yield {**scores, "n_train": len(benchmark.train), "n_test": len(benchmark.test), "train_seconds": 30.0}
