"""The cells of an experiment on the benchmarks, and what running them means: train once, predict in several ways."""

import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from setaug.augmenter import SetAugmenter
from setaug.benchmarks import Benchmark, load_benchmark
from setaug.experiments.cells import Cell, Result, cell_key
from setaug.experiments.experiment import PLAIN, QUOTED, Experiment, Row
from setaug.files import open_output
from setaug.linear import TfidfClassifier
from setaug.metrics import evaluate
from setaug.models.methods import METHODS, make_model
from setaug.models.settings import SEEDS, TrainingSettings
from setaug.predictions import Prediction

ENCODER_DECODER, ENCODER = "encoder-decoder", "encoder"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Say what all cells of a run have in common."""

    data_dir: str | None = None
    download: bool = False
    verify: bool = True
    models: dict[str, str] = field(default_factory=dict)
    """The pretrained models: an ``encoder-decoder`` and, for one of the baselines, an ``encoder``."""
    training: dict[str, Any] = field(default_factory=dict)
    """What differs from the default `TrainingSettings` for models that write."""
    classifier_training: dict[str, Any] = field(default_factory=dict)
    """The same for classifiers."""
    seeds: tuple[int, ...] = SEEDS
    samples: int | None = None
    """How many samples rows with samples draw, where it shall not be as many as the experiment says."""
    keep_models: bool = False

    def load(self, name: str) -> Benchmark:
        """Load a data set (once per process)."""
        return _load(name, self.data_dir, self.download, self.verify)


@cache
def _load(name: str, data_dir: str | None, download: bool, verify: bool) -> Benchmark:
    return load_benchmark(name, data_dir, download=download, verify=verify)


def make_cells(experiment: Experiment, setup: Setup, data: str) -> dict[str, list[Cell]]:
    """Give the cells of each row on a data set, one per seed; rows that cannot be run there have none."""
    return {
        row.name: [
            _make_cell(row, setup, data, seed, experiment.vocabulary)
            for seed in (setup.seeds if row.method != PLAIN else setup.seeds[:1])
        ]
        for row in experiment.rows
        if row.method == PLAIN or (row.model in setup.models and row.method != QUOTED)
    }


def _make_cell(row: Row, setup: Setup, data: str, seed: int, vocabulary: str) -> Cell:
    cell: Cell = {"data": data, "method": row.method}
    if row.method == PLAIN:
        return {**cell, "decoding": {}}
    decoding = dict(row.decoding)
    if setup.samples is not None and "samples" in decoding:
        decoding["samples"] = setup.samples
    cell["model"] = name_model(setup.models[row.model])
    if row.method == "classifier":
        # As many steps as the others take: they see n + 1 orders of each example in an epoch.
        epochs = {"epochs": (row.n_orders + 1) * TrainingSettings(**setup.training).epochs}
        decoding = {"rule": "top-k", **decoding}
        return {**cell, "training": {**epochs, **setup.classifier_training}, "seed": seed, "decoding": decoding}
    cell |= {"n_orders": row.n_orders, "vocabulary": vocabulary, "training": dict(setup.training), "seed": seed}
    if row.method != "set-search":
        cell["size"] = row.size
        cell["decoding"] = {"name": "greedy", "constrained": False, **decoding}
    else:
        cell["decoding"] = {"constrained": False, **decoding}
    return cell


@cache
def name_model(model: str) -> str:
    """Name a model so that another one has another name, wherever it lies: a folder by its name and its content."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted([*folder.glob("config.json"), *folder.glob("*.safetensors")]):
        with path.open("rb") as stream:
            for block in iter(lambda: stream.read(1 << 22), b""):
                digest.update(block)
    return f"{folder.resolve().name}@{digest.hexdigest()}"


def group_cells(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Put cells together that share a training."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(training_key(cell), []).append(cell)
    return list(groups.values())


def training_key(cell: Cell) -> str:
    """Name the training of a cell: all of it but the decoding."""
    return cell_key({name: value for name, value in cell.items() if name != "decoding"})


def short_name(key: str) -> str:
    """Give a short name that a file can have."""
    return hashlib.blake2b(key.encode(), digest_size=6).hexdigest()


def predictions_path(folder: Path, cell: Cell) -> Path:
    """Say where the sets are that a cell predicted."""
    return folder / "predictions" / f"{short_name(cell_key(cell))}.jsonl.gz"


@dataclass(frozen=True)
class Trainings:
    """Run cells that share a training; results and predictions go to a folder."""

    setup: Setup
    folder: Path

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Result]:
        """Train, then give the result of each way of decoding."""
        benchmark = self.setup.load(cells[0]["data"])
        place = self.folder / "models" / short_name(training_key(cells[0]))
        began = time.monotonic()
        model = self._train(cells[0], benchmark, place)
        seconds = getattr(model, "record_", {}).get("seconds", round(time.monotonic() - began, 1))
        for cell in cells:
            began = time.monotonic()
            predictions = model.predict(benchmark.test, **_changes(cell))
            took = time.monotonic() - began
            _write(predictions, predictions_path(self.folder, cell))
            scores = evaluate(
                predictions,
                benchmark.test,
                vocabulary=benchmark.labels,
                keyphrases="one2set" if benchmark.name.startswith("kp20k") else None,
            )
            yield {
                **scores.as_dict(),
                "n_train": len(benchmark.train),
                "n_test": len(benchmark.test),
                **_chosen(model, cell),
                "train_seconds": seconds,
                "predict_seconds": round(took, 1),
            }
        if not self.setup.keep_models:
            shutil.rmtree(place, ignore_errors=True)

    def _train(self, cell: Cell, benchmark: Benchmark, place: Path) -> Any:
        if cell["method"] == PLAIN:
            return TfidfClassifier().fit(benchmark.train, dev=benchmark.dev)
        training = TrainingSettings(**cell["training"], seed=cell["seed"])
        path = self._path(cell["model"])
        if cell["method"] == "classifier":
            return make_model("classifier", path, training=training).fit(
                benchmark.train, dev=benchmark.dev, folder=place, resume=True
            )
        model = make_model(
            cell["method"],
            path,
            size=cell.get("size"),
            augmenter=SetAugmenter(n_orders=cell["n_orders"], random_state=cell["seed"]),
            training=training,
            vocabulary=cell["vocabulary"],
        )
        return model.fit(benchmark.train, folder=place, resume=True)

    def _path(self, name: str) -> str:
        return next(model for model in self.setup.models.values() if name_model(model) == name)


def _changes(cell: Cell) -> dict[str, Any]:
    """Say what is asked of predict; draws depend on the cell's seed."""
    is_generator = cell["method"] in METHODS and cell["method"] not in ("classifier", "set-search")
    return {**cell["decoding"], "seed": cell["seed"]} if is_generator else cell["decoding"]


def _chosen(model: Any, cell: Cell) -> dict[str, Any]:
    """Tell what a model chose by dev data."""
    if cell["method"] == "classifier":
        return {"chosen": {"threshold": model.threshold_, "top_k": model.top_k_}}
    return {"chosen": asdict(model.trial_)} if cell["method"] == PLAIN else {}


def _write(predictions: Sequence[Prediction], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_output(path) as stream:
        for found in predictions:
            kept = Prediction(labels=found.labels, size=found.size, id=found.id)
            stream.write(orjson.dumps(kept.as_row(), option=orjson.OPT_APPEND_NEWLINE))
