"""Whatever people have becomes examples: the same ones in each function and model."""

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from setaug import (
    Columns,
    Example,
    Prediction,
    SetAugmenter,
    SetGenerator,
    TfidfClassifier,
    compare_sets,
    diagnose,
    evaluate,
    inspect_examples,
)
from setaug.errors import DataError
from setaug.examples import as_sets, make_examples
from setaug.sample import sample_examples

EXAMPLES = [Example(one.text, one.labels) for one in sample_examples(60, seed=2)]
TEXTS = [one.text for one in EXAMPLES]
SETS = [list(one.labels) for one in EXAMPLES]
NAMES = sorted({label for labels in SETS for label in labels})
MATRIX = np.array([[name in labels for name in NAMES] for labels in SETS], dtype=int)
OWN = Columns(text="body", labels="tags")
NAMED = Columns(names=NAMES)
CLASSES = Dataset.from_dict(
    {"body": TEXTS, "tags": [[NAMES.index(label) for label in labels] for labels in SETS]},
    features=Features({"body": Value("string"), "tags": List(ClassLabel(names=NAMES))}),
)
OWN_TABLE = {"body": TEXTS, "tags": SETS}
INPUTS: dict[str, tuple[tuple[Any, ...], Columns | None]] = {
    "texts and sets": ((TEXTS, SETS), None),
    "columns of a frame": ((pd.Series(TEXTS), pd.Series(SETS)), None),
    "a frame": ((pd.DataFrame({"text": TEXTS, "labels": SETS}),), None),
    "a frame with names of its own": ((pd.DataFrame(OWN_TABLE),), OWN),
    "a mapping with names of its own": ((OWN_TABLE,), OWN),
    "a data set with names of its own": ((CLASSES,), OWN),
    "columns of a data set": ((CLASSES["body"], CLASSES["tags"]), None),
    "numbers with names": ((TEXTS, [[NAMES.index(label) for label in labels] for labels in SETS]), NAMED),
}
MATRICES: dict[str, tuple[Any, Columns | None]] = {
    "numpy": (MATRIX, NAMED),
    "booleans": (MATRIX.astype(bool), NAMED),
    "sparse": (csr_array(MATRIX), NAMED),
    "sparse coordinates": (coo_array(MATRIX), NAMED),
    "frame": (pd.DataFrame(MATRIX, columns=NAMES), None),
}


def in_name_order(examples: list[Example]) -> list[Example]:
    return [Example(one.text, tuple(sorted(one.labels))) for one in examples]


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_gives_the_same_examples_pairs_and_inspection(name: str) -> None:
    data, columns = INPUTS[name]
    assert make_examples(*data, columns=columns) == EXAMPLES
    augmenter, same = SetAugmenter().fit(*data, columns=columns), SetAugmenter().fit(EXAMPLES)
    assert augmenter.statistics_ == same.statistics_
    assert list(augmenter.augment(*data, columns=columns)) == list(same.augment(EXAMPLES))
    assert inspect_examples(*data, columns=columns).to_dict() == inspect_examples(EXAMPLES).to_dict()


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_trains_the_same_model_which_keeps_the_names(name: str) -> None:
    data, columns = INPUTS[name]
    dev = data if len(data) == 2 else data[0]
    same = TfidfClassifier(folds=2, candidates=(("svm", 1.0),)).fit(EXAMPLES, dev=EXAMPLES)
    model = TfidfClassifier(folds=2, candidates=(("svm", 1.0),)).fit(*data, columns=columns, dev=dev)
    assert model.predict(data[0]) == same.predict(EXAMPLES)
    assert model.score(*data) == same.score(EXAMPLES)
    np.testing.assert_array_equal(model.predict_proba(data[0]), same.predict_proba(TEXTS))


@pytest.mark.parametrize("name", MATRICES)
def test_an_indicator_matrix_stands_for_label_sets(name: str) -> None:
    matrix, columns = MATRICES[name]
    expected = in_name_order(EXAMPLES)
    assert make_examples(TEXTS, matrix, columns) == expected
    assert make_examples((TEXTS, matrix), columns=columns) == expected
    assert diagnose(matrix, columns=columns) == diagnose(SETS)
    model = TfidfClassifier(candidates=(("svm", 1.0),)).fit(TEXTS, matrix, columns=columns, dev=(TEXTS, matrix))
    assert model.score(TEXTS, matrix) == model.score(EXAMPLES)
    guesses = [[label] for label, *_ in SETS]
    wrong = np.array([[label in guess for label in NAMES] for guess in guesses])
    guessed = pd.DataFrame(wrong, columns=NAMES) if columns is None else wrong
    assert evaluate(matrix, guessed, columns=columns) == evaluate(SETS, guesses)
    assert compare_sets(matrix, guessed, matrix, columns=columns, n_rounds=20) == compare_sets(
        SETS, guesses, SETS, n_rounds=20
    )


