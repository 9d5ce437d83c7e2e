"""What all trained models share: fit, save and load."""

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from setaug.augmenter import SetAugmenter
from setaug.errors import DataError, FileError, MissingExtraError, ModelError
from setaug.estimator import SetEstimator, has_fields
from setaug.examples import Columns, Data, Example, LabelSets, checked_columns, make_examples
from setaug.metrics import score_sets
from setaug.models.held_out import count_shared, hold_out
from setaug.models.hub import find_model, push_model
from setaug.models.model_folder import (
    STATISTICS,
    begin_run,
    end_run,
    forget_run,
    is_whole,
    locked_run,
    read_card,
    save_model,
    saved_columns,
    versions,
)
from setaug.models.neural.pretrained import find_kind, quiet
from setaug.models.neural.scratch import SHAPES
from setaug.models.neural.training.processes import by_main, is_main_process, n_processes, whole_weights
from setaug.orders.statistics import LabelStatistics
from setaug.predictions import Prediction
from setaug.progress import chosen_progress
from setaug.registry import check_choice
from setaug.settings import PAPER_RATE, TRACKERS, Decoding, Progress, TrainingSettings
from setaug.vocabulary import warn_of_joined, warn_of_shared

Train: TypeAlias = Callable[..., dict[str, Any]]
"""`training.train` within a run, which knows its settings and folder; it is called with what a model brings."""


