"""Labels, texts and file names cannot do anything to a terminal, whichever command prints them."""

import json
import unicodedata
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.cli import main
from setaug.prompting.endpoint import Teller
from setaug.terminal import json_line, printable
from tests.strategies import any_text

NASTY = "\x1b]0;owned\x07\x9b31m\u202egnp\u2066\u200f\x7f\x08\u2028"
LABELS = [f"joy{NASTY}", f"love\nmicro F1 100{NASTY}", f"fear\r{NASTY}"]
CONTROLS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - {"\n"}
DIRECTIONS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def assert_harmless(text: str) -> None:
    assert not CONTROLS & set(text)
    assert not DIRECTIONS & {unicodedata.bidirectional(char) for char in text}
    assert not {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029"} & set(text)


@given(st.text() | any_text)
def test_a_line_stays_one_line_and_is_harmless(text: str) -> None:
    line = printable(text)
    assert_harmless(line)
    assert "\n" not in line
    line.encode()


@given(st.dictionaries(any_text, any_text | st.integers(0, 9)))
def test_json_means_the_same(row: dict[str, object]) -> None:
    assert json.loads(json_line(row)) == orjson.loads(json_line(row)) == row
    assert_harmless(json_line(row).decode())


def test_ordinary_text_stays_as_it_is() -> None:
    text = "naïve café | 日本 🎉 עברית العربية \\n ~"
    assert printable(text) == text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)
    sets = [LABELS, LABELS[:2], LABELS[1:], LABELS[:1]] * 8
    rows = [{"id": f"{at}{NASTY}", "text": NASTY, "labels": labels} for at, labels in enumerate(sets)]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bad = {"text": NASTY, "labels": NASTY}
    (tmp_path / "bad.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, bad]))
    (tmp_path / "vocabulary.txt").write_text("".join(f"{label}\n" for label in LABELS))
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "gold.jsonl"],
        ["inspect", "gold.jsonl", "--json"],
        ["inspect", "gold.jsonl", "--set", *LABELS, "new\x1b[2J"],
        ["inspect", "gold.jsonl", "--set", *LABELS, "--json"],
        ["inspect", "bad.jsonl", "--skip-bad"],
        ["evaluate", "gold.jsonl", "gold.jsonl", "--per-label"],
        ["evaluate", "gold.jsonl", "gold.jsonl", "--per-label", "--json"],
        ["compare", "gold.jsonl", "gold.jsonl", "gold.jsonl", "--rounds", "10"],
        ["compare", "gold.jsonl", "gold.jsonl", "gold.jsonl", "--rounds", "10", "--json"],
        ["augment", "bad.jsonl", "--skip-bad", "-o", "pairs.jsonl"],
        ["prompt", "--train", "gold.jsonl", "gold.jsonl", "--model", NASTY, "--dry-run"],
        ["prompt", "--train", "gold.jsonl", "gold.jsonl", "--model", "m", "--dry-run", "--endpoint", "completion"],
    ],
    ids=lambda arguments: " ".join(word for word in arguments if word.isascii() and word.isprintable()),
)
def test_what_is_printed_is_harmless(arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    out, err = capfd.readouterr()
    assert out + err
    assert_harmless(out)
    assert_harmless(err)
    if "--json" in arguments:
        json.loads(out)


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", f"no{NASTY}.jsonl"],
        ["inspect", "bad.jsonl"],
        ["inspect", "gold.jsonl", "--graph", f"x{NASTY}"],
        ["inspect", "gold.jsonl", "--text-field", NASTY],
        ["evaluate", f"no{NASTY}.jsonl", "gold.jsonl"],
        ["evaluate", "gold.jsonl", "bad.jsonl"],
        ["compare", "gold.jsonl", f"no{NASTY}", "gold.jsonl"],
        ["predict", f"no{NASTY}", "gold.jsonl"],
        ["train", f"no{NASTY}", "--model", "tiny", "-o", "run"],
        ["prompt", "--train", f"no{NASTY}", "gold.jsonl", "--model", "m"],
        ["augment", "bad.jsonl"],
    ],
    ids=lambda arguments: " ".join(word for word in arguments if word.isascii() and word.isprintable()),
)
def test_errors_are_one_harmless_line(arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert_harmless(err)


def test_complaints_about_arguments_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["inspect", "a.jsonl", f"--{NASTY}"])
    assert_harmless(capsys.readouterr().err)


def test_what_a_server_says_is_harmless() -> None:
    said: list[str] = []
    Teller(said.append)(f"waiting: {NASTY}")
    assert_harmless(said[0])
