"""Cells on the benchmarks: what they are called, what belongs together, and what running them gives."""

import json
from pathlib import Path

import pytest

from setaug.experiments.cells import run_groups
from setaug.experiments.experiment import read_experiment
from setaug.experiments.runs import (
    Setup,
    Trainings,
    group_cells,
    make_cells,
    name_model,
    predictions_path,
    short_name,
    training_key,
)
from setaug.metrics import evaluate
from setaug.predictions import read_predictions
from tests.experiments.emotions import SIZES, write_emotions

BOTH = {"encoder-decoder": "some/bart", "encoder": "some/bert"}


def test_each_row_has_a_cell_per_seed_but_what_has_no_seed() -> None:
    cells = make_cells(read_experiment("main"), Setup(models=BOTH), "ufet[min2]")
    assert {name: len(each) for name, each in cells.items() if len(each) != 3} == {"TF-IDF, linear": 1}
    assert [cell["seed"] for cell in cells["setaug"]] == [15143, 27122, 999888]
    assert cells["TF-IDF, linear"] == [{"data": "ufet[min2]", "method": "tf-idf", "decoding": {}}]


def test_rows_without_their_model_are_left_out() -> None:
    names = make_cells(read_experiment("multilabel-k"), Setup(models={"encoder-decoder": "some/bart"}), "ufet")
    assert not [name for name in names if name.startswith("encoder,")]
    assert "One2Set, as the paper quotes it" not in make_cells(
        read_experiment("keyphrases"), Setup(models=BOTH), "kp20k"
    )


def test_classifiers_take_as_many_steps_as_the_others() -> None:
    setup = Setup(models=BOTH, training={"epochs": 2}, classifier_training={"learning_rate": 1e-4})
    cells = make_cells(read_experiment("main"), setup, "ufet")
    assert cells["setaug"][0]["training"] == {"epochs": 2}
    assert cells["multi-label, encoder"][0]["training"] == {"epochs": 6, "learning_rate": 1e-4}
    own = Setup(models=BOTH, training={"epochs": 2}, classifier_training={"epochs": 30})
    assert make_cells(read_experiment("main"), own, "ufet")["multi-label, encoder"][0]["training"] == {"epochs": 30}


def test_paper_s_rows_are_greedy_text_and_samples_can_be_fewer() -> None:
    cells = make_cells(read_experiment("main"), Setup(models=BOTH, samples=4), "ufet")
    assert cells["setaug + size"][0]["decoding"] == {"name": "greedy", "constrained": False}
    assert cells["setaug + size, vote over samples"][0]["decoding"]["samples"] == 4
    assert cells["set search"][0]["decoding"] == {"constrained": False}
    assert cells["multi-label, encoder"][0]["decoding"] == {"rule": "top-k"}


def test_cells_that_differ_in_decoding_share_a_training() -> None:
    setup = Setup(models=BOTH, seeds=(1,))
    cells = make_cells(read_experiment("main"), setup, "ufet")
    groups = group_cells(cell for each in cells.values() for cell in each)
    assert sorted(map(len, groups)) == [1, 1, 1, 1, 1, 1, 2, 2, 2, 3]
    assert all(len({training_key(cell) for cell in group}) == 1 for group in groups)


def test_a_folder_is_named_by_its_content(tmp_path: Path) -> None:
    assert name_model("facebook/bart-base") == "facebook/bart-base"
    names = []
    for place, weights in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        folder = tmp_path / place / "bart"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(weights)
        names.append(name_model(str(folder)))
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("bart@")
    assert str(tmp_path) not in names[0]


def test_a_training_gives_a_result_for_each_way_of_decoding(tmp_path: Path) -> None:
    data = write_emotions(tmp_path / "data")
    setup = Setup(
        data_dir=str(data),
        verify=False,
        models={"encoder-decoder": "tiny", "encoder": "tiny"},
        training={"epochs": 1},
        seeds=(7,),
        samples=2,
    )
    made = make_cells(read_experiment("main"), setup, "go-emotions")
    rows = ("setaug + size", "setaug + size, vote over samples", "set search", "multi-label, encoder", "TF-IDF, linear")
    groups = group_cells(cell for name in rows for cell in made[name])
    told: list[dict[str, object]] = []
    out = tmp_path / "out"
    run_groups(groups, Trainings(setup, out), out / "cells.jsonl", tell=told.append)
    lines = [json.loads(line) for line in (out / "cells.jsonl").read_text().splitlines()]
    assert lines == json.loads(json.dumps(told))
    assert [line["cell"]["method"] for line in lines] == ["setaug", "setaug", "set-search", "classifier", "tf-idf"]
    test = setup.load("go-emotions").test
    for line in lines:
        assert line["versions"]["setaug"]
        assert "commit" in line
        assert line["seconds"] >= 0
        assert (line["result"]["n_train"], line["result"]["n_test"]) == (SIZES["train"], SIZES["test"])
        predictions = list(read_predictions(predictions_path(out, line["cell"])))
        assert evaluate(predictions, test).as_dict()["sets"] == pytest.approx(line["result"]["sets"])
    assert "threshold" in lines[3]["result"]["chosen"]
    assert lines[4]["result"]["chosen"]["classifier"]
    assert not list((out / "models").iterdir())


def test_models_can_be_kept_and_are_not_trained_again(tmp_path: Path) -> None:
    data = write_emotions(tmp_path / "data")
    setup = Setup(
        data_dir=str(data),
        verify=False,
        models={"encoder-decoder": "tiny"},
        training={"epochs": 1},
        seeds=(7,),
        keep_models=True,
    )
    made = make_cells(read_experiment("main"), setup, "go-emotions")
    run = Trainings(setup, tmp_path)
    (first,) = run(made["setaug + size"])
    folder = tmp_path / "models" / short_name(training_key(made["setaug + size"][0]))
    weights = (folder / "model.safetensors").stat().st_mtime_ns
    (again,) = run(made["setaug + size"])
    assert (folder / "model.safetensors").stat().st_mtime_ns == weights
    assert again["sets"] == first["sets"]
    assert again["train_seconds"] == first["train_seconds"]
