"""``--model tiny``: a small BART-shaped model from scratch, with a tokenizer trained on the data. No download."""

from collections.abc import Iterable
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartForSequenceClassification,
    PreTrainedTokenizerFast,
)

_SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


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


def tiny_encoder_decoder(tokenizer: Any, *, max_length: int, seed: int) -> Any:
    """Build a BART of 2 + 2 layers and width 128, with weights drawn by the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BartForConditionalGeneration(_config(tokenizer, max_length))


def tiny_classifier(tokenizer: Any, labels: list[str], *, max_length: int, seed: int) -> Any:
    """Build the same with a head that scores each label."""
    names = dict(enumerate(labels))
    config = _config(
        tokenizer, max_length, num_labels=len(labels), id2label=names, problem_type="multi_label_classification"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BartForSequenceClassification(config)


def _config(tokenizer: Any, max_length: int, **options: Any) -> BartConfig:
    return BartConfig(
        vocab_size=len(tokenizer),
        d_model=128,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=512,
        decoder_ffn_dim=512,
        max_position_embeddings=max(max_length, 512),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=None,
        init_std=0.1,  # about 1 / sqrt(width); BART's own 0.02 is for larger widths, and here hardly learns
        **options,
    )
