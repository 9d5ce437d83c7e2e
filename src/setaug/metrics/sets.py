"""Precision, recall, F1 and Jaccard of predicted label sets, by scikit-learn.

The three kinds of average:

- *micro* counts labels over all examples together, so frequent labels and large sets weigh most;
- *macro* scores each label over all examples, then averages over labels, so rare labels weigh as much as any;
- *samples* scores each example, then averages over examples.

A division by zero gives 0, with one exception: if the true and the predicted set of an example are both empty, its
precision, recall, F1 and Jaccard are 1.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support

from setaug.metrics.indicators import check_same_length, index_labels, indicator_matrix
from setaug.registry import check_choice

MacroOver: TypeAlias = Literal["gold", "gold-or-predicted", "vocabulary"]
"""Which labels a macro average covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetScores:
    """Scores of predicted sets, each between 0 and 1."""

    n_examples: int
    micro_precision: float
    micro_recall: float
    micro_f1: float
    macro_precision: float
    macro_recall: float
    macro_f1: float
    samples_precision: float
    samples_recall: float
    samples_f1: float
    jaccard: float
    """The mean over examples of |intersection| / |union|."""
    exact_match: float
    """The fraction of examples whose predicted set equals the true set."""
    macro_over: MacroOver
    n_macro_labels: int
    """The number of labels that the macro scores are averaged over."""
    mean_gold_size: float
    mean_predicted_size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScore:
    """Scores of one label."""

    label: str
    support: int
    """The number of true sets that contain it."""
    predicted: int
    """The number of predicted sets that contain it."""
    precision: float
    recall: float
    f1: float


def score_sets(
    gold: Sequence[Collection[str]],
    predicted: Sequence[Collection[str]],
    *,
    macro_over: MacroOver = "gold",
    vocabulary: Iterable[str] | None = None,
) -> SetScores:
    """Score predicted label sets against the true ones.

    Parameters
    ----------
    macro_over
        Which labels the macro scores are averaged over. ``gold``: those in some true set, the same for all models.
        ``gold-or-predicted``: also those in some predicted set, with score 0 if no true set contains them;
        scikit-learn's default. ``vocabulary``: the given labels. One that occurs in no set has score 0, so a small test
        set cannot reach 1.
    vocabulary
        The labels for ``macro_over="vocabulary"``. Other labels still count in all other scores.

    Examples
    --------
    >>> scores = score_sets([["joy"], ["anger", "fear"]], [["joy", "love"], ["fear"]])
    >>> round(scores.micro_f1, 3), round(scores.samples_f1, 3), round(scores.macro_f1, 3), scores.n_macro_labels
    (0.667, 0.667, 0.667, 3)
    >>> score_sets([[]], [[]]).samples_f1
    1.0

    """
    check_same_length(gold, predicted)
    check_macro(macro_over, vocabulary)
    wanted = frozenset(vocabulary or ()) if macro_over == "vocabulary" else frozenset()
    columns = index_labels(gold, predicted, [wanted])
    truth, guess = indicator_matrix(gold, columns), indicator_matrix(predicted, columns)
    chosen = _macro_columns(truth, guess, macro_over, [columns[label] for label in wanted])
    padded = _pad(truth, guess)
    averages = {
        **_averages(*padded, "micro", np.arange(len(columns))),
        **_averages(*padded, "macro", chosen),
        **_averages(*padded, "samples"),
    }
    return SetScores(
        n_examples=len(gold),
        **averages,
        jaccard=float(jaccard_score(*padded, average="samples", zero_division=0)),
        exact_match=float(accuracy_score(*padded)),
        macro_over=macro_over,
        n_macro_labels=len(chosen),
        mean_gold_size=truth.nnz / len(gold),
        mean_predicted_size=guess.nnz / len(gold),
    )


def score_labels(gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]]) -> list[LabelScore]:
    """Score each label that occurs, the most frequent in the true sets first.

    Examples
    --------
    >>> score_labels([["joy"], ["joy", "fear"]], [["joy", "love"], ["fear"]])[0]
    LabelScore(label='joy', support=2, predicted=1, precision=1.0, recall=0.5, f1=0.6666666666666666)

    """
    check_same_length(gold, predicted)
    columns = index_labels(gold, predicted)
    if not columns:
        return []
    truth, guess = indicator_matrix(gold, columns), indicator_matrix(predicted, columns)
    precision, recall, f1, support = precision_recall_fscore_support(
        *_pad(truth, guess), average=None, labels=np.arange(len(columns)), zero_division=0
    )
    n_predicted = guess.sum(axis=0, dtype=np.int64)
    numbers = (array.tolist() for array in (support, n_predicted, precision, recall, f1))
    scores = [
        LabelScore(label=label, support=n, predicted=m, precision=p, recall=r, f1=f)
        for label, n, m, p, r, f in zip(columns, *numbers, strict=True)
    ]
    return sorted(scores, key=lambda score: (-score.support, -score.predicted, score.label))


def check_macro(macro_over: str, vocabulary: object) -> None:
    """Raise if the labels of a macro average are unknown or not given."""
    check_choice("macro_over", macro_over, get_args(MacroOver))
    if isinstance(vocabulary, str):
        raise TypeError(f"vocabulary must be a collection of labels, got the string {vocabulary!r}.")
    if macro_over == "vocabulary" and vocabulary is None:
        raise ValueError('macro_over="vocabulary" needs a vocabulary.')


def _macro_columns(truth: csr_array, guess: csr_array, macro_over: MacroOver, wanted: list[int]) -> NDArray[np.int64]:
    if macro_over == "vocabulary":
        return np.array(sorted(wanted), np.int64)
    used = [truth.indices] if macro_over == "gold" else [truth.indices, guess.indices]
    return np.unique(np.concatenate(used))


def _pad(truth: csr_array, guess: csr_array) -> tuple[csr_array, csr_array]:
    """Add a label to the examples with two empty sets, so that they count as correct, and one that no example has.

    scikit-learn treats a matrix with at least two columns as label sets.
    """
    is_empty = (np.diff(truth.indptr) == 0) & (np.diff(guess.indptr) == 0)
    more = csr_array(np.column_stack([is_empty, np.zeros_like(is_empty)]).astype(np.int8))
    return hstack([truth, more], format="csr"), hstack([guess, more], format="csr")


def _averages(truth: csr_array, guess: csr_array, kind: str, labels: NDArray[np.int64] | None = None) -> dict[str, Any]:
    scores: Sequence[Any] = (0.0, 0.0, 0.0)
    if labels is None or len(labels):
        scores = precision_recall_fscore_support(truth, guess, average=kind, labels=labels, zero_division=0)
    return {f"{kind}_{name}": float(score) for name, score in zip(("precision", "recall", "f1"), scores, strict=False)}
