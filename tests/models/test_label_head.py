"""The head that scores labels on an encoder: its scores and its loss by hand, in training, saved, and refused."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from setaug import Example
from setaug.models import SetGenerator, TrainingSettings, load_model, make_model
from setaug.models.model_folder import CARD, HEAD
from setaug.models.neural.generator import MEMBERS
from setaug.models.neural.label_head import WEIGHT, HeadCollator, LabelHead, trained_with
from setaug.models.neural.training.objectives import training_loss
from setaug.settings import Decoding
from tests.conftest import DEV, EXAMPLES
from tests.models.test_shared_encoder import layout_of
from tests.tiny import make_model as make_torch_model

LABELS = ["joy", "love", "fear"]
ITEMS = [
    {"input_ids": [5, 6, 7, 2], "targets": [[8, 9, 2], [9, 8, 2], [8, 2]], "columns": [0, 2]},
    {"input_ids": [9, 2], "targets": [[5, 2]], "columns": []},
]
TEXTS = [example.text for example in DEV]
SHORT = TrainingSettings(epochs=2, seed=1)
ASKED = replace(SHORT, label_head=True)


@pytest.fixture(scope="module")
def model():
    return SetGenerator("tiny", training=replace(ASKED, epochs=15)).fit(EXAMPLES, dev=DEV, progress=False)


def new_head(layout):
    examples = [Example("a", ["joy", "fear"]), Example("b", ["joy"]), Example("c", ["love"])]
    return LabelHead.start(layout.model, layout.tokenizer, LABELS, examples, seed=0)


def with_values(head):
    """Return the head with values other than zero, as after some training."""
    torch.manual_seed(0)
    with torch.no_grad():
        head.values.normal_()
        head.value_of_name.normal_()
    return head.eval()


def test_a_new_head_gives_each_label_its_frequency():
    head = new_head(layout_of(make_torch_model("t5"))).eval()
    log_odds = head(torch.randn(2, 5, head.queries.shape[1]), torch.ones(2, 5))
    wanted = torch.logit(torch.tensor([2.5 / 4, 1.5 / 4, 1.5 / 4]))
    torch.testing.assert_close(log_odds, wanted.expand(2, 3))


def test_scores_are_weighted_sums_over_tokens_without_padding():
    head = with_values(new_head(layout_of(make_torch_model("t5"))))
    states = torch.randn(4, head.queries.shape[1])
    scaled = states / states.pow(2).mean().sqrt()
    wanted = []
    for at, bias in enumerate(head.bias):
        query = head.queries[at] + head.query_of_name @ head.names[at]
        value = head.values[at] + head.value_of_name @ head.names[at]
        wanted.append((scaled @ query).softmax(dim=0) @ (scaled @ value) + bias)
    padded = torch.cat([states, torch.full((2, states.shape[1]), 99.0)])
    mask = torch.tensor([1, 1, 1, 1, 0, 0])
    torch.testing.assert_close(head(padded[None], mask[None])[0], torch.stack(wanted), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(head(states[None] * 7, torch.ones(1, 4))[0], torch.stack(wanted), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(head.trained()(states[None], torch.ones(1, 4))[0], torch.stack(wanted))


def test_a_text_without_tokens_has_finite_scores():
    head = with_values(new_head(layout_of(make_torch_model("t5"))))
    found = head(torch.randn(1, 3, head.queries.shape[1]), torch.zeros(1, 3))
    assert found.isfinite().all()


@pytest.mark.parametrize("kind", ["t5", "bart"])
@pytest.mark.parametrize("way", ["pack", "repeat"])
def test_the_loss_is_that_of_the_decoder_plus_that_of_the_labels(kind, way):
    layout = layout_of(deepcopy(make_torch_model(kind)).eval())
    head = with_values(new_head(layout))
    batch = getattr(layout, way)(ITEMS)
    plain = training_loss(layout, layout.model, batch, "plain")
    lost = []
    for item in ITEMS:
        states = layout.model.get_encoder()(torch.tensor([item["input_ids"]])).last_hidden_state
        log_p = torch.nn.functional.logsigmoid(
            head(states, torch.ones(states.shape[:2]))[0]
            * torch.tensor([1.0 if at in item["columns"] else -1.0 for at in range(3)])
        )
        lost.append(-log_p.sum() * len(item["targets"]))
    n_tokens = sum(len(target) for item in ITEMS for target in item["targets"])

    def loss(model, batch):
        return training_loss(layout, model, batch, "plain")

    with trained_with(layout.model, head, getattr(layout, way), loss) as (collate, both):
        assert isinstance(collate, HeadCollator)
        found = both(layout.model, collate(ITEMS))
        assert any(name.startswith("label_head.") for name in layout.model.state_dict())  # so checkpoints have it
    torch.testing.assert_close(found, plain + WEIGHT * sum(lost) / n_tokens, rtol=1e-4, atol=1e-5)
    found.backward()
    assert all(weights.grad is not None for weights in head.parameters())
    assert not hasattr(layout.model, "label_head")


def test_it_learns_and_helps_and_a_folder_keeps_it(model, tmp_path):
    assert "label_head" in model.members_
    assert model.record_["chosen"]["members"] == list(model.members_)
    labels = model.network_.head.labels
    frequencies = np.array([model.statistics_.count(label) for label in labels]) / len(EXAMPLES)
    found = model.network_.head_probabilities(TEXTS, 32)
    truth = np.array([[label in example.labels for label in labels] for example in DEV])
    log_p, log_p_of_frequencies = (
        np.log(np.where(truth, shares, 1 - shares)).mean() for shares in (found.labels[:, found.columns], frequencies)
    )
    assert log_p > log_p_of_frequencies
    model.save_pretrained(tmp_path / "run")
    assert (tmp_path / "run" / HEAD).exists()
    loaded = load_model(tmp_path / "run")
    assert loaded.predict(DEV) == model.predict(DEV)
    # The model of transformers is what it is without the head.
    assert not any("label_head" in name for name in loaded.model_.state_dict())


def test_probabilities_do_not_depend_on_the_batch(model):
    found = model.network_.head_probabilities(TEXTS, 32).labels
    assert model.network_.head_probabilities(TEXTS, 1).labels == pytest.approx(found, abs=1e-5)


def test_members_can_be_left_out_and_come_back(model):
    before = model.predict(DEV)
    alone = deepcopy(model).tune(DEV, members=["label_head"])
    assert alone.members_ == ("label_head",)
    assert alone.predict_proba(TEXTS).shape == (len(TEXTS), len(model.classes_))
    assert alone.tune(DEV).predict(DEV) == before
    without = deepcopy(model).tune(DEV, members=["decoder", "companion"])
    assert "label_head" not in without.members_
    with pytest.raises(ValueError, match="members must be one of decoder, label_head, companion, got 'head'"):
        model.tune(DEV, members=["head"])
    with pytest.raises(ValueError, match="the model has none of these members"):
        deepcopy(model).tune(DEV, members=[])
    assert set(model.members_) <= set(MEMBERS)


def test_labels_that_only_the_dev_data_has_are_left_to_the_decoder():
    dev = [*DEV, Example("Something new.", ["brand new"])]
    model = SetGenerator("tiny", training=ASKED).fit(EXAMPLES, dev=dev, progress=False)
    found = model.network_.head_probabilities(TEXTS, 32)
    assert [label for label, known in zip(model.labels_, found.known, strict=True) if not known] == [
        label for label in model.labels_ if label not in set(model.statistics_.labels)
    ]
    assert "brand new" not in model.network_.head.labels


@pytest.fixture(scope="module")
def pretrained(model, tmp_path_factory):
    """A folder of transformers, as of a pretrained model."""
    folder = tmp_path_factory.mktemp("pretrained")
    model.model_.save_pretrained(folder)
    model.tokenizer_.save_pretrained(folder)
    return str(folder)


def test_pretrained_models_have_a_head_by_default(pretrained):
    found = SetGenerator(pretrained, training=SHORT).fit(EXAMPLES[:24], dev=DEV, progress=False)
    assert found.network_.head is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"training": replace(SHORT, label_head=False)},
        {"training": replace(SHORT, recipe="paper", learning_rate=1e-3)},
        {"training": replace(SHORT, lora_rank=2)},
        {"decoding": Decoding(choose="written")},
        {"vocabulary": "open"},
        {"model": "tiny"},
        {"model": "tiny-causal"},
    ],
)
def test_there_is_no_head_where_it_is_not_wanted_or_not_possible(settings, pretrained):
    options = {"model": pretrained, "training": SHORT, **settings}
    found = SetGenerator(**options).fit(EXAMPLES[:24], dev=DEV, progress=False)
    assert found.network_.head is None
    assert "label_head" not in found.members_


def test_a_head_of_very_many_labels_has_to_be_asked_for(pretrained, monkeypatch):
    monkeypatch.setattr("setaug.models.neural.generator.MAX_LABELS", 3)
    for training, is_there in ((SHORT, False), (ASKED, True)):
        found = SetGenerator(pretrained, training=training).fit(EXAMPLES[:24], dev=DEV, progress=False)
        assert (found.network_.head is not None) == is_there


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "tiny-causal"}, "a label head needs an encoder-decoder"),
        ({"vocabulary": "open"}, "a label head needs sets that are chosen from probabilities"),
        ({"lora_rank": 2}, "a label head needs training without adapters"),
        ({"method": "classifier"}, "a classifier has no label head"),
        ({"method": "set-search"}, "set search has no label head"),
    ],
)
def test_a_head_that_is_asked_for_and_impossible_is_refused(settings, message):
    rank = settings.pop("lora_rank", None)
    training = replace(ASKED, lora_rank=rank)
    options = {"method": "setaug", "model": "tiny", **settings}
    with pytest.raises(ValueError, match=message):
        make_model(**options, training=training).fit(EXAMPLES[:24], progress=False)


def test_damaged_heads_are_refused_and_older_folders_are_read(model, tmp_path):
    from setaug.errors import ModelError

    model.save_pretrained(tmp_path)
    card = json.loads((tmp_path / CARD).read_bytes())
    for changed in ({"members": ["oracle"]}, {"members": []}, {"label_head": ["joy"]}, {"label_head": None}):
        (tmp_path / CARD).write_text(json.dumps(card | changed))
        with pytest.raises(ModelError, match="is not a valid setaug model"):
            load_model(tmp_path)
    (tmp_path / CARD).write_text(json.dumps(card))
    whole = (tmp_path / HEAD).read_bytes()
    weights = load_file(tmp_path / HEAD)
    save_file(weights | {"bias": weights["bias"] * torch.nan}, tmp_path / HEAD)
    for damage in ((tmp_path / HEAD).read_bytes(), whole[:-4], b""):
        (tmp_path / HEAD).write_bytes(damage)
        with pytest.raises(ModelError, match="is not a valid setaug model"):
            load_model(tmp_path)
    old = deepcopy(model).tune(DEV, members=["decoder", "companion"])
    old.save_pretrained(tmp_path)
    card = json.loads((tmp_path / CARD).read_bytes())
    uses = "companion" in card.pop("members")
    card.pop("label_head")
    (tmp_path / CARD).write_text(json.dumps(card | {"companion": uses}))
    assert load_model(tmp_path).predict(DEV) == old.predict(DEV)
