"""Experiments from stored results to the page, and interrupted runs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.errors import FileError
from setaug.experiments.cells import CELLS, Results, Row
from setaug.experiments.page import Page
from setaug.experiments.reproduction.experiment import EXPERIMENTS, QUOTED, read_experiment
from setaug.experiments.reproduction.reproduce import group_cells, make_plan, run_experiment
from setaug.experiments.reproduction.training_cells import Setup, predictions_path
from setaug.predictions import read_predictions
from tests.experiments.conftest import ROWS, reproduce_call
from tests.experiments.emotions import store_experiment

MODELS = {"encoder-decoder": "tiny", "encoder": "tiny", "language-model": "some/llm"}


@pytest.fixture
def setup(emotions_folder: Path) -> Setup:
    return Setup(data_dir=str(emotions_folder), verify=False, models=MODELS)


def report(name: str, setup: Setup, folder: Path, data: str = "go-emotions", rows: list[str] | None = None) -> Page:
    """Store results of an experiment, and return its page; nothing is left to run."""
    store_experiment(name, setup, folder, data, rows or ())
    page, paths = run_experiment(
        name, setup, folder, data=[data], rows=rows or (), command="setaug ...", on_result=_fail
    )
    suffixes = [".md", ".html", ".svg", ".png"] if name == "permutations" else [".md", ".html"]
    assert [path.suffix for path in paths] == suffixes
    assert all(path.stat().st_size for path in paths)
    return page


def _fail(row: Row) -> None:
    raise AssertionError("this cell is stored")


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in ("keyphrases", "curves", "likelihood")])
def test_pages_have_all_rows(name: str, setup: Setup, tmp_path: Path) -> None:
    text = report(name, replace(setup, seeds=(1,)), tmp_path, "go-emotions[min2]").as_markdown()
    for row in read_experiment(name).rows:
        assert row.method == QUOTED or f"| {row.name} |" in text
    assert "`setaug ...`" in text
    assert "Not run" not in text


def test_the_paper_stands_beside_a_part_of_its_data(setup: Setup, tmp_path: Path) -> None:
    text = report("main", setup, tmp_path, "go-emotions[min3,train10]").as_markdown()
    assert "go-emotions[min3,train10]: macro F | paper |" in text
    assert "| 30.0 |" in text
    assert "| 25.7 (samples F) |" in text
    assert "setaug + size over seq2seq, in the paper: +28 % (go-emotions[min3,train10]); on average +28 %." in text
    assert "| setaug + size, T5-11B in the paper |  | 50.9 |" in text
    assert "(36.7)" in text
    assert "10 training and" in text


def test_a_plain_classifier_that_wins_is_named_and_the_best_is_bold(setup: Setup, tmp_path: Path) -> None:
    page = report("main", setup, tmp_path)
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
    page = report("ablation", setup, tmp_path)
    lines = {line.cells[0]: line.cells for line in page.tables[0].lines}
    assert lines["setaug + size"][2] == ""
    assert lines["random orders"][2].startswith("-")
    assert lines["random orders"][2].endswith(" %")


def test_keyphrases_stand_beside_one2set(emotions_folder: Path, tmp_path: Path) -> None:
    """A tiny model is trained, and writes any labels, with the constraint and without."""
    emotions = Setup(data_dir=str(emotions_folder), verify=False).load("go-emotions")
    data = tmp_path / "data"
    data.mkdir()
    for split, examples in zip(("train", "valid", "test"), emotions.splits.values(), strict=True):
        (data / f"{split}_src.txt").write_text("".join(f"{one.text}\n" for one in examples))
        (data / f"{split}_trg.txt").write_text("".join(";".join(one.labels) + "\n" for one in examples))
    setup = Setup(data_dir=str(data), models={"encoder-decoder": "tiny"}, training={"epochs": 8}, seeds=(1,))
    page, _ = run_experiment("keyphrases", setup, tmp_path / "out", data=["kp20k"])
    text = page.as_markdown()
    assert "| One2Set, as the paper quotes it |  | 5.8 |" in text
    assert "(39.2)" in text
    assert "(5.3)" in text
    assert "difference" not in text
    assert "Not run" not in text
    cells = [json.loads(line)["cell"] for line in (tmp_path / "out" / CELLS).read_text().splitlines()]
    written = [list(read_predictions(predictions_path(tmp_path / "out", cell))) for cell in cells]
    assert len(written) == 9
    assert all(any(one.labels for one in found) for found in written), written
    assert all(
        one.generation
        for found, cell in zip(written, cells, strict=True)
        for one in found
        if "name" in cell["decoding"]
    )


def test_sizes_agree_with_generated_and_with_distinct_labels(setup: Setup, tmp_path: Path) -> None:
    """Results that were stored before the two were told apart have the second only, as agreement."""
    page = report("size", setup, tmp_path, "go-emotions[min3]")
    generated, distinct = "as many generated as stated", "as many distinct as stated"
    assert page.tables[1].header[1:5:2] == [generated, distinct]
    lines = [json.loads(line) for line in (tmp_path / CELLS).read_text().splitlines()]
    for line in lines:
        line["result"]["sizes"] = {
            name: value
            for name, value in line["result"]["sizes"].items()
            if not name.startswith(("agreement_generated", "agreement_distinct"))
        }
    (tmp_path / CELLS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    old, _ = run_experiment("size", setup, tmp_path, data=["go-emotions[min3]"], only_report=True)
    assert old.tables[0] == page.tables[0]
    assert old.tables[1].header[1:3] == [distinct, "distinct within one"]
    assert [line.cells[1:] for line in old.tables[1].lines] == [line.cells[3:] for line in page.tables[1].lines]


def test_a_report_is_the_same_page(setup: Setup, tmp_path: Path) -> None:
    page = report("size", setup, tmp_path)
    again, _ = run_experiment("size", setup, tmp_path, data=["go-emotions"], only_report=True, command="setaug ...")
    assert again.as_markdown() == page.as_markdown()
    assert again.as_html() == page.as_html()


def test_experiments_share_cells(setup: Setup, tmp_path: Path) -> None:
    store_experiment("main", setup, tmp_path, "go-emotions")
    run_experiment("size", setup, tmp_path, data=["go-emotions"], on_result=_fail)


def test_some_rows_can_be_run_and_the_page_names_the_others(setup: Setup, tmp_path: Path) -> None:
    page = report("size", setup, tmp_path, rows=["setaug + size"])
    assert len(Results(tmp_path / CELLS)) == 3
    assert "Not run: seq2seq; seq2seq + size; random + size; setaug + size, constrained." in page.as_markdown()
    with pytest.raises(ValueError, match="size has no row 'setaug'; use one of seq2seq; seq2seq \\+ size; "):
        run_experiment("size", setup, tmp_path, data=["go-emotions"], rows=["setaug"])


def test_seeds_that_only_one_row_has_are_not_compared(setup: Setup, tmp_path: Path) -> None:
    one, two = replace(setup, seeds=(1,)), replace(setup, seeds=(1, 2))
    store_experiment("size", one, tmp_path, "go-emotions", ["setaug + size"])
    page = report("main", two, tmp_path, rows=["setaug", "seq2seq"])
    seeds = {line.cells[0]: line.cells[-4] for line in page.tables[1].lines}
    assert (seeds["setaug"], seeds["setaug + size"]) == ("2", "1")


def test_lost_predictions_are_named(setup: Setup, tmp_path: Path) -> None:
    cells = store_experiment("reversed", setup, tmp_path, "go-emotions")
    predictions_path(tmp_path, cells[0]).unlink()
    with pytest.raises(FileError, match=r"\.jsonl\.gz is missing; remove its line from cells\.jsonl to run the cell"):
        run_experiment("reversed", setup, tmp_path, data=["go-emotions"], only_report=True)


def test_a_report_of_nothing_is_refused(setup: Setup, tmp_path: Path) -> None:
    report("size", setup, tmp_path)
    before = (tmp_path / "size.md").read_text()
    other = replace(setup, training={"epochs": 9})
    with pytest.raises(FileError, match=r"has no result of size with these datasets, models and settings"):
        run_experiment("size", other, tmp_path, data=["go-emotions"], only_report=True)
    assert (tmp_path / "size.md").read_text() == before


def test_results_of_another_version_are_refused(setup: Setup, tmp_path: Path) -> None:
    report("size", setup, tmp_path)
    path = tmp_path / CELLS
    path.write_text(path.read_text().replace('"n_train"', '"n_trained"'))
    with pytest.raises(FileError, match="a result has no n_train: it was written by another version of setaug"):
        run_experiment("size", setup, tmp_path, data=["go-emotions"], only_report=True)


def test_the_first_seed_comes_first(setup: Setup) -> None:
    groups = group_cells(make_plan(read_experiment("ablation"), setup, ["go-emotions", "go-emotions[min2]"]))
    seeds = [group[0]["seed"] for group in groups]
    assert seeds == sorted(seeds, key=[15143, 27122, 999888].index)


def test_a_run_that_was_killed_continues_and_comes_to_the_same(
    tiny_run: Path, emotions_folder: Path, tmp_path: Path
) -> None:
    call, cells = reproduce_call(emotions_folder, tmp_path), tmp_path / CELLS
    process = subprocess.Popen(
        [sys.executable, "-m", "setaug", *call],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    until = time.monotonic() + 600
    while not (cells.exists() and b"\n" in cells.read_bytes()) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = cells.read_text().splitlines()
    assert 1 <= len(finished) < len(ROWS)
    assert main(call) == 0
    lines = cells.read_text().splitlines()
    assert lines[: len(finished)] == finished
    assert len(lines) == len(ROWS)
    for name in ("main.md", "main.html"):
        assert (tmp_path / name).read_text() == (tiny_run / name).read_text()


def test_the_page_of_a_run_names_what_was_trained(tiny_run: Path) -> None:
    text = (tiny_run / "main.md").read_text()
    assert "Trained, with what differs from the default: tiny (writes sets), epochs 1, learning_rate 0.001;" in text
    for row in ROWS:
        assert f"| {row} |" in text
    assert "Not run: seq2seq;" in text.replace("multi-label, encoder-decoder; ", "")


def test_a_dry_run_lists_cells_and_those_that_are_stored(
    setup: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    call = ["reproduce", "ablation", "--data-dir", str(setup.data_dir), "--no-verify", "--data", "go-emotions"]
    call += ["--model", "tiny", "-o", str(out), "--dry-run"]
    assert main(call) == 0
    listed = capsys.readouterr().out
    assert "go-emotions, setaug, with size, n = 2, seed 15143: 2 cells, 0 stored\n" in listed
    assert "ablation: 30 cells of 15 training runs, 0 stored, 30 to run\n" in listed
    assert not out.exists()
    store_experiment("size", setup, out, "go-emotions")
    before = (out / CELLS).read_bytes()
    assert main(call) == 0
    listed = capsys.readouterr().out
    assert "go-emotions, setaug, with size, n = 2, seed 15143: 2 cells, 2 stored\n" in listed
    assert "ablation: 30 cells of 15 training runs, 12 stored, 18 to run\n" in listed
    assert (out / CELLS).read_bytes() == before


def test_a_stored_line_can_be_removed_to_run_its_cell_again(
    tiny_run: Path, emotions_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_run, tmp_path, dirs_exist_ok=True)
    *kept, last = (tmp_path / CELLS).read_text().splitlines(keepends=True)
    (tmp_path / CELLS).write_text("".join(kept))
    assert main(reproduce_call(emotions_folder, tmp_path)) == 0
    again = json.loads((tmp_path / CELLS).read_text().splitlines()[-1])
    assert again["result"]["sets"] == json.loads(last)["result"]["sets"]
