"""Which prediction belongs to which example, and the report on all of them."""

import json
import subprocess
import sys
from random import Random

import pytest

from setaug import Example
from setaug.errors import DataError
from setaug.metrics import count_confusions, evaluate, match, score_keyphrases, score_labels, score_sets, score_sizes
from setaug.predictions import Prediction

EXAMPLES = [Example(f"text {i}", [f"y{i}"], id=i) for i in range(5)]


def predictions_for(ids: list[object]) -> list[Prediction]:
    return [Prediction(labels=(f"y{i}",), id=i) for i in ids]  # type: ignore[arg-type]


def test_predictions_are_matched_by_id_in_any_order() -> None:
    shuffled = Random(0).sample(range(5), 5)
    assert shuffled != list(range(5))
    assert [p.labels for p in match(iter(EXAMPLES), predictions_for(shuffled))] == [e.labels for e in EXAMPLES]


def test_ids_are_compared_as_they_are_written() -> None:
    matched = match(EXAMPLES, predictions_for(["4", "3", "2", "1", "0"]))
    assert [p.labels for p in matched] == [e.labels for e in EXAMPLES]


@pytest.mark.parametrize("side", ["neither", "predictions", "examples"])
def test_without_ids_on_both_sides_lines_count(side: str) -> None:
    predictions = [Prediction(labels=("a",), id=9 if side == "predictions" else None), Prediction(labels=("b",))]
    examples = [Example("x", ["a"], id=1 if side == "examples" else None), Example("y", ["b"])]
    assert match(examples, predictions) == predictions


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 1, 2, 3], "example 5, with the id 4, has no prediction."),
        ([0, 1, 2, 3, 4, 5], "prediction 6 has the id 5, which no example has."),
        ([0, 1, 2, 3, "four"], 'prediction 5 has the id "four", which no example has.'),
        ([0, 1, 2, 3, 1], "predictions 2 and 5 have the same id 1."),
        ([0, 1, None, 3, 4], "prediction 3 has no id, but others have one."),
    ],
)
def test_predictions_that_do_not_fit_are_named(ids: list[object], message: str) -> None:
    with pytest.raises(DataError) as error:
        match(EXAMPLES, predictions_for(ids))
    assert str(error.value) == message


def test_examples_that_do_not_fit_are_named() -> None:
    with pytest.raises(DataError, match=r"^examples 1 and 2 have the same id 7\.$"):
        match([Example("a", [], id=7), Example("b", [], id=7)], predictions_for([7]))
    with pytest.raises(DataError, match=r"^example 2 has no id, but others have one\.$"):
        match([Example("a", [], id=7), Example("b", [])], predictions_for([7]))
    with pytest.raises(DataError, match=r"^1 predictions for 2 examples, and no ids to match them\.$"):
        match([Example("a", []), Example("b", [])], [Prediction(labels=())])


def test_an_evaluation_holds_all_scores_of_matched_rows() -> None:
    examples = [Example("red apples", ["apple", "fruit"], id="a"), Example("a green pear", ["pear", "fruit"], id="b")]
    predictions = [
        Prediction(labels=("pear", "apple"), size=2, id="b", repeated=()),
        Prediction(labels=("apple", "fruit"), size=1, id="a", repeated=("apple",)),
    ]
    predicted, gold = [predictions[1].labels, predictions[0].labels], [e.labels for e in examples]
    vocabulary = ["apple", "fruit", "pear", "plum"]
    result = evaluate(
        examples,
        predictions,
        macro_over="vocabulary",
        vocabulary=iter(vocabulary),
        keyphrases="documents",
        per_label=True,
    )
    assert result.sets == score_sets(gold, predicted, macro_over="vocabulary", vocabulary=vocabulary)
    assert result.sizes == score_sizes(gold, [predictions[1], predictions[0]], vocabulary=vocabulary)
    assert result.keyphrases == score_keyphrases(gold, predicted, [e.text for e in examples], average="documents")
    assert result.labels == tuple(score_labels(gold, predicted))
    assert json.loads(json.dumps(result.to_dict())).keys() == {"sets", "sizes", "keyphrases", "labels"}