class SetModel(SetEstimator):
    """Learn to predict sets from texts.

    After `fit`, ``model_`` and ``tokenizer_`` are those of transformers, and ``dev_`` are the dev examples, given or
    held out (``is_held_out_``). They are not kept in the model's folder.
    """

    kind: ClassVar[str]
    """The name of the kind of model in ``setaug.json``."""

    model: str
    training: TrainingSettings
    is_held_out_: bool = False
    network_: Any
    """A `Writer` or a `Scorer`: the model of transformers, its tokenizer and the known labels."""

    @property
    def model_(self) -> Any:
        """The trained model of transformers."""
        return self.network_.model

    @property
    def tokenizer_(self) -> Any:
        """The model's tokenizer."""
        return self.network_.tokenizer

    @property
    def labels_(self) -> Any:
        """The known labels, most frequent first; None for an open vocabulary."""
        return self.network_.labels

    def fit(
        self,
        data: Data | Iterable[str],
        labels: LabelSets | None = None,
        *,
        columns: Columns | None = None,
        dev: Any = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Progress | bool | None = True,
        report_to: str | Sequence[str] = (),
    ) -> Self:
        """Train.

        Parameters
        ----------
        data, labels
            Examples, rows (a Hugging Face data set) or a table (a data frame); or texts, and their label sets or
            indicator matrix.
        columns
            The names of the text and label columns of rows, and of labels that are numbers. They are kept for `predict`
            and all other methods, and in a model folder.
        dev
            Examples, or a tuple of texts and label sets, for which sets are generated during training: the checkpoint
            with the highest F1 (its mean over the sets) remains. By default a part of the training data, which is then
            not trained on; see `hold_out`. Where there is none of it either, the last checkpoint remains.
        folder
            Where checkpoints, metrics and the trained model go; without it, nothing is kept on disk.
        resume
            Resume the run in this folder from its last checkpoint.
        progress
            Where to report progress: True for standard error (a bar on a terminal, a line in a notebook, elsewhere a
            line every half minute), False for nowhere, or a function that is called with the stage, the number of items
            done, and their total.
        report_to
            Experiment trackers that get the metrics: names of `setaug.settings.TRACKERS`. The files of ``tensorboard``
            go into the folder ``tensorboard`` in `folder` (or into $TENSORBOARD_LOGGING_DIR).

        """
        trackers = _check_trackers(report_to, folder)
        self.columns_ = checked_columns(columns)
        examples = make_examples(data, labels, self.columns_)
        given = make_examples(dev, None, self.columns_) if dev is not None else None
        if not examples:
            raise DataError("the training data is empty.")
        if given is not None and not given:
            raise DataError("the dev data is empty.")
        self._check_settings()
        self._check()
        if is_main_process():
            warn_of_joined(dict.fromkeys(label for example in examples for label in example.labels))
            warn_of_shared(count_shared(examples, given or []), len(given or []))
        self.is_held_out_ = given is None
        examples, self.dev_ = self._split(examples) if given is None else (examples, given)
        dev_examples = self.dev_
        if self.training.patience and not dev_examples:
            raise ValueError("patience requires dev data: there is no score to monitor without it.")
        hashes = {"data": fingerprint(examples), "dev": fingerprint(dev_examples)}
        settings = {**self._settings(), **hashes, "processes": n_processes()}
        with ExitStack() as stack, quiet():
            told = stack.enter_context(chosen_progress(progress if is_main_process() else None, "loading the model"))
            root = Path(stack.enter_context(TemporaryDirectory()) if folder is None else folder)
            if folder is not None:
                by_main(lambda: stack.enter_context(locked_run(root)))
            root, is_done = by_main(lambda: _begin(root, settings, resume=resume))
            if is_done:
                with _explaining(root):
                    return self._load(root, read_card(root))
            try:
                self._train(examples, dev_examples, folder=root, resume=resume, progress=told, report_to=trackers)
            except BaseException:
                if is_main_process():
                    forget_run(root)
                raise
            weights = whole_weights(self.model_)
            by_main(lambda: self._keep(root, weights) if folder is not None else None)
        return self

    def _check_settings(self) -> None:
        for name, kind in (("augmenter", SetAugmenter), ("training", TrainingSettings), ("decoding", Decoding)):
            if not isinstance(value := getattr(self, name, kind()), kind):
                raise TypeError(f"{name} must be {kind.__name__}(...), got {value!r}.")

    def _split(self, examples: list[Example]) -> tuple[list[Example], list[Example]]:
        fraction = self.training.part_held_out(len(examples))
        return hold_out(examples, fraction=fraction, seed=self.training.seed)

    def _keep(self, folder: Path, weights: dict[str, Any] | None) -> None:
        self._save(folder, weights)
        end_run(folder)

    def _train(self, examples: list[Example], dev: list[Example], **run: Any) -> None:
        began = time.monotonic()
        self.statistics_ = LabelStatistics().update(example.labels for example in examples)
        if not self.statistics_.labels:
            raise DataError("no training example has a label.")
        self.largest_ = max(len(example.labels) for example in examples)
        self.least_ = min(1, *(len(example.labels) for example in examples))
        settings = self._complete(len(examples))
        score = partial(self._dev_scores, dev, progress=_of_dev_data(run["progress"])) if dev else None
        record = self._learn(examples, dev, partial(_run_trainer, settings=settings, score=score, **run))
        known = set(self.statistics_.labels)
        unseen = {label for example in dev for label in example.labels} - known
        self.record_ = {
            "n_examples": len(examples),
            "n_dev": len(dev),
            "processes": n_processes(),
            "learning_rate": settings.learning_rate,
            **record,
            "dev_texts_in_training": count_shared(examples, dev),
            "dev_labels_unseen_in_training": len(unseen),
            "dev_examples_with_unseen_labels": sum(not known.issuperset(example.labels) for example in dev),
            "seconds": round(time.monotonic() - began, 1),
            "versions": versions(),
        }

    def _are_new(self, known: Sequence[str]) -> NDArray[np.bool_]:
        """Return which of the known labels only the dev data has."""
        given = getattr(self, "vocabulary", "closed")
        others = set(self.statistics_.labels).union(() if isinstance(given, str) else given)
        return np.array([label not in others for label in known], bool)

    def _complete(self, n_examples: int) -> TrainingSettings:
        """Return the training settings with what depends on the model and the number of examples."""
        if self.model in SHAPES:
            kind, own_rate = "encoder-decoder", SHAPES[self.model].learning_rate
        else:
            kind, own_rate = "adapters" if self.training.lora_rank else find_kind(self.model), None
        return self.training.completed(kind, n_examples, n_processes=n_processes(), own_rate=own_rate)

    def _dev_scores(self, dev: list[Example], progress: Progress | None = None) -> dict[str, float]:
        predictions = self.predict(dev, progress=progress)
        scores = score_sets([example.labels for example in dev], [found.labels for found in predictions])
        return {"f1": scores.samples_f1, "micro_f1": scores.micro_f1, "macro_f1": scores.macro_f1}

    @abstractmethod
    def _check(self) -> None:
        """Raise if a parameter is invalid."""

    @abstractmethod
    def _learn(self, examples: list[Example], dev: list[Example], train: Train) -> dict[str, Any]:
        """Build ``network_``, train it, and return counts of the data and the record of the training."""

    @abstractmethod
    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text."""

    def save_pretrained(self, folder: str | Path) -> None:
        """Write everything that is needed to predict; `from_pretrained` reads it back."""
        self._check_fitted()
        self._save(folder, None)

    def push_to_hub(
        self, name: str, *, private: bool | None = None, revision: str | None = None, message: str | None = None
    ) -> str:
        """Push the model to the Hugging Face Hub, with a model card; return its address.

        Parameters
        ----------
        name
            ``org/name``; the repository is created if there is none.
        private
            Whether a new repository is private; by default as the organization has it.
        revision
            An existing branch; by default the main one.
        message
            The message of the commit.

        """
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return push_model(
                folder, name, private=private, revision=revision, **({} if message is None else {"message": message})
            )

    def _save(self, folder: str | Path, weights: dict[str, Any] | None) -> None:
        card: dict[str, Any] = {"kind": self.kind, "settings": self._settings(), "record": self.record_}
        card |= {"largest": self.largest_, "least": self.least_, "labels": self.labels_}
        card |= {"columns": self.columns_.to_dict(), **self._learnt()}
        parts = {"model": self.model_, "tokenizer": self.tokenizer_, "statistics": self.statistics_}
        with quiet():
            save_model(folder, card=card, weights=weights, extra=self._save_beside, **parts)

    def _save_beside(self, folder: Path) -> None:
        """Write further files of a model into its folder."""

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as JSON."""
        params = self.get_params(deep=False)
        found = {name: asdict(value) if has_fields(value) else value for name, value in params.items()}
        found["training"] |= self.training.lengths  # a folder is read as it was trained, whatever the defaults become
        return found

    @abstractmethod
    def _learnt(self) -> dict[str, Any]:
        """Return what ``setaug.json`` keeps beside the labels, for `_restore`."""

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, revision: str | None = None) -> Self:
        """Read a model that `save_pretrained` or ``setaug train`` wrote.

        Parameters
        ----------
        folder
            The model's folder, or its name on the Hugging Face Hub: ``org/name``.
        revision
            A branch, tag or commit on the Hub.

        """
        found = find_model(folder, revision)
        return cls.from_card(found, read_card(found))

    @classmethod
    def from_card(cls, folder: str | Path, card: dict[str, Any]) -> Self:
        """Read a model whose ``setaug.json`` has been read."""
        if card["kind"] != cls.kind:
            raise ModelError(f"{folder} is a model of type {card['kind']!r}, not {cls.kind!r}.")
        with quiet(), _explaining(folder):
            return cls._from_settings(card["settings"])._load(Path(folder), card)

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        """Make a model from the parameters that a folder names."""
        defaults = cls().get_params(deep=False)
        parts = {name: type(part)(**settings[name]) for name, part in defaults.items() if has_fields(part)}
        return cls(**{**settings, **parts})

    def _load(self, folder: Path, card: dict[str, Any]) -> Self:
        self.statistics_ = LabelStatistics.load(folder / STATISTICS)
        self.largest_, self.least_ = int(card["largest"]), int(card.get("least", 1))
        self.record_ = card["record"]
        self.columns_ = saved_columns(card)
        self._restore(folder, card)
        if torch.cuda.is_available():
            self.model_.to("cuda")
        self.model_.eval()
        return self

    @abstractmethod
    def _restore(self, folder: Path, card: dict[str, Any]) -> None:
        """Read ``network_`` and what `_learnt` returned."""


