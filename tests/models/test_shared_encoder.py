"""Targets that share an encoder and a row of the decoder: the loss and the gradient of targets alone, at less cost."""

from contextlib import nullcontext
from copy import deepcopy

import pytest
import torch
from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

from setaug.models.neural.batches import IGNORED
from setaug.models.neural.layouts import make_layout
from setaug.models.neural.pretrained import add_adapters
from setaug.models.neural.sharing import shared_encoder
from setaug.models.neural.training.objectives import training_loss
from tests.tiny import make_model, make_tokenizer

ITEMS = [
    {"input_ids": [5, 6, 7, 8, 2], "targets": [[9, 10, 2]]},
    {"input_ids": [9, 2], "targets": [[5, 2], [11, 12, 13, 14, 2], [6, 6, 2]]},
    {"input_ids": [3, 4, 2], "targets": [[7, 2], [8, 9, 2]]},
]
EVEN = [{**item, "targets": [item["targets"][0], [20, 21, 2]]} for item in ITEMS]


def encoder_decoder():
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    encoder, decoder = (BertConfig(vocab_size=40, **sizes) for _ in range(2))
    config = EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.update({"pad_token_id": 1, "decoder_start_token_id": 2, "eos_token_id": 2})
    torch.manual_seed(0)
    return EncoderDecoderModel(config)


def make(kind):
    model = encoder_decoder() if kind == "bert2bert" else deepcopy(make_model(kind))
    return model.double().eval()


def gradients(model):
    return {name: weights.grad for name, weights in model.named_parameters() if weights.grad is not None}


def layout_of(model, **lengths):
    lengths = {"max_source_length": 10, "max_target_length": 10, **lengths}
    return make_layout(model, make_tokenizer("bytes"), around_text=("", ""), **lengths)


def run(model, layout, batch):
    """Return the log-probability of each target and the gradient of the plain loss."""
    model.zero_grad()
    values = layout.log_probabilities(model, batch)
    training_loss(layout, model, batch, "plain").backward()
    return values.detach(), {name: slope.clone() for name, slope in gradients(model).items()}


def run_alone(model, items):
    """Let transformers score each target by itself, with its own loss: no padding, nothing shared."""
    model.zero_grad()
    values, losses, n_tokens = [], [], 0
    for item in items:
        for target in item["targets"]:
            prompt, n = item["input_ids"], len(target)
            if model.config.is_encoder_decoder:
                row, labels = prompt, target
            else:
                row, labels = prompt + target, [IGNORED] * len(prompt) + target
            losses.append(model(input_ids=torch.tensor([row]), labels=torch.tensor([labels])).loss * n)
            values.append(-losses[-1].detach())
            n_tokens += n
    (sum(losses) / n_tokens).backward()
    return torch.stack(values), gradients(model)


def add_trained_adapters(model):
    model = add_adapters(model, 2).double().eval()
    for name, weights in model.named_parameters():
        if "lora_B" in name:  # they start at zero, and so would hide the others' gradients
            torch.nn.init.normal_(weights, generator=torch.Generator().manual_seed(0))
    return model


