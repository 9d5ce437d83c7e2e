"""What sharing the encoder, rows of the decoder or the prompt save, and padding per batch: ratios of steps in one run.

    OMP_NUM_THREADS=1 python benchmarks/training.py [--model FOLDER] [--causal] [--data train.jsonl] [--orders 2]

Without --model, a T5 of about 60M weights is built from its configuration, with --causal a Llama of 6 layers and about
23M weights; without --data, examples are made up, and for --causal put together to texts of about 80 tokens.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration
from transformers.utils import logging

from setaug import Example, SetAugmenter, read_examples
from setaug.codec import SetCodec
from setaug.models.neural.batches import IGNORED, Item
from setaug.models.neural.constraint import SetConstraint
from setaug.models.neural.generator import orders
from setaug.models.neural.layouts import Causal, Layout, make_layout
from setaug.models.neural.pretrained import load_for_generation
from setaug.models.neural.scratch import train_tokenizer
from setaug.models.neural.training.objectives import ClosedCollator, training_loss
from setaug.sample import sample_examples

LIMIT = 120
"""The paper's limit for texts and targets."""


def load(options: argparse.Namespace, texts: list[str]) -> tuple[Any, Any]:
    if options.model is not None:
        return load_for_generation(options.model)
    tokenizer = train_tokenizer(texts)
    ids = {"pad_token_id": 1, "eos_token_id": 2}
    if options.causal:
        sizes = {"hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 6, "num_attention_heads": 8}
        return LlamaForCausalLM(LlamaConfig(vocab_size=4096, **sizes, **ids)), tokenizer
    sizes = {"d_model": 512, "d_ff": 1024, "num_layers": 8, "num_heads": 6}
    return T5ForConditionalGeneration(T5Config(vocab_size=32_128, decoder_start_token_id=1, **sizes, **ids)), tokenizer


def make_examples(options: argparse.Namespace) -> list[Example]:
    if options.data:
        return list(read_examples(options.data))
    if not options.causal:
        return list(sample_examples(500))
    made = list(sample_examples(2000))
    return [Example(" ".join(one.text for one in made[at : at + 5]), made[at].labels) for at in range(0, 2000, 5)]


def pad_to_limit(batch: dict[str, torch.Tensor], pad: int) -> dict[str, torch.Tensor]:
    values = {"input_ids": pad, "attention_mask": 0, "decoder_input_ids": pad, "labels": IGNORED}
    return {
        name: torch.nn.functional.pad(rows, (0, LIMIT - rows.shape[1]), value=values[name]) if name in values else rows
        for name, rows in batch.items()
    }


def one_by_one(items: list[Item]) -> list[Item]:
    return [{"input_ids": item["input_ids"], "targets": [target]} for item in items for target in item["targets"]]


def make_ways(layout: Layout, parts: list[list[Item]]) -> dict[str, list[dict[str, torch.Tensor]]]:
    """Give the same examples as batches of each kind."""
    if isinstance(layout, Causal):
        assert layout.collator() == layout.pack
        return {
            "shared prompt": [layout.pack(items) for items in parts],
            "repeated prompt": [layout.repeat(items) for items in parts],
        }
    assert layout.collator() == layout.pack
    pad = layout.model.config.pad_token_id
    return {
        "one decoder row per example": [layout.pack(items) for items in parts],
        "one decoder row per target": [layout.repeat(items) for items in parts],
        "repeated inputs": [layout.repeat(one_by_one(items)) for items in parts],
        "repeated inputs, padded to 120": [pad_to_limit(layout.repeat(one_by_one(items)), pad) for items in parts],
    }


def timed(step: Callable[[dict[str, torch.Tensor]], None], batches: list[dict[str, torch.Tensor]]) -> float:
    began = time.process_time()  # of one thread: others may use the machine, too
    for batch in batches:
        step(batch)
    return (time.process_time() - began) / len(batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--data")
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    examples = make_examples(options)
    model, tokenizer = load(options, [example.text for example in examples])
    layout = make_layout(model, tokenizer, around_text=("", ""), max_source_length=LIMIT, max_target_length=LIMIT)
    written = orders(SetAugmenter(n_orders=options.orders).fit(examples), examples)
    inputs, _ = layout.read([example.text for example in examples])
    items: list[Item] = [
        {"input_ids": ids, "targets": [row[:LIMIT] for row in rows]}
        for ids, rows in zip(inputs, layout.targets(written), strict=True)
    ]
    items.sort(key=lambda item: len(item["input_ids"]))  # batches of similar length, as in training
    starts = torch.linspace(0, len(items) - options.batch_size, options.steps).long().tolist()
    model.train()

    def step(batch: dict[str, torch.Tensor]) -> None:
        training_loss(layout, model, batch, "closed" if "allowed" in batch else "plain").backward()
        model.zero_grad()

    parts = [items[start : start + options.batch_size] for start in starts]
    labels = list(dict.fromkeys(label for example in examples for label in example.labels))
    sets = SetConstraint.for_model(model, tokenizer, labels, codec=SetCodec()).automaton
    closed = ClosedCollator(layout.pack, sets, sets.tokens.tolist())
    ways = {**make_ways(layout, parts), "as the first, objective closed": [closed(part) for part in parts]}
    for batches in ways.values():
        timed(step, batches)  # warm up
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, batches in ways.items():
            times[name].append(timed(step, batches))
    report(times, items, options)


def report(times: dict[str, list[float]], items: list[Item], options: argparse.Namespace) -> None:
    base = next(iter(times.values()))
    n_tokens = statistics.mean(len(item["input_ids"]) for item in items)
    print(
        f"{options.batch_size} examples per step, prompts of {n_tokens:.0f} tokens, {options.orders + 1} targets each"
    )
    for name, seconds in times.items():
        ratios = [value / own for value, own in zip(seconds, base, strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(
            f"{name:34} {statistics.median(seconds) * 1000:7.0f} ms/step   {statistics.median(ratios):.2f} ({spread})"
        )


if __name__ == "__main__":
    main()
