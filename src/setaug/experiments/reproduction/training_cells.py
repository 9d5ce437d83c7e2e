"""The cells of an experiment, and how to run them: train once, predict in several ways."""

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator

from setaug.augmenter import SetAugmenter
from setaug.datasets import Dataset, load_dataset, parse_name
from setaug.datasets.entry import choose
from setaug.examples import Example
from setaug.experiments.cells import Cell, Result, cell_key
from setaug.experiments.reproduction.experiment import LANGUAGE_MODEL, PLAIN, QUOTED, Experiment, Row
from setaug.experiments.stored_settings import (
    augmenter_from_cell,
    augmenter_to_cell,
    decoding_from_cell,
    decoding_to_cell,
    paper_settings,
    row_settings,
    rule_from_cell,
    training_from_cell,
    training_to_cell,
)
from setaug.metrics import evaluate, score_sets
from setaug.models.methods import make_model
from setaug.models.model_folder import METRICS
from setaug.models.neural.generator import MEMBERS
from setaug.models.neural.model import fingerprint, paper_rate
from setaug.models.neural.pretrained import load_tokenizer
from setaug.models.neural.scratch import SHAPES
from setaug.models.tfidf import TfidfClassifier
from setaug.orders.statistics import LabelStatistics
from setaug.predictions import Prediction, write_predictions
from setaug.prompting import Endpoint, PromptedSetModel
from setaug.prompting.endpoint import Teller
from setaug.settings import METHODS, PAPER_EPOCHS, SEEDS, Decoding

_MODEL_FILES = ("config.json", "*.safetensors", "tokenizer*", "*.model", "vocab*", "merges.txt")


TOP_K = (1, 3, 5, 10, 50)
"""The values of k that the paper tries on the dev data."""


def best_k(gold: Sequence[Sequence[str]], ranked: Sequence[Sequence[str]]) -> int:
    """Return the paper's k with the highest mean F1 of the k first labels; the smallest of equal ones.

    Examples
    --------
    >>> best_k([["joy"]], [["joy", "love", "fear"]])
    1

    """
    return max(TOP_K, key=lambda k: (score_sets(gold, [labels[:k] for labels in ranked]).samples_f1, -k))


class MostFrequent(BaseEstimator):  # type: ignore[misc]
    """The weakest baseline: predicts the k most frequent training labels for each text.

    Examples
    --------
    >>> train = [Example("", ["joy", "love"]), Example("", ["joy"])]
    >>> MostFrequent().fit(train, dev=train).predict(train, k=2)[0].labels
    ('joy', 'love')

    """

    def fit(self, examples: Iterable[Example], *, dev: Sequence[Example]) -> Self:
        """Count labels; choose k by the mean F1 of the sets on dev data."""
        counted = LabelStatistics().update(example.labels for example in examples)
        self.labels_ = sorted(counted.labels, key=lambda label: (-counted.count(label), label))
        self.k_ = best_k([example.labels for example in dev], [self.labels_] * len(dev))
        return self

    def predict(self, examples: Iterable[Example], *, k: int | None = None) -> list[Prediction]:
        """Return the same set for each example."""
        labels = tuple(self.labels_[: self.k_ if k is None else k])
        return [Prediction(labels=labels, id=example.id) for example in examples]


