"""Cells of experiments: their keys, which share a training, and the results of tiny models."""

import json
from pathlib import Path
from typing import Any

import pytest

from setaug.errors import ModelError
from setaug.experiments.cells import CELLS
from setaug.experiments.reproduction.experiment import read_experiment
from setaug.experiments.reproduction.reproduce import group_cells
from setaug.experiments.reproduction.training_cells import (
    Setup,
    Trainings,
    describe,
    describe_decoding,
    make_cells,
    name_model,
    predictions_path,
    training_key,
)
from setaug.experiments.stored_settings import (
    augmenter_from_cell,
    augmenter_to_cell,
    decoding_to_cell,
    training_from_cell,
    training_to_cell,
)
from setaug.metrics import evaluate
from setaug.predictions import read_predictions
from tests.datasets.made_up import write_kp20k
from tests.experiments.conftest import ROWS
from tests.experiments.emotions import write_emotions

BOTH = {"encoder-decoder": "some/bart", "encoder": "some/bert"}
RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(scope="module")
def data(emotions_folder: Path) -> dict[str, Any]:
    return {"data_dir": str(emotions_folder), "verify": False}


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
    groups = group_cells({"go-emotions": cells})
    assert sorted(map(len, groups)) == [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3]
    assert all(len({training_key(cell) for cell in group}) == 1 for group in groups)


def test_cells_are_described_in_a_few_words(data: dict[str, Any]) -> None:
    cells = make_cells(read_experiment("main"), Setup(**data, models=BOTH, seeds=(7,)), "go-emotions")
    told = {name: (describe(cell), describe_decoding(cell)) for name, (cell,) in cells.items()}
    assert told["setaug + size"] == ("go-emotions, setaug, with size, n = 2, seed 7", "constrained False")
    assert told["setaug + size, constrained"][1] == "default"
    assert told["setaug + size, vote over samples"][1] == "temperature 0.5, samples 16"
    assert told["TF-IDF, linear"] == ("go-emotions, tf-idf", "default")


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


def test_a_training_gives_a_result_for_each_way_of_decoding(tiny_run: Path, data: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in (tiny_run / CELLS).read_text().splitlines()]
    dataset = Setup(**data).load("go-emotions[min2]")
    assert sorted(line["cell"]["method"] for line in lines) == sorted(ROWS.values())
    written = [line["cell"] for line in lines if line["cell"]["method"] == "setaug"]
    assert [cell["decoding"]["samples"] for cell in written] == [0, 2]
    for line in lines:
        assert line["versions"]["setaug"]
        assert "commit" in line
        assert line["seconds"] >= 0
        assert (line["result"]["n_train"], line["result"]["n_test"]) == (len(dataset.train), len(dataset.test))
        assert tiny_run / line["result"]["predictions"] == predictions_path(tiny_run, line["cell"])
        predictions = list(read_predictions(tiny_run / line["result"]["predictions"]))
        assert evaluate(dataset.test, predictions).to_dict()["sets"] == pytest.approx(line["result"]["sets"])
    chosen = {line["cell"]["method"]: line["result"].get("chosen") for line in lines}
    assert "threshold" in chosen["classifier"]
    assert chosen["tf-idf"]["classifier"]


def test_a_model_is_removed_once_all_of_its_cells_are_stored(tiny_run: Path) -> None:
    assert not list((tiny_run / "models").iterdir())


def test_models_can_be_kept_and_are_not_trained_again(tmp_path: Path, data: dict[str, Any]) -> None:
    setup = Setup(**data, models={"encoder-decoder": "tiny"}, training={"epochs": 1}, seeds=(7,), keep_models=True)
    cells = make_cells(read_experiment("main"), setup, "go-emotions[min2,train16]")["setaug + size"]
    run = Trainings(setup, tmp_path)
    (first,) = run(cells)
    folder = run.model_folder(cells[0])
    run.forget(cells[0])
    weights = (folder / "model.safetensors").stat().st_mtime_ns
    (again,) = run(cells)
    assert (folder / "model.safetensors").stat().st_mtime_ns == weights
    assert again["sets"] == first["sets"]
    assert again["train_seconds"] == first["train_seconds"]


def test_keyphrases_are_scored_as_such(tmp_path: Path) -> None:
    """The kind of a data set's labels decides."""
    setup = Setup(data_dir=str(write_kp20k(tmp_path / "data")), models={"encoder-decoder": "tiny"})
    (cell,) = make_cells(read_experiment("main"), setup, "kp20k")["the most frequent labels, whatever the text"]
    (result,) = Trainings(setup, tmp_path)([cell])
    assert "f1_at_m" in result["keyphrases"]["present"]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no stored results")
def test_settings_of_stored_results_are_as_they_were() -> None:
    """A field that is renamed, or a default that changes, would lose the stored cells."""
    cells = [json.loads(line)["cell"] for line in (RESULTS / CELLS).read_text().splitlines()]
    assert len(cells) > 100
    for cell in cells:
        if "augmenter" in cell:
            assert augmenter_to_cell(augmenter_from_cell(cell["augmenter"])) == cell["augmenter"]
        if "training" in cell:
            classifies = cell["method"] == "classifier"
            kept = training_to_cell(training_from_cell(cell["training"]), classifies=classifies)
            assert json.loads(json.dumps(kept)) == cell["training"]
        if "training" in cell and "rule" not in cell["decoding"] and "name" in cell["decoding"]:
            assert decoding_to_cell(cell["decoding"]) == cell["decoding"]
        assert predictions_path(RESULTS, cell).exists()