def test_what_was_not_asked_for_is_left_out() -> None:
    result = evaluate(EXAMPLES, predictions_for([0, 1, 2, 3, 4]))
    assert result.to_dict().keys() == {"sets", "sizes"}
    assert result.to_dict()["sets"]["macro_over"] == "gold"
    assert "Keyphrases" not in result.table()


@pytest.mark.parametrize(
    ("macro_over", "words"),
    [
        ("gold", "macro is averaged over the 2 labels in the true sets"),
        ("gold-or-predicted", "macro is averaged over the 3 labels in the true or the predicted sets"),
        ("vocabulary", "macro is averaged over the 4 labels of the vocabulary"),
    ],
)
def test_the_table_says_what_the_macro_scores_are_averaged_over(macro_over: str, words: str) -> None:
    examples = [Example("x", ["a"]), Example("y", ["b"])]
    predictions = [Prediction(labels=("a", "q")), Prediction(labels=("b",))]
    table = evaluate(examples, predictions, macro_over=macro_over, vocabulary=list("abcd")).table()
    assert words in table


def test_the_table_shows_shares_in_per_cent_and_a_dash_for_what_is_not_known() -> None:
    examples = [Example("x", ["a"]), Example("y", ["a", "b", "c"])]
    predictions = [Prediction(labels=("a",), size=1), Prediction(labels=("a",), size=2)]
    lines = evaluate(examples, predictions, keyphrases="one2set", per_label=True).table().splitlines()
    assert "  micro (all labels)        100.00     50.00     66.67" in lines
    assert "  samples (by example)      100.00     66.67     75.00" in lines
    assert "  exact match                50.00" in lines
    assert "  agreement, distinct        50.00    100.00" in lines
    assert "  of the predictions             -         -         -" in lines
    assert any(line.startswith("  absent ") and line.endswith(" 2") for line in lines)
    assert "       2          2     100.00  100.00  100.00  a" in lines


def test_no_examples_are_nothing_to_score() -> None:
    with pytest.raises(DataError, match="no examples to score"):
        evaluate([], [])


def test_importing_the_package_does_not_import_scikit_learn() -> None:
    code = "import sys, setaug, setaug.cli, setaug.predictions; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys, setaug.metrics; sys.exit('torch' in sys.modules or 'nltk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sets_rows_and_objects_are_scored_alike() -> None:
    examples = [Example("a", ["x", "y"], id=1), Example("b", ["z"], id=2)]
    predictions = [Prediction(labels=("x",), id=1), Prediction(labels=("z", "y"), id=2)]
    wanted = evaluate(examples, predictions)
    assert (wanted.sets.micro_recall, wanted.sets.micro_precision) == pytest.approx((2 / 3, 2 / 3))
    assert evaluate([{"x", "y"}, {"z"}], [["x"], ("z", "y")]) == wanted
    rows = [{"labels": ["z", "y"], "id": 2}, {"labels": ["x"], "id": 1}]
    assert evaluate([{"labels": ["x", "y"], "id": 1}, {"labels": ["z"], "id": "2"}], rows) == wanted
    assert evaluate(examples, rows) == wanted


def test_what_is_no_label_set_is_refused_with_its_position() -> None:
    with pytest.raises(DataError, match=r'line 2 of gold: "labels" must be a list of strings, got .*joy'):
        evaluate([["joy"], "joy"], [["joy"], ["joy"]])
    with pytest.raises(DataError, match=r'line 1 of predictions: field "labels" is missing'):
        evaluate([["joy"]], [{"id": 1}])


def test_the_true_sets_come_first() -> None:
    gold, predicted = [["a", "b", "c"]], [["a"]]
    for scores in (score_sets(gold, predicted), evaluate(gold, predicted).sets):
        assert (scores.micro_precision, scores.micro_recall) == pytest.approx((1, 1 / 3))
    assert score_labels(gold, predicted)[-1].support == 1
    assert count_confusions(gold, [["d"]]).most_frequent(1)[0][1] == "d"
    assert score_sizes([["a", "b"]], [Prediction(labels=("a",), size=2)]).accuracy == 1
