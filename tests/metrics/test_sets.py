"""Scores of sets, against scikit-learn on dense matrices and against counting by hand."""

import warnings
from collections.abc import Collection
from dataclasses import asdict
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, jaccard_score, precision_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

from setaug.metrics import SetScores, score_labels, score_sets
from tests.strategies import ALPHABET, label_sets

pairs_of_sets = st.lists(st.tuples(label_sets, label_sets), min_size=1, max_size=12)
nonempty = label_sets.filter(bool)


def split(pairs: list[tuple[list[str], list[str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [predicted for predicted, _ in pairs], [gold for _, gold in pairs]


def by_hand(predicted: list[Collection[str]], gold: list[Collection[str]], labels: Collection[str]) -> dict[str, float]:
    """Score sets as the definitions say, one example and one label at a time."""

    def ratio(above: int, below: int) -> float:
        return above / below if below else 0.0

    def prf(right: int, n_predicted: int, n_gold: int) -> tuple[float, float, float]:
        return ratio(right, n_predicted), ratio(right, n_gold), ratio(2 * right, n_predicted + n_gold)

    examples = [(set(p), set(g)) for p, g in zip(predicted, gold, strict=True)]
    kinds = {
        "micro": [prf(*(sum(map(len, sets)) for sets in zip(*((p & g, p, g) for p, g in examples), strict=True)))],
        "macro": [
            prf(
                sum(label in p & g for p, g in examples),
                sum(label in p for p, _ in examples),
                sum(label in g for _, g in examples),
            )
            for label in labels
        ],
        "samples": [(1.0, 1.0, 1.0) if p == g else prf(len(p & g), len(p), len(g)) for p, g in examples],
    }
    scores = {
        f"{kind}_{name}": mean(values) if rows else 0.0
        for kind, rows in kinds.items()
        for name, values in zip(
            ("precision", "recall", "f1"), zip(*rows, strict=True) if rows else [()] * 3, strict=True
        )
    }
    scores["jaccard"] = mean(1.0 if p == g else ratio(len(p & g), len(p | g)) for p, g in examples)
    scores["exact_match"] = mean(p == g for p, g in examples)
    return scores


def assert_same(scores: SetScores, wanted: dict[str, float]) -> None:
    found = asdict(scores)
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


@given(pairs_of_sets)
def test_scores_are_what_the_definitions_say(pairs: list[tuple[list[str], list[str]]]) -> None:
    predicted, gold = split(pairs)
    in_gold = set().union(*gold)
    for macro_over, labels in (
        ("gold", in_gold),
        ("gold-or-predicted", in_gold.union(*predicted)),
        ("vocabulary", set("abcxyz")),
    ):
        scores = score_sets(gold, predicted, macro_over=macro_over, vocabulary=iter("abcxyzx"))
        assert_same(scores, by_hand(predicted, gold, labels))
        assert (scores.macro_over, scores.n_macro_labels) == (macro_over, len(labels))
        assert scores.mean_gold_size == pytest.approx(mean(map(len, gold)))
        assert scores.mean_predicted_size == pytest.approx(mean(map(len, predicted)))
        assert scores.n_examples == len(pairs)


@given(st.lists(st.tuples(label_sets, nonempty), min_size=1, max_size=12))
def test_scores_are_those_of_scikit_learn_on_dense_matrices(pairs: list[tuple[list[str], list[str]]]) -> None:
    predicted, gold = split(pairs)
    binarizer = MultiLabelBinarizer(classes=list(ALPHABET)).fit([])
    truth, guess = binarizer.transform(gold), binarizer.transform(predicted)
    wanted = {
        f"{average}_{name}": score(truth, guess, average=average, zero_division=0)
        for average in ("micro", "macro", "samples")
        for name, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score))
    }
    wanted["jaccard"] = jaccard_score(truth, guess, average="samples", zero_division=0)
    wanted["exact_match"] = np.mean((truth == guess).all(axis=1))
    assert_same(score_sets(gold, predicted, macro_over="vocabulary", vocabulary=list(ALPHABET)), wanted)


@given(pairs_of_sets)
def test_labels_are_scored_as_the_definitions_say(pairs: list[tuple[list[str], list[str]]]) -> None:
    predicted, gold = split(pairs)
    scores = score_labels(gold, predicted)
    assert {score.label for score in scores} == set().union(*gold, *predicted)
    assert [score.support for score in scores] == sorted((score.support for score in scores), reverse=True)
    for score in scores:
        wanted = by_hand(predicted, gold, [score.label])
        assert score.support == sum(score.label in labels for labels in gold)
        assert score.predicted == sum(score.label in labels for labels in predicted)
        found = {"macro_precision": score.precision, "macro_recall": score.recall, "macro_f1": score.f1}
        assert found == pytest.approx({name: wanted[name] for name in found})


@pytest.mark.parametrize(
    ("predicted", "gold", "score"),
    [([], [], 1.0), (["joy"], [], 0.0), ([], ["joy"], 0.0), (["joy"], ["joy"], 1.0)],
)
def test_an_empty_set_is_right_where_it_is_the_true_one(predicted: list[str], gold: list[str], score: float) -> None:
    scores = score_sets([gold], [predicted])
    assert scores.samples_precision == scores.samples_recall == scores.samples_f1 == score
    assert scores.jaccard == scores.exact_match == score


def test_without_any_label_micro_and_macro_scores_are_zero() -> None:
    scores = score_sets([[], []], [[], []])
    assert (scores.micro_f1, scores.macro_f1, scores.n_macro_labels) == (0, 0, 0)
    assert score_labels([[]], [[]]) == []


def test_a_label_that_nobody_uses_counts_only_in_a_vocabulary() -> None:
    assert score_sets([["a"]], [["a"]]).macro_f1 == 1.0
    assert score_sets([["a"]], [["a"]], macro_over="vocabulary", vocabulary=["a", "b"]).macro_f1 == 0.5


def test_a_label_that_is_only_predicted_lowers_the_macro_score_where_it_is_counted() -> None:
    assert score_sets([["a"]], [["a", "b"]]).macro_f1 == 1.0
    assert score_sets([["a"]], [["a", "b"]], macro_over="gold-or-predicted").macro_f1 == 0.5


def test_bad_calls_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="same length, got 2 and 1"):
        score_sets([["a"], ["b"]], [["a"]])
    with pytest.raises(ValueError, match="no examples to score"):
        score_sets([], [])
    with pytest.raises(ValueError, match="macro_over must be one of gold, gold-or-predicted, vocabulary, got 'all'"):
        score_sets([["a"]], [["a"]], macro_over="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs a vocabulary"):
        score_sets([["a"]], [["a"]], macro_over="vocabulary")
    with pytest.raises(TypeError, match="vocabulary must be a collection of labels"):
        score_sets([["a"]], [["a"]], macro_over="vocabulary", vocabulary="abc")
    with pytest.raises(TypeError, match="got the string 'joy'"):
        score_sets([["joy"]], ["joy"])


def test_no_dense_matrix_is_made_and_nothing_warns() -> None:
    n = 60_000  # dense, two matrices of this size would need 7 GB
    sets = [[f"label {i}"] for i in range(n)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = score_sets([*sets[1:], sets[0]], sets)
    assert (scores.n_macro_labels, scores.micro_f1, scores.jaccard) == (n, 0.0, 0.0)
