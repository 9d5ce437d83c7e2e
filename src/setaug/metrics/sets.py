"""How well predicted label sets match the true ones: precision, recall, F and Jaccard, by scikit-learn.

What is averaged is the whole difference between the three kinds:

- *micro* counts labels over all examples together, so frequent labels and large sets weigh most;
- *macro* scores each label over all examples, then averages over labels, so that rare labels weigh as much as any;
- *samples* scores each example, then averages over examples.

Where there is nothing to divide by, the score is 0, as nothing was found. There is one exception: where an example's
true set is empty and the predicted one too, the prediction is right, and the example's precision, recall, F and Jaccard
are 1.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support

from setaug.metrics.indicators import check_same_length, index_labels, indicator_matrix

MacroOver: TypeAlias = Literal["gold", "gold-or-predicted", "vocabulary"]
"""Which labels a macro average runs over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetScores:
    """Hold how well predicted sets match the true ones; each score is between 0 and 1."""

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
    """The mean over examples of: labels in both sets / labels in either."""
    exact_match: float
    """The share of examples whose predicted set is the true set."""
    macro_over: MacroOver
    n_macro_labels: int
    """How many labels the macro scores are averaged over."""
    mean_gold_size: float
    mean_predicted_size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScore:
    """Hold how well one label is predicted."""

    label: str
    support: int
    """In how many true sets it is."""
    predicted: int
    """In how many predicted sets it is."""
    precision: float
    recall: float
    f1: float


def score_sets(
    predicted: Sequence[Collection[str]],
    gold: Sequence[Collection[str]],
    *,
    macro_over: MacroOver = "gold",
    vocabulary: Iterable[str] | None = None,
) -> SetScores:
    """Score predicted label sets against the true ones, example by example.

    Parameters
    ----------
    macro_over
        Which labels the macro scores are averaged over. ``gold``: those in some true set, so that two models are
        averaged over the same labels, whatever they predict. ``gold-or-predicted``: those that are predicted too;
        scikit-learn's own choice, which counts each wrong label that no true set holds as a label with score 0.
        ``vocabulary``: the labels given, also those that neither a true nor a predicted set holds; nothing shows that
        a model knows such a label, so its score is 0, and a small test set cannot reach 1.
    vocabulary
        The labels for ``macro_over="vocabulary"``. Labels outside it still count in all other scores.

    Examples
    --------
    >>> scores = score_sets([["joy", "love"], ["fear"]], [["joy"], ["anger", "fear"]])
    >>> round(scores.micro_f1, 3), round(scores.samples_f1, 3), round(scores.macro_f1, 3), scores.n_macro_labels
    (0.667, 0.667, 0.667, 3)
    >>> score_sets([[]], [[]]).samples_f1
    1.0

    """
    check_same_length(predicted, gold)
    check_macro(macro_over, vocabulary)
    wanted = frozenset(vocabulary or ()) if macro_over == "vocabulary" else frozenset()
    columns = index_labels(gold, predicted, [wanted])
    truth, guess = indicator_matrix(gold, columns), indicator_matrix(predicted, columns)
    chosen = _macro_columns(truth, guess, macro_over, [columns[label] for label in wanted])
    padded = _pad(truth, guess)
    micro = _prf(*padded, average="micro", labels=np.arange(len(columns)))
    macro = _prf(*padded, average="macro", labels=chosen)
    samples = _prf(*padded, average="samples")
    return SetScores(
        n_examples=len(gold),
        micro_precision=micro[0],
        micro_recall=micro[1],
        micro_f1=micro[2],
        macro_precision=macro[0],
        macro_recall=macro[1],
        macro_f1=macro[2],
        samples_precision=samples[0],
        samples_recall=samples[1],
        samples_f1=samples[2],
        jaccard=float(jaccard_score(*padded, average="samples", zero_division=0)),
        exact_match=float(accuracy_score(*padded)),
        macro_over=macro_over,
        n_macro_labels=len(chosen),
        mean_gold_size=truth.nnz / len(gold),
        mean_predicted_size=guess.nnz / len(gold),
    )


def score_labels(predicted: Sequence[Collection[str]], gold: Sequence[Collection[str]]) -> list[LabelScore]:
    """Score each label that a true or a predicted set holds, the most frequent in the true sets first.

    Examples
    --------
    >>> score_labels([["joy", "love"], ["fear"]], [["joy"], ["joy", "fear"]])[0]
    LabelScore(label='joy', support=2, predicted=1, precision=1.0, recall=0.5, f1=0.6666666666666666)

    """
    check_same_length(predicted, gold)
    columns = index_labels(gold, predicted)
    if not columns:
        return []
    truth, guess = indicator_matrix(gold, columns), indicator_matrix(predicted, columns)
    precision, recall, f1, support = precision_recall_fscore_support(
        *_pad(truth, guess), average=None, labels=np.arange(len(columns)), zero_division=0
    )
    numbers = zip(
        columns,
        support.tolist(),
        guess.sum(axis=0, dtype=np.int64).tolist(),
        precision.tolist(),
        recall.tolist(),
        f1.tolist(),
        strict=True,
    )
    scores = [
        LabelScore(label=label, support=n_gold, predicted=n_predicted, precision=p, recall=r, f1=f)
        for label, n_gold, n_predicted, p, r, f in numbers
    ]
    return sorted(scores, key=lambda score: (-score.support, -score.predicted, score.label))


def check_macro(macro_over: str, vocabulary: object) -> None:
    """Refuse a choice of labels that does not exist or cannot be made."""
    if macro_over not in get_args(MacroOver):
        raise ValueError(f"macro_over must be one of {', '.join(get_args(MacroOver))}; got {macro_over!r}.")
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
    """Add a label that exactly the examples without any have, in both, and one that none has.

    The first makes an empty set that is rightly predicted count as right. With both there are two columns at least,
    without which scikit-learn does not take a matrix for label sets.
    """
    is_empty = (np.diff(truth.indptr) == 0) & (np.diff(guess.indptr) == 0)
    more = csr_array(np.column_stack([is_empty, np.zeros_like(is_empty)]).astype(np.int8))
    return hstack([truth, more], format="csr"), hstack([guess, more], format="csr")


def _prf(truth: csr_array, guess: csr_array, **options: Any) -> tuple[float, float, float]:
    labels = options.get("labels")
    if labels is not None and not len(labels):
        return 0.0, 0.0, 0.0
    scores = precision_recall_fscore_support(truth, guess, zero_division=0, **options)
    return float(scores[0]), float(scores[1]), float(scores[2])
