"""Measure what the set constraint adds to a step of generation, against the same number of steps without it.

    OMP_NUM_THREADS=1 python benchmarks/constraint.py [--model FOLDER] [--labels 30 3000 30000] [--repeat 3]

Greedy search. Without a folder the model is a T5 of about 60 million random weights, with a tokenizer trained here.
"""

import argparse
import time
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    LogitsProcessor,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from setaug.models.neural.constraint import SetConstraint

CONSONANTS, VOWELS = "bcdfghjklmnprstvwz", "aeiou"
N_TOKENS = 32_128


def make_labels(n_labels: int) -> list[str]:
    """Give different labels of one to three made-up words, the words of some in others."""
    syllables = [consonant + vowel for consonant in CONSONANTS for vowel in VOWELS]

    def word(number: int) -> str:
        text = ""
        while number or not text:
            number, digit = divmod(number, len(syllables))
            text += syllables[digit]
        return text

    words = [word(7 * number + 1000) for number in range(n_labels)]
    return [" ".join(words[number // step] for step in (1, 3, 9)[: 1 + number % 3]) for number in range(n_labels)]


class Timed(LogitsProcessor):
    """Add up the time that another processor takes."""

    def __init__(self, timed: LogitsProcessor) -> None:
        self.timed = timed
        self.seconds = 0.0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Call it."""
        start = time.perf_counter()
        scores = self.timed(input_ids, scores)
        self.seconds += time.perf_counter() - start
        return scores


def make_model() -> tuple[Any, Any]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    trainer = trainers.BpeTrainer(vocab_size=N_TOKENS, special_tokens=list(special.values()), show_progress=False)
    lines = (f"{number % 21} | {label}" for number, label in enumerate(make_labels(30_000)))
    tokenizer.train_from_iterator(lines, trainer)
    config = T5Config(vocab_size=N_TOKENS, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
    return T5ForConditionalGeneration(config), PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder with an encoder-decoder and its tokenizer")
    parser.add_argument("--labels", nargs="*", type=int, default=[30, 3_000, 30_000])
    parser.add_argument("--size", type=int, default=10, help="labels in each set")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if options.model:
        model = AutoModelForSeq2SeqLM.from_pretrained(options.model)
        tokenizer = AutoTokenizer.from_pretrained(options.model)
    else:
        model, tokenizer = make_model()
    model.eval()
    texts = [f"text {number} about " + " ".join(make_labels(30)) for number in range(options.batch)]
    encoded = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=64)
    inputs = {name: encoded[name] for name in ("input_ids", "attention_mask")}

    def run(**settings: Any) -> tuple[float, int]:
        start = time.perf_counter()
        rows = model.generate(**inputs, num_beams=1, do_sample=False, **settings)
        return time.perf_counter() - start, rows.shape[1] - 1

    print(f"{sum(weights.numel() for weights in model.parameters()) / 1e6:.0f} million weights, batch {options.batch}")
    for n_labels in options.labels:
        start = time.perf_counter()
        constraint = SetConstraint.for_model(model, tokenizer, make_labels(n_labels), sizes=options.size)
        made = time.perf_counter() - start
        print(f"{n_labels:,} labels, the constraint made in {made:.2f} s")
        for _ in range(options.repeat):
            timed = Timed(constraint)
            ours, n_steps = run(logits_processor=[timed], max_new_tokens=constraint.max_new_tokens)
            plain, _ = run(min_new_tokens=n_steps, max_new_tokens=n_steps)
            plain_step, step, inside = (1000 * seconds / n_steps for seconds in (plain, ours, timed.seconds))
            print(
                f"  {n_steps} steps: {plain_step:.1f} ms a step, constrained {step:.1f} ms, ratio {ours / plain:.2f};"
                f" in the constraint {inside:.2f} ms, {timed.seconds / ours:.1%}"
            )


if __name__ == "__main__":
    with torch.inference_mode():
        main()
