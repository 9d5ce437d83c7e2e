"""Experiments from the first cell to the page."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from setaug.cli import main
from setaug.errors import FileError
from setaug.experiments import reproduction
from setaug.experiments.cells import read_results
from setaug.experiments.experiment import NAMES, read_experiment
from setaug.experiments.reproduction import CELLS, plan_groups, run_experiment
from setaug.experiments.runs import Setup, predictions_path
from tests.experiments.emotions import MadeUp, write_emotions

BOTH = {"encoder-decoder": "some/bart", "encoder": "some/bert", "language-model": "some/llm"}


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setattr(reproduction, "Trainings", MadeUp)
    monkeypatch.setattr(Setup, "check_models", lambda self: None)
    return Setup(data_dir=str(write_emotions(tmp_path / "data")), verify=False, models=BOTH)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "keyphrases"])
def test_pages_have_all_rows(name: str, setup: Setup, tmp_path: Path) -> None:
    page, paths = run_experiment(name, setup, tmp_path / "out", data=["go-emotions[min2]"], command="setaug ...")
    text = page.as_markdown()
    for row in read_experiment(name).rows:
        assert f"| {row.name} |" in text
    assert "`setaug ...`" in text
    assert "Not run" not in text
    assert all(path.stat().st_size for path in paths)
    suffixes = [".md", ".html", ".svg", ".png"] if name == "permutations" else [".md", ".html"]
    assert [path.suffix for path in paths] == suffixes


def test_the_paper_stands_beside_a_part_of_its_data(setup: Setup, tmp_path: Path) -> None:
    page, _ = run_experiment("main", setup, tmp_path / "out", data=["go-emotions[train20,min3]"])
    text = page.as_markdown()
    assert "go-emotions[min3,train20]: macro F | paper |" in text
    assert "| 30.0 |" in text
    assert "| 25.7 (micro) |" in text
    assert "(36.7)" in text
    assert "20 training and" in text


def test_a_plain_classifier_that_wins_is_named_and_the_best_is_bold(setup: Setup, tmp_path: Path) -> None:
    page, _ = run_experiment("main", setup, tmp_path / "out", data=["go-emotions"])
    assert "On go-emotions a plain classifier wins: TF-IDF, linear is" in page.as_markdown()
    overview = page.tables[0]
    assert [line.cells[0] for line in overview.lines if line.best] == ["TF-IDF, linear"]
    details = {line.cells[0]: line.cells for line in page.tables[1].lines}
    assert details["set search"][-3:] == ["", "", ""] or float(details["set search"][-3]) <= 0
    difference, paired, proportions = details["setaug + size"][-3:]
    assert float(difference) > 0
    assert paired < "0.05"
    assert proportions


def test_changes_are_relative_to_the_row_that_is_named(setup: Setup, tmp_path: Path) -> None:
    page, _ = run_experiment("ablation", setup, tmp_path / "out", data=["go-emotions"])
    lines = {line.cells[0]: line.cells for line in page.tables[0].lines}
    assert lines["setaug + size"][2] == ""
    assert lines["random orders"][2].startswith("-")
    assert lines["random orders"][2].endswith(" %")


def test_keyphrases_stand_beside_one2set(setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emotions = setup.load("go-emotions")
    monkeypatch.setattr(Setup, "load", lambda self, name: emotions)
    page, _ = run_experiment("keyphrases", setup, tmp_path / "out")
    text = page.as_markdown()
    assert "| One2Set, as the paper quotes it |  | 39.2 |" in text
    assert "(5.3)" in text
    assert "difference" not in text


def test_what_is_finished_is_not_run_again(setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = run_experiment("size", setup, tmp_path / "out", data=["go-emotions"])

    def fail(*_: object) -> None:
        raise AssertionError("this cell is finished")

    monkeypatch.setattr(MadeUp, "__call__", fail)
    after, _ = run_experiment("size", setup, tmp_path / "out", data=["go-emotions"])
    assert after.as_markdown() == before.as_markdown()
    report, _ = run_experiment("size", setup, tmp_path / "out", data=["go-emotions"], only_report=True)
    assert report.as_html() == before.as_html()


def test_experiments_share_cells(setup: Setup, tmp_path: Path) -> None:
    run_experiment("main", setup, tmp_path / "out", data=["go-emotions"])
    told: list[dict[str, Any]] = []
    run_experiment("size", setup, tmp_path / "out", data=["go-emotions"], tell=told.append)
    assert told == []


def test_some_rows_can_be_run_and_the_page_names_the_others(setup: Setup, tmp_path: Path) -> None:
    page, _ = run_experiment("size", setup, tmp_path / "out", data=["go-emotions"], rows=["setaug + size"])
    assert len(read_results(tmp_path / "out" / CELLS)) == 3
    assert "Not run: seq2seq; seq2seq + size; random + size; setaug + size, constrained." in page.as_markdown()
    with pytest.raises(ValueError, match="size has no row 'setaug'; there are seq2seq; seq2seq \\+ size; "):
        run_experiment("size", setup, tmp_path / "out", data=["go-emotions"], rows=["setaug"])


def test_seeds_that_only_one_row_has_are_not_compared(setup: Setup, tmp_path: Path) -> None:
    one_seed = Setup(data_dir=setup.data_dir, verify=False, models=BOTH, seeds=(1,))
    two_seeds = Setup(data_dir=setup.data_dir, verify=False, models=BOTH, seeds=(1, 2))
    run_experiment("size", one_seed, tmp_path / "out", data=["go-emotions"])
    page, _ = run_experiment("main", two_seeds, tmp_path / "out", data=["go-emotions"], rows=["setaug", "seq2seq"])
    seeds = {line.cells[0]: line.cells[-4] for line in page.tables[1].lines}
    assert (seeds["setaug"], seeds["setaug + size"]) == ("2", "1")


def test_lost_predictions_are_named(setup: Setup, tmp_path: Path) -> None:
    run_experiment("reversed", setup, tmp_path / "out", data=["go-emotions"])
    cell = json.loads((tmp_path / "out" / CELLS).read_text().splitlines()[0])["cell"]
    predictions_path(tmp_path / "out", cell).unlink()
    with pytest.raises(FileError, match=r"\.jsonl\.gz is missing, which belongs to a line of"):
        run_experiment("reversed", setup, tmp_path / "out", data=["go-emotions"], only_report=True)


def test_models_go_once_all_of_their_cells_are_kept(setup: Setup, tmp_path: Path) -> None:
    run_experiment("size", setup, tmp_path / "out", data=["go-emotions"])
    assert (tmp_path / "out" / "forgotten").read_text().split() == ["seq2seq", "seq2seq", "random", "setaug"] * 3


def test_a_report_of_nothing_is_refused(setup: Setup, tmp_path: Path) -> None:
    run_experiment("size", setup, tmp_path / "out", data=["go-emotions"])
    other = Setup(data_dir=setup.data_dir, verify=False, models=BOTH, training={"epochs": 9})
    before = (tmp_path / "out" / "size.md").read_text()
    with pytest.raises(FileError, match=r"nothing of size is finished in .* with these data sets, models and settings"):
        run_experiment("size", other, tmp_path / "out", data=["go-emotions"], only_report=True)
    assert (tmp_path / "out" / "size.md").read_text() == before


def test_results_of_another_version_are_refused(setup: Setup, tmp_path: Path) -> None:
    run_experiment("size", setup, tmp_path / "out", data=["go-emotions"])
    path = tmp_path / "out" / CELLS
    path.write_text(path.read_text().replace('"n_train"', '"n_trained"'))
    with pytest.raises(FileError, match="a result has no n_train: another version of setaug wrote it"):
        run_experiment("size", setup, tmp_path / "out", data=["go-emotions"], only_report=True)


def test_the_first_seed_comes_first(setup: Setup) -> None:
    groups = plan_groups(read_experiment("ablation"), setup, ["go-emotions", "go-emotions[min2]"])
    seeds = [group[0]["seed"] for group in groups]
    assert seeds == sorted(seeds, key=[15143, 27122, 999888].index)


def test_a_run_that_was_killed_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    data = write_emotions(tmp_path / "data")

    def call(out: str) -> list[str]:
        rows = ["seq2seq", "seq2seq, constrained", "setaug + size", "TF-IDF, linear"]
        settings = ["--model", "tiny", "--epochs", "1", "--seeds", "1", "--workers", "1", "--no-verify"]
        place = ["--data-dir", str(data), "--data", "go-emotions[min2]", "-o", str(tmp_path / out)]
        return [sys.executable, "-m", "setaug", "reproduce", "main", *settings, *place, "--rows", *rows]

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(call("whole"), check=True, capture_output=True, env=environment, timeout=300)
    process = subprocess.Popen(call("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    cells = tmp_path / "killed" / CELLS
    until = time.monotonic() + 240
    while not (cells.exists() and cells.read_bytes().count(b"\n") >= 1) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = cells.read_text().splitlines()
    assert 1 <= len(finished) < 4
    subprocess.run(call("killed"), check=True, capture_output=True, env=environment, timeout=300)
    lines = cells.read_text().splitlines()
    assert lines[: len(finished)] == finished
    assert len(lines) == 4
    for name in ("main.md", "main.html"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "whole" / name).read_text()


def test_a_dry_run_runs_nothing(setup: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    call = ["reproduce", "ablation", "--data-dir", str(setup.data_dir), "--no-verify", "--data", "go-emotions"]
    call += ["--model", "some/bart", "-o", str(out), "--workers", "2"]
    assert main([*call, "--dry-run"]) == 0
    listed = capsys.readouterr().out
    assert "go-emotions, setaug, with size, n = 2, seed 15143: 2 cells, 0 finished; about" in listed
    assert "ablation: 30 cells of 15 trainings, 30 cells to run; about" in listed
    assert "a guess: nothing is finished yet" in listed
    assert not out.exists()
    run_experiment("size", setup, out, data=["go-emotions"])
    assert main([*call, "--dry-run"]) == 0
    assert "30 cells, 18 finished" not in (listed := capsys.readouterr().out)
    assert "with 2 at once (by the cells that are finished)" in listed
    assert "; finished\n" in listed
