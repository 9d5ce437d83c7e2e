"""Model folders and pretrained models: what is missing, broken or of another kind gets one clear sentence."""

import json
import os
import shutil
from copy import deepcopy

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    BertConfig,
    BertLMHeadModel,
    EncoderDecoderConfig,
    EncoderDecoderModel,
)

from setaug.errors import ModelError, SetAugError
from setaug.models import SetClassifier, SetGenerator, TrainingSettings, load_model
from setaug.models import model_folder as folders
from setaug.models.neural.pretrained import load_for_classification, load_for_generation
from tests.conftest import DEV, EXAMPLES
from tests.tiny import make_model, make_tokenizer

SHORT = TrainingSettings(epochs=1)


def save(model, path, kind="bytes"):
    model.save_pretrained(path)
    make_tokenizer(kind).save_pretrained(path)
    return str(path)


@pytest.fixture
def broken(generator_folder, tmp_path):
    return shutil.copytree(generator_folder, tmp_path / "broken")


# --- what setaug wrote ------------------------------------------------------------------------------------------------


def test_each_kind_is_loaded_by_its_card(generator_folder, classifier_folder, search_folder):
    for folder, kind in (
        (generator_folder, "generator"),
        (classifier_folder, "classifier"),
        (search_folder, "set-search"),
    ):
        model = load_model(folder)
        assert model.kind == kind
        assert not model.model_.training
    with pytest.raises(ModelError, match="is a model of type 'generator', not 'classifier'"):
        SetClassifier.from_pretrained(generator_folder)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (b"{", "setaug.json cannot be read"),
        (b"\xff", "setaug.json cannot be read"),
        (b"[]", "is not a JSON object"),
        (b"{}", "has no kind of model"),
        (b'{"kind": ["generator"]}', "has no kind of model"),
        (b'{"kind": "oracle"}', "of type 'oracle', which this version does not support"),
        (b'{"kind": "generator"}', "is not a valid setaug model"),
        (b'{"kind": "generator", "settings": {}}', "is not a valid setaug model"),
        (b'{"kind": "generator", "settings": []}', "is not a valid setaug model"),
    ],
)
def test_a_broken_card_is_told(card, message, broken):
    (broken / "setaug.json").write_bytes(card)
    with pytest.raises(ModelError, match=message):
        load_model(broken)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda card: card["settings"]["training"].update(epochs=0), "epochs must be an integer"),
        (lambda card: card["settings"]["decoding"].update(wish=1), "wish"),
        (lambda card: card["settings"].pop("augmenter"), "augmenter"),
        (lambda card: card.pop("labels"), "labels"),
        (lambda card: card.update(largest=None), "TypeError"),
        (lambda card: card.update(calibration={}), "shares"),
    ],
)
def test_a_card_with_other_settings_is_told(change, message, broken):
    card = json.loads((broken / "setaug.json").read_bytes())
    change(card)
    (broken / "setaug.json").write_text(json.dumps(card))
    with pytest.raises(ModelError, match=f"is not a valid setaug model .*{message}"):
        load_model(broken)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", None),
        ("config.json", b"{"),
        ("config.json", b"{}"),
        ("config.json", b"[]"),
        ("config.json", b'{"model_type": "no such kind"}'),
        ("model.safetensors", None),
        ("model.safetensors", b""),
        ("model.safetensors", b"\x08\0\0\0\0\0\0\0{}      "),
        ("model.safetensors", 1000),
        ("model.safetensors", -1000),
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b'{"model": {}}'),
        ("tokenizer_config.json", b"{"),
        ("statistics.json", None),
        ("statistics.json", b"{}"),
        ("statistics.json", b"{"),
        ("setaug.json", None),
    ],
)
def test_a_file_that_is_missing_or_broken_is_told_in_one_line(name, content, broken):
    path = broken / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    with pytest.raises(SetAugError, match=r"^[^\n]+$") as told:
        load_model(broken)
    assert str(broken) in str(told.value) or name in str(told.value)


def test_pickled_weights_are_refused(broken):
    torch.save(load_file(broken / "model.safetensors"), broken / "pytorch_model.bin")
    (broken / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"cannot load .*safetensors"):
        load_model(broken)


def test_weights_that_are_not_all_there_are_told(broken):
    weights = load_file(broken / "model.safetensors")
    weights.pop("model.encoder.layers.0.fc1.weight")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"weights are missing.*model.encoder.layers.0.fc1.weight"):
        load_model(broken)


