"""Targets that share a prompt in one row: the loss and the gradient of separate rows, where a model can do that."""

from copy import deepcopy

import pytest
import torch
from transformers import BloomConfig, BloomForCausalLM, MistralConfig, MistralForCausalLM

from setaug.models import SetGenerator, TrainingSettings
from setaug.models.neural.batches import IGNORED
from setaug.models.neural.sharing import pack
from tests.conftest import DEV, EXAMPLES
from tests.models.test_shared_encoder import (
    EVEN,
    ITEMS,
    add_trained_adapters,
    assert_same,
    layout_of,
    run,
    run_alone,
)
from tests.tiny import make_model

IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def test_a_row_holds_the_prompt_once_and_each_target_sees_it_and_itself():
    x = IGNORED
    items = [{"input_ids": [5, 6], "targets": [[7, 2], [8, 2]]}, {"input_ids": [4], "targets": [[3, 2]]}]
    batch = pack(items, 1, torch.float32)
    assert batch["input_ids"].tolist() == [[5, 6, 7, 2, 6, 8, 2], [4, 3, 2, 1, 1, 1, 1]]
    assert batch["labels"].tolist() == [[x, x, 7, 2, x, 8, 2], [x, 3, 2, x, x, x, x]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 3, 1, 2, 3], [0, 1, 2, 0, 0, 0, 0]]
    assert (batch["attention_mask"][0, 0] == 0).long().tolist() == [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 0, 0, 0, 1, 0, 0],
        [1, 0, 0, 0, 1, 1, 0],
        [1, 0, 0, 0, 1, 1, 1],
    ]
    assert (batch["attention_mask"] == 0).any(dim=-1).all()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("items", [ITEMS, EVEN, ITEMS[:1]], ids=["different", "equal", "one"])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("has_adapters", [False, True], ids=["all weights", "LoRA"])
def test_loss_and_gradient_are_those_of_targets_alone(kind, items, has_adapters, attention):
    model = deepcopy(make_model(kind)).double().eval()
    model.set_attn_implementation(attention)
    if has_adapters:
        model = add_trained_adapters(model)
    layout = layout_of(model)
    assert layout.collator() == layout.pack
    wanted = run_alone(model, items)
    wanted = (wanted[0], {name: slope.clone() for name, slope in wanted[1].items()})
    assert all(("lora" in name) == has_adapters for name in wanted[1])
    for collate in (layout.pack, layout.repeat):
        batch = collate(items)
        assert batch["n_targets"].tolist() == [len(item["targets"]) for item in items]
        assert_same(run(model, layout, batch), wanted)


def windowed(window):
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(0)
    config = MistralConfig(vocab_size=400, num_key_value_heads=2, sliding_window=window, **sizes, **IDS)
    return MistralForCausalLM(config)


def test_a_model_for_which_it_would_not_be_the_same_gets_separate_rows():
    torch.manual_seed(0)
    deaf = BloomForCausalLM(BloomConfig(vocab_size=400, hidden_size=16, n_layer=1, n_head=2, **IDS))
    for model, can_pack in ((deaf, False), (windowed(8), False), (windowed(64), True)):
        layout = layout_of(model.train())
        assert layout.collator() == (layout.pack if can_pack else layout.repeat)
        assert model.training


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_run_with_shared_prompts_ends_as_one_with_separate_rows(precision, monkeypatch):
    from setaug.models.neural.layouts import Causal

    settings = TrainingSettings(epochs=1, precision=precision)
    packed = SetGenerator("mini-causal", training=settings).fit(EXAMPLES)
    monkeypatch.setattr(Causal, "collator", lambda self: self.repeat)
    apart = SetGenerator("mini-causal", training=settings).fit(EXAMPLES)
    close = {"atol": 1e-4, "rtol": 1e-3} if precision == "float32" else {"atol": 0.02, "rtol": 0.1}
    for (name, one), other in zip(packed.model_.named_parameters(), apart.model_.parameters(), strict=True):
        torch.testing.assert_close(one, other, **close, msg=name)
    scores = [model.score_orders(DEV, [[one.labels, one.labels[::-1]] for one in DEV]) for model in (packed, apart)]
    assert torch.tensor(scores[0]).allclose(torch.tensor(scores[1]), rtol=1e-2 if precision == "float32" else 0.1)
