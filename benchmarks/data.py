"""Generated data of KP20k's size: 156,000 examples, 274,000 labels, 3.87 labels on average and up to 79.

python benchmarks/data.py kp20k.jsonl [--examples N] [--labels N]
"""

import argparse
from pathlib import Path

import numpy as np
import orjson

N_EXAMPLES, N_LABELS, MEAN_SIZE, MAX_SIZE = 156_000, 274_000, 3.87, 79
TEXT_WORDS = 170
"""So many words make the 1.1 kB of a title with its abstract."""


def words(n: int) -> list[str]:
    """Make up words."""
    heads = ["b", "ch", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v"]
    tails = ["a", "e", "i", "o", "u", "al", "an", "ar", "en", "er", "ic", "in", "on", "or", "us"]
    syllables = [head + tail for head in heads for tail in tails]
    return [first + second for first in syllables for second in syllables][:n]


def label_sets(n_examples: int, n_labels: int, seed: int = 0) -> list[list[int]]:
    """Draw sets of label numbers: every label at least once, the rest by Zipf's law."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(2 + rng.geometric(1 / (MEAN_SIZE - 2), n_examples), MAX_SIZE)
    sizes[rng.integers(n_examples)] = MAX_SIZE
    n_slots = int(sizes.sum())
    weights = 1 / (np.arange(n_labels) + 10.0)
    drawn = rng.choice(n_labels, max(n_slots - n_labels, 0), p=weights / weights.sum())
    slots = rng.permutation(np.concatenate([np.arange(n_labels), drawn]))[:n_slots].tolist()
    ends = np.cumsum(sizes).tolist()
    return [list(dict.fromkeys(slots[end - size : end])) for size, end in zip(sizes.tolist(), ends, strict=True)]


def write(path: Path, n_examples: int = N_EXAMPLES, n_labels: int = N_LABELS, seed: int = 0) -> None:
    """Write the examples as JSONL."""
    rng = np.random.default_rng(seed + 1)
    vocabulary = words(20_000)
    names = [f"{vocabulary[i % 7919]} {vocabulary[i % 17389]}" for i in range(n_labels)]
    with path.open("wb") as out:
        chunk = []
        for number, labels in enumerate(label_sets(n_examples, n_labels, seed)):
            if number % 10_000 == 0:
                text_words = rng.integers(0, len(vocabulary), 10_000 * TEXT_WORDS)
                out.write(b"".join(chunk))
                chunk = []
            start = number % 10_000 * TEXT_WORDS
            text = " ".join([vocabulary[k] for k in text_words[start : start + TEXT_WORDS].tolist()])
            row = {"id": number, "text": text, "labels": [names[k] for k in labels]}
            chunk.append(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        out.write(b"".join(chunk))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--examples", type=int, default=N_EXAMPLES)
    parser.add_argument("--labels", type=int, default=N_LABELS)
    arguments = parser.parse_args()
    write(arguments.path, arguments.examples, arguments.labels)
