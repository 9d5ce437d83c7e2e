"""Scores of one fixed set of labels for all texts, under each average that the paper may have used."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Literal

from setaug.datasets import load_dataset

DATA = Path(os.environ.get("SETAUG_DATA", "../shared/data"))
Scores = tuple[float, float, float]
"""Precision, recall and F, in per cent."""
Average = Literal["micro", "labels"] | int
"""A number n: over the examples of a batch of n texts, F from these two, then over all batches. 1: over examples."""
WHOLE = 10**9
"""One batch: F from precision and recall averaged over all examples."""
AVERAGES: tuple[Average, ...] = ("micro", "labels", 1, 2, 4, 8, 16, 32, 64, WHOLE)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What a printed value may be: how averaged, over which examples, of labels counted where."""

    average: Average
    min_labels: int
    """Examples with fewer labels are left out, in all splits."""
    split: Literal["test", "dev"] = "test"
    counted: Literal["train", "train and dev"] = "train and dev"

    def name(self, data: str) -> str:
        """Return the name of the data set with its filter."""
        return f"{data}[min{self.min_labels}]" if self.min_labels > 1 else data


DEFINITIONS = [
    Definition(average=average, min_labels=at_least, split=split, counted=counted)
    for average, at_least, split, counted in product(AVERAGES, (1, 2, 3), ("test", "dev"), ("train", "train and dev"))
]


@cache
def read_splits(name: str) -> dict[str, list[frozenset[str]]]:
    """Read the label sets of a data set, by split."""
    splits = load_dataset(name, DATA).splits
    return {split: [frozenset(example.labels) for example in examples] for split, examples in splits.items()}


def gold_sets(data: str, definition: Definition) -> list[frozenset[str]]:
    """Return the label sets that a definition is about."""
    return read_splits(definition.name(data))[definition.split]


def ranking(data: str, definition: Definition) -> list[str]:
    """Return the labels from frequent to rare; ties by name."""
    return _ranking(definition.name(data), definition.counted)


@cache
def _ranking(name: str, counted: str) -> list[str]:
    splits = read_splits(name)
    counts = Counter(label for split in counted.split(" and ") for labels in splits[split] for label in labels)
    return sorted(counts, key=lambda label: (-counts[label], label))


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def fixed_set_scores(labels: Iterable[str], gold: Sequence[frozenset[str]], average: Average) -> Scores:
    """Return the scores of the same set for each text.

    Examples
    --------
    >>> gold = [frozenset("ab"), frozenset("c")]
    >>> fixed_set_scores("ab", gold, "micro")[0], fixed_set_scores("a", gold, 1)[1]
    (50.0, 25.0)

    """
    chosen = frozenset(labels)
    if average == "labels":
        counts = Counter(label for one in gold for label in one)
        precisions = [counts[label] / len(gold) for label in chosen & counts.keys()]
        rows = [(precision, 1.0, f1(precision, 1.0)) for precision in precisions]
        return _percent(tuple(sum(column) / len(counts) for column in zip(*rows, strict=True)))
    hits = [len(chosen & one) for one in gold]
    if average == "micro":
        precision, recall = sum(hits) / (len(chosen) * len(gold)), sum(hits) / sum(map(len, gold))
        return _percent((precision, recall, f1(precision, recall)))
    precisions = _batch_means([hit / len(chosen) for hit in hits], average)
    recalls = _batch_means([hit / max(len(one), 1) for hit, one in zip(hits, gold, strict=True)], average)
    return _percent((fmean(precisions), fmean(recalls), fmean(map(f1, precisions, recalls))))


def true_size_score(ranked: Sequence[str], gold: Sequence[frozenset[str]], batch_size: int) -> float:
    """Return the score of as many of the first labels as a set has: precision, recall and F are the same."""
    shares = [len(one.intersection(ranked[: len(one)])) / max(len(one), 1) for one in gold]
    return 100 * fmean(_batch_means(shares, batch_size))


def is_reproduced(value: float, printed: float) -> bool:
    """Tell whether a value rounds to the digit that is printed."""
    return abs(value - printed) <= 0.0501


def _batch_means(values: Sequence[float], size: int) -> list[float]:
    return [sum(batch) / len(batch) for batch in (values[at : at + size] for at in range(0, len(values), size))]


def _percent(scores: tuple[float, ...]) -> Scores:
    precision, recall, f = scores
    return 100 * precision, 100 * recall, 100 * f