_PLAIN: dict[str, Any] = {
    "tf-idf": partial(TfidfClassifier, label_words=False),
    "tf-idf-label-words": TfidfClassifier,
    "most-frequent": MostFrequent,
}


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """How language models are prompted."""

    shots: int = 24
    kind: str = "chat"
    max_tokens: int = 256
    skip_refused: bool = False
    endpoint: Endpoint = field(default_factory=Endpoint)
    """Where the model is served. Of it, only ``request`` is a part of the cell."""

    def as_cell(self) -> dict[str, Any]:
        """Return what a result depends on."""
        named = {"shots": self.shots, "kind": self.kind, "max_tokens": self.max_tokens}
        named["request"] = dict(self.endpoint.request)
        return named | ({"skip_refused": True} if self.skip_refused else {})


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all cells of a run have in common."""

    data_dir: str | None = None
    download: bool = False
    verify: bool = True
    models: dict[str, str] = field(default_factory=dict)
    """Model names or folders, by kind: ``encoder-decoder``, ``encoder``, ``language-model``."""
    training: dict[str, Any] = field(default_factory=dict)
    """Changes to the default `TrainingSettings` of models that write sets."""
    classifier_training: dict[str, Any] = field(default_factory=dict)
    """Changes to those of classifiers."""
    seeds: tuple[int, ...] = SEEDS
    samples: int | None = None
    """Overrides the number of samples of rows that vote."""
    keep_models: bool = False
    prompts: Prompts = field(default_factory=Prompts)

    def load(self, name: str) -> Dataset:
        """Load a dataset, once per process."""
        return _load(name, self.data_dir, self.download, self.verify)

    def check_models(self) -> None:
        """Raise if a model does not exist, before anything is trained."""
        for kind, model in self.models.items():
            if kind != LANGUAGE_MODEL and model not in SHAPES:
                load_tokenizer(model)


@cache
def _load(name: str, data_dir: str | None, download: bool, verify: bool) -> Dataset:
    return load_dataset(name, data_dir, download=download, verify=verify)


def make_cells(experiment: Experiment, setup: Setup, data: str) -> dict[str, list[Cell]]:
    """Return the cells of each row on a dataset, one per seed; rows that cannot be run have none."""
    splits = setup.load(data).splits
    known: Cell = {"data": data, "digest": _short(" ".join(map(fingerprint, splits.values())))}
    if experiment.n_dev is not None:
        known["n_dev"] = experiment.n_dev
    n_train = len(splits["train"])
    return {
        row.name: [
            dict(json.loads(json.dumps({**known, **_make_cell(row, setup, seed, experiment, n_train)})))
            for seed in (setup.seeds if row.method not in PLAIN else setup.seeds[:1])
        ]
        for row in experiment.rows
        if row.method in PLAIN or (row.model in setup.models and row.method != QUOTED)
    }


def _make_cell(row: Row, setup: Setup, seed: int, experiment: Experiment, n_train: int) -> Cell:
    """Return everything that a result depends on, defaults included."""
    decoding, vocabulary = dict(row.decoding), experiment.vocabulary
    if row.method in PLAIN:
        settings = _PLAIN[row.method]().get_params()
        if row.method == "tf-idf":  # cells are older than the words of labels
            del settings["label_words"]
        return {"method": row.method, "settings": settings, "decoding": decoding}
    path, ordering = setup.models[row.model], METHODS[row.method].ordering
    named = {"method": row.method, "model": name_model(path), "seed": seed}
    if row.model == LANGUAGE_MODEL:
        augmenter = SetAugmenter(ordering=ordering, with_size=bool(row.size), random_state=seed)
        asked = {"vocabulary": vocabulary, "prompt": setup.prompts.as_cell(), "decoding": decoding}
        return {**named, "augmenter": augmenter_to_cell(augmenter), **asked}
    rate = {"learning_rate": paper_rate(path)}
    if row.method == "classifier":
        # As many pairs of a text and a set as the other methods, which see n + 1 orders of a set per epoch.
        epochs = (row.n_orders + 1) * (paper_settings(**setup.training).epochs or PAPER_EPOCHS)
        training = row_settings(row.training, {**rate, "epochs": epochs}, {**setup.classifier_training, "seed": seed})
        decoding = decoding if "choose" in decoding else {"rule": "top-k", **decoding}
        return {**named, "training": training_to_cell(training, classifies=True), "decoding": decoding}
    orders = {"n_orders": row.n_orders, "with_size": bool(row.size), "random_state": seed, **row.orders}
    augmenter = SetAugmenter(ordering=ordering, **orders)
    training = row_settings(row.training, rate, {**setup.training, "seed": seed})
    curve = {}
    if experiment.curve:
        n_updates = -(-n_train // training.batch_size) * (training.epochs or PAPER_EPOCHS)
        training = replace(training, checkpoint_every=max(n_updates // experiment.curve["points"], 1))
        curve = {"curve": {"n_dev": experiment.curve["n_dev"]}}
    if row.likelihood:
        decoding = {"likelihood": dict(row.likelihood)}
    elif row.method != "set-search" and not training.is_paper:
        decoding = {"constrained": True, "choose": "best", "seed": seed, **decoding}
        decoding |= {"without": row.without} if row.without else {}
    elif row.method != "set-search":
        if setup.samples is not None and "samples" in decoding:
            decoding["samples"] = setup.samples
        decoding = decoding_to_cell({"constrained": False, "seed": seed, **decoding})
    return {
        **named,
        "augmenter": augmenter_to_cell(augmenter),
        "vocabulary": vocabulary,
        "training": training_to_cell(training),
        **curve,
        "decoding": decoding or {"constrained": False},
    }


def describe(cell: Cell) -> str:
    """Describe the training of a cell in a few words."""
    parts = [cell["data"], cell["method"]]
    if "augmenter" in cell:
        parts.append("with size" if cell["augmenter"]["size"] else "without size")
        parts.append(f"{cell['prompt']['shots']} shots" if "prompt" in cell else f"n = {cell['augmenter']['n_orders']}")
    return ", ".join(parts + ([f"seed {cell['seed']}"] if "seed" in cell else []))


def describe_decoding(cell: Cell) -> str:
    """Describe the decoding of a cell by what differs from the default."""
    if "likelihood" in cell["decoding"]:
        return "likelihood, " + ", ".join(f"{name} {value}" for name, value in cell["decoding"]["likelihood"].items())
    default = {**decoding_to_cell({}), "seed": cell.get("seed")} if "training" in cell else {}
    changed = [f"{name} {value}" for name, value in cell["decoding"].items() if default.get(name) != value]
    return ", ".join(changed) or "default"


@cache
def name_model(model: str) -> str:
    """Return a name that identifies a model: for a folder, its name and a digest of its content."""
    folder = Path(model)
    if model in SHAPES or not folder.is_dir():
        return model
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted({path for pattern in _MODEL_FILES for path in folder.glob(pattern)}):
        with path.open("rb") as stream:
            for block in iter(lambda: stream.read(1 << 22), b""):
                digest.update(block)
    return f"{folder.resolve().name}@{digest.hexdigest()}"


def training_key(cell: Cell) -> str:
    """Return the key of a training: the cell without its decoding."""
    return cell_key({name: value for name, value in cell.items() if name != "decoding"})


def _short(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=6).hexdigest()


def predictions_path(folder: Path, cell: Cell) -> Path:
    """Return the file of the sets that a cell predicted."""
    return folder / "predictions" / f"{_short(cell_key(cell))}.jsonl.gz"


@dataclass(frozen=True)
class Trainings:
    """Runs cells that share a training; predictions and models go to a folder."""

    setup: Setup
    folder: Path

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Result]:
        """Train, then yield the result of each decoding."""
        dataset = self.setup.load(cells[0]["data"])
        keyphrases = parse_name(dataset.name).entry.kind.keyphrases
        began = time.monotonic()
        model = self._train(cells[0], dataset)
        seconds = getattr(model, "record_", {}).get("seconds", round(time.monotonic() - began, 1))
        for cell in cells:
            began = time.monotonic()
            if "likelihood" in cell["decoding"]:
                bits = _score_sets(model, dataset, cell)
                yield {"likelihood": bits, **_took(dataset, seconds, began)}
                continue
            chooser = self._without(model, cell, dataset)
            options = _as_now(cell, chooser, dataset) | self._prompt_options(cell)
            predictions = chooser.predict(dataset.test, **options)
            times = _took(dataset, seconds, began)
            path = predictions_path(self.folder, cell)
            _write(predictions, path)
            scores = evaluate(dataset.test, predictions, vocabulary=dataset.labels, keyphrases=keyphrases)
            yield {
                **scores.to_dict(),
                **_tuned(chooser, cell),
                **({"curve": _read_curve(self.model_folder(cell))} if _has_curve(cell) else {}),
                **times,
                "predictions": path.relative_to(self.folder).as_posix(),
            }

    def _train(self, cell: Cell, dataset: Dataset) -> Any:
        method = cell["method"]
        given = _dev_of(cell, dataset)
        if method in PLAIN:
            return _PLAIN[method](**cell["settings"]).fit(dataset.train, dev=given)
        path = self._path(cell)
        if "prompt" in cell:
            prompt = {name: value for name, value in cell["prompt"].items() if name != "request"}
            options = {"vocabulary": cell["vocabulary"], "endpoint": self.setup.prompts.endpoint, **prompt}
            return PromptedSetModel(path, augmenter=augmenter_from_cell(cell["augmenter"]), **options).fit(
                dataset.train
            )
        training = training_from_cell(cell["training"])
        if method == "classifier":
            # The checkpoint is the one whose sets above a threshold are best, whatever the rule of the cell.
            decoding = Decoding(choose="threshold") if training.is_paper else Decoding()
            classifier = make_model(method, path, training=training, decoding=decoding)
            return classifier.fit(dataset.train, dev=given, **self._run(cell))
        augmenter = augmenter_from_cell(cell["augmenter"])
        options = {"size": augmenter.with_size, "augmenter": augmenter, "vocabulary": cell["vocabulary"]}
        if training.is_paper:
            options["decoding"] = Decoding(**_as_now(cell)) if "curve" in cell else Decoding(choose="written")
        model = make_model(method, path, training=training, **options)
        if "curve" in cell:
            given = choose(dataset.dev, cell["curve"]["n_dev"])
        is_watched = "curve" in cell or not training.is_paper
        return model.fit(dataset.train, dev=given if is_watched else None, **self._run(cell))

    def _without(self, model: Any, cell: Cell, dataset: Dataset) -> Any:
        """Return the model of a cell, or a copy of it that chooses sets without a part."""
        if (part := cell["decoding"].get("without")) is None:
            return model
        members = [name for name in MEMBERS if name != part]
        return copy(model).tune(_dev_of(cell, dataset), members=members, calibrate=part != "calibration")

    def _run(self, cell: Cell) -> dict[str, Any]:
        """Return how a run is kept; the cells show progress, not each of them."""
        return {"folder": self.model_folder(cell), "resume": True, "progress": False}

    def _prompt_options(self, cell: Cell) -> dict[str, Any]:
        """Return where to cache the answers of a language model, so that none is paid for twice."""
        answers = self.folder / "answers" / f"{_short(training_key(cell))}.jsonl"
        return {"answers": answers, "tell": Teller(sys.stderr.write)} if "prompt" in cell else {}

    def model_folder(self, cell: Cell) -> Path:
        """Return the folder of a cell's model."""
        return self.folder / "models" / _short(training_key(cell) + self._path(cell))

    def forget(self, cell: Cell) -> None:
        """Remove the model of a cell, unless models are kept."""
        if "training" in cell and not self.setup.keep_models:
            shutil.rmtree(self.model_folder(cell), ignore_errors=True)

    def _path(self, cell: Cell) -> str:
        return next(model for model in self.setup.models.values() if name_model(model) == cell["model"])


