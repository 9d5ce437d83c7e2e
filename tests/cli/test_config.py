"""``setaug train --config``: what a file may say, and what wins."""

import argparse
import json
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.cli import train as command
from setaug.cli.shared.config import parse_options
from setaug.errors import SetAugError
from tests.conftest import EXAMPLES, write_examples

OPTIONS = (
    ("train.jsonl", "-o", "run"),
    ("train.jsonl", "-o", "run", "--seeds", "--no-size", "--separator", ' "\\\x7f🎉|', "--resume"),
    ("in put.csv", "-o", "run", "--learning-rate", "1e-4", "--seeds", "1", "2", "--model", "a/b", "--lora", "8"),
    ("-", "-o", "run", "--report-to", "tensorboard", "wandb", "--fresh-orders", "--no-fresh-orders", "--min-pmi", "2"),
)


def parse(*arguments: str) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="setaug train")
    command.add_arguments(parser)
    return vars(parse_options(parser, arguments))


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_saved_options_are_read_back(options: tuple[str, ...], tmp_path: Path) -> None:
    path = str(tmp_path / "run.toml")
    assert main(["train", *options, "--save-config", path]) == 0
    assert parse("--config", path) == {**parse(*options), "config": path}


def test_all_options_are_listed_without_an_input(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--save-config", "-"]) == 0
    lines = capfd.readouterr().out.splitlines()
    for line in ("# input = INPUT", "# epochs = N", '# method = "setaug"', '# template = "{text}"', "# resume = false"):
        assert line in lines
    assert not [line for line in lines if line and not line.startswith("#")]


def test_the_command_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('input = "a.jsonl"\noutput = "run"\nepochs = 5\nsize = true\nmin_ratio = 2\nseeds = [1]\n')
    found = parse("b.jsonl", "--config", str(path), "--epochs", "7", "--no-size", "--seeds", "2", "3")
    wanted = {"input": "b.jsonl", "output": "run", "epochs": 7, "size": False, "min_ratio": 2, "seeds": [2, 3]}
    assert {name: found[name] for name in wanted} == wanted


def test_what_neither_names_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text('input = "a.jsonl"\n')
    with pytest.raises(SystemExit) as ended:
        main(["train", "--config", str(tmp_path / "run.toml")])
    assert ended.value.code == 2
    assert "the following arguments are required: -o/--output" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        main(["train"])
    assert "the following arguments are required: INPUT, -o/--output" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("epoch = 3", "there is no option 'epoch'; did you mean 'epochs'?"),
        ("learning-rat = 3", "there is no option 'learning-rat'; did you mean 'learning-rate'?"),
        ("[training]\nepochs = 3", "there is no option 'training'; "),
        ("config = 'other.toml'", "there is no option 'config'; "),
        ("zzz = 3", "there is no option 'zzz'; setaug train --save-config - lists all."),
        ("epochs = 'many'", "epochs must be an integer, got 'many'."),
        ("epochs = 1.5", "epochs must be an integer, got 1.5."),
        ("epochs = true", "epochs must be an integer, got True."),
        ("warmup = 1", "there is no option 'warmup'"),
        ("size = 1", "size must be true or false, got 1."),
        ("resume = 'yes'", "resume must be true or false, got 'yes'."),
        ("seeds = 3", "seeds must be a list, got 3."),
        ("report-to = ['paper']", "report-to must be one of tensorboard, wandb, mlflow, got 'paper'."),
        ("method = 'best'", "method must be one of setaug, seq2seq"),
        ("[dev]\nepochs = 3", "dev must be a string, got a table."),
        ("epochs = ", "is not valid TOML: Invalid value"),
    ],
)
def test_mistakes_are_one_line(text: str, problem: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text + "\n")
    assert main(["train", "a.jsonl", "-o", str(tmp_path / "run"), "--config", str(path)]) == 2
    error = capfd.readouterr().err
    assert error.startswith(f"setaug train: {path}")
    assert problem in error
    assert error.count("\n") == 1


def test_files_that_are_not_there_or_no_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "a.jsonl", "-o", "run", "--config", str(tmp_path / "no.toml")]) == 2
    assert capfd.readouterr().err.endswith("no.toml: No such file or directory.\n")
    (tmp_path / "no.toml").write_bytes(b"\xff")
    with pytest.raises(SetAugError, match="is not valid TOML"):
        parse("--config", str(tmp_path / "no.toml"))


def test_a_run_is_trained_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path / "train.jsonl", EXAMPLES[:8])
    options = ["train.jsonl", "-o", "run", "--model", "mini", "--epochs", "9", "--lora", "2"]
    assert main(["train", *options, "--save-config", "run.toml"]) == 0
    assert not Path("run").exists()
    assert main(["train", "--config", "run.toml", "--epochs", "1"]) == 0
    settings = json.loads(Path("run/setaug.json").read_text())["settings"]
    assert (settings["model"], settings["training"]["epochs"], settings["training"]["lora_rank"]) == ("mini", 1, 2)
