"""The paper's MULTI-LABEL baseline: score each label independently, and return those above a threshold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from setaug.decoding.thresholds import best_labels, check_k, check_rule, make_prediction, true_sizes
from setaug.examples import Data, Example, make_texts
from setaug.metrics import score_sets
from setaug.models.neural.batches import Batch, cut, pad_inputs
from setaug.models.neural.model import SetModel
from setaug.models.neural.pretrained import load_for_classification, load_saved_classifier
from setaug.models.neural.scratch import SHAPES, scratch_classifier, train_tokenizer
from setaug.predictions import Prediction
from setaug.settings import Progress, TrainingSettings
from setaug.vocabulary import known_labels

TOP_K = (1, 3, 5, 10, 50)
"""The values of k that the paper tries on the dev data."""


class _Rows(torch.utils.data.Dataset[dict[str, list[float]]]):
    def __init__(self, inputs: list[list[int]], gold: list[list[int]]) -> None:
        self.inputs, self._gold = inputs, gold

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, at: int) -> dict[str, Any]:
        return {"input_ids": self.inputs[at], "gold": self._gold[at]}

    def begin_epoch(self, epoch: int) -> None:
        """Stay the same in each epoch."""


class SetClassifier(SetModel):
    """An encoder or an encoder-decoder with a classification head for each label.

    Parameters
    ----------
    model
        The name of a model on the hub, a folder, or ``tiny``.
    template
        The prompt; ``{text}`` stands for the text.
    rule
        ``threshold`` or ``top-k``, tuned for the mean F1 of the sets on the dev data (without dev data 0.5, and the
        mean size of the training sets); ``oracle-k`` takes as many labels as the example has.
    training, batch_size
        How to train, and how many texts are scored at once.

    """

    kind: ClassVar[str] = "classifier"

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
        if self.template.count("{text}") != 1:
            raise ValueError(f"template must hold {{text}} exactly once, got {self.template!r}.")
        if self.training.fresh_orders or self.training.lora_rank is not None:
            raise ValueError("a classifier has no orders, and is trained without adapters.")
        if self.training.objective != "plain":
            raise ValueError("a classifier has no orders, so its objective is plain.")

    def _build(self, examples: list[Example]) -> None:
        self.labels_ = known_labels(self.statistics_, "closed") or []
        mean_size = sum(len(example.labels) for example in examples) / len(examples)
        self.threshold_, self.top_k_ = 0.5, max(round(mean_size), 1)
        if self.model in SHAPES:
            self.tokenizer_ = train_tokenizer(self._prompt(example.text) for example in examples)
            longest, seed = self.training.max_source_length, self.training.seed
            self.model_ = scratch_classifier(self.model, self.tokenizer_, self.labels_, max_length=longest, seed=seed)
        else:
            self.model_, self.tokenizer_ = load_for_classification(self.model, self.labels_)

    def _prompt(self, text: str) -> str:
        return self.template.replace("{text}", text)

    def _training_data(self, examples: list[Example]) -> tuple[_Rows, Callable[[Any], Batch], dict[str, int]]:
        prompts = [self._prompt(example.text) for example in examples]
        inputs, n_cut = cut(self.tokenizer_, prompts, self.training.max_source_length)
        places = {label: at for at, label in enumerate(self.labels_)}
        gold = [[places[label] for label in example.labels] for example in examples]
        return _Rows(inputs, gold), self._collate, {"n_pairs_per_epoch": len(examples), "texts_cut_off": n_cut}

    def _collate(self, items: Sequence[dict[str, Any]]) -> Batch:
        labels = torch.zeros(len(items), len(self.labels_))
        for row, item in zip(labels, items, strict=True):
            row[item["gold"]] = 1.0
        return {**pad_inputs([item["input_ids"] for item in items], self.tokenizer_.pad_token_id), "labels": labels}

    def _dev_scores(self, dev: list[Example]) -> dict[str, float]:
        self._tune(dev)
        return super()._dev_scores(dev)

    def _finish(self, dev: list[Example]) -> None:
        if dev:
            self._tune(dev)

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
        texts, _ = make_texts(data)
        prompts = [self._prompt(text) for text in texts]
        inputs, _ = cut(self.tokenizer_, prompts, self.training.max_source_length)
        order = sorted(range(len(inputs)), key=lambda at: len(inputs[at]))
        found = np.empty((len(inputs), len(self.labels_)), np.float32)
        was_training = self.model_.training
        self.model_.eval()
        with torch.inference_mode():
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]
                padded = pad_inputs([inputs[at] for at in rows], self.tokenizer_.pad_token_id)
                batch = {name: values.to(self.model_.device) for name, values in padded.items()}
                found[rows] = torch.sigmoid(self.model_(**batch).logits.float()).cpu().numpy()
                if progress is not None:
                    progress("scoring", start + len(rows), len(order))
        self.model_.train(was_training)
        return found

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
        items: Any = data if isinstance(data, str) else list(data)
        texts, keys = make_texts(items)
        scores = self.predict_proba(texts, progress=progress)
        values: Sequence[float] = true_sizes(items) if rule == "oracle-k" else [value] * len(texts)
        return [
            make_prediction(row, self.labels_, _count(row, rule, value), key)
            for row, value, key in zip(scores, values, keys, strict=True)
        ]

    def _settings(self) -> dict[str, Any]:
        names = ("model", "template", "rule", "batch_size")
        return {**{name: getattr(self, name) for name in names}, "training": asdict(self.training)}

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        return cls(**{**settings, "training": TrainingSettings(**settings["training"])})

    def _card(self) -> dict[str, Any]:
        return {**super()._card(), "labels": self.labels_, "threshold": self.threshold_, "top_k": self.top_k_}

    def _load_parts(self, folder: Path, card: dict[str, Any]) -> None:
        self.labels_ = list(card["labels"])
        self.threshold_, self.top_k_ = float(card["threshold"]), int(card["top_k"])
        self.model_, self.tokenizer_ = load_saved_classifier(str(folder))


def _count(row: NDArray[np.float32], rule: str, value: float) -> int:
    return int((row >= value).sum()) if rule == "threshold" else int(value)
