"""Settings that save memory: the type of the weights, and gradient checkpointing."""

from copy import deepcopy

import pytest
import torch
from safetensors.torch import load_file

from setaug import SetClassifier, SetGenerator, TrainingSettings, load_model
from tests.conftest import DEV, EXAMPLES
from tests.models.runs import rows


@pytest.mark.parametrize("name", ["mini", "mini-causal"])
def test_gradient_checkpointing_changes_nothing_but_memory(name, tmp_path, monkeypatch):
    from transformers import modeling_utils

    calls = []
    plain = modeling_utils.checkpoint

    def counting(*args, **options):
        calls.append(1)
        return plain(*args, **options)

    monkeypatch.setattr(modeling_utils, "checkpoint", counting)
    for folder, saves in (("usual", False), ("saving", True)):
        training = TrainingSettings(epochs=1, batch_size=12, gradient_checkpointing=saves)
        SetGenerator(name, training=training).fit(EXAMPLES, dev=DEV, folder=tmp_path / folder, progress=False)
        assert bool(calls) is saves
    for row, other_row in zip(rows(tmp_path / "usual"), rows(tmp_path / "saving"), strict=True):
        assert other_row == pytest.approx(row, rel=1e-4)
    caching = [load_model(tmp_path / folder).model_.config.use_cache for folder in ("usual", "saving")]
    assert caching[0] == caching[1]


@pytest.mark.parametrize("rank", [None, 2])
def test_weights_are_trained_saved_and_loaded_in_their_type(rank, tmp_path):
    training = TrainingSettings(epochs=1, batch_size=12, weights="bfloat16", lora_rank=rank)
    model = SetGenerator("mini", training=training).fit(EXAMPLES, dev=DEV, folder=tmp_path / "run", progress=False)
    saved = load_file(tmp_path / "run" / "model.safetensors")
    assert {values.dtype for values in saved.values()} == {torch.bfloat16}
    again = load_model(tmp_path / "run")
    assert again.model_.dtype == torch.bfloat16
    assert [found.labels for found in again.predict(DEV)] == [found.labels for found in model.predict(DEV)]


def test_adapters_are_float32_on_weights_in_bfloat16():
    from setaug.models.neural.pretrained import add_adapters
    from tests.tiny import make_model

    model = add_adapters(deepcopy(make_model("t5")).to(torch.bfloat16), 2)
    types = {weights.requires_grad: weights.dtype for weights in model.parameters()}
    assert types == {True: torch.float32, False: torch.bfloat16}


def test_what_cannot_be():
    with pytest.raises(ValueError, match=r"weights must be one of float32, bfloat16, got 'int8'\."):
        TrainingSettings(weights="int8")
    with pytest.raises(ValueError, match=r"a classifier is trained with weights in float32\."):
        SetClassifier("tiny", training=TrainingSettings(weights="bfloat16")).fit(EXAMPLES)
