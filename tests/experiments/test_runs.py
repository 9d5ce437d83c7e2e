"""Cells on the benchmarks: what they are called, what belongs together, and what running them gives."""

import json
from pathlib import Path
from typing import Any

import pytest

from setaug.errors import ModelError
from setaug.experiments.cells import run_groups
from setaug.experiments.experiment import read_experiment
from setaug.experiments.runs import (
    Setup,
    Trainings,
    describe,
    describe_decoding,
    group_cells,
    make_cells,
    name_model,
    predictions_path,
    training_key,
)
from setaug.metrics import evaluate
from setaug.predictions import read_predictions
from tests.experiments.emotions import SIZES, write_emotions

BOTH = {"encoder-decoder": "some/bart", "encoder": "some/bert"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"data_dir": str(write_emotions(tmp_path_factory.mktemp("data") / "data")), "verify": False}


def test_each_row_has_a_cell_per_seed_but_what_has_no_seed(data: dict[str, Any]) -> None:
    cells = make_cells(read_experiment("main"), Setup(**data, models=BOTH), "go-emotions[min2]")
    assert {name: len(each) for name, each in cells.items() if len(each) != 3} == {
        "TF-IDF, linear": 1,
        "the most frequent labels, whatever the text": 1,
    }
    assert [cell["seed"] for cell in cells["setaug"]] == [15143, 27122, 999888]
    (plain,) = cells["TF-IDF, linear"]
    assert plain.keys() == {"data", "digest", "method", "settings", "decoding"}
    assert json.loads(json.dumps(plain)) == plain


def test_rows_without_their_model_are_left_out(data: dict[str, Any]) -> None:
    setup = Setup(**data, models={"encoder-decoder": "some/bart"})
    names = make_cells(read_experiment("multilabel-k"), setup, "go-emotions")
    assert not [name for name in names if name.startswith("encoder,")]
    assert "One2Set, as the paper quotes it" not in make_cells(read_experiment("keyphrases"), setup, "go-emotions")


def test_classifiers_see_as_many_pairs_as_the_others(data: dict[str, Any]) -> None:
    setup = Setup(**data, models=BOTH, training={"epochs": 2}, classifier_training={"learning_rate": 1e-4})
    cells = make_cells(read_experiment("main"), setup, "go-emotions")
    assert cells["setaug"][0]["training"]["epochs"] == 2
    training = cells["multi-label, encoder"][0]["training"]
    assert (training["epochs"], training["learning_rate"]) == (6, 1e-4)
    own = Setup(**data, models=BOTH, training={"epochs": 2}, classifier_training={"epochs": 30})
    cells = make_cells(read_experiment("main"), own, "go-emotions")
    assert cells["multi-label, encoder"][0]["training"]["epochs"] == 30


def test_paper_s_rows_are_greedy_text_and_samples_can_be_fewer(data: dict[str, Any]) -> None:
    cells = make_cells(read_experiment("main"), Setup(**data, models=BOTH, samples=4), "go-emotions")
    decoding = cells["setaug + size"][0]["decoding"]
    assert (decoding["name"], decoding["constrained"], decoding["samples"]) == ("greedy", False, 0)
    assert cells["setaug + size, vote over samples"][0]["decoding"]["samples"] == 4
    assert cells["set search"][0]["decoding"] == {"constrained": False}
    assert cells["multi-label, encoder"][0]["decoding"] == {"rule": "top-k"}


def test_what_is_so_by_default_is_named_too(data: dict[str, Any]) -> None:
    """So that a default which changes is another cell, and one that is spelt out is the same."""
    bare, spelt = (
        make_cells(read_experiment("main"), Setup(**data, models=BOTH, training=training), "go-emotions")["setaug"]
        for training in ({}, {"epochs": 3, "learning_rate": 1e-5})
    )
    assert bare == spelt
    assert (bare[0]["augmenter"]["min_ratio"], bare[0]["augmenter"]["ordering"]) == (3.0, "topological")
    tiny = make_cells(read_experiment("main"), Setup(**data, models={"encoder-decoder": "tiny"}), "go-emotions")
    assert tiny["setaug"][0]["training"]["learning_rate"] == 1e-3


def test_other_content_under_the_same_name_is_another_cell(data: dict[str, Any], tmp_path: Path) -> None:
    other = write_emotions(tmp_path / "other")
    path = other / "goemotions" / "test.tsv"
    path.write_text(path.read_text().replace("The", "A", 1))
    found = [
        make_cells(read_experiment("main"), Setup(data_dir=place, verify=False, models=BOTH), "go-emotions")
        for place in (data["data_dir"], str(other))
    ]
    assert found[0]["setaug"][0]["digest"] != found[1]["setaug"][0]["digest"]


def test_cells_that_differ_in_decoding_share_a_training(data: dict[str, Any]) -> None:
    setup = Setup(**data, models=BOTH, seeds=(1,))
    cells = make_cells(read_experiment("main"), setup, "go-emotions")
    groups = group_cells(cell for each in cells.values() for cell in each)
    assert sorted(map(len, groups)) == [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3]
    assert all(len({training_key(cell) for cell in group}) == 1 for group in groups)


def test_cells_are_told_in_a_few_words(data: dict[str, Any]) -> None:
    cells = make_cells(read_experiment("main"), Setup(**data, models=BOTH, seeds=(7,)), "go-emotions")
    told = {name: (describe(cell), describe_decoding(cell)) for name, (cell,) in cells.items()}
    assert told["setaug + size"] == ("go-emotions, setaug, with size, n = 2, seed 7", "constrained False")
    assert told["setaug + size, constrained"][1] == "as usual"
    assert told["setaug + size, vote over samples"][1] == "temperature 0.5, samples 16"
    assert told["TF-IDF, linear"] == ("go-emotions, tf-idf", "as usual")


def test_models_that_are_not_there_are_named_at_once() -> None:
    Setup(models={"encoder-decoder": "tiny"}).check_models()
    with pytest.raises(ModelError, match="there is no model folder"):
        Setup(models={"encoder-decoder": "tiny", "encoder": "./nowhere"}).check_models()


def test_a_folder_is_named_by_its_content(tmp_path: Path) -> None:
    assert name_model("facebook/bart-base") == "facebook/bart-base"
    names = []
    for place, weights, tokenizer in (("a", b"1", "x"), ("b", b"1", "x"), ("c", b"2", "x"), ("d", b"1", "y")):
        folder = tmp_path / place / "bart"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(weights)
        (folder / "tokenizer.json").write_text(tokenizer)
        names.append(name_model(str(folder)))
    assert names[0] == names[1]
    assert len(set(names)) == 3
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
        assert out / line["result"]["predictions"] == predictions_path(out, line["cell"])
        predictions = list(read_predictions(out / line["result"]["predictions"]))
        assert evaluate(predictions, test).as_dict()["sets"] == pytest.approx(line["result"]["sets"])
    assert "threshold" in lines[3]["result"]["chosen"]
    assert lines[4]["result"]["chosen"]["classifier"]
    assert len(list((out / "models").iterdir())) == 3
    run = Trainings(setup, out)
    for line in lines:
        run.forget(line["cell"])
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
    folder = run.place(made["setaug + size"][0])
    run.forget(made["setaug + size"][0])
    weights = (folder / "model.safetensors").stat().st_mtime_ns
    (again,) = run(made["setaug + size"])
    assert (folder / "model.safetensors").stat().st_mtime_ns == weights
    assert again["sets"] == first["sets"]
    assert again["train_seconds"] == first["train_seconds"]
