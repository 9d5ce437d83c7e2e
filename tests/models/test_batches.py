"""Batches: padding, and inputs of similar length together, in an order that depends on seed and epoch alone."""

from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForSequenceClassification,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertLMHeadModel,
    BertModel,
    EncoderDecoderModel,
    RobertaConfig,
)

from setaug import SetGenerator
from setaug.models.neural.batches import TOKENS_PER_ROW, LengthGroups, by_length, cut, pad_inputs, readable_length
from setaug.models.neural.classifier import Scorer
from setaug.models.neural.layouts import make_layout
from setaug.models.neural.scratch import train_tokenizer
from tests.conftest import EXAMPLES
from tests.tiny import make_model

LENGTHS = [int(n) for n in torch.randint(1, 50, (200,), generator=torch.Generator().manual_seed(0))]


def test_inputs_are_padded_behind_or_before():
    for side, ids, mask in (
        ("right", [[5, 1, 2], [2, 1, 1]], [[1, 1, 1], [1, 0, 0]]),
        ("left", [[5, 1, 2], [1, 1, 2]], [[1, 1, 1], [0, 0, 1]]),
    ):
        batch = pad_inputs([[5, 1, 2], [2]], 1, side=side)
        assert {name: values.tolist() for name, values in batch.items()} == {"input_ids": ids, "attention_mask": mask}


def test_similar_lengths_stand_together_and_each_once():
    order = list(LengthGroups(LENGTHS, 10, seed=3))
    assert sorted(order) == list(range(200))
    spread = [
        max(LENGTHS[at] for at in order[i : i + 10]) - min(LENGTHS[at] for at in order[i : i + 10])
        for i in range(0, 200, 10)
    ]
    assert sum(spread) / len(spread) < 15
    assert len(LengthGroups(LENGTHS, 10, seed=3)) == 200


def test_the_order_depends_on_seed_and_epoch_and_on_nothing_else():
    groups = LengthGroups(LENGTHS, 8, seed=3)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = list(groups)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert list(groups) == first
    assert list(LengthGroups(LENGTHS, 8, seed=4)) != first
    groups.begin_epoch(1)
    assert list(groups) != first
    groups.begin_epoch(0)
    assert list(groups) == first


def test_texts_are_cut_only_where_they_are_too_long():
    tokenizer = train_tokenizer(["one two three"])
    texts = ["one", "one two three one two three"]
    whole = tokenizer(texts)["input_ids"]
    assert cut(tokenizer, texts, 100) == (whole, 0)
    short, n_long = cut(tokenizer, texts, 5)
    assert n_long == 1
    assert short[0] == whole[0][:5]
    assert len(short[1]) == 5
    assert cut(tokenizer, [], 5) == ([], 0)


def test_texts_are_cut_to_the_positions_of_the_encoder():
    tokenizer, text = train_tokenizer(["one two three"]), "one two three " * 20
    small = {"vocab_size": len(tokenizer), "max_position_embeddings": 24}
    widths = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    bert, roberta = BertConfig(**small, **widths), RobertaConfig(**small, **widths)
    bart = BartConfig(**small, d_model=16, encoder_layers=1, decoder_layers=1)
    with torch.inference_mode():
        for config in (bert, roberta):
            scorer = Scorer(
                AutoModelForSequenceClassification.from_config(config), tokenizer, ["a", "b"], "{text}", 256
            )
            assert scorer.read([text])[1] == 1
            assert scorer.probabilities([text], 1, None).shape == (1, 2)
        for model in (
            BartForConditionalGeneration(bart),
            EncoderDecoderModel(encoder=BertModel(bert), decoder=_decoder(bert)),
        ):
            layout = make_layout(model, tokenizer, around_text=("", ""), max_source_length=256, max_target_length=20)
            (prompt,), n_cut = layout.read([text])
            assert (len(prompt), n_cut) == (22, 1)
            model.get_encoder()(**layout.inputs([prompt]))
    assert readable_length(make_model("t5"), 10_000) == 10_000
    assert readable_length(SimpleNamespace(config=SimpleNamespace(max_position_embeddings=-1)), 99) == 99  # XLNet


def _decoder(config: BertConfig) -> BertLMHeadModel:
    return BertLMHeadModel(BertConfig(**config.to_dict() | {"is_decoder": True, "add_cross_attention": True}))


@given(st.lists(st.integers(1, 400), max_size=60), st.integers(1, 9))
def test_batches_are_bounded_by_rows_and_by_padded_tokens(lengths: list[int], size: int) -> None:
    rows = [[0] * length for length in lengths]
    batches = list(by_length(rows, size))
    assert sorted(at for batch in batches for at in batch) == list(range(len(rows)))
    order = [lengths[at] for batch in batches for at in batch]
    assert order == sorted(order)
    for batch, following in zip_longest(batches, batches[1:]):
        longest = max(lengths[at] for at in batch)
        assert len(batch) <= size
        assert len(batch) == 1 or len(batch) * longest <= size * TOKENS_PER_ROW
        if following is not None:  # it is as full as it can be
            assert len(batch) == size or (len(batch) + 1) * lengths[following[0]] > size * TOKENS_PER_ROW


@pytest.mark.parametrize("changes", [{}, {"samples": 4}])
def test_sets_are_the_same_however_texts_are_divided(
    generator: SetGenerator, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [example.text * (1 + at % 5) for at, example in enumerate(EXAMPLES[:20])]
    whole = generator.predict(texts, **changes)
    monkeypatch.setattr("setaug.models.neural.batches.TOKENS_PER_ROW", 3)
    divided = generator.predict(texts, **changes)
    assert [one.labels for one in divided] == [one.labels for one in whole]
