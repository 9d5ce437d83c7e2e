import json
import sys
from pathlib import Path

import pytest

from setaug.datasets import load_dataset
from setaug.errors import DataError, FileError, MissingExtraError
from tests.datasets.made_up import write_kp20k

ROW = {"title": "Sorting networks.", "abstract": "We sort\nwith networks.", "keyword": "sorting network; ;hardware"}


def write_json(folder: Path, names: tuple[str, ...], row: object = ROW) -> Path:
    for name in names:
        (folder / name).write_text(json.dumps(row) + "\n\n" + json.dumps(row) + "\n")
    return folder


def test_text_files_are_read_without_their_marks(tmp_path: Path) -> None:
    dataset = load_dataset("kp20k", write_kp20k(tmp_path))
    assert [example.text for example in dataset.train] == [
        "sorting networks . we sort with networks .",
        "hashing ? . tables , mostly .",
    ]
    assert dataset.train[0].labels == ("sorting network", "parallel algorithm", "hardware")
    assert dataset.dev[0].labels == ("graph", "trees")
    assert [example.id for example in dataset.train] == ["train-1", "train-2"]
    assert dataset.labels is None


@pytest.mark.parametrize(
    "names",
    [
        ("kp20k_training.json", "kp20k_validation.json", "kp20k_testing.json"),
        ("train.json", "valid.json", "test.json"),
        ("train.jsonl", "valid.jsonl", "test.jsonl"),
    ],
)
def test_json_lines_are_read_too(names: tuple[str, ...], tmp_path: Path) -> None:
    dataset = load_dataset("kp20k", write_json(tmp_path, names))
    assert dataset.dev[0].text == "Sorting networks . We sort with networks."
    assert dataset.dev[0].labels == ("sorting network", "hardware")
    assert [example.id for example in dataset.dev] == ["valid-1", "valid-3"]


@pytest.mark.parametrize("keywords", ["a b;c", ["a  b", "c", "", "c"]])
def test_keywords_may_be_a_list_or_a_string(keywords: object, tmp_path: Path) -> None:
    row = {"title": "", "abstract": "Text.", "keywords": keywords}
    dataset = load_dataset("kp20k", write_json(tmp_path, ("train.json", "valid.json", "test.json"), row))
    assert (dataset.test[0].text, dataset.test[0].labels) == ("Text.", ("a b", "c"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"abstract": "", "keyword": ""}, '"title" must be a string, got null'),
        ({"title": "", "abstract": 1, "keyword": ""}, '"abstract" must be a string, got 1'),
        ({"title": "", "abstract": ""}, '"keyword" or "keywords" must be a list of strings'),
        ({"title": "", "abstract": "", "keywords": [1]}, '"keyword" or "keywords" must be a list of strings'),
        ([], "must be a JSON object"),
    ],
)
def test_bad_rows_are_named(row: object, message: str, tmp_path: Path) -> None:
    write_json(tmp_path, ("train.json", "valid.json", "test.json"))
    write_json(tmp_path, ("valid.json",), row)
    with pytest.raises(DataError, match=r"line 1 of valid\.json: ") as caught:
        load_dataset("kp20k", tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize("shorter", ["valid_src.txt", "valid_trg.txt"])
def test_texts_and_keyphrases_must_be_as_many(shorter: str, tmp_path: Path) -> None:
    (write_kp20k(tmp_path) / shorter).write_text("")
    with pytest.raises(FileError, match=f"valid_trg.txt do not match: {shorter} ends before line 1"):
        load_dataset("kp20k", tmp_path)


def test_bytes_that_are_no_utf_8_are_named(tmp_path: Path) -> None:
    (write_kp20k(tmp_path) / "test_trg.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match=r"line 1 of test_trg\.txt: invalid UTF-8, byte 0xe9 at column 4"):
        load_dataset("kp20k", tmp_path)


def test_telling_present_from_absent_needs_stems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    with pytest.raises(MissingExtraError, match=r"setaug\[keyphrases\]"):
        load_dataset("kp20k[absent]", write_kp20k(tmp_path))
