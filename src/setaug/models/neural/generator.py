"""SETAUG as a model: any encoder-decoder or causal model, trained on informative orders with sizes."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from setaug.analysis.likelihood import MAX_EXACT, SetLikelihood, set_likelihoods
from setaug.augmenter import SetAugmenter
from setaug.decoding.mixture import LabelProbabilities, Mixture, probabilities_of
from setaug.decoding.samples import Calibration, predict_by_vote, probability_matrix
from setaug.decoding.scored import changed, predict_mixed, ways_of
from setaug.errors import DataError
from setaug.examples import Data, Example, LabelSets, Skipped, make_examples, make_texts
from setaug.metrics.indicators import hits_of
from setaug.models.companion import fit_companion
from setaug.models.held_out import MAX_TUNING, sample_dev
from setaug.models.model_folder import COMPANION, HEAD
from setaug.models.neural.label_head import MAX_LABELS, LabelHead, width_of
from setaug.models.neural.model import SetModel, Train
from setaug.models.neural.scratch import SHAPES
from setaug.models.neural.training.processes import shards_weights
from setaug.models.neural.writer import (
    DRAWS,
    Writer,
    fit_writer,
    load_writer,
    make_score,
    new_writer,
    scorable,
    set_targets,
)
from setaug.models.tfidf import TfidfClassifier
from setaug.orders.statistics import LabelStatistics
from setaug.predictions import Prediction
from setaug.registry import DEFAULT_ORDERING, check_choice
from setaug.settings import CONSTRAINED, DRAWN, Decoding, Progress, TrainingSettings, check_whole
from setaug.vocabulary import check_vocabulary, known_labels

MEMBERS = ("decoder", "label_head", "companion")
"""Whose probabilities are combined."""
_MIN_WEIGHT = 0.05
"""A label head or a companion with a lower weight is left out."""


class SetGenerator(SetModel):
    """Train any encoder-decoder or causal model to write sets, and read its output as sets.

    Parameters
    ----------
    model
        The name of a model on the Hugging Face Hub, a folder, or one that starts from nothing: ``tiny``,
        ``tiny-causal``, or another name in `setaug.models.neural.scratch.SHAPES`.
    augmenter
        Which orders to train on, and how sets are written; by default SETAUG's (specific labels first, with sizes).
    one_order
        Whether to train on one random order per example, repeated (the paper's seq2seq baseline).
    vocabulary
        ``closed``: only the labels of the training and dev data; ``open``: any text can be a label; or a list of
        further labels.
    training, decoding
        How to train, and how to get sets from the trained model.
    companion
        Whether a `TfidfClassifier` is fitted beside the model; dev data decide how much it counts, and without them it
        counts as much as the model. By default it is, unless it would take more than minutes.

    Attributes
    ----------
    mixture_, members_
        How sets are chosen from label probabilities, as dev data decided; None if the vocabulary is open, if `decoding`
        asks for the sets that the model writes, or with the paper's recipe and no dev data. Which probabilities it
        combines: ``decoder``, and if they help ``label_head`` and ``companion``.
    companion_
        The classifier beside the model, if any.
    augmenter_
        A copy of `augmenter`, with the label statistics of the training data.

    Examples
    --------
    >>> from setaug.sample import sample_examples
    >>> examples = list(sample_examples(64))
    >>> model = SetGenerator("tiny", training=TrainingSettings(epochs=1)).fit(examples)
    >>> prediction = model.predict(["On Monday: Lorries must take the long way round."])[0]
    >>> set(prediction.labels) <= set(prediction.probabilities) <= set(model.labels_)
    True

    """

    kind: ClassVar[str] = "generator"
    network_: Writer

    def __init__(
        self,
        model: str = "tiny",
        *,
        augmenter: SetAugmenter | None = None,
        one_order: bool = False,
        vocabulary: str | Sequence[str] = "closed",
        training: TrainingSettings | None = None,
        decoding: Decoding | None = None,
        companion: bool | None = None,
    ) -> None:
        self.model = model
        self.augmenter = augmenter or SetAugmenter()
        self.one_order = one_order
        self.vocabulary = vocabulary
        self.training = training or TrainingSettings()
        self.decoding = decoding or Decoding()
        self.companion = companion

    def _check(self) -> None:
        self.augmenter.check()
        check_vocabulary(self.vocabulary)
        if self.companion and self.vocabulary == "open":
            raise ValueError("a companion needs known labels, so vocabulary cannot be open.")
        if self.one_order and self.training.fresh_orders:
            raise ValueError("fresh_orders requires sampled orders, but this method repeats a single order.")
        if self.training.objective in CONSTRAINED and self.vocabulary == "open":
            raise ValueError(
                f"the objective {self.training.objective} needs known labels, so vocabulary cannot be open."
            )
        if self.training.objective in DRAWN:
            self._check_draws(self.training.objective)

    def _check_draws(self, objective: str) -> None:
        """Raise unless orders are drawn independently and uniformly."""
        if self.one_order:
            raise ValueError(f"the objective {objective} requires sampled orders, not a single repeated order.")
        if self.augmenter.sampler != "uniform":
            raise ValueError(
                f"the objective {objective} requires uniformly sampled orders, so sampler must be uniform."
            )
        if self.augmenter.distinct:
            raise ValueError(f"the objective {objective} requires independent samples, so orders cannot be distinct.")

    def _learn(self, examples: list[Example], dev: list[Example], train: Train) -> dict[str, Any]:
        self.augmenter_ = fitted_copy(self.augmenter, self.statistics_)
        self.calibration_: Calibration | None = None
        self.mixture_: Mixture | None = None
        self.companion_: TfidfClassifier | None = None
        self.members_: tuple[str, ...] = ("decoder",)
        labels = known_labels(self.statistics_, self.vocabulary, dev=dev)
        writer = new_writer(self.model, examples, labels=labels, **self._written)
        asks = self.decoding.choose != "written" and bool(dev or self.companion or not self.training.is_paper)
        head = self._new_head(writer, examples, asks=asks and writer.can_sum(self.decoding))
        writer = replace(writer, head=head)
        self.network_, data, _, counts = set_targets(writer, examples, self.write_targets, self.training)
        self.largest_ = self.network_.largest
        record = counts | fit_writer(self.network_, data, self.training, train)
        self.network_ = self.network_.merged()
        if asks and self.network_.can_sum(self.decoding):
            record |= self._fit_mixture(examples, dev)
        return record

    def _new_head(self, writer: Writer, examples: list[Example], *, asks: bool) -> LabelHead | None:
        """Return a head to train, if sets are chosen from probabilities and the model can have one."""
        wanted = self.training.label_head
        is_default = asks and not self.training.is_paper and self.model not in SHAPES
        if not (is_default if wanted is None else wanted):
            return None
        labels = [label for label, _ in self.statistics_.most_common()]
        obstacle = None
        if not writer.model.config.is_encoder_decoder:
            obstacle = "an encoder-decoder"
        elif not asks:
            obstacle = "sets that are chosen from probabilities"
        elif self.training.lora_rank is not None or shards_weights():
            obstacle = "training without adapters and without sharded weights"
        if obstacle is None and (wanted or len(labels) <= MAX_LABELS):
            return LabelHead.start(writer.model, writer.tokenizer, labels, examples, seed=self.training.seed)
        if wanted:
            raise ValueError(f"a label head needs {obstacle}; pass label_head=False.")
        return None

    def _fit_mixture(self, examples: list[Example], dev: list[Example]) -> dict[str, Any]:
        """Fit the companion, and choose on dev data how sets are chosen; return what was chosen.

        Without dev data, decoder, label head and companion count the same. Once it is chosen, the companion is fitted
        again with the examples that were held out for this.
        """
        tuning = sample_dev(dev, at_most=MAX_TUNING)
        if self.companion is not False:
            self.companion_ = fit_companion(examples, tuning, at_any_cost=bool(self.companion))
        record: dict[str, Any] = {"too_large_for_companion": self.companion is None and self.companion_ is None}
        if dev:
            record["chosen"] = self._tune(tuning, self._available)
        else:
            self.members_ = self._available
            self.mixture_ = Mixture.equal(len(self.members_), least=self.least_, largest=self.largest_)
        if "companion" not in self.members_:
            self.companion_ = None
        elif self.is_held_out_ and dev:  # held-out texts are training data, too
            self.companion_ = fit_companion([*examples, *dev], (), at_any_cost=True)
        if "label_head" not in self.members_:
            self.network_ = replace(self.network_, head=None)
        return record

    @property
    def _available(self) -> tuple[str, ...]:
        """What there are probabilities of."""
        there = {"decoder": True, "label_head": self.network_.head, "companion": self.companion_}
        return tuple(name for name, part in there.items() if part is not None)

    def tune(
        self,
        data: Data | Iterable[str],
        labels: LabelSets | None = None,
        *,
        members: Sequence[str] = MEMBERS,
        calibrate: bool = True,
    ) -> Self:
        """Choose again on dev data how sets are chosen from probabilities; `fit` does it at its end.

        Parameters
        ----------
        data, labels
            Dev data, as for `fit`.
        members
            Which probabilities may be combined, of those that the model has: ``decoder``, ``label_head`` and
            ``companion``; dev data decide how much they count. Without the decoder, `predict` takes a fraction of the
            time.
        calibrate
            Whether probabilities are calibrated.

        """
        self._check_fitted()
        if not self.network_.can_sum(self.decoding):
            raise ValueError("only models with a closed vocabulary and the constraint have probabilities to tune.")
        tuning = make_examples(data, labels, self.columns_)
        if not tuning:
            raise DataError("the data to tune with is empty.")
        for name in members:
            check_choice("members", name, MEMBERS)
        names = [name for name in self._available if name in members]
        if not names:
            raise ValueError(f"the model has none of these members: {', '.join(members)}.")
        chosen = self._tune(tuning, names, calibrate=calibrate)
        self.record_ = {**self.record_, "chosen": chosen}
        return self

    def _tune(self, tuning: Sequence[Example], members: Sequence[str], *, calibrate: bool = True) -> dict[str, Any]:
        known, texts = list(self.classes_), [example.text for example in tuning]
        hits, n_true = hits_of(tuning, known)
        how: dict[str, Any] = {"least": self.least_, "largest": self.largest_, "calibrate": calibrate}
        how |= {"ways": ways_of(self.decoding.choose), "new": self._are_new(known)}
        found = {name: self._of_member(name, texts, self.decoding) for name in members}
        alone = {name: Mixture.fit([found[name]], hits, n_true, **how) for name in members}
        names = list(members)
        while len(names) > 1:
            mixture, f1 = Mixture.fit([found[name] for name in names], hits, n_true, **how)
            at = int(np.argmin(mixture.weights[1:])) + 1
            if mixture.weights[at] > _MIN_WEIGHT:
                break
            del names[at]
        else:
            mixture, f1 = alone[names[0]]
        self.mixture_, self.members_ = mixture, tuple(names)
        chosen = {"f1": f1, "f1_alone": {name: f1 for name, (_, f1) in alone.items()}, "members": names}
        summary = {name: value for name, value in mixture.to_dict().items() if name != "shifts"}
        return chosen | {"n_dev": len(tuning), **summary}

    def _of_member(
        self, name: str, texts: Sequence[str], decoding: Decoding, progress: Progress | None = None
    ) -> LabelProbabilities:
        """Return the probabilities of one of the members."""
        if name == "label_head":
            return self.network_.head_probabilities(texts, decoding.batch_size, progress=progress)
        if name == "companion":
            return probabilities_of(self.companion_, texts, list(self.classes_))
        return self.network_.probabilities(texts, decoding, n_each=DRAWS, progress=progress)

    @property
    def _written(self) -> dict[str, Any]:
        """How prompts and sets are written."""
        return {"codec": self.augmenter.codec, "template": self.augmenter.template, "training": self.training}

    def write_targets(self, examples: Sequence[Example], epoch: int) -> list[list[str]]:
        """Return the texts that the model is trained to write for each example in an epoch."""
        write = draws if self.training.objective in DRAWN else orders
        return (one_order if self.one_order else write)(self.augmenter_, examples, epoch)

    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text (or example, or row).

        Parameters
        ----------
        changes
            Changes to `decoding` for this call: ``samples=16`` adds probabilities, ``size_is=3`` asks for three labels.

        """
        self._check_fitted()
        decoding = self._change(changes)
        if not decoding.samples and self._takes_probabilities(decoding):
            options: Any = {"labels": list(self.classes_), "columns": self.columns_}
            options |= {"least": self.least_, "largest": self.largest_}
            find = partial(self._probabilities, decoding=decoding)
            return predict_mixed(find, data, decoding, mixture=self.mixture_, **options, progress=progress)
        texts, ids = make_texts(data, self.columns_)
        if decoding.samples:
            return self._predict_by_samples(texts, ids, decoding, progress)
        written = self.network_.write(texts, decoding, progress=progress)
        return [replace(one, id=key) for (one,), key in zip(written, ids, strict=True)]

    def _change(self, changes: dict[str, Any]) -> Decoding:
        names = [field.name for field in fields(Decoding)]
        return changed(self.decoding, changes, of="a model that writes sets", names=names)

    def _takes_probabilities(self, decoding: Decoding) -> bool:
        """Return whether a set is chosen from probabilities, not written."""
        if decoding.choose == "written" or (decoding.choose == "best" and self.mixture_ is None):
            return False
        if not self.network_.can_sum(decoding):
            if decoding.choose == "best":
                return False
            raise ValueError(
                f"choose={decoding.choose!r} needs probabilities of all labels: a closed vocabulary, "
                "the constraint and greedy decoding, or samples."
            )
        return True

    def _probabilities(
        self, texts: Sequence[str], progress: Progress | None, *, decoding: Decoding
    ) -> LabelProbabilities:
        """Return the probability of each label and size, of all members together."""
        if self.mixture_ is None:
            return self._of_member("decoder", texts, decoding, progress)
        first, *others = self.members_
        found = [self._of_member(first, texts, decoding, progress)]
        return self.mixture_.combine([*found, *(self._of_member(name, texts, decoding) for name in others)])

    def _predict_by_samples(
        self, texts: Sequence[str], ids: Sequence[Any], decoding: Decoding, progress: Progress | None
    ) -> list[Prediction]:
        way = decoding if decoding.does_sample else replace(decoding, name="random")
        written = self.network_.write(texts, way, n_each=decoding.samples, progress=progress)
        writes_sizes = self.augmenter_.with_size and decoding.constrained
        allowed = decoding.sizes(max(self.largest_, decoding.k or 0)) if decoding.constrained else None
        own_sizes = self.network_.sizes(texts, decoding) if writes_sizes else None
        found = []
        for at, (key, ones) in enumerate(zip(ids, written, strict=True)):
            strange = frozenset(label for one in ones for label in one.unknown or ())
            prediction = predict_by_vote(
                [one.labels for one in ones],
                way=decoding.choose,
                threshold=decoding.threshold,
                k=decoding.k,
                strange=None if self.labels_ is None else strange,
                sizes=None if own_sizes is None else own_sizes[at],
                allowed=allowed,
                calibration=self.calibration_,
                key=key,
            )
            found.append(prediction)
        return found

    def predict_proba(self, data: Iterable[str] | Data, **changes: Any) -> NDArray[np.float64]:
        """Return the probability of each label (columns, as in ``classes_``) for each text (rows).

        Parameters
        ----------
        changes
            As for `predict`. With ``samples`` a probability is the share of the samples that have the label.

        """
        return np.asarray(self.label_probabilities(data, **changes).labels, np.float64)

    def label_probabilities(self, data: Iterable[str] | Data, **changes: Any) -> LabelProbabilities:
        """Return the probability of each label and of each size (none with ``samples``) for each text (rows)."""
        labels, decoding = list(self.classes_), self._change(changes)
        if decoding.samples:
            return LabelProbabilities(probability_matrix(self.predict(data, **changes), labels))
        if not self.network_.can_sum(decoding):
            raise ValueError("these settings give no label probabilities; pass samples=16, for example.")
        texts, _ = make_texts(data, self.columns_)
        return self._probabilities(texts, None, decoding=decoding)

    def calibrate(
        self,
        data: Data | Iterable[str],
        labels: LabelSets | None = None,
        *,
        progress: Progress | None = None,
        **changes: Any,
    ) -> Self:
        """Calibrate the shares of samples on dev data, so that they are probabilities."""
        decoding = self._change(changes)
        if not decoding.samples:
            raise ValueError("calibration requires samples; pass samples=16, for example.")
        examples = make_examples(data, labels, self.columns_)
        if not examples:
            raise DataError("the calibration data is empty.")
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
        check_whole("batch_size", batch_size, at_least=1)
        self._check_fitted()
        examples = list(scorable(self.network_, make_examples(data, None, self.columns_), skipped))
        scored = set_likelihoods(
            examples,
            make_score(self.network_, batch_size),
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
        self._check_fitted()
        examples = make_examples(data, None, self.columns_)
        if len(examples) != len(orders):
            raise ValueError(f"examples and orders must have the same length, got {len(examples)} and {len(orders)}.")
        given = [[tuple(order) for order in each] for each in orders]
        return [list(found) for found in make_score(self.network_, batch_size)(examples, given)]

    def _learnt(self) -> dict[str, Any]:
        calibration = None if self.calibration_ is None else self.calibration_.to_dict()
        mixture = None if self.mixture_ is None else self.mixture_.to_dict()
        learnt = {"max_label_tokens": self.network_.max_label_tokens, "calibration": calibration, "mixture": mixture}
        head = self.network_.head if "label_head" in self.members_ else None
        return learnt | {"members": list(self.members_), "label_head": None if head is None else head.labels}

    def _save_beside(self, folder: Path) -> None:
        if self.companion_ is not None and "companion" in self.members_:
            self.companion_.save(folder / COMPANION)
        if self.network_.head is not None and "label_head" in self.members_:
            self.network_.head.save(folder / HEAD)

    def _restore(self, folder: Path, card: dict[str, Any]) -> None:
        self.augmenter_ = fitted_copy(self.augmenter, self.statistics_)
        self.calibration_ = None if card["calibration"] is None else Calibration.from_dict(card["calibration"])
        self.network_ = load_writer(folder, card, **self._written)
        mixture = card.get("mixture")
        self.mixture_ = None if mixture is None else Mixture.from_dict(mixture, n_labels=len(self.labels_ or ()))
        # Earlier versions had no label head.
        members = card.get("members", ["decoder", *(["companion"] if card.get("companion") else [])])
        self.members_ = tuple(name for name in MEMBERS if name in members)
        if list(members) != list(self.members_) or not members:
            raise ValueError(f"its members are {members!r}")
        self.companion_ = TfidfClassifier.load(folder / COMPANION) if "companion" in self.members_ else None
        if "label_head" in self.members_:
            head = LabelHead.load(folder / HEAD, card["label_head"], width_of(self.model_))
            self.network_ = replace(self.network_, head=head)
        if self.mixture_ is not None and len(self.mixture_.weights) != len(self.members_):
            raise ValueError("its mixture refers to models that it does not contain")


def fitted_copy(augmenter: SetAugmenter, statistics: LabelStatistics, **changes: Any) -> SetAugmenter:
    """Return a copy with these statistics, and with other parameters where they are given."""
    copied = replace(augmenter, **changes)
    copied.statistics_ = statistics
    return copied


def orders(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Return the given order and those that the augmenter adds, which differ between epochs."""
    if epoch:
        seed = (augmenter.random_state + epoch * 1_000_003) % (1 << 63)
        augmenter = fitted_copy(augmenter, augmenter.statistics_, random_state=seed)
    completions = [pair.completion for pair in augmenter.augment(examples)]
    per_example = augmenter.n_orders + 1
    return [completions[start : start + per_example] for start in range(0, len(completions), per_example)]


def draws(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Return as many orders as `orders`, all of them independent draws from the augmenter's ordering."""
    more = fitted_copy(augmenter, augmenter.statistics_, n_orders=augmenter.n_orders + 1)
    return [drawn for _, *drawn in orders(more, examples, epoch)]


def one_order(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Return one random order, repeated as often as `orders` has orders (the paper's seq2seq baseline)."""
    single = fitted_copy(augmenter, augmenter.statistics_, ordering="random", n_orders=1)
    return [[drawn] * (augmenter.n_orders + 1) for _, drawn in orders(single, examples)]
