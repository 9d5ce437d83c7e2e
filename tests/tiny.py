"""Tokenizers of each kind, trained on a few lines, and models of each kind, with random weights."""

import copy
import json
from functools import cache

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

LABELS = [
    "volleyball",
    "volleyball match",
    "match",
    "event",
    "sporting event",
    "New York",
    "York",
    "a|b",
    "1984",
    "3",
    " padded ",
    "back\\slash",
    "two\nlines",
    "日本",
    "日本 語",
    "naïve café",
    "c++",
    "state-of-the-art",
    "🎉",
    "x",
]
"""Labels that hold each other, separators, escapes, spaces, numbers, and letters of several bytes."""

CORPUS = (
    *(" | ".join([str(number), *LABELS[number % 7 :: 3]]) for number in range(31)),
    *LABELS,
    "the zoo has a volleyball event , an apple and I match it with state of the art words\\",
    "0 1 2 3 4 5 6 7 8 9 ; : , - + abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ",
)
JSON_CORPUS = (
    *CORPUS,
    *(json.dumps({"size": number, "labels": LABELS[number % 7 :: 3]}, ensure_ascii=False) for number in range(31)),
    *(json.dumps([label, 'a"b', "\x00"]) for label in LABELS),
)
SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
CHAT_TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}\n"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] }}</s>{% endgeneration %}"
    "{% else %}{{ message['content'] }}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)
KINDS = ("bytes", "unigram", "wordpiece", "words")


def _untrained(kind):
    """Give a tokenizer, and what trains it."""
    special = {"special_tokens": list(SPECIAL.values()), "show_progress": False}
    if kind == "bytes":  # GPT-2, BART
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        return tokenizer, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, **special)
    if kind == "unigram":  # T5
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        return tokenizer, trainers.UnigramTrainer(vocab_size=180, unk_token="<unk>", **special)
    if kind == "wordpiece":  # BERT, uncased
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        return tokenizer, trainers.WordPieceTrainer(vocab_size=200, **special)
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer, trainers.WordLevelTrainer(vocab_size=200, **special)


@cache
def make_tokenizer(kind, side="right", corpus=CORPUS):
    tokenizer, trainer = _untrained(kind)
    tokenizer.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, padding_side=side, **SPECIAL)


@cache
def make_model(kind, n_tokens=400):
    """Give a model of a few thousand weights; it has more places than there are tokens."""
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(0)
    match kind:
        case "t5":
            sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
            model = T5ForConditionalGeneration(T5Config(vocab_size=n_tokens, decoder_start_token_id=1, **sizes, **ids))
        case "bart":
            layers = {f"{part}_{what}": 1 for part in ("encoder", "decoder") for what in ("layers", "attention_heads")}
            widths = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 1024}
            config = BartConfig(vocab_size=n_tokens, decoder_start_token_id=2, **layers, **widths, **ids)
            model = BartForConditionalGeneration(config)
            model.generation_config.forced_bos_token_id = 0
        case "gpt2":
            model = GPT2LMHeadModel(
                GPT2Config(vocab_size=n_tokens, n_positions=1024, n_embd=16, n_layer=1, n_head=2, **ids)
            )
        case "llama":
            widths = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
            model = LlamaForCausalLM(LlamaConfig(vocab_size=n_tokens, **widths, **ids))
    # Weights as small as usual would make all tokens alike.
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(20 if weights.ndim > 1 else 1)
    return model.eval()


def make_chat_tokenizer():
    """Give a new tokenizer with a chat template."""
    tokenizer = copy.deepcopy(make_tokenizer("bytes"))
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def make_causal_model(tokenizer):
    """Give a new causal model that can learn a few lines by heart."""
    torch.manual_seed(0)
    widths = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), initializer_range=0.1, **widths, **ids))
