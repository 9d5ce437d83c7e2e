"""The cells of an experiment on the benchmarks, and what running them means: train once, predict in several ways."""

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from setaug.augmenter import SetAugmenter
from setaug.benchmarks import Benchmark, load_benchmark
from setaug.decoding.settings import Decoding
from setaug.experiments.cells import Cell, Result, cell_key
from setaug.experiments.constant import MostFrequent
from setaug.experiments.experiment import LANGUAGE_MODEL, PLAIN, QUOTED, Experiment, Row
from setaug.experiments.prompts import Prompts, make_prompted
from setaug.files import open_output
from setaug.linear import TfidfClassifier
from setaug.metrics import evaluate
from setaug.models.base import fingerprint, usual_rate
from setaug.models.methods import METHODS, make_model
from setaug.models.pretrained import load_tokenizer
from setaug.models.scratch import SHAPES
from setaug.models.settings import SEEDS, TrainingSettings
from setaug.predictions import Prediction
from setaug.prompting.endpoint import Teller

_PLAIN: dict[str, Any] = {"tf-idf": TfidfClassifier, "most-frequent": MostFrequent}
_CONTENT = ("config.json", "*.safetensors", "tokenizer*", "*.model", "vocab*", "merges.txt")
"""The files that make a model what it is."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Say what all cells of a run have in common."""

    data_dir: str | None = None
    download: bool = False
    verify: bool = True
    models: dict[str, str] = field(default_factory=dict)
    """The models: an ``encoder-decoder``; for one of the baselines an ``encoder``; for prompts a ``language-model``."""
    training: dict[str, Any] = field(default_factory=dict)
    """What differs from the default `TrainingSettings` for models that write."""
    classifier_training: dict[str, Any] = field(default_factory=dict)
    """The same for classifiers."""
    seeds: tuple[int, ...] = SEEDS
    samples: int | None = None
    """How many samples rows with samples draw, where it shall not be as many as the experiment says."""
    keep_models: bool = False
    prompts: Prompts = field(default_factory=Prompts)
    """How language models are asked."""

    def load(self, name: str) -> Benchmark:
        """Load a data set (once per process)."""
        return _load(name, self.data_dir, self.download, self.verify)

    def check_models(self) -> None:
        """Raise if a model is not there, before anything is trained."""
        for kind, model in self.models.items():
            if kind != LANGUAGE_MODEL and model not in SHAPES:
                load_tokenizer(model)


@cache
def _load(name: str, data_dir: str | None, download: bool, verify: bool) -> Benchmark:
    return load_benchmark(name, data_dir, download=download, verify=verify)


def make_cells(experiment: Experiment, setup: Setup, data: str) -> dict[str, list[Cell]]:
    """Give the cells of each row on a data set, one per seed; rows that cannot be run have none."""
    known = {"data": data, "digest": _digest(setup.load(data))}
    return {
        row.name: [
            _as_json({**known, **_make_cell(row, setup, seed, experiment.vocabulary)})
            for seed in (setup.seeds if row.method not in PLAIN else setup.seeds[:1])
        ]
        for row in experiment.rows
        if row.method in PLAIN or (row.model in setup.models and row.method != QUOTED)
    }


def _as_json(cell: Cell) -> Cell:
    return dict(json.loads(json.dumps(cell)))


def _digest(benchmark: Benchmark) -> str:
    """Name the content of a data set: the same name can stand for several versions, or for other files."""
    return short_name(" ".join(fingerprint(split) for split in benchmark.splits.values()))


def _make_cell(row: Row, setup: Setup, seed: int, vocabulary: str) -> Cell:
    """Say everything that a result depends on, also what is left as it is by default."""
    if row.method in PLAIN:
        return {"method": row.method, "settings": _PLAIN[row.method]().get_params(), "decoding": dict(row.decoding)}
    path = setup.models[row.model]
    named = {"method": row.method, "model": name_model(path), "seed": seed}
    if row.model == LANGUAGE_MODEL:
        augmenter = SetAugmenter(ordering=METHODS[row.method].ordering, size=bool(row.size), random_state=seed)
        asked = {"vocabulary": vocabulary, "prompt": setup.prompts.as_cell(), "decoding": dict(row.decoding)}
        return {**named, "augmenter": asdict(augmenter), **asked}
    given = {"learning_rate": usual_rate(path), **setup.training}
    decoding = dict(row.decoding)
    if row.method == "classifier":
        # As many pairs of a text and a set as the others, which see n + 1 orders of each set in an epoch.
        epochs = (row.n_orders + 1) * TrainingSettings(**setup.training).epochs
        given = {"learning_rate": usual_rate(path), "epochs": epochs, **setup.classifier_training}
        training = TrainingSettings(**given, seed=seed)
        return {**named, "training": asdict(training), "decoding": {"rule": "top-k", **decoding}}
    chosen = METHODS[row.method]
    augmenter = SetAugmenter(ordering=chosen.ordering, n_orders=row.n_orders, size=bool(row.size), random_state=seed)
    if row.method != "set-search":
        if setup.samples is not None and "samples" in decoding:
            decoding["samples"] = setup.samples
        decoding = asdict(Decoding(**{"constrained": False, "seed": seed, **decoding}))
    return {
        **named,
        "augmenter": asdict(augmenter),
        "vocabulary": vocabulary,
        "training": asdict(TrainingSettings(**given, seed=seed)),
        "decoding": decoding or {"constrained": False},
    }


