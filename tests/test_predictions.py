"""Predictions as JSON lines, and back."""

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from setaug.errors import DataError, FileError
from setaug.predictions import Prediction, read_predictions, write_predictions
from setaug.terminal import json_line
from tests.strategies import any_label, any_text, label_lists

shares = st.floats(0, 1)
strings = st.lists(any_text, max_size=3).map(tuple)
predictions = st.builds(
    Prediction,
    labels=label_lists.map(tuple),
    size=st.none() | st.integers(0, 99),
    probabilities=st.none() | st.dictionaries(any_label, shares, max_size=3),
    sizes=st.none() | st.dictionaries(st.integers(0, 30), shares, max_size=3),
    generation=st.none() | any_text,
    repeated=st.none() | strings,
    unknown=st.none() | strings,
    malformed=st.none() | strings,
    id=st.none() | st.integers(-(2**40), 2**40) | any_text,
)


@given(predictions)
def test_a_prediction_comes_back_from_its_row(prediction: Prediction) -> None:
    row = prediction.to_dict()
    assert None not in row.values()
    assert Prediction.from_dict(json.loads(json.dumps(row))) == prediction


def test_labels_are_all_that_a_row_needs() -> None:
    assert Prediction.from_dict({"labels": ["a", "b", "a"], "score": 1}) == Prediction(labels=("a", "b"))
    assert Prediction.from_dict({"labels": [], "size": None, "sizes": None}) == Prediction(labels=())


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"size": 1}, 'field "labels" is missing.'),
        ({"labels": "joy"}, '"labels" must be a list of strings, got "joy".'),
        ({"labels": [1]}, '"labels" must be a list of strings, but contains 1.'),
        ({"labels": [" "]}, '"labels" contains an empty or blank label: " ".'),
        ({"labels": [], "size": 1.0}, '"size" must be an integer, got 1.0.'),
        ({"labels": [], "size": True}, '"size" must be an integer, got true.'),
        ({"labels": [], "size": -1}, '"size" must be an integer, got -1.'),
        ({"labels": [], "repeated": "a"}, '"repeated" must be a list of strings, got "a".'),
        ({"labels": [], "unknown": [1]}, '"unknown" must be a list of strings, got [1].'),
        ({"labels": [], "malformed": {}}, '"malformed" must be a list of strings, got {}.'),
        (
            {"labels": [], "probabilities": [0.5]},
            'the values of "probabilities" must be numbers from 0 to 1, got [0.5].',
        ),
        (
            {"labels": [], "probabilities": {"a": 1.5}},
            'the values of "probabilities" must be numbers from 0 to 1, got {"a": 1.5}.',
        ),
        (
            {"labels": [], "probabilities": {"a": True}},
            'the values of "probabilities" must be numbers from 0 to 1, got {"a": true}.',
        ),
        ({"labels": [], "sizes": {"1": "x"}}, 'the values of "sizes" must be numbers from 0 to 1, got {"1": "x"}.'),
        ({"labels": [], "sizes": {"one": 0.5}}, 'the keys of "sizes" must be integers, got ["one"].'),
    ],
)
def test_bad_rows_say_what_is_wrong_and_where(row: dict[str, object], problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        Prediction.from_dict(row)
    assert str(error.value) == problem
    path = tmp_path / "predictions.jsonl"
    path.write_text('{"labels": []}\n\n' + json.dumps(row) + "\n")
    with pytest.raises(DataError) as error:
        list(read_predictions(path))
    assert str(error.value) == f"line 3 of predictions.jsonl: {problem}"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_files_are_read_by_suffix_and_blank_lines_are_left_out(suffix: str, tmp_path: Path) -> None:
    text = b'\xef\xbb\xbf{"labels": ["a"], "id": 1}\r\n\n   \n{"labels": ["b"], "size": 1}'
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    path = tmp_path / f"predictions.jsonl{suffix}"
    path.write_bytes(pack(text))
    assert list(read_predictions(path)) == [Prediction(labels=("a",), id=1), Prediction(labels=("b",), size=1)]
    path.write_bytes(b"")
    if not suffix:
        assert list(read_predictions(path)) == []


def test_lines_that_are_no_json_objects_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    for line, problem in (("{", "not valid JSON"), ("[]", "object"), ("3", "object")):
        path.write_text('{"labels": []}\n' + line + "\n")
        with pytest.raises(DataError, match=rf"^line 2 of p\.jsonl: .*{problem}"):
            list(read_predictions(path))


def test_a_damaged_archive_and_a_missing_file_are_file_errors(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"labels": []}\n' * 1000)[:-20])
    with pytest.raises(FileError, match=r"p\.jsonl\.gz is damaged"):
        list(read_predictions(path))
    with pytest.raises(FileError, match=r"cannot read .*: No such file"):
        list(read_predictions(tmp_path / "missing.jsonl"))


def test_a_line_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setaug.examples.MAX_LINE", 1000)
    path = tmp_path / "p.jsonl"
    path.write_text('{"labels": []}\n' + json.dumps({"labels": ["x" * 2000]}) + "\n")
    with pytest.raises(DataError, match=r"^line 2 of p\.jsonl: longer than 1,000 bytes"):
        list(read_predictions(path))


@pytest.mark.parametrize("number", [2**64, -(10**30), 1234567890123456789])
def test_an_id_is_exact_whatever_its_size(number: int, tmp_path: Path) -> None:
    prediction = Prediction(labels=("é", '"\n'), id=number)
    (tmp_path / "p.jsonl").write_bytes(json_line(prediction.to_dict()) * 2)
    assert list(read_predictions(tmp_path / "p.jsonl")) == [prediction] * 2


@given(st.lists(predictions, max_size=4), st.sampled_from(["", ".gz", ".zst"]))
def test_written_predictions_are_read_back(found: list[Prediction], suffix: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"p.jsonl{suffix}")
        write_predictions(path, iter(found))
        assert list(read_predictions(path)) == found


def test_after_an_error_there_is_no_file_and_the_suffix_is_kept_to(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_predictions(tmp_path / "p.jsonl", (Prediction(labels=(str(1 // n),)) for n in (1, 0)))
    with pytest.raises(FileError, match=r"JSON lines, but .*p\.csv has the suffix of another format"):
        write_predictions(tmp_path / "p.csv", [])
    assert not list(tmp_path.iterdir())
