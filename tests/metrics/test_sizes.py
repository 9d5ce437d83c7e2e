"""Sizes and flaws of predictions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug import SetCodec
from setaug.metrics import score_sizes
from setaug.predictions import Prediction
from tests.strategies import label_sets


def test_stated_sizes_are_compared_with_what_is_written_and_with_the_truth() -> None:
    predictions = [
        Prediction(labels=("a", "b"), size=2),  # agrees and is right
        Prediction(labels=("a", "b"), size=3),  # one off what it writes, right
        Prediction(labels=("a",), size=4),  # three off what it writes, one off the truth
        Prediction(labels=("a", "b")),  # states none; one label is missing
    ]
    scores = score_sizes(predictions, [["x", "y"], ["x", "y", "z"], ["x", "y", "z"], ["x", "y", "z"]])
    assert (scores.n_examples, scores.n_stated) == (4, 3)
    assert scores.agreement == pytest.approx(1 / 3)
    assert scores.agreement_within_one == pytest.approx(2 / 3)
    assert scores.accuracy == 0.5
    assert scores.accuracy_within_one == 1.0


def test_a_stated_size_of_zero_is_a_size() -> None:
    scores = score_sizes([Prediction(labels=("a",), size=0)], [[]])
    assert (scores.agreement, scores.accuracy) == (0.0, 1.0)


@given(st.lists(st.tuples(label_sets, label_sets), min_size=1))
def test_without_stated_sizes_the_number_of_labels_counts(pairs: list[tuple[list[str], list[str]]]) -> None:
    scores = score_sizes([Prediction(labels=tuple(p)) for p, _ in pairs], [g for _, g in pairs])
    assert scores.accuracy == pytest.approx(sum(len(p) == len(g) for p, g in pairs) / len(pairs))
    assert scores.agreement is scores.agreement_within_one is None
    assert (scores.repeated, scores.unknown, scores.malformed) == (None, None, None)


def test_flaws_are_shares_of_the_predictions_that_tell() -> None:
    predictions = [
        Prediction(labels=("a",), repeated=("a", "a"), unknown=(), malformed=()),
        Prediction(labels=("a", "q"), repeated=(), unknown=("q",), malformed=("?",)),
        Prediction(labels=("a",), repeated=(), malformed=()),
        Prediction(labels=("z",)),
    ]
    gold = [["a"]] * 4
    scores = score_sizes(predictions, gold)
    assert (scores.repeated, scores.unknown, scores.malformed) == pytest.approx((1 / 3, 1 / 2, 1 / 3))


def test_a_vocabulary_decides_what_is_unknown() -> None:
    predictions = [Prediction(labels=("a", "q"), unknown=()), Prediction(labels=()), Prediction(labels=("b",))]
    assert score_sizes(predictions, [[]] * 3, vocabulary=iter(["a", "b"])).unknown == pytest.approx(1 / 3)


def test_what_a_codec_reads_can_be_scored() -> None:
    read = SetCodec().decode("3 | joy | love | joy")
    prediction = Prediction(labels=read.labels, size=read.size, repeated=read.repeated)
    scores = score_sizes([prediction], [["joy", "love"]])
    assert (scores.agreement, scores.agreement_within_one, scores.repeated) == (0.0, 1.0, 1.0)


def test_as_many_predictions_as_true_sets_are_needed() -> None:
    with pytest.raises(ValueError, match="equally many, got 0 and 1"):
        score_sizes([], [["a"]])
