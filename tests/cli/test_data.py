import json
from pathlib import Path

import pytest

from setaug import read_examples
from setaug.cli import main
from tests.cli.refusals import assert_refused
from tests.datasets.made_up import write_all, write_go_emotions


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_data_set_is_written_as_json_lines(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_go_emotions(folder / "goemotions")
    assert main(["data", "go-emotions[min2]", "--data-dir", ".", "--no-verify", "-o", "out/here"]) == 0
    output = capfd.readouterr()
    assert output.out == ""
    assert output.err == (
        "wrote out/here/train.jsonl: 2 examples\n"
        "wrote out/here/dev.jsonl: 0 examples\n"
        "wrote out/here/test.jsonl: 1 examples\n"
    )
    assert sorted(path.name for path in Path("out/here").iterdir()) == ["dev.jsonl", "test.jsonl", "train.jsonl"]
    rows = [json.loads(line) for line in Path("out/here/train.jsonl").read_text().splitlines()]
    assert rows[0] == {"id": "a1", "text": "We won!", "labels": ["joy", "pride"]}
    assert [example.id for example in read_examples("out/here/train.jsonl")] == ["a1", "a3"]


def test_statistics_are_printed_where_nothing_else_is_asked_for(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_go_emotions(folder)
    assert main(["data", "go-emotions[min3]", "--data-dir", ".", "--no-verify"]) == 0
    output = capfd.readouterr()
    assert output.err == ""
    found, paper = output.out.splitlines()[2:]
    assert "| 3.00 / 3 / 3 " in found
    assert "| 3.03 / 3 / 5 " in paper


def test_statistics_are_json_on_request(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_go_emotions(folder)
    assert main(["data", "go-emotions", "--data-dir", ".", "--no-verify", "--json", "-o", "out"]) == 0
    output = capfd.readouterr()
    (row,) = json.loads(output.out)
    assert (row["name"], row["found"]["n_train"], row["paper"]) == ("go-emotions", 3, None)
    assert output.err.startswith("wrote out/train.jsonl: 3 examples\n")


def test_all_data_sets_make_the_papers_table(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_all(folder / "data")
    assert main(["data", "all", "--data-dir", "data", "--no-verify", "--stats", "-o", "out"]) == 0
    rows = capfd.readouterr().out.splitlines()[2:]
    names = [row.split("|")[1].strip() for row in rows[::2]]
    assert names == ["go-emotions[min3]", "ufet[min2]", "reuters[min2]", "kp20k[absent,min3]"]
    assert all("| paper |" in row for row in rows[1::2])
    assert sorted(path.name for path in Path("out").iterdir()) == ["go-emotions", "kp20k", "reuters", "ufet"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["imdb"], "unknown dataset 'imdb'; use one of go-emotions, ufet, reuters, kp20k"),
        (["ufet[min0]"], "ufet has no filter 'min0'"),
        (["ufet", "--data-dir", "."], "cannot write to out.jsonl: it is a file; name a folder"),
        (["ufet", "-o", "sets"], "ufet needs the folder of its files (--data-dir, data_dir)"),
        (["ufet", "-o", "sets", "--data-dir", "."], "Ultra-Fine Entity Typing is not in .; expected train.json"),
        (["ufet", "-o", "sets", "--data-dir", "nowhere"], "there is no folder nowhere; expected train.json"),
        (["ufet", "-o", "sets", "--data-dir", ".", "--download"], "not both"),
        (["ufet", "-o", "sets", "--download"], "is not available on the Hugging Face Hub"),
        (["go-emotions", "-o", "sets", "--data-dir", "goemotions"], "skip the check with --no-verify"),
        (
            ["go-emotions[train9]", "-o", "sets", "--data-dir", "goemotions", "--no-verify"],
            "requires 9 training examples, but there are only 3",
        ),
        (
            ["go-emotions", "-o", "out.jsonl/sets", "--data-dir", "goemotions", "--no-verify"],
            "cannot create the folder out.jsonl/sets: Not a directory",
        ),
    ],
)
def test_calls_that_make_no_sense_are_refused(
    arguments: list[str], message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_go_emotions(folder / "goemotions")
    assert_refused("data", arguments, message, folder, capfd)
