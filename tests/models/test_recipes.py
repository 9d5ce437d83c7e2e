"""Training settings that are not given: by kind of model and number of texts, or the paper's."""

import json

import pytest
import torch

from setaug import SetClassifier, TrainingSettings
from setaug.models.model_folder import CARD
from setaug.models.neural.classifier import start_at_frequencies
from setaug.models.neural.pretrained import find_kind
from setaug.models.neural.training.trainer import train
from tests.conftest import DEV, EXAMPLES
from tests.tiny import make_model


@pytest.mark.parametrize(
    ("n_examples", "epochs"), [(1, 30), (100, 30), (270, 12), (540, 6), (1000, 4), (3000, 3), (1_000_000, 3)]
)
def test_small_data_is_read_more_often(n_examples, epochs):
    assert TrainingSettings().completed("t5", n_examples).epochs == epochs
    assert TrainingSettings(epochs=2).completed("t5", n_examples).epochs == 2
    assert TrainingSettings(recipe="paper").completed("t5", n_examples).epochs == 3


def test_processes_and_accumulated_steps_count_as_larger_batches():
    assert TrainingSettings(accumulate=2).completed("t5", 540).epochs == 12
    assert TrainingSettings(batch_size=4).completed("t5", 540, n_processes=4).epochs == 12


def test_encoders_have_three_times_as_many_updates():
    epochs = {kind: TrainingSettings().completed(kind, 600).epochs for kind in ("t5", "encoder", "small-encoder")}
    assert epochs == {"t5": 6, "encoder": 16, "small-encoder": 16}
    assert TrainingSettings(recipe="paper").completed("encoder", 600).epochs == 3


def test_each_kind_has_its_rate_and_a_given_one_wins():
    rates = {
        kind: TrainingSettings().completed(kind, 300).learning_rate
        for kind in ("t5", "encoder-decoder", "causal", "adapters", "encoder", "small-encoder")
    }
    assert (
        rates["t5"]
        > rates["small-encoder"]
        == rates["adapters"]
        > rates["encoder-decoder"]
        == rates["causal"]
        == rates["encoder"]
        > 1e-5
    )
    assert {TrainingSettings(recipe="paper").completed(kind, 300).learning_rate for kind in rates} == {1e-5}
    assert TrainingSettings(learning_rate=0.01).completed("t5", 300).learning_rate == 0.01
    assert TrainingSettings(recipe="paper").completed("encoder-decoder", 300, own_rate=1e-3).learning_rate == 1e-3


def test_lengths_depend_on_the_recipe_and_given_ones_win():
    assert TrainingSettings().lengths == {"max_source_length": 256, "max_target_length": 256}
    assert TrainingSettings(recipe="paper").lengths == {"max_source_length": 120, "max_target_length": 120}
    given = TrainingSettings(recipe="paper", max_target_length=30).lengths
    assert given == {"max_source_length": 120, "max_target_length": 30}
    model = SetClassifier("tiny").set_params(training__recipe="paper")
    assert model.training.lengths["max_source_length"] == 120


def test_a_folder_keeps_the_lengths_that_it_was_trained_with(classifier_folder):
    saved = json.loads((classifier_folder / CARD).read_text())["settings"]["training"]
    assert (saved["max_source_length"], saved["max_target_length"]) == (256, 256)
    assert SetClassifier.from_pretrained(classifier_folder).training.max_source_length == 256


def test_patience_and_what_is_held_out_depend_on_the_recipe():
    assert TrainingSettings().completed("t5", 300).patience is None
    assert TrainingSettings(patience=3).completed("t5", 300).patience == 3
    assert TrainingSettings(patience=0).completed("t5", 300).patience is None
    assert TrainingSettings(recipe="paper").completed("t5", 300).patience is None
    assert TrainingSettings(recipe="paper", patience=2).completed("t5", 300).patience == 2
    parts = [TrainingSettings(**given).part_held_out(300) for given in ({}, {"recipe": "paper"}, {"held_out": 0.2})]
    assert parts == [0.1, 0.0, 0.2]


def test_an_unknown_recipe_is_named():
    with pytest.raises(ValueError, match="recipe must be one of default, paper, got 'magic'"):
        TrainingSettings(recipe="magic")


def test_settings_that_are_not_complete_are_refused():
    with pytest.raises(ValueError, match="the training settings are not complete"):
        train(None, None, settings=TrainingSettings(), collate=None, loss=None, score=None, folder=None, resume=False)


@pytest.mark.parametrize(("name", "kind"), [("t5", "t5"), ("bart", "encoder-decoder"), ("gpt2", "causal")])
def test_the_kind_is_read_from_the_configuration(name, kind, tmp_path):
    make_model(name).save_pretrained(tmp_path)
    assert find_kind(str(tmp_path)) == kind


def test_an_encoder_is_one(tmp_path):
    from transformers import BertConfig

    for width, kind in ((768, "encoder"), (384, "small-encoder")):
        BertConfig(hidden_size=width).save_pretrained(tmp_path)
        assert find_kind(str(tmp_path)) == kind


def test_a_run_follows_the_recipe():
    few = EXAMPLES[:24]
    usual = SetClassifier("mini").fit(few)
    assert (usual.record_["n_updates"], usual.record_["learning_rate"]) == (90, 1e-3)
    paper = SetClassifier("mini", training=TrainingSettings(recipe="paper")).fit(few, dev=DEV)
    assert (paper.record_["n_updates"], paper.record_["learning_rate"]) == (9, 1e-3)


def test_a_classifier_starts_at_the_frequencies_of_its_labels():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 3))
    start_at_frequencies(model, [0, 5, 10], 10)
    torch.testing.assert_close(model[1].bias.sigmoid(), torch.tensor([0.5, 5.5, 10.5]) / 11)
    bare = torch.nn.Linear(4, 3, bias=False)
    start_at_frequencies(bare, [0, 5, 10], 10)
    assert bare.bias is None