def _dev_of(cell: Cell, dataset: Dataset) -> list[Example]:
    """Return the dev data that the models of an experiment are given."""
    return choose(dataset.dev, cell["n_dev"]) if "n_dev" in cell else dataset.dev


def _has_default_recipe(cell: Cell) -> bool:
    return bool(cell.get("training", {}).get("recipe") == "default")


def _has_curve(cell: Cell) -> bool:
    """Return whether dev scores are kept by the number of updates: for learning curves, and to choose defaults."""
    return "curve" in cell or _has_default_recipe(cell)


def _as_now(cell: Cell, model: Any = None, dataset: Dataset | None = None) -> dict[str, Any]:
    """Return the decoding of a cell with the current names; that of a classifier may need the model and dev data."""
    decoding: dict[str, Any] = {name: value for name, value in cell["decoding"].items() if name != "without"}
    if "rule" in decoding:
        dev = dataset.dev if dataset is not None else []
        return rule_from_cell(decoding, lambda: _find_k(model, dev))
    return decoding_from_cell(decoding) if "samples" in decoding else decoding


def _find_k(model: Any, dev: Sequence[Example]) -> int:
    """Return the paper's k for a classifier, by its dev data."""
    ranked = model.predict(dev, choose="top-k", k=max(TOP_K))
    return best_k([example.labels for example in dev], [found.labels for found in ranked])


