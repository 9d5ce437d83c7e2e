"""Learning curves, likelihoods and thresholds, of tiny models that are trained; and all experiments, once."""

import json
from pathlib import Path
from typing import Any

import pytest

from setaug.cli import main
from setaug.experiments.cells import CELLS
from setaug.experiments.reproduction.experiment import EXPERIMENTS, FEW_SHOT, GRAPHS, read_experiment
from setaug.experiments.reproduction.reproduce import run_experiment
from setaug.experiments.reproduction.training_cells import Setup, make_cells, predictions_path
from setaug.predictions import read_predictions
from tests.experiments.emotions import write_emotions


@pytest.fixture
def setup(emotions_folder: Path) -> Setup:
    training = {"epochs": 2, "max_target_length": 24}
    models = {"encoder-decoder": "tiny"}
    return Setup(data_dir=str(emotions_folder), verify=False, models=models, training=training, seeds=(7,))


def stored(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / CELLS).read_text().splitlines()]


def test_a_learning_curve_has_scores_at_equal_distances(setup: Setup, tmp_path: Path) -> None:
    rows = ["seq2seq", "setaug + size"]
    page, paths = run_experiment("curves", setup, tmp_path, data=["go-emotions"], rows=rows)
    assert {path.suffix for path in paths} == {".md", ".html", ".svg", ".png"}
    for line in stored(tmp_path):
        updates = [point["updates"] for point in line["result"]["curve"]]
        assert updates == list(range(1, 11))  # 40 examples in batches of 8, twice
        assert all(0 <= point["f1"] <= 1 for point in line["result"]["curve"])
    text = page.as_markdown()
    assert "| updates | seq2seq | setaug + size |" in text
    assert "dev F, mean over updates" in text


def test_a_curve_is_of_text_and_of_a_training_of_its_own(setup: Setup) -> None:
    (cell,) = make_cells(read_experiment("curves"), setup, "go-emotions")["setaug + size"]
    (plain,) = make_cells(read_experiment("main"), setup, "go-emotions")["setaug + size"]
    assert not cell["decoding"]["constrained"]
    assert cell["curve"] == {"n_dev": 100}
    assert (cell["training"]["checkpoint_every"], plain["training"]["checkpoint_every"]) == (1, None)


def test_thresholds_are_a_part_of_the_cell_and_the_paper_s_are_the_default(setup: Setup) -> None:
    cells = make_cells(read_experiment("thresholds"), setup, "go-emotions")
    usual = make_cells(read_experiment("main"), setup, "go-emotions")
    assert cells["setaug + size, PMI above 1, ratio above 3"] == usual["setaug + size"]
    assert cells["random + size"] == usual["random + size"]
    (cell,) = cells["setaug + size, PMI above 0.5, ratio above 4"]
    assert (cell["augmenter"]["min_pmi"], cell["augmenter"]["min_ratio"]) == (0.5, 4.0)
    (cell,) = make_cells(read_experiment("permutations"), setup, "go-emotions")["setaug + size, distinct orders, n = 5"]
    assert cell["augmenter"]["distinct"]


def test_bounds_lie_below_the_likelihood_they_bound(setup: Setup, tmp_path: Path) -> None:
    rows = ["setaug + size, uniform", "setaug + size, topological"]
    page, _ = run_experiment("likelihood", setup, tmp_path, data=["go-emotions[min2]"], rows=rows)
    uniform, topological = (line["result"]["likelihood"] for line in stored(tmp_path))
    assert uniform["exact"] == topological["exact"]
    assert uniform["allowed"] == uniform["exact"]  # all orders can be drawn
    for one in (uniform, topological):
        pairs = [pair for pair in zip(one["allowed"], one["exact"], strict=True) if None not in pair]
        assert pairs
        assert all(allowed <= exact + 1e-3 for allowed, exact in pairs)
        assert all(elbo <= bound + 1e-3 for elbo, bound in zip(one["elbo"], one["bound"], strict=True))
    text = page.as_markdown()
    assert "All values in bits per set;" in text
    assert "setaug + size, topological, against setaug + size, uniform: " in text
    assert not (tmp_path / "predictions").exists()


def test_the_generated_text_is_stored(tiny_run: Path) -> None:
    texts = 0
    for line in stored(tiny_run):
        if line["cell"]["method"] == "setaug" and not line["cell"]["decoding"]["samples"]:
            for one in read_predictions(predictions_path(tiny_run, line["cell"])):
                assert one.generation is not None
                assert one.repeated is not None
                texts += 1
    assert texts


@pytest.mark.minutes
def test_every_experiment_runs_with_tiny_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All but prompting, which needs a server, and for which there are tests with one."""
    data = write_emotions(tmp_path / "data")
    place = data / "kp20k"
    place.mkdir()
    emotions = Setup(data_dir=str(data), verify=False).load("go-emotions")
    for split, examples in zip(("train", "valid", "test"), emotions.splits.values(), strict=True):
        (place / f"{split}_src.txt").write_text("".join(f"{one.text}\n" for one in examples))
        (place / f"{split}_trg.txt").write_text("".join(";".join(one.labels) + "\n" for one in examples))
    out = tmp_path / "out"
    call = ["reproduce", "all", "--data-dir", str(data), "--no-verify", "--data", "go-emotions[min2]", "kp20k"]
    call += ["--model", "tiny", "--encoder", "tiny", "--epochs", "1", "--seeds", "7", "--samples", "2"]
    assert main([*call, "--workers", "1", "-o", str(out)]) == 0
    for name in [*EXPERIMENTS, GRAPHS]:
        if name != FEW_SHOT:
            page = (out / f"{name}.md").read_text()
            assert "Not run" not in page, name
    capsys.readouterr()
    assert main([*call, "-o", str(out), "--dry-run"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert all(line.endswith(", 0 to run") for line in listed if " training runs, " in line)
