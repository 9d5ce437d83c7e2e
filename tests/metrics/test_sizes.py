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
    scores = score_sizes([["x", "y"], ["x", "y", "z"], ["x", "y", "z"], ["x", "y", "z"]], predictions)
    assert (scores.n_examples, scores.n_stated) == (4, 3)
    assert scores.agreement_distinct == pytest.approx(1 / 3)
    assert scores.agreement_distinct_within_one == pytest.approx(2 / 3)
    assert scores.agreement_generated is None  # whether labels were repeated is not known
    assert scores.accuracy == 0.5
    assert scores.accuracy_within_one == 1.0


def test_a_stated_size_of_zero_is_a_size() -> None:
    scores = score_sizes([[]], [Prediction(labels=("a",), size=0)])
    assert (scores.agreement_distinct, scores.accuracy) == (0.0, 1.0)


@given(st.lists(st.tuples(label_sets, label_sets), min_size=1))
def test_without_stated_sizes_the_number_of_labels_counts(pairs: list[tuple[list[str], list[str]]]) -> None:
    scores = score_sizes([g for _, g in pairs], [Prediction(labels=tuple(p)) for p, _ in pairs])
    assert scores.accuracy == pytest.approx(sum(len(p) == len(g) for p, g in pairs) / len(pairs))
    assert scores.agreement_distinct is scores.agreement_distinct_within_one is None
    assert scores.agreement_generated is scores.agreement_generated_within_one is None
    assert (scores.repeated, scores.unknown, scores.malformed) == (None, None, None)


def test_flaws_are_shares_of_the_predictions_that_tell() -> None:
    predictions = [
        Prediction(labels=("a",), repeated=("a", "a"), unknown=(), malformed=()),
        Prediction(labels=("a", "q"), repeated=(), unknown=("q",), malformed=("?",)),
        Prediction(labels=("a",), repeated=(), malformed=()),
        Prediction(labels=("z",)),
    ]
    gold = [["a"]] * 4
    scores = score_sizes(gold, predictions)
    assert (scores.repeated, scores.unknown, scores.malformed) == pytest.approx((1 / 3, 1 / 2, 1 / 3))


def test_a_vocabulary_decides_what_is_unknown() -> None:
    predictions = [Prediction(labels=("a", "q"), unknown=()), Prediction(labels=()), Prediction(labels=("b",))]
    assert score_sizes([[]] * 3, predictions, vocabulary=iter(["a", "b"])).unknown == pytest.approx(1 / 3)


def test_what_a_codec_reads_can_be_scored() -> None:
    read = SetCodec().decode("3 | joy | love | joy")
    prediction = Prediction(labels=read.labels, size=read.size, repeated=read.repeated)
    scores = score_sizes([["joy", "love"]], [prediction])
    assert (scores.agreement_distinct, scores.agreement_distinct_within_one, scores.repeated) == (0.0, 1.0, 1.0)
    assert (scores.agreement_generated, scores.agreement_generated_within_one) == (1.0, 1.0)


@given(st.lists(st.lists(st.sampled_from(["joy", "love", "disgust", "annoyance"]), max_size=5), min_size=1))
def test_the_paper_counts_what_is_generated(written: list[list[str]]) -> None:
    """`3 | disgust | annoyance | disgust` agrees in the paper's sense, and not with its different labels."""
    texts = [" | ".join([str(len(labels)), *labels]) for labels in written]
    read = [SetCodec().decode(text) for text in texts]
    predictions = [Prediction(labels=one.labels, size=one.size, repeated=one.repeated) for one in read]
    scores = score_sizes(written, predictions)
    assert scores.agreement_generated == 1.0
    assert scores.agreement_distinct == pytest.approx(
        sum(len(set(labels)) == len(labels) for labels in written) / len(written)
    )


def test_as_many_predictions_as_true_sets_are_needed() -> None:
    with pytest.raises(ValueError, match="same length, got 1 and 0"):
        score_sizes([["a"]], [])