def assert_same(found, wanted):
    (values, slopes), (wanted_values, wanted_slopes) = found, wanted
    torch.testing.assert_close(values, wanted_values, rtol=1e-5, atol=1e-5, check_dtype=False)
    assert slopes.keys() == wanted_slopes.keys()
    for name in slopes:  # normalised in single precision, in part
        torch.testing.assert_close(slopes[name], wanted_slopes[name], rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("items", [ITEMS, EVEN, ITEMS[:1]], ids=["different", "equal", "one"])
@pytest.mark.parametrize("kind", ["bart", "t5", "bert2bert"])
@pytest.mark.filterwarnings("ignore:Version v4.12.0 introduces a better way")  # by each encoder-decoder put together
@pytest.mark.parametrize("has_adapters", [False, True], ids=["all weights", "LoRA"])
def test_loss_and_gradient_are_those_of_targets_alone(kind, items, has_adapters):
    model = make(kind)
    if has_adapters:
        model = add_trained_adapters(model)
    layout = layout_of(model)
    assert layout.collator() == (layout.repeat if kind == "bert2bert" else layout.pack)
    wanted = run_alone(model, items)
    assert any("encoder" in name and gradient.any() for name, gradient in wanted[1].items())
    assert all(("lora" in name) == has_adapters for name in wanted[1])
    wanted = (wanted[0], {name: slope.clone() for name, slope in wanted[1].items()})
    for collate in {layout.collator(), layout.repeat}:
        assert_same(run(model, layout, collate(items)), wanted)


def test_a_row_of_the_decoder_holds_all_targets_and_each_sees_itself():
    x = IGNORED
    items = [{"input_ids": [5, 6], "targets": [[7, 2], [8, 9, 2]]}, {"input_ids": [4], "targets": [[3, 2]]}]
    batch = layout_of(make("bart")).pack(items)
    assert batch["input_ids"].tolist() == [[5, 6], [4, 1]]
    assert batch["decoder_input_ids"].tolist() == [[2, 7, 2, 8, 9], [2, 3, 1, 1, 1]]
    assert batch["labels"].tolist() == [[7, 2, 8, 9, 2], [3, 2, x, x, x]]
    assert batch["positions"].tolist() == [[0, 1, 0, 1, 2], [0, 1, 0, 0, 0]]
    assert batch["lengths"].tolist() == [2, 3, 2]
    assert (batch["decoder_attention_mask"][0, 0] == 0).long().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 1, 1, 1],
    ]


def test_a_row_that_has_too_few_places_is_not_packed():
    layout = layout_of(make("bart"))
    n_places = layout.model.config.max_position_embeddings
    items = [{"input_ids": [4, 2], "targets": [[5] * 9 + [2]] * (n_places // 10 + 1)}]
    assert "positions" not in layout.pack(items)
    values = layout.log_probabilities(layout.model, layout.pack(items))
    torch.testing.assert_close(values, values[:1].expand(len(values)))


def test_a_decoder_that_heeds_no_positions_gets_a_row_per_target(monkeypatch):
    """Without restarted positions a BART reads the second target of a row elsewhere: the trial finds that out."""
    monkeypatch.setattr("setaug.models.neural.layouts.restarted_positions", lambda model, positions: nullcontext())
    layout = layout_of(make("bart").train())
    assert layout.collator() == layout.repeat
    assert layout.model.training


@pytest.mark.parametrize("kind", ["bart", "t5", "gpt2", "llama"])
def test_the_output_layer_sees_only_what_is_learnt(kind):
    model = make(kind)
    layout = layout_of(model)
    for collate in (layout.pack, layout.repeat):
        batch = collate(ITEMS)
        assert layout._can_select
        seen = []
        layer = model.get_output_embeddings()
        hook = layer.register_forward_hook(lambda module, args, output, seen=seen: seen.append(args[0]))
        layout.logits(model, batch)
        hook.remove()
        assert [len(states) for states in seen] == [sum(len(one) for item in ITEMS for one in item["targets"])]
    assert not model.get_output_embeddings()._forward_pre_hooks


def test_the_encoder_runs_once_per_example():
    model = make("bart")
    layout = layout_of(model)
    for collate in (layout.pack, layout.repeat):
        batch, seen = collate(ITEMS), []
        hook = model.model.encoder.layers[0].register_forward_hook(
            lambda *args, seen=seen: seen.append(len(args[1][0]))
        )
        layout.run(model, batch)
        hook.remove()
        assert seen == [3]


def test_afterwards_the_model_is_as_it_was():
    model = make("t5")
    with pytest.raises(RuntimeError, match="on purpose"), shared_encoder(model, torch.tensor([2])):
        raise RuntimeError("on purpose")
    assert not model.get_encoder()._forward_hooks
    assert not model.get_encoder()._forward_pre_hooks
