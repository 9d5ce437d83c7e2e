"""The shared encoder: the loss and the gradient of repeating each input, at less cost."""

from copy import deepcopy

import pytest
import torch
from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

from setaug.models.neural.layouts import make_layout, shared_encoder
from setaug.models.neural.pretrained import add_adapters
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


def run(model, batch):
    model.zero_grad()
    output = model(**batch)
    output.loss.backward()
    return output, gradients(model)


def make_batch(model, items):
    layout = make_layout(
        model, make_tokenizer("bytes"), around_text=("", ""), max_source_length=20, max_target_length=20
    )
    batch = layout.collator()(items)
    return {**batch, "attention_mask": batch["attention_mask"].repeat_interleave(batch["n_targets"], dim=0)}


def shared_and_repeated(model, items):
    batch = make_batch(model, items)
    n_targets = batch.pop("n_targets")
    with shared_encoder(model, n_targets):
        first = run(model, batch)
    return first, run(model, {**batch, "input_ids": batch["input_ids"].repeat_interleave(n_targets, dim=0)})


@pytest.mark.parametrize("items", [ITEMS, EVEN, ITEMS[:1]], ids=["different", "equal", "one"])
@pytest.mark.parametrize("kind", ["bart", "t5", "bert2bert"])
@pytest.mark.filterwarnings("ignore:Version v4.12.0 introduces a better way")  # by each encoder-decoder put together
@pytest.mark.parametrize("has_adapters", [False, True], ids=["all weights", "LoRA"])
def test_loss_and_gradient_are_those_of_repeated_inputs(kind, items, has_adapters):
    model = make(kind)
    if has_adapters:
        model = add_adapters(model, 2).double().eval()
        for name, weights in model.named_parameters():
            if "lora_B" in name:  # they start at zero, and so would hide the others' gradients
                torch.nn.init.normal_(weights, generator=torch.Generator().manual_seed(0))
    (one, one_gradients), (two, two_gradients) = shared_and_repeated(model, items)
    torch.testing.assert_close(one.loss, two.loss)
    torch.testing.assert_close(one.logits, two.logits)
    assert one_gradients.keys() == two_gradients.keys()
    assert any("encoder" in name and gradient.any() for name, gradient in one_gradients.items())
    assert all(("lora" in name) == has_adapters for name in one_gradients)
    for name in one_gradients:  # T5 normalises in single precision
        torch.testing.assert_close(one_gradients[name], two_gradients[name], rtol=1e-4, atol=1e-6, msg=name)


def test_the_encoder_runs_once_per_example():
    model = make("bart")
    batch = make_batch(model, ITEMS)
    seen = []
    model.model.encoder.layers[0].register_forward_hook(lambda module, args, output: seen.append(len(args[0])))
    with shared_encoder(model, batch.pop("n_targets")):
        model(**batch)
    assert seen == [3]


def test_afterwards_the_model_is_as_it_was():
    model = make("t5")
    with pytest.raises(RuntimeError, match="on purpose"), shared_encoder(model, torch.tensor([2])):
        raise RuntimeError("on purpose")
    assert not model.get_encoder()._forward_hooks
    assert not model.get_encoder()._forward_pre_hooks
