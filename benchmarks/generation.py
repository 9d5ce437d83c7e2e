"""Measure how many texts a second a trained model writes sets for, against ``model.generate``, in one run.

    OMP_NUM_THREADS=1 python benchmarks/generation.py MODEL TEXTS.jsonl [--texts 256] [--batch 32] [--repeat 2]

MODEL is a folder of ``setaug train``. ``plain`` is ``model.generate`` without a constraint on the texts as they come,
``constrained`` the same with the set constraint. Both are greedy, and so is ``setaug``; ``default`` is what
``setaug predict`` does by default: the best set by the probabilities of all labels.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from setaug import SetGenerator, read_examples
from setaug.models.neural.batches import evaluating, on_device
from setaug.settings import Decoding


def by_generate(writer: Any, texts: list[str], batch: int, *, constrained: bool) -> list[Any]:
    constraint = writer.constraint(Decoding().sizes(writer.largest)) if constrained else None
    prompts, _ = writer.layout.read(texts)
    found = []
    with evaluating(writer.model):
        for first in range(0, len(prompts), batch):
            inputs = on_device(writer.layout.inputs(prompts[first : first + batch]), writer.model.device)
            start = writer.layout.start(inputs)
            options: dict[str, Any] = {"max_new_tokens": writer.layout.max_target_length}
            if constraint is not None:
                constraint.start = start
                options["logits_processor"] = [constraint]
            rows = writer.model.generate(**inputs, do_sample=False, num_beams=1, **options)
            found += [writer.read(row, constraint).labels for row in rows[:, start:].tolist()]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--texts", dest="n_texts", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    texts = [example.text for example in read_examples(Path(options.texts))][: options.n_texts]
    model = SetGenerator.from_pretrained(options.model)
    batch = options.batch
    ways = {
        "plain": lambda: by_generate(model.network_, texts, batch, constrained=False),
        "constrained": lambda: by_generate(model.network_, texts, batch, constrained=True),
        "setaug": lambda: [one.labels for one in model.predict(texts, batch_size=batch, choose="written")],
        "default": lambda: model.predict(texts, batch_size=batch),
        "16 samples": lambda: model.predict(texts, batch_size=batch, samples=16),
    }
    for _ in range(options.repeat):
        seconds, found = {}, {}
        for name, run in ways.items():
            start = time.process_time()
            found[name] = run()
            seconds[name] = time.process_time() - start
        rates = ", ".join(f"{name} {len(texts) / value:.1f}" for name, value in seconds.items())
        same = sum(one == two for one, two in zip(found["constrained"], found["setaug"], strict=True))
        print(f"texts per CPU second: {rates}")
        print(
            f"  setaug {seconds['plain'] / seconds['setaug']:.2f} times plain, "
            f"{seconds['constrained'] / seconds['setaug']:.2f} times constrained; the same set for {same} of "
            f"{len(texts)} texts; the default takes {seconds['default'] / seconds['setaug']:.2f} times as long, "
            f"16 samples {seconds['16 samples'] / seconds['setaug']:.2f} times"
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
