"""Models that start from nothing, and the switch that takes their positions away."""

from pathlib import Path
from typing import Any

import pytest
import torch

from setaug import SetGenerator, TrainingSettings
from setaug.examples import Example
from setaug.models.neural.scratch import SHAPES, Shape, forget_positions, scratch_generator, train_tokenizer

TEXT = "s0 s1 s2 s3 s4 s5"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer([TEXT] * 3)


def make(tokenizer: Any, name: str, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Any:
    shape = {"width": 16, "layers": 1, "heads": 2, "init_std": 0.3, "learning_rate": 1e-3}
    has_positions = SHAPES[name].has_positions
    monkeypatch.setitem(SHAPES, name, Shape(**{**shape, **changes}, has_positions=has_positions))
    return scratch_generator(name, tokenizer, max_length=20, seed=0).eval()


def next_token(model: Any, tokenizer: Any, source: str, written: str) -> torch.Tensor:
    """Give the distribution behind what was written so far."""
    start = [model.config.decoder_start_token_id]
    ids = start + tokenizer(written, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = model(
            input_ids=torch.tensor([tokenizer(source)["input_ids"]]), decoder_input_ids=torch.tensor([ids])
        ).logits
    return logits[0, -1].softmax(dim=0)


@pytest.mark.parametrize("layers", [1, 3])
def test_without_positions_the_same_token_again_and_again_is_the_same_everywhere(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, layers: int
) -> None:
    start = tokenizer.eos_token_id
    source = torch.tensor([tokenizer(TEXT)["input_ids"]])
    for name, is_blind in (("mini-no-positions", True), ("mini", False)):
        model = make(tokenizer, name, monkeypatch, layers=layers)
        with torch.inference_mode():
            logits = model(input_ids=source, decoder_input_ids=torch.full((1, 6), start)).logits[0]
        assert torch.allclose(logits, logits[:1].expand_as(logits), atol=1e-5) == is_blind


def test_without_positions_one_layer_cannot_tell_in_which_order_tokens_came(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, is_blind in (("mini-no-positions", True), ("mini", False)):
        model = make(tokenizer, name, monkeypatch, layers=1)
        one, other = (next_token(model, tokenizer, TEXT, text) for text in ("s1 s2 s3 s0", "s3 s1 s2 s0"))
        assert torch.allclose(one, other, atol=1e-6) == is_blind


def test_without_positions_the_encoder_reads_a_bag_of_words(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, is_blind in (("mini-no-positions", True), ("mini", False)):
        model = make(tokenizer, name, monkeypatch, layers=3)
        one, other = (next_token(model, tokenizer, text, "s1") for text in ("s0 s1 s2 s5", "s5 s2 s0 s1"))
        assert torch.allclose(one, other, atol=1e-5) == is_blind


def test_with_more_layers_the_causal_mask_still_tells_something_of_the_order(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(tokenizer, "mini-no-positions", monkeypatch, layers=2)
    one, other = (next_token(model, tokenizer, TEXT, text) for text in ("s1 s2 s3 s0", "s3 s1 s2 s0"))
    assert not torch.allclose(one, other, atol=1e-6)


def test_positions_stay_away_through_training_saving_and_loading(tmp_path: Path) -> None:
    examples = [Example("s0 s1", ["s1"]), Example("s2 s2", ["s2", "s0"])] * 4
    model = SetGenerator("mini-no-positions", training=TrainingSettings(epochs=1)).fit(examples, folder=tmp_path)
    assert model.score(examples) >= 0
    for each in (model, SetGenerator.from_pretrained(tmp_path)):
        for part in (each.model_.get_encoder(), each.model_.get_decoder()):
            assert not part.embed_positions.weight.any()


def test_forgetting_positions_changes_nothing_else(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, blind = (make(tokenizer, name, monkeypatch) for name in ("mini", "mini-no-positions"))
    for (name, one), (_, other) in zip(kept.named_parameters(), blind.named_parameters(), strict=True):
        assert torch.equal(one, other) or "embed_positions" in name
    assert forget_positions(kept) is kept


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_has_as_many_heads_as_divide_its_width(name: str) -> None:
    shape = SHAPES[name]
    assert shape.width % shape.heads == 0
    assert shape.has_positions == ("no-positions" not in name)


def test_base_from_scratch_has_the_shape_of_bart_base(tokenizer: Any) -> None:
    model = scratch_generator("base-from-scratch", tokenizer, max_length=20, seed=0)
    config = model.config
    assert (config.d_model, config.encoder_layers, config.decoder_layers) == (768, 6, 6)
    assert (config.encoder_attention_heads, config.encoder_ffn_dim, config.decoder_ffn_dim) == (12, 3072, 3072)
