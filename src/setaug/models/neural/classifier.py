"""The paper's MULTI-LABEL baseline: score each label independently, and choose a set from the probabilities."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from setaug.augmenter import SetAugmenter
from setaug.decoding.choice import Rule
from setaug.decoding.mixture import MIN_TUNING, SHRINKAGE, LabelProbabilities, LogisticCalibration
from setaug.decoding.scored import check_scored, ways_of
from setaug.estimator import LabelScorer
from setaug.examples import Data, Example
from setaug.metrics.indicators import hits_of
from setaug.models.held_out import MAX_TUNING_SCORED, sample_dev
from setaug.models.neural.batches import (
    Batch,
    Item,
    TrainingSet,
    by_length,
    cut,
    evaluating,
    on_device,
    pad_inputs,
    readable_length,
)
from setaug.models.neural.model import SetModel, Train
from setaug.models.neural.pretrained import load_for_classification, load_saved_classifier
from setaug.models.neural.scratch import SHAPES, scratch_classifier, train_tokenizer
from setaug.predictions import Prediction
from setaug.settings import Progress, TrainingSettings, check_whole
from setaug.vocabulary import known_labels


@dataclass(frozen=True, eq=False)
class Scorer:
    """A model of transformers with a head that scores each label."""

    model: Any
    tokenizer: Any
    labels: list[str]
    template: str
    max_source_length: int

    def read(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        """Return the tokens of each text's prompt, and the number of truncated texts."""
        prompts = [self.template.replace("{text}", text) for text in texts]
        rows, n_cut = cut(self.tokenizer, prompts, readable_length(self.model, self.max_source_length))
        return [self._with_one_end(ids) for ids in rows], n_cut

    def _with_one_end(self, ids: list[int]) -> list[int]:
        """Leave out end tokens that a text spells out (``</s>``): BART and T5 classify at the only one."""
        end = self.tokenizer.eos_token_id
        return ids if ids.count(end) < 2 else [token for token in ids[:-1] if token != end] + ids[-1:]

    def collate(self, items: Sequence[Item]) -> Batch:
        """Make a batch of texts; the only target of each names the columns of its labels."""
        labels = torch.zeros(len(items), len(self.labels))
        for row, item in zip(labels, items, strict=True):
            row[item["targets"][0]] = 1.0
        return {**pad_inputs([item["input_ids"] for item in items], self.tokenizer.pad_token_id), "labels": labels}

    def probabilities(self, texts: Sequence[str], batch_size: int, progress: Progress | None) -> NDArray[np.float32]:
        """Return the probability of each label (columns) for each text (rows)."""
        inputs, _ = self.read(texts)
        found = np.empty((len(inputs), len(self.labels)), np.float32)
        n_done = 0
        with evaluating(self.model):
            for rows in by_length(inputs, batch_size):
                padded = pad_inputs([inputs[at] for at in rows], self.tokenizer.pad_token_id)
                logits = self.model(**on_device(padded, self.model.device)).logits
                found[rows] = torch.sigmoid(logits.float()).cpu().numpy()
                n_done += len(rows)
                if progress is not None:
                    progress("scoring", n_done, len(inputs))
        return found


