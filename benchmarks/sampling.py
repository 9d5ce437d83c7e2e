"""What sets chosen from many generations are worth, against one greedy set: temperatures, ways to choose, weights.

    OMP_NUM_THREADS=1 python benchmarks/sampling.py MODEL dev.jsonl test.jsonl [--samples 16] [--temperatures 0.5 1]

MODEL is a folder of ``setaug train``. The threshold of "threshold, tuned" and the calibration come from the dev data.
Weights by likelihood: each different text counts by the model's probability for it, instead of once per draw.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from setaug import Decoding, Example, SetGenerator, read_examples
from setaug.decoding.samples import Calibration, best_for_f1, choose, label_shares
from setaug.metrics import score_sets

Sets = list[tuple[str, ...]]


class Drawn:
    """Hold what was drawn for some examples."""

    def __init__(self, model: SetGenerator, examples: list[Example], decoding: Decoding, *, n_each: int) -> None:
        writer = model.network_
        texts = [example.text for example in examples]
        self.gold = [example.labels for example in examples]
        self.written = writer.write(texts, decoding, n_each=n_each)
        self.sets: list[Sets] = [[one.labels for one in ones] for ones in self.written]
        self.shares = [label_shares(sets) for sets in self.sets]
        self.sizes = writer.sizes(texts, decoding) if model.augmenter.with_size else None
        self.weights = [weigh(model, text, ones) for text, ones in zip(texts, self.written, strict=True)]

    def choose(self, way: str, probabilities: Sequence[Any] | None = None, threshold: float = 0.5) -> Sets:
        """Choose a set for each example."""
        found = []
        for at, sets in enumerate(self.sets):
            sizes = self.sizes[at] if self.sizes else {len(one): 1 / len(sets) for one in sets}
            shares = (probabilities or self.shares)[at]
            found.append(choose(way, sets, probabilities=shares, sizes=sizes, threshold=threshold))
        return found

    def by_likelihood(self) -> Sets:
        """Choose for expected F1, each different text by its probability."""
        return [
            tuple(best_for_f1(list(weights), list(weights.values())))  # type: ignore[arg-type]
            for weights in self.weights
        ]


def weigh(model: SetGenerator, text: str, ones: Sequence[Any]) -> dict[tuple[str, ...], float]:
    """Give each different set the sum of the probabilities of the different texts that were drawn for it."""
    texts = {one.generation: tuple(sorted(one.labels)) for one in ones}
    (found,) = model.network_.score([text], [list(texts)])
    scores = torch.tensor(found, dtype=torch.double).softmax(dim=0).tolist()
    weights: dict[tuple[str, ...], float] = {}
    for labels, score in zip(texts.values(), scores, strict=True):
        weights[labels] = weights.get(labels, 0.0) + score
    return weights


def best_threshold(dev: Drawn) -> float:
    grid = np.arange(1, 20) / 20
    return float(max(grid, key=lambda level: f1(dev.choose("threshold", threshold=level), dev.gold)))


def f1(found: Sets, gold: Sequence[Any]) -> float:
    return score_sets(gold, found).samples_f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("dev")
    parser.add_argument("test")
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.5, 0.7, 1.0])
    parser.add_argument("--limit", type=int, help="use only so many dev and test examples")
    options = parser.parse_args()
    model = SetGenerator.from_pretrained(options.model)
    dev, test = (list(islice(read_examples(path), options.limit)) for path in (options.dev, options.test))
    gold = [example.labels for example in test]
    print(f"{options.model}: {len(test)} test examples, {options.samples} samples", flush=True)
    show("text, greedy", [found.labels for found in model.predict(test, constrained=False)], gold)
    show("set, greedy", [found.labels for found in model.predict(test, choose="written")], gold)
    show("set, beam of 5", [found.labels for found in model.predict(test, name="beam")], gold)
    for temperature in options.temperatures:
        decoding = Decoding(name="random", temperature=temperature)
        study(
            Drawn(model, dev, decoding, n_each=options.samples),
            Drawn(model, test, decoding, n_each=options.samples),
            f"T={temperature:g}",
        )
    beams = Decoding(name="beam", n_beams=options.samples)
    drawn = Drawn(model, test, beams, n_each=options.samples)
    show("beams, expected F1 by likelihood", drawn.by_likelihood(), gold)


def study(dev: Drawn, test: Drawn, name: str) -> None:
    threshold = best_threshold(dev)
    calibration = Calibration.fit(dev.shares, dev.gold)
    calibrated = [calibration(shares) for shares in test.shares]
    ways: dict[str, Callable[[], Sets]] = {
        "one sample": lambda: [sets[0] for sets in test.sets],
        "threshold, 0.5": lambda: test.choose("threshold"),
        f"threshold, tuned ({threshold:g})": lambda: test.choose("threshold", threshold=threshold),
        "likeliest size": lambda: test.choose("size"),
        "expected F1": lambda: test.choose("expected-f1"),
        "expected Jaccard": lambda: test.choose("expected-jaccard"),
        "expected F1, by likelihood": test.by_likelihood,
    }
    for way, chosen in ways.items():
        show(f"{name}, {way}", chosen(), test.gold)
    before, after = (brier(shares, test.gold) for shares in (test.shares, calibrated))
    print(f"  {name}: Brier score of the shares {before:.4f}, calibrated on dev {after:.4f}", flush=True)


def brier(shares: Sequence[Any], gold: Sequence[Any]) -> float:
    errors = [
        (share - (label in true)) ** 2
        for found, true in zip(shares, gold, strict=True)
        for label, share in found.items()
    ]
    return float(np.mean(errors))


def show(name: str, found: Sets, gold: Sequence[Any]) -> None:
    scores = score_sets(gold, found)
    numbers = " ".join(
        f"{100 * value:6.1f}" for value in (scores.samples_f1, scores.macro_f1, scores.micro_f1, scores.jaccard)
    )
    print(f"  {name:36} samples/macro/micro F, Jaccard {numbers}   size {scores.mean_predicted_size:.2f}", flush=True)


if __name__ == "__main__":
    main()