def describe(cell: Cell) -> str:
    """Say in a few words which training a cell is."""
    parts = [cell["data"], cell["method"]]
    if "augmenter" in cell:
        parts.append("with size" if cell["augmenter"]["size"] else "without size")
        parts.append(f"{cell['prompt']['shots']} shots" if "prompt" in cell else f"n = {cell['augmenter']['n_orders']}")
    return ", ".join(parts + ([f"seed {cell['seed']}"] if "seed" in cell else []))


def describe_decoding(cell: Cell) -> str:
    """Say in a few words how sets are got from what was trained."""
    usual = {**asdict(Decoding()), "seed": cell.get("seed")} if "training" in cell else {}
    told = [f"{name} {value}" for name, value in cell["decoding"].items() if usual.get(name) != value]
    return ", ".join(told) or "as usual"


@cache
def name_model(model: str) -> str:
    """Name a model so that another one has another name, wherever it lies: a folder by its name and its content."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted({path for pattern in _CONTENT for path in folder.glob(pattern)}):
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
        began = time.monotonic()
        model = self._train(cells[0], benchmark)
        seconds = getattr(model, "record_", {}).get("seconds", round(time.monotonic() - began, 1))
        for cell in cells:
            began = time.monotonic()
            predictions = model.predict(benchmark.test, **cell["decoding"], **self._asking(cell))
            took = time.monotonic() - began
            path = predictions_path(self.folder, cell)
            _write(predictions, path)
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
                "predictions": path.relative_to(self.folder).as_posix(),
            }

    def _train(self, cell: Cell, benchmark: Benchmark) -> Any:
        if cell["method"] in PLAIN:
            return _PLAIN[cell["method"]](**cell["settings"]).fit(benchmark.train, dev=benchmark.dev)
        if "prompt" in cell:
            return make_prompted(cell, self._path(cell), self.setup.prompts).fit(benchmark.train)
        path, training = self._path(cell), TrainingSettings(**cell["training"])
        if cell["method"] == "classifier":
            classifier = make_model("classifier", path, training=training)
            return classifier.fit(benchmark.train, dev=benchmark.dev, folder=self.place(cell), resume=True)
        augmenter = SetAugmenter(**cell["augmenter"])
        model = make_model(
            cell["method"],
            path,
            size=augmenter.size,
            augmenter=augmenter,
            training=training,
            vocabulary=cell["vocabulary"],
        )
        return model.fit(benchmark.train, folder=self.place(cell), resume=True)

    def _asking(self, cell: Cell) -> dict[str, Any]:
        """Say where the answers of a language model are kept: nothing is paid for twice, also if a cell is killed."""
        place = self.folder / "answers" / f"{short_name(training_key(cell))}.jsonl"
        return {"answers": place, "tell": Teller(sys.stderr.write)} if "prompt" in cell else {}

    def place(self, cell: Cell) -> Path:
        """Say where the model of a cell is kept."""
        return self.folder / "models" / short_name(training_key(cell) + self._path(cell))

    def forget(self, cell: Cell) -> None:
        """Remove the model of a cell, unless models are kept."""
        if "training" in cell and not self.setup.keep_models:
            shutil.rmtree(self.place(cell), ignore_errors=True)

    def _path(self, cell: Cell) -> str:
        return next(model for model in self.setup.models.values() if name_model(model) == cell["model"])


def _chosen(model: Any, cell: Cell) -> dict[str, Any]:
    """Tell what a model chose by dev data."""
    if "prompt" in cell:
        return {"asked": asdict(model.report_)}
    if cell["method"] == "classifier":
        return {"chosen": {"threshold": model.threshold_, "top_k": model.top_k_}}
    if cell["method"] in PLAIN:
        return {"chosen": {"k": model.k_} if isinstance(model, MostFrequent) else asdict(model.trial_)}
    return {}


def _write(predictions: Sequence[Prediction], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_output(path) as stream:
        for found in predictions:
            kept = Prediction(labels=found.labels, size=found.size, id=found.id)
            stream.write(orjson.dumps(kept.as_row(), option=orjson.OPT_APPEND_NEWLINE))
