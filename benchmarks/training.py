"""What sharing the encoder and padding per batch save: time per training step, as ratios in one run.

    OMP_NUM_THREADS=1 python benchmarks/training.py [--model FOLDER] [--data train.jsonl] [--orders 2]

Without --model, a T5 of about 60M weights is built from its configuration; without --data, examples are made up.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, T5Config, T5ForConditionalGeneration
from transformers.utils import logging

from setaug import SetAugmenter, read_examples
from setaug.models import targets
from setaug.models.batches import IGNORED, Collator, cut
from setaug.models.scratch import train_tokenizer
from setaug.models.sharing import SharedEncoder
from setaug.sample import sample_examples

LIMIT = 120
"""The paper's limit for texts and targets."""


def load(name: str | None, texts: list[str]) -> tuple[Any, Any]:
    if name is not None:
        return AutoModelForSeq2SeqLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)
    tokenizer = train_tokenizer(texts)
    config = T5Config(
        vocab_size=32_128, d_model=512, d_ff=1024, num_layers=8, num_heads=6, pad_token_id=1, decoder_start_token_id=1
    )
    return T5ForConditionalGeneration(config), tokenizer


def pad_to_limit(batch: dict[str, torch.Tensor], pad: int) -> dict[str, torch.Tensor]:
    values = {"input_ids": pad, "attention_mask": 0, "labels": IGNORED}
    return {
        name: torch.nn.functional.pad(rows, (0, LIMIT - rows.shape[1]), value=values[name]) if name in values else rows
        for name, rows in batch.items()
    }


def repeat(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    n_targets = batch["n_targets"]
    rows = {name: batch[name].repeat_interleave(n_targets, dim=0) for name in ("input_ids", "attention_mask")}
    return {**rows, "labels": batch["labels"]}


def timed(step: Callable[[dict[str, torch.Tensor]], None], batches: list[dict[str, torch.Tensor]]) -> float:
    began = time.perf_counter()
    for batch in batches:
        step(batch)
    return (time.perf_counter() - began) / len(batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--data")
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    examples = list(read_examples(options.data) if options.data else sample_examples(500))
    model, tokenizer = load(options.model, [example.text for example in examples])
    augmenter = SetAugmenter(n_orders=options.orders).fit(examples)
    written = targets.orders(augmenter, examples)
    inputs, _ = cut(tokenizer, [example.text for example in examples], LIMIT)
    items = [
        {"input_ids": ids, "targets": [row[:LIMIT] for row in tokenizer(texts)["input_ids"]]}
        for ids, texts in zip(inputs, written, strict=True)
    ]
    items.sort(key=lambda item: len(item["input_ids"]))  # batches of similar length, as in training
    pad = tokenizer.pad_token_id
    starts = torch.linspace(0, len(items) - options.batch_size, options.steps).long().tolist()
    batches = [Collator(pad)(items[start : start + options.batch_size]) for start in starts]
    shared = SharedEncoder(model)
    model.train()

    def step_shared(batch: dict[str, torch.Tensor]) -> None:
        mask = batch["attention_mask"].repeat_interleave(batch["n_targets"], dim=0)
        with shared.serving(batch["n_targets"]):
            model(input_ids=batch["input_ids"], attention_mask=mask, labels=batch["labels"]).loss.backward()
        model.zero_grad()

    def step_repeated(batch: dict[str, torch.Tensor]) -> None:
        model(**repeat(batch)).loss.backward()
        model.zero_grad()

    ways: dict[str, Callable[[], float]] = {
        "shared encoder, padded per batch": lambda: timed(step_shared, batches),
        "repeated inputs, padded per batch": lambda: timed(step_repeated, batches),
        "shared encoder, padded to 120": lambda: timed(step_shared, [pad_to_limit(batch, pad) for batch in batches]),
    }
    for way in ways.values():
        way()  # warm up
    times = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            times[name].append(way())
    report(times, examples, options)


def report(times: dict[str, list[float]], examples: list[Any], options: argparse.Namespace) -> None:
    base = next(iter(times.values()))
    print(f"{len(examples)} examples, {options.batch_size} per step with {options.orders + 1} targets each")
    for name, seconds in times.items():
        ratios = [value / own for value, own in zip(seconds, base, strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(
            f"{name:34} {statistics.median(seconds) * 1000:7.0f} ms/step   {statistics.median(ratios):.2f} ({spread})"
        )


if __name__ == "__main__":
    main()
