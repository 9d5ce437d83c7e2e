"""setaug reproduce on the command line."""

import argparse
import re
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.cli.reproduce import NAMES, _command, add_arguments
from setaug.experiments.reproduction.experiment import EXPERIMENTS, GRAPHS
from tests.cli.refusals import assert_refused
from tests.experiments.emotions import write_emotions

MODEL = ["--model", "some/bart"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["main", *MODEL], "give the folder of the datasets (--data-dir), or download them (--download)."),
        (["main", "--data-dir", "data"], "give an encoder-decoder to train"),
        (["main", *MODEL, "--data-dir", "data", "--data", "imdb"], "unknown dataset 'imdb'"),
        (
            ["main", *MODEL, "--data-dir", "data", "--data", "kp20k"],
            "main needs closed labels; use go-emotions, ufet, reuters.",
        ),
        (["keyphrases", *MODEL, "--data-dir", "data", "--data", "ufet"], "keyphrases needs keyphrases; use kp20k."),
        (["main", *MODEL, "--data-dir", "data", "--epochs", "0"], "epochs must be an integer of at least 1, got 0."),
        (["main", *MODEL, "--data-dir", "data", "--classifier-epochs", "0"], "epochs must be an integer"),
        (["main", *MODEL, "--data-dir", "data", "--seeds", "-1"], "seed must be an integer below 2**32, got -1."),
        (["main", *MODEL, "--data-dir", "data", "--seeds", "1", "1"], "--seeds has a duplicate."),
        (["main", *MODEL, "--data-dir", "data", "--samples", "0"], "--samples must be at least 1, got 0."),
        (["main", *MODEL, "--data-dir", "data", "--workers", "0"], "--workers must be at least 1, got 0."),
        (["main", *MODEL, "--data-dir", "data", "--rows", "x"], "main has no row 'x'; use one of set search; "),
        (["main", *MODEL, "--data-dir", "data", "--download"], "download"),
        (["main", *MODEL, "--data-dir", "data", "--data", "ufet"], "types.txt"),
        (["main", *MODEL, "--data-dir", "data", "--report", "--dry-run"], "--report and --dry-run cannot be combined."),
    ],
)
def test_calls_that_make_no_sense_are_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused("reproduce", arguments, message, tmp_path, capfd)


def test_missing_data_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "graphs", "--data-dir", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert "emotions.txt" in error


def test_help_names_all_experiments() -> None:
    assert {*EXPERIMENTS, GRAPHS} == NAMES.keys()


def test_the_call_on_a_page_names_no_place(tmp_path: Path) -> None:
    folder = tmp_path / "my-bart"
    folder.mkdir()
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    call = ["main", "--data-dir", str(tmp_path), "--model", f"{folder}/", "--encoder", "some/bert", "--workers", "2"]
    options = parser.parse_args([*call, "--data", "ufet[min2]", "--seeds", "1", "2", "--learning-rate", "5e-4"])
    assert re.sub("@[0-9a-f]{8} ", "@HASH ", _command("main", options)) == (
        "setaug reproduce main --data-dir DIR --data 'ufet[min2]' --model my-bart@HASH --encoder some/bert "
        "--seeds 1 2 --learning-rate 0.0005"
    )
    options = parser.parse_args(["main", "--download", *MODEL, "--rows", "setaug + size", "seq2seq"])
    assert _command("main", options).endswith(" --rows 'setaug + size' seq2seq")
    options = parser.parse_args(["graphs", "--download"])
    assert _command("graphs", options) == "setaug reproduce graphs --download"


def test_all_experiments_take_what_they_are_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_emotions(tmp_path / "data")
    call = ["reproduce", "all", "--data-dir", str(data), "--no-verify", "--data", "go-emotions", *MODEL, "--dry-run"]
    for llm in ([], ["--llm", "any"]):
        assert main([*call, *llm, "-o", str(tmp_path / "out")]) == 0
        listed = capsys.readouterr().out
        for name in NAMES:
            is_about = name != "keyphrases" and (name != "few-shot" or bool(llm))
            assert (f"\n{name}: " in f"\n{listed}") == is_about
