from pathlib import Path

import pytest

from setaug.datasets import load_dataset
from setaug.errors import DataError
from tests.datasets.made_up import EMOTIONS, write_go_emotions


@pytest.mark.parametrize("emotions", ["emotions.txt", "labels.txt"])
def test_texts_are_as_they_stand_in_the_file_and_numbers_become_names(emotions: str, tmp_path: Path) -> None:
    dataset = load_dataset("go-emotions", write_go_emotions(tmp_path, emotions=emotions), verify=False)
    assert dataset.labels == EMOTIONS
    assert [example.text for example in dataset.train] == ["We won!", 'He said "no\u2028', "All three"]
    assert [example.labels for example in dataset.train] == [("joy", "pride"), ("fear",), ("grief", "fear", "joy")]
    assert [len(split) for split in dataset.splits.values()] == [3, 1, 2]


def test_windows_line_ends_are_dropped(tmp_path: Path) -> None:
    write_go_emotions(tmp_path)
    (tmp_path / "dev.tsv").write_bytes(b"Boo!\t2\tb1\r\n\r\n")
    assert load_dataset("go-emotions", tmp_path, verify=False).dev[0].id == "b1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"no tabs", 'expected a text, label numbers and an id, separated by tabs, got "no tabs"'),
        (b"cut off\t1", "expected a text, label numbers and an id"),
        (b"cut off\t1\t", "expected a text, label numbers and an id"),
        (b"a\tb\t1\tid", "expected a text, label numbers and an id"),
        (b"a\t4\tid", '"4" is not the number of a label; expected 0 to 3'),
        (b"a\t-1\tid", '"-1" is not the number'),
        (b"a\t1,\tid", '"" is not the number'),
        (b"a\tjoy\tid", '"joy" is not the number'),
        ("a\t\u00b2\tid".encode(), "is not the number"),
        (b"caf\xe9\t1\tid", "invalid UTF-8, byte 0xe9 at column 4"),
    ],
)
def test_bad_lines_are_named(line: bytes, message: str, tmp_path: Path) -> None:
    write_go_emotions(tmp_path)
    (tmp_path / "test.tsv").write_bytes(b"Good\t1\tc1\n" + line + b"\n")
    with pytest.raises(DataError, match=r"line 2 of test\.tsv: ") as caught:
        load_dataset("go-emotions", tmp_path, verify=False)
    assert message in str(caught.value)
