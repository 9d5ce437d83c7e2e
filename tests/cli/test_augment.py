"""``setaug augment``: options, messages, exit codes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.sample import sample_examples


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    rows = [{"id": e.id, "text": e.text, "labels": e.labels} for e in sample_examples(100)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "setaug", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=600)


def test_it_writes_pairs_and_a_summary(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = source.with_name("pairs.jsonl")
    assert main(["augment", str(source), "-o", str(target), "--orders", "3", "--seed", "1"]) == 0
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert len(rows) == 400
    assert rows[0].keys() == {"prompt", "completion"}
    output = capsys.readouterr()
    assert output.out == ""
    assert "100 examples with 50 distinct labels: wrote 400 pairs" in output.err
    assert "of the sets have an edge; mean log2 number of allowed orders" in output.err


def test_every_option_reaches_the_pairs(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = source.with_name("pairs.jsonl")
    options = (
        "--ordering frequency --orders 1 --no-size --separator ; --format columns --columns x y --carry id --quiet"
    )
    assert main(["augment", str(source), "-o", str(target), "--template", "tags: {text}", *options.split()]) == 0
    first, second = (json.loads(line) for line in target.read_text().splitlines()[:2])
    assert list(first) == ["x", "y", "id"]
    assert first["x"].startswith("tags: ")
    assert sorted(first["y"].split(";")) == sorted(second["y"].split(";"))
    assert capsys.readouterr().err == ""


def test_a_chat_with_other_fields_comes_with_a_word_about_openai(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    word = 'OpenAI accepts only "messages" in a row: omit --carry for OpenAI files'
    for options, is_told in ([], False), (["--carry", "id"], True):
        assert main(["augment", str(source), "-o", os.devnull, "--format", "chat", *options]) == 0
        assert (word in capsys.readouterr().err) == is_told


def test_it_reads_standard_input_and_writes_standard_output() -> None:
    lines = b'{"text": "a", "labels": ["x", "x"]}\n{\n'
    result = run("augment", "-", "--orders", "0", "--skip-bad", stdin=lines)
    assert result.returncode == 0
    assert result.stdout == b'{"prompt":"a","completion":"1 | x"}\n'
    assert b"merged 1 duplicate label" in result.stderr
    assert b"skipped 1 bad line:\n  line 2 of standard input: not valid JSON" in result.stderr


def test_a_device_takes_json_lines(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["augment", str(source), "-o", os.devnull]) == 0
    assert "wrote 300 pairs" in capsys.readouterr().err
    assert not os.path.isfile(os.devnull)


def test_a_bad_line_is_one_line_on_standard_error_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "a", "labels": []}\n{"text": "a", "labels": 3}\n')
    result = run("augment", tmp_path / "bad.jsonl", "-o", tmp_path / "out.jsonl")
    assert result.returncode == 2
    assert result.stderr.decode() == (
        'setaug augment: line 2 of bad.jsonl: "labels" must be a list of strings, got 3.\n'
    )
    assert os.listdir(tmp_path) == ["bad.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "cannot read missing.jsonl: No such file or directory."),
        (["TRAIN", "-o", "no/such/folder.jsonl"], "cannot write no/such/folder.jsonl: No such file or directory."),
        (["TRAIN", "-o", "."], "cannot infer the file format from the name"),
        (["TRAIN", "-o", "TRAIN"], "the output would replace the input"),
        (["TRAIN", "--min-ratio", "0.5"], "min_ratio must be at least 1, got 0.5."),
        (["TRAIN", "--orders", "-1"], "n_orders must be from 0 to"),
        (["TRAIN", "--template", "x"], "template must contain {text} exactly once"),
        (["TRAIN", "--format", "columns"], "requires two column names"),
        (["TRAIN", "--system", "Be brief."], "only chat formats have a system message"),
        (["TRAIN", "--carry", "prompt"], 'the field "prompt" cannot be carried'),
        (["TRAIN", "--separator", "a"], "separator must not start with a letter"),
        (
            ["TRAIN", "--written-as", "json", "--separator", ","],
            "written_as='json' does not support a separator, got ','.",
        ),
        (["TRAIN", "--delimiter", ""], "--delimiter must not be empty."),
        (["TRAIN", "--text-field", "body"], 'line 1 of train.jsonl: field "body" is missing; the row has "id", "text"'),
        (["TRAIN", "-o", "out.csv", "--format", "chat"], "chat messages do not fit into a CSV cell"),
        (["TRAIN", "-o", "out.csv", "--format", "chat", "--shards", "2"], "chat messages do not fit into a CSV cell"),
        (["TRAIN", "TRAIN", "-o", "TRAIN"], "the output would replace the input"),
        ([".", "-o", "pairs.jsonl"], "the output would be inside the input folder .; choose another folder."),
        (["TRAIN", "--shards", "2"], "standard output cannot be sharded"),
        (["TRAIN", "-o", "out.jsonl", "--shards", "0"], "shards must be a positive integer, got 0."),
        (["TRAIN", "-o", "out.jsonl", "--workers", "2"], "--workers is for --engine ray."),
        (["TRAIN", "-o", "out.jsonl", "--engine", "ray", "--workers", "0"], "workers must be a positive integer"),
        (["-", "-o", "out.jsonl", "--engine", "ray"], "standard input cannot be read by several workers"),
        (["TRAIN", "--engine", "ray"], "standard output cannot be sharded"),
        (["nowhere://x.jsonl"], "cannot reach nowhere://x.jsonl: Protocol not known: nowhere"),
    ],
)
def test_mistakes_get_one_clear_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    source: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(source.parent)
    assert main(["augment", *(argument.replace("TRAIN", source.name) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("setaug augment: ")
    assert message in error
    assert error.count("\n") == 1
    assert os.listdir(source.parent) == ["train.jsonl"]


def test_many_inputs_give_many_shards(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "b.jsonl").write_bytes(source.read_bytes())
    target = tmp_path / "out" / "pairs.jsonl"
    assert main(["augment", str(source), str(folder), "-o", str(target), "--shards", "3"]) == 0
    assert "200 examples with 50 distinct labels: wrote 600 pairs" in capsys.readouterr().err
    assert sorted(os.listdir(target.parent)) == [f"pairs-0000{k}-of-00003.jsonl" for k in range(3)]
    assert main(["inspect", str(source), str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_sets"] == 200


def test_a_reader_that_goes_away_is_no_traceback(source: Path) -> None:
    command = f"{sys.executable} -m setaug augment {source} --orders 2000 | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=600)
    assert result.stdout.count(b"\n") == 1
    assert b"Traceback" not in result.stderr


def test_a_run_that_is_ended_leaves_nothing_behind(source: Path) -> None:
    target = source.with_name("pairs.jsonl")
    command = [sys.executable, "-m", "setaug", "augment", str(source), "-o", str(target), "--orders", "2000000"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(os.listdir(source.parent)) == 1:
        time.sleep(0.005)
    process.terminate()
    assert process.wait(timeout=600) == 143
    assert os.listdir(source.parent) == ["train.jsonl"]


def test_bad_lines_are_counted_though_nothing_else_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.jsonl").write_text('{"text":"a","labels":["x"]}\nbad\n')
    assert main(["augment", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl"), "--skip-bad", "-q"]) == 0
    assert capsys.readouterr().err.startswith("skipped 1 bad line:\n  line 2 of in.jsonl: not valid JSON")


@pytest.mark.parametrize("command", ["augment", "inspect"])
@pytest.mark.parametrize(
    ("cell", "remedy"),
    [('"joy,love"', "separate them with --delimiter ','"), ("\"['joy', 'love']\"", "write them as a JSON list")],
)
def test_labels_that_look_joined_are_warned_of(
    command: str, cell: str, remedy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in.csv"
    file.write_text(f"text,labels\na,{cell}\nb,fear\nc,{cell.replace('joy', 'pride')}\n")
    output = ["-o", str(tmp_path / "out.jsonl"), "-q"] if command == "augment" else ["--no-diagnosis"]
    assert main([command, str(file), *output]) == 0
    warning = capfd.readouterr().err
    assert "warning: most labels look like several labels in one" in warning
    assert remedy in warning


def test_a_comma_in_few_labels_is_no_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "in.csv"
    file.write_text('text,labels\na,"Smith, John;person"\nb,place;river\n')
    assert main(["augment", str(file), "-o", str(tmp_path / "out.jsonl"), "-q"]) == 0
    assert capfd.readouterr().err == ""