@contextmanager
def _explaining(folder: str | Path) -> Iterator[None]:
    """Raise `ModelError` for whatever the values of somebody else's folder lead to."""
    try:
        yield
    except (ModelError, FileError, MissingExtraError):
        raise
    except Exception as error:
        raise ModelError(f"{folder} is not a valid setaug model ({type(error).__name__}: {error}).") from None


def _run_trainer(*args: Any, **options: Any) -> dict[str, Any]:
    from setaug.models.neural.training.trainer import train  # seconds, which a model that only predicts need not wait

    return train(*args, **options)


def _of_dev_data(progress: Progress | None) -> Progress | None:
    return None if progress is None else lambda stage, done, total: progress("dev data", done, total)


def _check_trackers(names: str | Sequence[str], folder: str | Path | None) -> list[str]:
    """Return the names of experiment trackers; raise for unknown or missing ones, and for files without a place."""
    trackers = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    for name in trackers:
        check_choice("report_to", name, TRACKERS)
        if not any(find_spec(package) for package in (name, f"{name}X")):  # tensorboardX does for tensorboard
            raise ModelError(f"reporting to {name} needs its package: pip install {name}")
    if "tensorboard" in trackers and folder is None and "TENSORBOARD_LOGGING_DIR" not in os.environ:
        raise ValueError(
            "report_to='tensorboard' writes files, so it requires a folder; pass folder='run', for example."
        )
    return trackers


def _begin(folder: Path, settings: dict[str, Any], *, resume: bool) -> tuple[Path, bool]:
    """Begin or resume a run; return its folder, and whether it is finished already."""
    begin_run(folder, settings, resume=resume)
    is_done = resume and is_whole(folder)
    if is_done:
        end_run(folder)
    return folder, is_done


def paper_rate(model: str) -> float:
    """Return the paper's learning rate, or that of a model from scratch."""
    return SHAPES[model].learning_rate if model in SHAPES else PAPER_RATE


def fingerprint(examples: list[Example]) -> str:
    """Return a content hash of the examples."""
    digest = blake2b(digest_size=8)
    for example in examples:
        digest.update(repr((example.text, example.labels)).encode(errors="surrogatepass"))
    return f"{len(examples)} examples, {digest.hexdigest()}"