@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=20))
def test_a_matrix_and_back_loses_nothing(numbers: list[set[int]]) -> None:
    names = list("abcdef")
    matrix = np.array([[at in found for at in range(6)] for found in numbers])
    expected = [tuple(names[at] for at in sorted(found)) for found in numbers]
    assert list(as_sets(matrix, Columns(names=names))) == list(as_sets(csr_array(matrix), Columns(names=names)))
    assert list(as_sets(matrix, Columns(names=names))) == expected


def test_scores_take_frames_examples_and_predictions() -> None:
    frame = pd.DataFrame(OWN_TABLE)
    guesses = [Prediction(labels=tuple(labels[:1])) for labels in SETS]
    as_frame = pd.DataFrame([one.to_dict() for one in guesses])
    expected = evaluate(SETS, [labels[:1] for labels in SETS])
    assert (
        evaluate(frame, guesses, columns=OWN) == evaluate(EXAMPLES, as_frame) == evaluate(CLASSES, guesses, columns=OWN)
    )
    assert evaluate(frame, guesses, columns=OWN).sets == expected.sets
    found = compare_sets(frame, guesses, EXAMPLES, columns=OWN, n_rounds=20)
    assert found == compare_sets(SETS, [labels[:1] for labels in SETS], SETS, n_rounds=20)
    assert diagnose(frame, columns=OWN) == diagnose(EXAMPLES) == diagnose(SETS)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([[1, 20], [3]], [("1", "20"), ("3",)]),
        ([np.array([7]), {2, 10}], [("7",), ("10", "2")]),
        ([[1.0, 2.5], (np.float32(4),)], [("1", "2.5"), ("4",)]),
        ([[2**70], []], [(str(2**70),), ()]),
    ],
)
def test_labels_that_are_numbers_become_strings_and_that_is_said_once(
    labels: list[Any], expected: list[tuple[str, ...]]
) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [one.labels for one in make_examples(["a", "b"], labels)] == expected
        assert len(said) == 1
        assert "numeric labels are converted to strings" in str(said[0].message)


@pytest.mark.parametrize("kind", ["rows", "sets"])
def test_the_order_of_a_python_set_does_not_matter(kind: str) -> None:
    labels = {f"label {number}" for number in range(50)}
    data = ([{"text": "a", "labels": labels}],) if kind == "rows" else (["a"], [labels])
    assert make_examples(*data)[0].labels == tuple(sorted(labels))


@pytest.mark.parametrize(
    ("labels", "columns", "problem"),
    [
        (np.eye(2), None, "an indicator matrix needs column names"),
        (np.eye(2), Columns(names=["x"]), "the indicator matrix has 2 columns, but there are 1 names"),
        (2 * np.eye(2), Columns(names=["x", "y"]), "only 0 and 1, got 2.0 in the column 'x'"),
        (np.full((2, 1), np.nan), Columns(names=["x"]), "only 0 and 1, got nan in the column 'x'"),
        (csr_array(-np.eye(2)), Columns(names=["x", "y"]), "only 0 and 1, got -1.0 in the column 'x'"),
        (pd.DataFrame({"x": [1, 0], "note": ["1", "0"]}), None, "only 0 and 1, got '1' in the column 'note'"),
        ([["x"]], None, "texts and label sets must have the same length, got 2 and 1"),
        (["x", "y"], None, 'line 1 of the data: "labels" must be a list of strings, got "x"'),
        ([["x"], None], None, 'line 2 of the data: "labels" must be a list of strings, got null'),
        ([["x"], [float("nan")]], None, 'line 2 of the data: "labels" must be a list of strings, but contains NaN'),
        ([["x"], [True]], None, 'line 2 of the data: "labels" must be a list of strings, but contains true'),
        ([[0], [2]], Columns(names=["x", "y"]), "contains 2, not one of the 2 class labels"),
        ("xy", None, "expected label sets, got the string 'xy'"),
        (
            np.eye(2),
            Columns(names=["x", "x"]),
            "an indicator matrix must be distinct, but 'x' is repeated",
        ),
        (["x;y", "z"], None, 'got "x;y"; split joined labels first, and put a single label into a list'),
        ([["x"], None], None, 'line 2 of the data: "labels" must be a list of strings, got null; an empty set is []'),
        ([[["x"]], []], None, 'but contains ["x"]'),
        ([[1, 0, 1], [0, 0, 1]], None, "rows of 0 and 1 must be an array"),
    ],
)
def test_label_sets_that_cannot_be_read_are_refused(labels: Any, columns: Columns | None, problem: str) -> None:
    with pytest.raises((TypeError, ValueError, DataError), match=re.escape(problem)):
        make_examples(["a", "b"], labels, columns)


