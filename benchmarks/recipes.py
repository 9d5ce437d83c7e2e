"""What other recipes of training are worth: trained with each, tuned on 150 dev texts, scored on other dev texts.

    OMP_NUM_THREADS=1 python benchmarks/recipes.py MODEL --data 'ufet[min2,train400]' --data-dir DIR -o recipes.jsonl

F1 is the mean over the sets, macro F that over the labels of the other dev texts; both of what `predict` returns, then
of the sets that the model writes. Runs whose result is in the file are not run again. No test data is read.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from setaug import Example, SetAugmenter, SetGenerator, TrainingSettings
from setaug.datasets import load_dataset
from setaug.datasets.entry import choose
from setaug.metrics import score_sets

N_DEV = 150
"""Dev examples that choose the checkpoint and tune the sets, as in the tables."""


def repeat_rare(examples: Sequence[Example]) -> list[Example]:
    """Return the examples, those with rare labels several times: the root of 5 % over the share of the rarest label."""
    counts = Counter(label for one in examples for label in one.labels)

    def times(one: Example) -> int:
        share = min((counts[label] / len(examples) for label in one.labels), default=1.0)
        return max(1, round(sqrt(0.05 / share)))

    return [one for one in examples for _ in range(times(one))]


RECIPES: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[Sequence[Example]], Sequence[Example]]]] = {
    "default": ({}, {}, list),
    "no label head": ({"label_head": False}, {}, list),
    "fresh orders": ({"fresh_orders": True}, {}, list),
    "1 order besides the given one": ({}, {"n_orders": 1}, list),
    "4 orders besides the given one": ({}, {"n_orders": 4}, list),
    "twice the rate": ({"learning_rate": 1e-3}, {}, list),
    "rare labels repeated": ({}, {}, repeat_rare),
}
"""Changes to the training settings, to the augmenter, and to the training data."""


def run(name: str, model: str, data: str, data_dir: str, *, seed: int, n_texts: int, precision: str) -> tuple[Any, ...]:
    """Train by a recipe; return the model, the dev texts that are scored, and the scores."""
    training, orders, change = RECIPES[name]
    dataset = load_dataset(data, data_dir)
    tuning = choose(dataset.dev, N_DEV)
    taken = {one.id for one in tuning}
    others = choose([one for one in dataset.dev if one.id not in taken], n_texts)
    began = time.process_time()
    generator = SetGenerator(
        model,
        augmenter=SetAugmenter(random_state=seed, **orders),
        training=TrainingSettings(precision=precision, seed=seed, **training),
    ).fit(change(dataset.train), dev=tuning, progress=False)
    found: dict[str, Any] = {"seconds": round(time.process_time() - began), "n_texts": len(others)}
    gold = [one.labels for one in others]
    for way in ("best", "written"):
        sets = score_sets(gold, [one.labels for one in generator.predict(others, choose=way)])
        found |= {f"{way}_f1": sets.samples_f1, f"{way}_macro_f1": sets.macro_f1}
    return generator, others, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", required=True, nargs="+")
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[15143, 27122, 999888])
    parser.add_argument("--texts", type=int, default=500, help="other dev texts, at most")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.output.read_text().splitlines()] if options.output.exists() else []
    done = {(row["recipe"], row["data"], row["seed"]) for row in rows}
    for seed in options.seeds:
        for data in options.data:
            for name in options.recipes:
                if (name, data, seed) in done:
                    continue
                settings = {"seed": seed, "n_texts": options.texts, "precision": options.precision}
                _, _, found = run(name, options.model, data, options.data_dir, **settings)
                rows.append({"recipe": name, "data": data, "seed": seed, **found})
                with options.output.open("a") as stream:
                    stream.write(json.dumps(rows[-1]) + "\n")
                print(rows[-1], flush=True)
    scores = ("best_f1", "best_macro_f1", "written_f1", "written_macro_f1")
    print(f"{'mean over seeds, per cent':60} {'F1':>6} {'macro':>6} {'as written':>13}   CPU seconds")
    for data in options.data:
        for name in options.recipes:
            runs = [row for row in rows if (row["recipe"], row["data"]) == (name, data)]
            means = [sum(row[key] for row in runs) / len(runs) for key in (*scores, "seconds")]
            values = " ".join(f"{100 * value:6.1f}" for value in means[:-1])
            print(f"{data:28} {name:31} {values} {means[-1]:9.0f}  ({len(runs)} seeds)")


if __name__ == "__main__":
    main()