def test_the_card_appears_last_and_goes_first(generator, tmp_path, monkeypatch):
    """Whatever fails while a folder is written over, it never looks whole when it is not."""
    generator.save_pretrained(tmp_path)
    assert folders.is_whole(tmp_path)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(type(generator.tokenizer_), "save_pretrained", fail)
        with pytest.raises(OSError, match="disk full"):
            generator.save_pretrained(tmp_path)
    assert folders.is_whole(tmp_path)  # nothing was touched yet
    assert load_model(tmp_path).predict(DEV[:2]) == generator.predict(DEV[:2])
    replace = os.replace
    halfway = lambda old, new: fail() if new == tmp_path / "model.safetensors" else replace(old, new)  # noqa: E731
    for step, failing in (("setaug.models.model_folder.open_output", fail), ("os.replace", halfway)):
        generator.save_pretrained(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(step, failing)
            with pytest.raises(OSError, match="disk full"):
                generator.save_pretrained(tmp_path)
        assert not folders.is_whole(tmp_path)
    assert not list(tmp_path.glob(".saving*"))


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(ModelError, match=r"there is no model folder .*nowhere"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"is not a setaug model: setaug.json is missing\.$"):
        load_model(tmp_path)


# --- pretrained -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "tokens"),
    [
        ("bart", "bytes"),
        ("t5", "unigram"),
        ("bart", "wordpiece"),
        ("gpt2", "bytes"),
        ("llama", "unigram"),
        ("gpt2", "words"),
    ],
)
def test_any_encoder_decoder_or_causal_model_can_be_trained(kind, tokens, tmp_path):
    name = save(make_model(kind), tmp_path, tokens)
    model = SetGenerator(name, training=SHORT).fit(EXAMPLES[:8], dev=DEV[:2])
    assert model.record_["n_updates"] == 1
    assert all(one.size == len(one.labels) for one in model.predict(DEV[:2], choose="written"))
    assert model.network_.layout.prefix == ((0,) if kind == "bart" else ())


@pytest.mark.filterwarnings("error")
def test_two_encoders_put_together_can_be_trained(tmp_path):
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    parts = [BertConfig(vocab_size=400, **sizes) for _ in range(2)]
    config = EncoderDecoderConfig.from_encoder_decoder_configs(*parts)
    config.decoder_start_token_id = 0
    name = save(EncoderDecoderModel(config), tmp_path, "wordpiece")
    model = SetGenerator(name, training=SHORT).fit(EXAMPLES[:8])
    model.save_pretrained(tmp_path / "saved")
    assert load_model(tmp_path / "saved").predict(DEV[:2]) == model.predict(DEV[:2])


def test_settings_of_another_task_are_dropped(tmp_path):
    model = make_model("bart")
    model.generation_config.update(num_beams=4, min_length=50, no_repeat_ngram_size=3)
    try:
        loaded, _ = load_for_generation(save(model, tmp_path))
    finally:
        model.generation_config.update(num_beams=None, min_length=None, no_repeat_ngram_size=None)
    kept = loaded.generation_config
    assert (kept.num_beams, kept.min_length, kept.no_repeat_ngram_size) == (None, None, None)
    assert (kept.forced_bos_token_id, kept.eos_token_id, kept.decoder_start_token_id) == (0, 2, 2)


def test_a_causal_model_keeps_nothing_of_its_own_settings_but_the_end(tmp_path):
    model, tokenizer = deepcopy(make_model("llama")), deepcopy(make_tokenizer("bytes"))
    model.generation_config.update(
        do_sample=True, temperature=0.6, max_length=20, repetition_penalty=1.3, eos_token_id=[7, 2], pad_token_id=None
    )
    model.save_pretrained(tmp_path)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(tmp_path)
    loaded, _ = load_for_generation(str(tmp_path))
    kept = loaded.generation_config.to_diff_dict()
    kept.pop("transformers_version")
    assert kept == {"eos_token_id": 2, "pad_token_id": 2}
    assert loaded.config.pad_token_id == 2


def test_weights_in_half_precision_are_trained_in_full(tmp_path):
    name = save(deepcopy(make_model("t5")).bfloat16(), tmp_path, "unigram")
    assert load_for_generation(name)[0].dtype == torch.float32
    assert load_for_classification(name, ["a", "b"])[0].dtype == torch.float32


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_a_model_of_another_kind_is_refused_by_a_generator(kind, tmp_path):
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = AutoConfig.for_model(kind, vocab_size=400, **sizes)
    name = save(AutoModelForSequenceClassification.from_config(config), tmp_path)
    wanted = rf"is neither an encoder-decoder nor a causal language model \(its model_type is '{kind}'\); [^\n]+$"
    with pytest.raises(ModelError, match=wanted):
        SetGenerator(name, training=SHORT).fit(EXAMPLES[:4])
    assert len(SetClassifier(name, training=SHORT).fit(EXAMPLES[:4]).predict(DEV[:2])) == 2


def test_an_encoder_that_was_made_a_decoder_is_a_causal_model(tmp_path):
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertLMHeadModel(BertConfig(vocab_size=400, is_decoder=True, **sizes))
    assert load_for_generation(save(model, tmp_path))[0].config.is_decoder


def test_a_classifier_refuses_a_causal_model_from_nothing():
    with pytest.raises(ModelError, match=r"tiny-causal is a causal model and cannot be a classifier; use tiny"):
        SetClassifier("tiny-causal", training=SHORT).fit(EXAMPLES[:4])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/no/such/folder", "there is no model folder /no/such/folder"),
        ("./missing", "there is no model folder ./missing"),
        ("~/missing", "there is no model folder ~/missing"),
        ("a/b/c", "there is no model folder a/b/c"),
        (".", r"the folder . is not a model: config.json is missing"),
        ("some/model", "cannot load some/model: "),
        ("no such name!", "cannot load no such name!: "),
    ],
)
def test_a_model_that_is_not_there_is_told_in_one_line(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for load in (load_for_generation, lambda name: load_for_classification(name, ["a"])):
        with pytest.raises(ModelError, match=message) as told:
            load(name)
        assert "\n" not in str(told.value)
