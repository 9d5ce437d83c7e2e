from pathlib import Path

import pytest

from setaug.datasets import load_dataset
from setaug.errors import DataError
from tests.datasets.made_up import UFET, ufet_row, write_ufet


def test_a_mention_is_written_twice_and_its_types_once(tmp_path: Path) -> None:
    dataset = load_dataset("ufet", write_ufet(tmp_path), verify=False)
    first, second = dataset.train
    assert first.text == "the queen : Then [ the queen ] came ."
    assert (first.labels, first.id) == (("person", "ruler"), "x:1")
    assert second.labels == ()
    assert dataset.labels == ("person", "ruler", "event", "woman", "place")


def test_a_mention_can_stand_between_marks_as_in_the_paper(tmp_path: Path) -> None:
    folder = write_ufet(tmp_path)
    dataset, usual = (load_dataset(name, folder, verify=False) for name in ("ufet[span,min1]", "ufet[min1]"))
    assert dataset.name == "ufet[span,min1]"
    assert dataset.train[0].text == "Then [SPAN] the queen [SPAN] came ."
    assert [(one.labels, one.id) for one in dataset.test] == [(one.labels, one.id) for one in usual.test]


@pytest.mark.parametrize("folder", ["release", "release/crowd"])
def test_the_authors_own_folders_are_read(folder: str, tmp_path: Path) -> None:
    write_ufet(tmp_path / "release" / "crowd", types="../ontology/types.txt")
    assert len(load_dataset("ufet", tmp_path / folder, verify=False).train) == 2


@pytest.mark.parametrize("key", [None, "x:1"], ids=["without", "repeated"])
def test_where_ids_do_not_tell_examples_apart_lines_do(key: str | None, tmp_path: Path) -> None:
    rows = {**UFET, "test": [ufet_row("she", ["person"], key)]}
    dataset = load_dataset("ufet", write_ufet(tmp_path, rows), verify=False)
    assert [example.id for example in dataset.train] == ["train-1", "train-2"]
    assert [example.id for example in dataset.test] == ["test-1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"mention_span": "x", "y_str"', "not valid JSON"),
        (b"[]", "must be a JSON object, got []"),
        (b'{"y_str": []}', 'field "mention_span" is missing'),
        (b'{"mention_span": "x"}', 'field "y_str" is missing'),
        (b'{"mention_span": 1, "y_str": []}', '"mention_span" must be a string, got 1'),
        (b'{"mention_span": "x", "y_str": "person"}', '"y_str" must be a list of strings, got "person"'),
        (
            b'{"mention_span": "x", "y_str": [], "left_context_token": "a"}',
            '"left_context_token" must be a list of strings, got "a"',
        ),
        (b'{"mention_span": "caf\xe9"}', "invalid UTF-8, byte 0xe9"),
    ],
)
def test_bad_lines_are_named(line: bytes, message: str, tmp_path: Path) -> None:
    path = write_ufet(tmp_path) / "dev.json"
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(DataError, match=r"line 2 of dev\.json: ") as caught:
        load_dataset("ufet", tmp_path, verify=False)
    assert message in str(caught.value)