TEXTS_ONLY = 'line 1 of the data: expected examples or rows (mappings), got "a"; with texts, pass their label sets too'


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "expected texts, examples, rows or a table, got None"),
        (3, "expected texts, examples, rows or a table, got 3"),
        ("train.jsonl", "expected examples, rows or a table, got 'train.jsonl'; read a file with read_examples(path)"),
        (Path("train.jsonl"), "got 'train.jsonl'; read a file with read_examples(path)"),
        (["a", "b"], TEXTS_ONLY),
        (pd.DataFrame([["a", "b", ["x"]]], columns=["text", "text", "labels"]), "more than one column 'text'; rename"),
        (pd.DataFrame({"body": ["a"]}), 'field "text" is missing; the row has "body"'),
    ],
)
def test_data_that_cannot_be_read_is_refused_by_every_function(data: Any, problem: str) -> None:
    for read in (SetAugmenter().fit, inspect_examples, TfidfClassifier().fit, SetGenerator("tiny").fit):
        with pytest.raises((TypeError, ValueError, DataError), match=re.escape(problem)):
            read(data)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "expected texts, examples, rows or a table, got None"),
        ("a text", "expected texts, got the string 'a text'; put a single text into a list"),
        (pd.Series(["a", None]), "line 2 of the data: expected a text or a row (a mapping), got "),
        (np.array([["a"], ["b"]]), "line 1 of the data: expected a text or a row (a mapping), got array("),
        ([b"a"], "line 1 of the data: expected a text or a row (a mapping), got b'a'"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(data: Any, problem: str) -> None:
    model = TfidfClassifier(folds=2, candidates=(("svm", 1.0),)).fit(EXAMPLES)
    for read in (model.predict, model.predict_proba):
        with pytest.raises((TypeError, DataError), match=re.escape(problem)):
            read(data)


@pytest.mark.parametrize("columns", [{"text": "body"}, ("body", "tags"), "body"])
def test_columns_must_be_columns(columns: Any) -> None:
    for read in (SetAugmenter().fit, TfidfClassifier().fit, inspect_examples, diagnose):
        with pytest.raises(TypeError, match=re.escape("columns must be Columns(text=..., labels=...), got ")):
            read(OWN_TABLE, columns=columns)
    with pytest.raises(TypeError, match="columns must be Columns"):
        evaluate(SETS, SETS, columns=columns)


@pytest.mark.parametrize(
    ("joined", "remedy"),
    [(",".join, "split(',')"), (repr, "parse them as lists first")],
)
def test_joined_labels_are_told_by_every_function_that_reads_labels(joined: Any, remedy: str) -> None:
    sets = [[joined([*labels, "x"])] for labels in SETS]
    fast = TfidfClassifier(folds=2, candidates=(("svm", 1.0),))
    for read in (SetAugmenter().fit, fast.fit, inspect_examples):
        with pytest.warns(UserWarning, match="most labels look like several labels in one") as said:
            read(TEXTS, sets)
        assert len(said) == 1
        assert remedy in str(said[0].message)
        assert said[0].filename == __file__


def test_settings_must_be_settings() -> None:
    for name, kind in (("training", "TrainingSettings"), ("decoding", "Decoding"), ("augmenter", "SetAugmenter")):
        with pytest.raises(TypeError, match=re.escape(f"{name} must be {kind}(...), got {{'epochs': 3}}.")):
            SetGenerator("tiny", **{name: {"epochs": 3}}).fit(EXAMPLES)


def test_numbers_of_an_indicator_list_are_not_taken_for_names() -> None:
    with pytest.raises(DataError, match=r"0 and 1 .*numpy"):
        make_examples(["a", "b"], [[1, 0, 1], [0, 0, 1]], Columns(names=["x", "y", "z"]))


def test_neither_pandas_nor_datasets_is_needed() -> None:
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('pandas', 'datasets'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from setaug import SetAugmenter, evaluate, inspect_examples\n"
        "import numpy as np\n"
        "from setaug import Columns\n"
        "m, c = np.array([[1, 0], [1, 1]]), Columns(names=['x', 'y'])\n"
        "SetAugmenter().fit({'text': ['a', 'b'], 'labels': [['x'], ['y']]})\n"
        "print(evaluate(m, m, columns=c).sets.exact_match, inspect_examples(['a', 'b'], m, columns=c).n_sets)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path.cwd())
    assert (run.stdout.split(), run.stderr) == (["1.0", "2"], "")
