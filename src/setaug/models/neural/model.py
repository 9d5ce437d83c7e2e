"""What all trained models share: fit, save and load."""

import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self, TypeAlias

import torch

from setaug.errors import DataError, FileError, MissingExtraError, ModelError
from setaug.estimator import SetEstimator, has_fields
from setaug.examples import Data, Example, make_examples
from setaug.metrics import score_sets
from setaug.models.model_folder import (
    STATISTICS,
    begin_run,
    end_run,
    forget_run,
    is_whole,
    locked_run,
    read_card,
    save_model,
    versions,
)
from setaug.models.neural.pretrained import quiet
from setaug.models.neural.processes import by_main, is_main_process, n_processes, whole_weights
from setaug.models.neural.scratch import SHAPES
from setaug.orders.statistics import LabelStatistics
from setaug.predictions import Prediction
from setaug.settings import Progress, TrainingSettings

Train: TypeAlias = Callable[..., dict[str, Any]]
"""`training.train` within a run, which knows its settings and folder; it is called with what a model brings."""


class SetModel(SetEstimator):
    """Learn to predict sets from texts. After `fit`, ``model_`` and ``tokenizer_`` are those of transformers."""

    kind: ClassVar[str]
    """The name of the kind of model in ``setaug.json``."""

    model: str
    training: TrainingSettings
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
        labels: Iterable[Collection[str]] | None = None,
        *,
        dev: Data | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        data, labels
            Examples (or rows), or texts and their label sets.
        dev
            Examples on which sets are generated during training: the checkpoint with the highest F1 (its mean over
            the sets) remains. Without it the last one does.
        folder
            Where checkpoints, metrics and the trained model go; without it, nothing is kept on disk.
        resume
            Resume the run in this folder from its last checkpoint.
        progress
            Called with the stage, the number of items done, and their total.

        """
        examples = make_examples(data, labels)
        dev_examples = make_examples(dev) if dev is not None else []
        if not examples:
            raise DataError("the training data is empty.")
        if dev is not None and not dev_examples:
            raise DataError("the dev data is empty.")
        self._check()
        if self.training.patience is not None and dev is None:
            raise ValueError("patience needs dev data: without it there is no score to watch.")
        hashes = {"data": fingerprint(examples), "dev": fingerprint(dev_examples)}
        settings = {**self._settings(), **hashes, "processes": n_processes()}
        with ExitStack() as stack, quiet():
            root = Path(stack.enter_context(TemporaryDirectory()) if folder is None else folder)
            if folder is not None:
                by_main(lambda: stack.enter_context(locked_run(root)))
            root, is_done = by_main(lambda: _begin(root, settings, resume=resume))
            if is_done:
                return self._load(root, read_card(root))
            try:
                self._train(examples, dev_examples, folder=root, resume=resume, progress=progress)
            except BaseException:
                if is_main_process():
                    forget_run(root)
                raise
            weights = whole_weights(self.model_)
            by_main(lambda: self._keep(root, weights) if folder is not None else None)
        return self

    def _keep(self, folder: Path, weights: dict[str, Any] | None) -> None:
        self._save(folder, weights)
        end_run(folder)

    def _train(self, examples: list[Example], dev: list[Example], **run: Any) -> None:
        began = time.monotonic()
        self.statistics_ = LabelStatistics().update(example.labels for example in examples)
        if not self.statistics_.labels:
            raise DataError("no training example has a label.")
        self.largest_ = max(len(example.labels) for example in examples)
        rate = self.training.learning_rate or usual_rate(self.model)
        score = partial(self._dev_scores, dev) if dev else None
        record = self._learn(
            examples, dev, partial(_run_trainer, settings=self.training, learning_rate=rate, score=score, **run)
        )
        known = set(self.statistics_.labels)
        unseen = {label for example in dev for label in example.labels} - known
        self.record_ = {
            "n_examples": len(examples),
            "n_dev": len(dev),
            "processes": n_processes(),
            **record,
            "dev_labels_unseen_in_training": len(unseen),
            "dev_examples_with_unseen_labels": sum(not known.issuperset(example.labels) for example in dev),
            "seconds": round(time.monotonic() - began, 1),
            "versions": versions(),
        }

    def _dev_scores(self, dev: list[Example]) -> dict[str, float]:
        scores = score_sets([example.labels for example in dev], [found.labels for found in self.predict(dev)])
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

    def _save(self, folder: str | Path, weights: dict[str, Any] | None) -> None:
        card = {"kind": self.kind, "settings": self._settings(), "largest": self.largest_, "record": self.record_}
        card |= {"labels": self.labels_, **self._learnt()}
        parts = {"model": self.model_, "tokenizer": self.tokenizer_, "statistics": self.statistics_}
        with quiet():
            save_model(folder, card=card, weights=weights, **parts)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as JSON."""
        params = self.get_params(deep=False)
        return {name: asdict(value) if has_fields(value) else value for name, value in params.items()}

    @abstractmethod
    def _learnt(self) -> dict[str, Any]:
        """Return what ``setaug.json`` keeps beside the labels, for `_restore`."""

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Read a model that `save_pretrained` or ``setaug train`` wrote."""
        return cls.from_card(folder, read_card(folder))

    @classmethod
    def from_card(cls, folder: str | Path, card: dict[str, Any]) -> Self:
        """Read a model whose ``setaug.json`` has been read."""
        if card["kind"] != cls.kind:
            raise ModelError(f"{folder} holds a model of the kind {card['kind']!r}, not {cls.kind!r}.")
        try:
            with quiet():
                return cls._from_settings(card["settings"])._load(Path(folder), card)
        except (ModelError, FileError, MissingExtraError):
            raise
        except Exception as error:  # whatever the values of somebody else's settings lead to
            raise ModelError(f"{folder} is not what setaug writes ({type(error).__name__}: {error}).") from None

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        """Make a model from the parameters that a folder names."""
        defaults = cls().get_params(deep=False)
        parts = {name: type(part)(**settings[name]) for name, part in defaults.items() if has_fields(part)}
        return cls(**{**settings, **parts})

    def _load(self, folder: Path, card: dict[str, Any]) -> Self:
        self.statistics_ = LabelStatistics.load(folder / STATISTICS)
        self.largest_ = int(card["largest"])
        self.record_ = card["record"]
        self._restore(folder, card)
        if torch.cuda.is_available():
            self.model_.to("cuda")
        self.model_.eval()
        return self

    @abstractmethod
    def _restore(self, folder: Path, card: dict[str, Any]) -> None:
        """Read ``network_`` and what `_learnt` returned."""


def _run_trainer(*args: Any, **options: Any) -> dict[str, Any]:
    from setaug.models.neural.training import train  # seconds, which a model that only predicts need not wait

    return train(*args, **options)


def _begin(folder: Path, settings: dict[str, Any], *, resume: bool) -> tuple[Path, bool]:
    """Begin or resume a run; return its folder, and whether it is finished already."""
    begin_run(folder, settings, resume=resume)
    is_done = resume and is_whole(folder)
    if is_done:
        end_run(folder)
    return folder, is_done


def usual_rate(model: str) -> float:
    """Return the default learning rate: the paper's, or that of a model from scratch."""
    return SHAPES[model].learning_rate if model in SHAPES else 1e-5


def fingerprint(examples: list[Example]) -> str:
    """Return a content hash of the examples."""
    digest = blake2b(digest_size=8)
    for example in examples:
        digest.update(repr((example.text, example.labels)).encode(errors="surrogatepass"))
    return f"{len(examples)} examples, {digest.hexdigest()}"
