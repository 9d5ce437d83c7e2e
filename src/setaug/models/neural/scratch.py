"""``--model tiny``: models that start from nothing, with a tokenizer trained on the data. No download.

They have the shape of BART, or of Llama where the name says causal.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from setaug.errors import ModelError

_SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a model from scratch."""

    width: int
    layers: int
    """Those of the encoder, and as many of the decoder; of a causal model, all of them."""
    heads: int
    init_std: float
    """About 1 / sqrt(width), or more; with BART's own 0.02 a narrow model hardly learns."""
    learning_rate: float
    """The one to train it with, where none is given."""
    dropout: float = 0.1
    has_positions: bool = True
    is_causal: bool = False


_SIZED = {
    "mini": Shape(width=64, layers=2, heads=4, init_std=0.12, learning_rate=1e-3, dropout=0.0),
    "tiny": Shape(width=128, layers=2, heads=4, init_std=0.1, learning_rate=1e-3),
    "base-from-scratch": Shape(width=768, layers=6, heads=12, init_std=0.02, learning_rate=1e-4),
}
SHAPES = {
    **_SIZED,
    **{f"{name}-no-positions": replace(shape, has_positions=False) for name, shape in _SIZED.items()},
    **{f"{name}-causal": replace(_SIZED[name], is_causal=True) for name in ("mini", "tiny")},
}
"""Models by name. ``base-from-scratch`` has the shape of BART-base, as the paper's simulations."""


def train_tokenizer(texts: Iterable[str], *, vocabulary: int = 4096) -> Any:
    """Train a byte-level BPE tokenizer, which can write any text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=list(_SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    end = _SPECIAL["eos_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokenizer.token_to_id(end))]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **_SPECIAL)


def scratch_generator(name: str, tokenizer: Any, *, max_length: int, seed: int) -> Any:
    """Build the model of a name in `SHAPES`, with weights drawn by the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if SHAPES[name].is_causal:
            return LlamaForCausalLM(_causal_config(SHAPES[name], tokenizer, max_length))
        return _built(name, BartForConditionalGeneration(_config(SHAPES[name], tokenizer, max_length)))


def scratch_classifier(name: str, tokenizer: Any, labels: list[str], *, max_length: int, seed: int) -> Any:
    """Build the same with a head that scores each label."""
    if SHAPES[name].is_causal:
        raise ModelError(f"{name} is a causal model and cannot be a classifier; use tiny or mini.")
    names = dict(enumerate(labels))
    options = {"num_labels": len(labels), "id2label": names, "problem_type": "multi_label_classification"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _built(name, BartForSequenceClassification(_config(SHAPES[name], tokenizer, max_length, **options)))


def _built(name: str, model: Any) -> Any:
    return model if SHAPES[name].has_positions else forget_positions(model)


def forget_positions(model: Any) -> Any:
    """Set a BART's position embeddings to zero, and keep training from changing them (the paper's Finding 3).

    A token then looks the same wherever it stands. What remains of its place is the decoder's causal mask: a decoder
    of one layer cannot tell in which order the tokens before came, one of more layers can in part.
    """
    for part in (model.get_encoder(), model.get_decoder()):
        part.embed_positions.weight.requires_grad_(False).zero_()
    return model


def _config(shape: Shape, tokenizer: Any, max_length: int, **options: Any) -> BartConfig:
    return BartConfig(
        vocab_size=len(tokenizer),
        d_model=shape.width,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=4 * shape.width,
        decoder_ffn_dim=4 * shape.width,
        max_position_embeddings=max(max_length, 512),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=None,
        init_std=shape.init_std,
        dropout=shape.dropout,
        **options,
    )


def _causal_config(shape: Shape, tokenizer: Any, max_length: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.width,
        intermediate_size=4 * shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        max_position_embeddings=max(3 * max_length, 512),  # for a prompt, what stands around its text, and a target
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=shape.init_std,
        attention_dropout=shape.dropout,
        tie_word_embeddings=True,
    )
