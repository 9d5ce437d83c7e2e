"""SETAUG as a model: any encoder-decoder or causal model, trained on informative orders with sizes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from setaug.analysis.likelihood import MAX_EXACT, SetLikelihood, set_likelihoods
from setaug.augmenter import SetAugmenter
from setaug.decoding.vote import Calibration, predict_by_vote, probability_matrix
from setaug.errors import DataError
from setaug.examples import Data, Example, Skipped, check_labels, make_examples, make_texts
from setaug.models import targets
from setaug.models.neural.batches import Batch, TrainingSet, make_training_set
from setaug.models.neural.layouts import make_layout, training_loss
from setaug.models.neural.model import SetModel
from setaug.models.neural.pretrained import add_adapters, load_for_generation
from setaug.models.neural.scratch import SHAPES, scratch_generator, train_tokenizer
from setaug.models.neural.writer import Writer, Written, make_score, scorable
from setaug.predictions import Prediction
from setaug.registry import DEFAULT_ORDERING
from setaug.settings import Decoding, Progress, TrainingSettings
from setaug.vocabulary import check_vocabulary, known_labels


class SetGenerator(SetModel):
    """Train any encoder-decoder or causal model to write sets, and read its output as sets.

    Parameters
    ----------
    model
        The name of a model on the Hugging Face hub, a folder, or one that starts from nothing: ``tiny``,
        ``tiny-causal``, or another name in `setaug.models.neural.scratch.SHAPES`.
    augmenter
        Which orders to train on, and how sets are written; by default SETAUG's (specific labels first, with sizes).
    one_order
        Whether to train on one random order per example, repeated (the paper's seq2seq baseline).
    vocabulary
        ``closed``: only the labels of the training data; ``open``: any text can be a label; or a list of further
        labels.
    training, decoding
        How to train, and how to get sets from the trained model.

    Attributes
    ----------
    augmenter_
        A copy of `augmenter`, with the label statistics of the training data.

    Examples
    --------
    >>> from setaug.sample import sample_examples
    >>> examples = list(sample_examples(64))
    >>> model = SetGenerator("tiny", training=TrainingSettings(epochs=1)).fit(examples)
    >>> prediction = model.predict(["On Monday: Lorries must take the long way round."])[0]
    >>> set(prediction.labels) <= set(model.labels_), len(prediction.labels) == prediction.size
    (True, True)

    """

    kind: ClassVar[str] = "generator"

    def __init__(
        self,
        model: str = "tiny",
        *,
        augmenter: SetAugmenter | None = None,
        one_order: bool = False,
        vocabulary: str | Sequence[str] = "closed",
        training: TrainingSettings | None = None,
        decoding: Decoding | None = None,
    ) -> None:
        self.model = model
        self.augmenter = augmenter or SetAugmenter()
        self.one_order = one_order
        self.vocabulary = vocabulary
        self.training = training or TrainingSettings()
        self.decoding = decoding or Decoding()

    def _check(self) -> None:
        self.augmenter.check()
        check_vocabulary(self.vocabulary)
        if self.one_order and self.training.fresh_orders:
            raise ValueError("one order cannot be fresh in each epoch; random orders can.")
        if self.training.objective != "plain":
            self._check_draws(self.training.objective)

    def _check_draws(self, objective: str) -> None:
        """Raise unless orders are drawn independently and uniformly."""
        if self.one_order:
            raise ValueError(f"the objective {objective} needs orders that are drawn, not one order again and again.")
        if self.augmenter.sampler != "uniform":
            raise ValueError(f"the objective {objective} needs orders drawn uniformly, so sampler must be uniform.")
        if self.augmenter.distinct:
            raise ValueError(f"the objective {objective} needs independent draws, so orders cannot be distinct.")

    def _build(self, examples: list[Example]) -> None:
        self.augmenter_ = targets.fitted_copy(self.augmenter, self.statistics_)
        self.labels_ = known_labels(self.statistics_, self.vocabulary)
        if self.model in SHAPES:
            longest = max(self.training.max_source_length, self.training.max_target_length)
            written = (self.augmenter_.codec.encode(example.labels) for example in examples)
            before, after = self.augmenter_.around_text
            self.tokenizer_ = train_tokenizer([*(before + example.text + after for example in examples), *written])
            self.model_ = scratch_generator(self.model, self.tokenizer_, max_length=longest, seed=self.training.seed)
        else:
            self.model_, self.tokenizer_ = load_for_generation(self.model)
        self.max_label_tokens_ = _longest(self.tokenizer_, self.statistics_.labels)
        self.calibration_: Calibration | None = None
        self._writer_of: tuple[Any, Writer] | None = None
        if self.training.lora_rank is not None:
            self.model_ = add_adapters(self.model_, self.training.lora_rank)

    @property
    def _writer(self) -> Writer:
        self._check_fitted()
        if self._writer_of is None or self._writer_of[0] is not self.model_:
            layout = make_layout(
                self.model_,
                self.tokenizer_,
                around_text=self.augmenter_.around_text,
                max_source_length=self.training.max_source_length,
                max_target_length=self.training.max_target_length,
            )
            writer = Writer(
                layout=layout,
                codec=self.augmenter_.codec,
                labels=self.labels_,
                largest=self.largest_,
                max_label_tokens=self.max_label_tokens_,
            )
            self._writer_of = self.model_, writer
        return self._writer_of[1]

    def _training_data(self, examples: list[Example]) -> tuple[TrainingSet, Callable[[Any], Batch], dict[str, int]]:
        layout = self._writer.layout
        data, counted = make_training_set(layout, examples, write=self.write_targets, settings=self.training)
        return data, layout.collator(), counted

    def _loss(self, model: Any, batch: Batch) -> torch.Tensor:
        return training_loss(self._writer.layout, model, batch, self.training.objective)

    def write_targets(self, examples: Sequence[Example], epoch: int) -> list[list[str]]:
        """Return the texts that the model is trained to write for each example in an epoch."""
        write = targets.orders if self.training.objective == "plain" else targets.draws
        return (targets.one_order if self.one_order else write)(self.augmenter_, examples, epoch)

    def _finish(self, dev: list[Example]) -> None:
        if self.training.lora_rank is not None:
            self.model_ = self.model_.merge_and_unload()

    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text (or example, or row).

        Parameters
        ----------
        changes
            Changes to `decoding` for this call: ``samples=16`` adds probabilities, ``size_is=3`` asks for three labels.

        """
        decoding = self._change(changes)
        texts, ids = make_texts(data)
        if decoding.samples:
            return self._predict_by_samples(texts, ids, decoding, progress)
        written = self._writer.write(texts, decoding, progress=progress)
        return [as_prediction(one, key) for (one,), key in zip(written, ids, strict=True)]

    def _change(self, changes: dict[str, Any]) -> Decoding:
        if unknown := changes.keys() - {field.name for field in fields(Decoding)}:
            raise TypeError(f"a model that writes sets takes no {', '.join(sorted(unknown))}.")
        return replace(self.decoding, **changes)

    def _predict_by_samples(
        self, texts: Sequence[str], ids: Sequence[Any], decoding: Decoding, progress: Progress | None
    ) -> list[Prediction]:
        way = decoding if decoding.does_sample else replace(decoding, name="random")
        written = self._writer.write(texts, way, n_each=decoding.samples, progress=progress)
        writes_sizes = self.augmenter_.with_size and decoding.constrained
        allowed = decoding.sizes(self.largest_) if decoding.constrained else None
        own_sizes = self._writer.sizes(texts, decoding) if writes_sizes else None
        found = []
        for at, (key, ones) in enumerate(zip(ids, written, strict=True)):
            strange = frozenset(label for one in ones for label in one.unknown)
            prediction = predict_by_vote(
                [one.labels for one in ones],
                way=decoding.choose,
                threshold=decoding.threshold,
                strange=None if self.labels_ is None else strange,
                sizes=None if own_sizes is None else own_sizes[at],
                allowed=allowed,
                calibration=self.calibration_,
                key=key,
            )
            found.append(prediction)
        return found

    def predict_proba(self, data: Iterable[str] | Data, **changes: Any) -> NDArray[np.float64]:
        """Return the probability of each label (columns, as in ``classes_``) for each text (rows), from samples.

        Parameters
        ----------
        changes
            As for `predict`. There have to be samples, here or in `decoding`.

        """
        labels = list(self.classes_)
        if not self._change(changes).samples:
            raise ValueError("probabilities come from samples, and none are drawn; give samples=16, say.")
        return probability_matrix(self.predict(data, **changes), labels)

    def calibrate(self, data: Data, *, progress: Progress | None = None, **changes: Any) -> Self:
        """Calibrate the shares of samples on dev data, so that they are probabilities."""
        decoding = self._change(changes)
        if not decoding.samples:
            raise ValueError("calibration is about the shares of samples; ask for some (samples=16, say).")
        examples = make_examples(data)
        if not examples:
            raise DataError("the data to calibrate with is empty.")
        self.calibration_ = None
        shares = [found.probabilities or {} for found in self.predict(examples, progress=progress, **changes)]
        self.calibration_ = Calibration.fit(shares, [example.labels for example in examples])
        return self

    def log_likelihood(self, data: Data, *, proposal: str = DEFAULT_ORDERING, **options: Any) -> list[SetLikelihood]:
        """Return the log2-probability that the model writes each example's set, in any order.

        Parameters
        ----------
        proposal
            The distribution that orders are drawn from: one of `registry.proposals`.
        options
            As for `log_likelihoods`: ``samples``, ``max_exact``, ``seed``, ``batch_size`` and more.

        """
        return [found[proposal] for found in self.log_likelihoods(data, proposals=(proposal,), **options)]

    def log_likelihoods(
        self,
        data: Data,
        *,
        proposals: Sequence[str],
        samples: int = 16,
        max_exact: int = MAX_EXACT,
        seed: int = 0,
        first_index: int = 0,
        batch_size: int = 32,
        skipped: Skipped | None = None,
        progress: Progress | None = None,
    ) -> list[dict[str, SetLikelihood]]:
        """Return what `log_likelihood` returns, for several proposals; no order is scored twice.

        Parameters
        ----------
        samples
            Number of orders to draw from each proposal.
        max_exact
            Sets of up to this many labels are summed exactly.
        seed, first_index
            An example's draws depend on the seed and its index (the first one's is `first_index`), and on nothing else;
            sets that are left out have no index.
        batch_size
            Number of orders to score at once.
        skipped
            If given, sets that cannot be scored are left out and counted here instead of raising a `DataError`.

        """
        if type(batch_size) is not int or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number from 1 on, got {batch_size!r}.")
        examples = list(scorable(self._writer, make_examples(data), skipped))
        scored = set_likelihoods(
            examples,
            make_score(self._writer, batch_size),
            statistics=self.statistics_,
            thresholds=self.augmenter_.thresholds,
            proposals=proposals,
            samples=samples,
            max_exact=max_exact,
            seed=seed,
            first_index=first_index,
        )
        found = []
        for likelihoods in scored:
            found.append(likelihoods)
            if progress is not None:
                progress("scoring", len(found), len(examples))
        return found

    def score_orders(
        self, data: Data, orders: Sequence[Sequence[Sequence[str]]], *, batch_size: int = 32
    ) -> list[list[float]]:
        """Return the log2-probability that the model writes each of the orders of each example."""
        examples = make_examples(data)
        if len(examples) != len(orders):
            raise ValueError(f"there are {len(examples)} examples, and orders for {len(orders)}.")
        given = [[tuple(order) for order in each] for each in orders]
        return [list(found) for found in make_score(self._writer, batch_size)(examples, given)]

    def _settings(self) -> dict[str, Any]:
        vocabulary = self.vocabulary if isinstance(self.vocabulary, str) else list(self.vocabulary)
        return {
            "model": self.model,
            "augmenter": asdict(self.augmenter),
            "one_order": self.one_order,
            "vocabulary": vocabulary,
            "training": asdict(self.training),
            "decoding": asdict(self.decoding),
        }

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        parts = {"augmenter": SetAugmenter, "training": TrainingSettings, "decoding": Decoding}
        made = {name: make(**settings[name]) for name, make in parts.items()}
        return cls(**{**settings, **made})

    def _card(self) -> dict[str, Any]:
        calibration = None if self.calibration_ is None else self.calibration_.as_dict()
        return {
            **super()._card(),
            "labels": self.labels_,
            "max_label_tokens": self.max_label_tokens_,
            "calibration": calibration,
        }

    def _load_parts(self, folder: Path, card: dict[str, Any]) -> None:
        self.augmenter_ = targets.fitted_copy(self.augmenter, self.statistics_)
        self.labels_ = None if card["labels"] is None else list(check_labels(card["labels"], "labels"))
        self.max_label_tokens_ = int(card["max_label_tokens"])
        self.calibration_ = None if card["calibration"] is None else Calibration.from_dict(card["calibration"])
        self._writer_of = None
        self.model_, self.tokenizer_ = load_for_generation(str(folder))


def _longest(tokenizer: Any, labels: list[str]) -> int:
    """Return the number of tokens of the longest label, plus a margin."""
    return max(map(len, tokenizer([" " + label for label in labels], add_special_tokens=False)["input_ids"])) + 4


def as_prediction(written: Written, key: str | int | None) -> Prediction:
    """Return one generation as a prediction."""
    return Prediction(
        labels=written.labels,
        size=written.size,
        generation=written.text,
        repeated=written.repeated,
        unknown=written.unknown,
        malformed=written.malformed,
        id=key,
    )
