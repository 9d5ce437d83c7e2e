from pathlib import Path

import pytest

from setaug.datasets import load_dataset
from setaug.datasets.reuters import read_stories
from setaug.errors import DataError
from tests.datasets.made_up import HEAD, story, write_reuters


def test_only_topics_of_both_splits_count_and_a_quarter_is_held_out(tmp_path: Path) -> None:
    dataset = load_dataset("reuters", write_reuters(tmp_path), verify=False)
    assert dataset.labels == ("grain", "wheat")
    assert [len(split) for split in dataset.splits.values()] == [17, 5, 1]
    ids = {example.id for example in dataset.train} | {example.id for example in dataset.dev}
    assert ids == {str(number) for number in range(22)}
    assert dataset.test[0].labels == ("grain", "wheat")
    assert [example.id for example in dataset.dev] == ["0", "16", "17", "18", "19"]


def one(text: str) -> str:
    (found,) = read_stories((HEAD + story(1, ["wheat"], text=text)).encode("latin-1"), "x.sgm")
    return found.text


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("<TEXT>&#2;<TITLE>A &lt;B> &amp; C</TITLE><BODY>D\n   e.\n&#3;</BODY></TEXT>", "A <B> & C. D e."),
        ('<TEXT TYPE="BRIEF">&#2;\n***<TITLE>ONLY A TITLE\n</TITLE>Blah blah blah.\n&#3;\n</TEXT>', "ONLY A TITLE"),
        ('<TEXT TYPE="UNPROC">&#2;\nREPORT\n Net....644 vs\n&#3;</TEXT>', "REPORT Net....644 vs"),
        ("<TEXT><TITLE></TITLE><BODY>Only a body.</BODY></TEXT>", "Only a body."),
        ("<TEXT><BODY>caf\xe9&#127;</BODY></TEXT>", "caf\xe9"),
    ],
    ids=["whole", "brief", "unprocessed", "no title", "bytes that are no ASCII"],
)
def test_texts_are_title_and_body(marked: str, plain: str) -> None:
    assert one(marked) == plain


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (story(1, []).replace("</REUTERS>", ""), "line 2 of x.sgm: a story has no </REUTERS>."),
        (story(1, []) + story(2, []).replace("</REUTERS>", ""), "line 12 of x.sgm: a story has no </REUTERS>."),
        (story(1, []).replace("NEWID", "ID"), "line 2 of x.sgm: a story has no NEWID."),
        (story(1, []).replace("</TOPICS>", ""), "line 2 of x.sgm: a story has no <TOPICS>."),
        (story(1, [], text="no text"), "line 2 of x.sgm: a story has no <TEXT>."),
        ("<html>not found</html>", "x.sgm: the file contains no story"),
    ],
)
def test_damage_is_named(content: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        list(read_stories((HEAD + content).encode(), "x.sgm"))
    assert str(caught.value).startswith(message)
