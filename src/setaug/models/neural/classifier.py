"""The paper's MULTI-LABEL baseline: score each label independently, and return those above a threshold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from setaug.augmenter import SetAugmenter
from setaug.decoding.choice import best_labels, check_k, check_rule, make_prediction, true_sizes
from setaug.examples import Data, Example, make_texts
from setaug.metrics import score_sets
from setaug.models.neural.batches import Batch, Item, TrainingSet, by_length, cut, evaluating, on_device, pad_inputs
from setaug.models.neural.model import SetModel, Train
from setaug.models.neural.pretrained import load_for_classification, load_saved_classifier
from setaug.models.neural.scratch import SHAPES, scratch_classifier, train_tokenizer
from setaug.predictions import Prediction
from setaug.settings import Progress, TrainingSettings
from setaug.tables import as_rows
from setaug.vocabulary import known_labels

TOP_K = (1, 3, 5, 10, 50)
"""The values of k that the paper tries on the dev data."""


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
        return cut(self.tokenizer, prompts, self.max_source_length)

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


class SetClassifier(SetModel):
    """An encoder or an encoder-decoder with a classification head for each label.

    Parameters
    ----------
    model
        The name of a model on the Hub, a folder, or ``tiny``.
    template
        The prompt; ``{text}`` stands for the text.
    rule
        ``threshold`` or ``top-k``, tuned for the mean F1 of the sets on the dev data (without dev data 0.5, and the
        mean size of the training sets); ``oracle-k`` takes as many labels as the example has.
    training, batch_size
        How to train, and how many texts are scored at once.

    """

    kind: ClassVar[str] = "classifier"
    network_: Scorer

    def __init__(
        self,
        model: str = "tiny",
        *,
        template: str = "{text}",
        rule: str = "threshold",
        training: TrainingSettings | None = None,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.template = template
        self.rule = rule
        self.training = training or TrainingSettings()
        self.batch_size = batch_size

    def _check(self) -> None:
        check_rule(self.rule)
        SetAugmenter(template=self.template).check()
        if self.training.fresh_orders or self.training.lora_rank is not None:
            raise ValueError("a classifier has no orders, and is trained without adapters.")
        if self.training.weights != "float32":
            raise ValueError("a classifier is trained with weights in float32.")
        if self.training.objective != "plain":
            raise ValueError("a classifier has no orders, so its objective is plain.")

    def _learn(self, examples: list[Example], dev: list[Example], train: Train) -> dict[str, Any]:
        labels = known_labels(self.statistics_, "closed") or []
        mean_size = sum(len(example.labels) for example in examples) / len(examples)
        self.threshold_, self.top_k_ = 0.5, max(round(mean_size), 1)
        texts = [example.text for example in examples]
        longest, seed = self.training.max_source_length, self.training.seed
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
            self._tune(dev)
        return {"n_pairs_per_epoch": len(examples), "texts_cut_off": n_cut, **record}

    def _dev_scores(self, dev: list[Example], progress: Progress | None = None) -> dict[str, float]:
        self._tune(dev)
        return super()._dev_scores(dev, progress)

    def _tune(self, dev: list[Example]) -> None:
        """Choose the threshold and k with the highest mean F1."""
        scores = self.predict_proba([example.text for example in dev])
        gold = [example.labels for example in dev]

        def f1(rule: str, value: float) -> float:
            return score_sets(gold, [self._take(row, rule, value) for row in scores]).samples_f1

        self.top_k_ = int(max(TOP_K, key=lambda k: (f1("top-k", k), -k)))
        levels = np.unique(np.quantile(scores.max(axis=1), np.linspace(0, 1, 20)).round(4)).tolist()
        grid = sorted({*levels, *(step / 20 for step in range(1, 20))})
        self.threshold_ = float(max(grid, key=lambda level: (f1("threshold", level), level)))

    def _take(self, row: NDArray[np.float32], rule: str, value: float) -> tuple[str, ...]:
        return best_labels(row, self.labels_, _count(row, rule, value))

    def predict_proba(self, data: Iterable[str] | Data, *, progress: Progress | None = None) -> NDArray[np.float32]:
        """Return the probability of each label (columns, as in ``classes_``) for each text (rows)."""
        self._check_fitted()
        texts, _ = make_texts(data, self.columns_)
        return self.network_.probabilities(texts, self.batch_size, progress)

    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text.

        Parameters
        ----------
        changes
            ``rule``: another rule for this call. For ``oracle-k`` the data must be examples with their labels.
            ``k``: how many labels ``top-k`` takes in this call; all, where there are fewer.

        """
        self._check_fitted()
        rule = check_rule(changes.pop("rule", self.rule))
        value = self.threshold_ if rule == "threshold" else self.top_k_
        if (k := changes.pop("k", None)) is not None:
            value = check_k(k, rule)
        if changes:
            raise TypeError(f"a classifier takes no {', '.join(changes)}.")
        items: Any = data if isinstance(data, str) else list(as_rows(data))
        texts, keys = make_texts(items, self.columns_)
        scores = self.predict_proba(texts, progress=progress)
        values: Sequence[float] = true_sizes(items, self.columns_) if rule == "oracle-k" else [value] * len(texts)
        return [
            make_prediction(row, self.labels_, _count(row, rule, value), key)
            for row, value, key in zip(scores, values, keys, strict=True)
        ]

    def _learnt(self) -> dict[str, Any]:
        return {"threshold": self.threshold_, "top_k": self.top_k_}

    def _restore(self, folder: Path, card: dict[str, Any]) -> None:
        self.threshold_, self.top_k_ = float(card["threshold"]), int(card["top_k"])
        model, tokenizer = load_saved_classifier(str(folder))
        self.network_ = Scorer(model, tokenizer, list(card["labels"]), self.template, self.training.max_source_length)


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


def _count(row: NDArray[np.float32], rule: str, value: float) -> int:
    return int((row >= value).sum()) if rule == "threshold" else int(value)