def _tuned(model: Any, cell: Cell) -> dict[str, Any]:
    """Return what was tuned on dev data, or the statistics of prompting."""
    if "prompt" in cell:
        return {"asked": asdict(model.report_)}
    if cell["method"] == "classifier":
        return {"chosen": model.rule_.to_dict()}
    if cell["method"] in PLAIN:
        return {"chosen": {"k": model.k_} if isinstance(model, MostFrequent) else asdict(model.trial_)}
    if _has_default_recipe(cell):
        return {name: model.record_[name] for name in ("chosen", "n_updates", "best_f1") if name in model.record_}
    return {}


def _took(dataset: Dataset, train_seconds: float, began: float) -> dict[str, Any]:
    """Return the sizes of a run, and the seconds that it took."""
    return {
        "n_train": len(dataset.train),
        "n_test": len(dataset.test),
        "train_seconds": train_seconds,
        "predict_seconds": round(time.monotonic() - began, 1),
    }


def _read_curve(folder: Path) -> list[dict[str, float]]:
    """Return the dev scores of a training by the number of updates."""
    lines = map(json.loads, (folder / METRICS).read_text().splitlines())
    names = {"step": "updates", "eval_f1": "f1", "eval_micro_f1": "micro_f1", "eval_macro_f1": "macro_f1"}
    return [{new: line[name] for name, new in names.items()} for line in lines if "eval_f1" in line]


def _score_sets(model: Any, dataset: Dataset, cell: Cell) -> dict[str, list[float | None]]:
    """Return the likelihood of each test set and its bounds, in bits."""
    found = model.log_likelihood(dataset.test, seed=cell["seed"], **cell["decoding"]["likelihood"])
    return {
        name: [None if (value := getattr(one, name)) is None else round(value, 4) for one in found]
        for name in ("elbo", "bound", "allowed", "exact")
    }


def _write(predictions: Sequence[Prediction], path: Path) -> None:
    """Write predictions with the text that was generated; their probabilities are left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_predictions(path, (replace(found, probabilities=None, sizes=None) for found in predictions))
