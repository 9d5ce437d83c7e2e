"""Mistakes and mishaps end in one clear line."""

import json
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.sample import sample_examples
from tests.conftest import write_examples
from tests.models.killed import run_killed


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path / "few.jsonl", sample_examples(20, seed=1))
    return tmp_path


def refused(capfd: pytest.CaptureFixture[str]) -> str:
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def test_more_orders_than_memory_can_hold(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["augment", "few.jsonl", "-o", "out.jsonl", "--orders", str(10**15)]) == 2
    assert refused(capfd) == "setaug augment: not enough memory; try fewer --orders\n"
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_not_inspected(content: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("empty.jsonl").write_text(content)
    assert main(["inspect", "empty.jsonl", "--html", "page.html"]) == 2
    assert refused(capfd) == "setaug inspect: empty.jsonl contains no examples.\n"
    assert not Path("page.html").exists()


@pytest.mark.parametrize("option", ["--system", "--template", "--separator", "--carry"])
def test_texts_of_options_must_be_utf8(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    broken = b"\xff{text}".decode(errors="surrogateescape")  # as the system passes such an argument
    assert main(["augment", "few.jsonl", "-o", "out.jsonl", "--format", "chat", option, broken]) == 2
    assert refused(capfd) == f"setaug augment: {option} is not valid UTF-8: b'\\xff{{text}}'.\n"


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_resume_is_advised_only_where_there_is_something_to_resume(
    has_checkpoint: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        if has_checkpoint:
            place = Path("run/checkpoints/checkpoint-3")
            place.mkdir(parents=True)
            (place / "complete").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("setaug.cli.train._check_input", stop)
    assert main(["train", "few.jsonl", "--model", "tiny", "-o", "run"]) == 130
    advice = (
        "continue from the last checkpoint with --resume"
        if has_checkpoint
        else "there is no checkpoint yet; run the same command to start over"
    )
    assert refused(capfd) == f"setaug train: interrupted; {advice}\n"


@pytest.mark.parametrize("kilobytes", [4, 200])
def test_a_disk_that_is_full_while_training(kilobytes: int) -> None:
    command = ["train", "few.jsonl", "--model", "tiny", "--epochs", "1", "-o", "run"]
    assert run_killed(command, f"room {kilobytes * 1024}", Path("log")) == 2
    told = Path("log").read_text()
    assert "Traceback" not in told
    assert told.splitlines()[-1].startswith("setaug train: ")
    assert not Path("run/setaug.json").exists()


MISTAKES = {
    "inspect few.jsonl --text-field body": "If it has another name, pass --text-field.",
    "inspect few.jsonl --labels-field tags": "If it has another name, pass --labels-field.",
    "inspect semicolons.csv": "columns must be separated by commas in .csv and by tabs in .tsv files, not by ';'.",
    "inspect latin.csv": "invalid UTF-8 in b'caf\\xe9'; convert the file to UTF-8.",
    "inspect latin.jsonl": "convert the file to UTF-8.",
    "inspect array.json": "JSON lines have one object per line, not an array of them.",
    "inspect pretty.json": "JSON lines have one object per line, not an array of them: [",
    "inspect few.jsonl --top 0": "top must be a positive integer, got 0.",
    "inspect few.jsonl --top -3": "top must be a positive integer, got -3.",
    "evaluate few.jsonl few.jsonl --worst -1": "worst must be an integer of at least 0, got -1.",
    "demo few.jsonl": "cannot write few.jsonl: File exists.",
    "serve --port 99999": "port must be 0-65535.",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_told_with_what_to_do(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("semicolons.csv").write_text("text;labels\na;b\n")
    Path("latin.csv").write_bytes(b"text,labels\ncaf\xe9,b\n")
    Path("latin.jsonl").write_bytes(b'{"text": "caf\xe9", "labels": []}\n')
    Path("array.json").write_text('[{"text": "a", "labels": ["x"]}]')
    Path("pretty.json").write_text('[\n  {"text": "a",\n   "labels": ["x"]}\n]\n')
    assert main(command.split()) == 2
    said = refused(capfd)
    assert said.rstrip("\n").endswith(MISTAKES[command]) or MISTAKES[command] in said
    assert ".." not in said.replace("...", "")
    assert not Path("out.jsonl").exists()


def test_a_field_to_carry_that_the_first_rows_lack_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["augment", "few.jsonl", "-o", "out.jsonl", "--carry", "typo", "labels", "text"]) == 0
    said = capfd.readouterr().err
    assert 'rows has the field "typo", which is to be carried; the first has "text"' in said
    assert said.count("to be carried") == 1


def test_a_run_without_dev_data_or_without_a_checkpoint_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    train = ["train", "few.jsonl", "--model", "tiny", "--epochs", "1"]
    assert main([*train, "--resume", "-o", "run"]) == 0
    said = capfd.readouterr().err
    assert "there is no run in run to resume; training starts from the beginning\n" in said
    kept = "no dev data (add --dev FILE, or --held-out 0.2), so the last checkpoint was kept\n"
    assert kept in said
    assert "nothing is calibrated, and decoder, companion count the same\n" in said
    assert main(["predict", "run", "few.jsonl", "-o", "scored.jsonl"]) == 0
    assert "probabilities" in Path("scored.jsonl").read_text()

    assert main([*train, "--recipe", "paper", "-o", "paper"]) == 0
    said = capfd.readouterr().err
    assert kept in said
    assert "predict returns the sets that the model writes; --choose expected-f1 uses probabilities\n" in said
    assert main(["predict", "paper", "few.jsonl", "-o", "out.jsonl"]) == 0
    assert "probabilities" not in Path("out.jsonl").read_text()
    assert main(["predict", "paper", "few.jsonl", "-o", "scored.jsonl", "--choose", "expected-f1"]) == 0
    assert "probabilities" in Path("scored.jsonl").read_text()


def test_a_name_that_is_nearly_right_is_suggested(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("there is no such model")

    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", fail)
    assert main(["train", "few.jsonl", "--model", "tinny", "-o", "run"]) == 2
    assert capfd.readouterr().err.endswith("cannot load tinny: there is no such model. Did you mean tiny?\n")


def test_a_split_without_dev_rows_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    write_examples(Path("one.jsonl"), sample_examples(1))
    assert main(["split", "one.jsonl", "-o", "parts"]) == 0
    said = capfd.readouterr().err
    assert "warning: no dev rows: too few different texts for --dev 0.1\n" in said
    assert "warning: no test rows: too few different texts for --test 0.1\n" in said


def test_data_without_labels_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    Path("empty.jsonl").write_text('{"text": "a", "labels": []}\n' * 20)
    assert main(["inspect", "empty.jsonl", "--no-diagnosis"]) == 0
    assert capfd.readouterr().err.endswith("warning: no example has a label; check --labels-field\n")


def test_joined_labels_are_told_by_every_command_that_reads_labels(capfd: pytest.CaptureFixture[str]) -> None:
    rows = [{"text": one.text, "labels": [",".join([*one.labels, "x"])]} for one in sample_examples(20)]
    Path("joined.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    few = [json.loads(line)["labels"] for line in Path("few.jsonl").read_text().splitlines()]
    Path("joined.csv").write_text("labels\n" + "".join(f'"{",".join([*labels, "x"])}"\n' for labels in few))
    for command in (
        "augment joined.jsonl -o out.jsonl",
        "inspect joined.jsonl",
        "evaluate joined.jsonl joined.jsonl",
        "evaluate joined.csv few.jsonl",
        "prompt few.jsonl --train joined.jsonl --model any --dry-run",
    ):
        assert main(command.split()) == 0
        assert "warning: most labels look like several labels in one" in capfd.readouterr().err