class SetClassifier(LabelScorer, SetModel):
    """An encoder or an encoder-decoder with a classification head for each label.

    Parameters
    ----------
    model
        The name of a model on the Hub, a folder, or ``tiny``.
    template
        The prompt; ``{text}`` stands for the text.
    choose
        How to choose a set: a name of `setaug.settings.CHOICES` other than ``written``. ``best`` is the way with the
        highest mean F1 on the dev data, which also tune its threshold and k; without dev data it is ``expected-f1``,
        the threshold is 0.5, and k the mean size of the training sets.
    training, batch_size
        How to train, and how many texts are scored at once.

    Attributes
    ----------
    rule_, calibration_
        How a set is chosen from the probabilities, and how these are made from the model's.

    """

    kind: ClassVar[str] = "classifier"
    network_: Scorer

    def __init__(
        self,
        model: str = "tiny",
        *,
        template: str = "{text}",
        choose: str = "best",
        training: TrainingSettings | None = None,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.template = template
        self.choose = choose
        self.training = training or TrainingSettings()
        self.batch_size = batch_size

    def _check(self) -> None:
        check_scored(self.choose)
        SetAugmenter(template=self.template).check()
        if self.training.fresh_orders or self.training.lora_rank is not None:
            raise ValueError("a classifier has no orders, and is trained without adapters.")
        if self.training.weights != "float32":
            raise ValueError("a classifier is trained with weights in float32.")
        if self.training.objective != "plain":
            raise ValueError("a classifier has no orders, so its objective is plain.")
        if self.training.label_head:
            raise ValueError("a classifier has no label head beside its own.")

    def _learn(self, examples: list[Example], dev: list[Example], train: Train) -> dict[str, Any]:
        labels = known_labels(self.statistics_, "closed") or []
        sizes = [len(example.labels) for example in examples]
        k = max(round(sum(sizes) / len(sizes)), 1)
        self.calibration_ = LogisticCalibration()
        self.rule_ = Rule(way=ways_of(self.choose)[0], k=k, least=self.least_, largest=self.largest_)
        texts = [example.text for example in examples]
        longest, seed = self.training.lengths["max_source_length"], self.training.seed
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if self.model in SHAPES:
                tokenizer = train_tokenizer(self.template.replace("{text}", text) for text in texts)
                model = scratch_classifier(self.model, tokenizer, labels, max_length=longest, seed=seed)
            else:
                model, tokenizer = load_for_classification(self.model, labels)
        self.network_ = Scorer(model, tokenizer, labels, self.template, longest)
        inputs, n_cut = self.network_.read(texts)
        places = {label: at for at, label in enumerate(labels)}
        gold = [[[places[label] for label in example.labels]] for example in examples]
        data = TrainingSet(inputs, lambda epoch: gold)
        if not self.training.is_paper:
            start_at_frequencies(model, [self.statistics_.count(label) for label in labels], len(examples))
        record = train(model, data, collate=self.network_.collate, loss=_loss)
        if dev:
            record["chosen"] = self._tune(dev)
        return {"n_pairs_per_epoch": len(examples), "texts_cut_off": n_cut, **record}

    def _dev_scores(self, dev: list[Example], progress: Progress | None = None) -> dict[str, float]:
        self._tune(dev)
        return super()._dev_scores(dev, progress)

    def _tune(self, dev: list[Example]) -> dict[str, Any]:
        """Calibrate the probabilities, and choose the rule with the highest mean F1; return what it was chosen by."""
        tuning = sample_dev(dev, at_most=MAX_TUNING_SCORED)
        found = self.network_.probabilities([example.text for example in tuning], self.batch_size, None)
        hits, n_true = hits_of(tuning, self.labels_)
        self.calibration_ = LogisticCalibration.fit(found, hits, shrinkage=SHRINKAGE)
        ways = ways_of(self.choose) if len(tuning) >= MIN_TUNING else ways_of(self.choose)[:1]
        options: Any = {"least": self.rule_.least, "largest": self.largest_, "ways": ways}
        self.rule_, f1 = Rule.fit(self.calibration_(found), None, hits, n_true, **options)
        return {"f1": f1, "n_dev": len(tuning)}

    def _find(self, texts: Sequence[str], progress: Progress | None) -> LabelProbabilities:
        return LabelProbabilities(self.calibration_(self.network_.probabilities(texts, self.batch_size, progress)))

    def predict(
        self,
        data: Iterable[str] | Data,
        *,
        progress: Progress | None = None,
        batch_size: int | None = None,
        **changes: Any,
    ) -> list[Prediction]:
        """Predict the set of each text.

        Parameters
        ----------
        batch_size
            How many texts are scored at once in this call; the sets do not depend on it.
        changes
            What is asked for, as in `LabelScorer.predict`.

        """
        if batch_size is None:
            return super().predict(data, progress=progress, **changes)
        check_whole("batch_size", batch_size, at_least=1)
        other = copy(self)
        other.batch_size = batch_size
        return other.predict(data, progress=progress, **changes)

    def _learnt(self) -> dict[str, Any]:
        return {"rule": self.rule_.to_dict(), "calibration": self.calibration_.to_list()}

    def _restore(self, folder: Path, card: dict[str, Any]) -> None:
        self.rule_ = Rule.from_dict(card["rule"])
        self.calibration_ = LogisticCalibration.from_list(card["calibration"])
        model, tokenizer = load_saved_classifier(str(folder))
        longest = self.training.lengths["max_source_length"]
        self.network_ = Scorer(model, tokenizer, list(card["labels"]), self.template, longest)


def start_at_frequencies(model: Any, counts: Sequence[int], n_examples: int) -> None:
    """Set the bias of each label to the logit of its frequency, so that training need not learn it first."""
    heads = [part for part in model.modules() if isinstance(part, torch.nn.Linear) and part.out_features == len(counts)]
    if not heads or heads[-1].bias is None:
        return
    rates = (torch.tensor(counts, dtype=torch.float64) + 0.5) / (n_examples + 1)
    with torch.no_grad():
        heads[-1].bias.copy_(torch.logit(rates))


def _loss(model: Any, batch: Batch) -> torch.Tensor:
    loss: torch.Tensor = model(**batch).loss
    return loss
