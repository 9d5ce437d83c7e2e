"""Dev data: a part of the training data if none is given, and the part of it that rules are tuned on."""

import random
from collections import Counter
from collections.abc import Sequence
from math import ceil

from setaug.examples import Example

MAX_HELD_OUT = 500
"""Maximum number of held-out examples: more would only slow down each evaluation."""
MAX_TUNING = 300
"""Maximum number of dev examples that decide how a model that writes chooses sets; more would only take longer."""
MAX_TUNING_SCORED = 1000
"""The same for classifiers: each example takes a row of memory with all labels."""


def hold_out(examples: Sequence[Example], *, fraction: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Return the examples to train on and those held out, both in their given order.

    The draw depends on the seed and the examples alone. Examples with the same text stay together, so that no
    held-out text is trained on. An example is trained on if it has a label that no other one would teach: so each
    label of the data remains known, and fewer may be held out than asked for.

    Parameters
    ----------
    fraction
        The part to hold out, from 0 to below 1: rounded up, and at most 500 examples.

    Examples
    --------
    >>> examples = [Example(f"text {at}", ["even" if at % 2 == 0 else "odd"]) for at in range(200)]
    >>> train, dev = hold_out(examples, fraction=0.1, seed=0)
    >>> len(train), len(dev)
    (180, 20)

    """
    wanted = min(ceil(len(examples) * fraction), MAX_HELD_OUT)
    groups: dict[str, list[int]] = {}
    for at, example in enumerate(examples):
        groups.setdefault(example.text, []).append(at)
    texts = list(groups)
    random.Random(seed).shuffle(texts)
    left = Counter(label for example in examples for label in example.labels)
    held: set[int] = set()
    for text in texts:
        group = groups[text]
        lost = Counter(label for at in group for label in examples[at].labels)
        if len(held) + len(group) <= wanted and all(left[label] > count for label, count in lost.items()):
            held.update(group)
            left -= lost
    kept = [example for at, example in enumerate(examples) if at not in held]
    return kept, [examples[at] for at in sorted(held)]


def count_shared(examples: Sequence[Example], dev: Sequence[Example]) -> int:
    """Return how many dev texts are also training texts: on those, any model looks better than it is."""
    texts = {example.text for example in examples}
    return sum(example.text in texts for example in dev)


def sample_dev(dev: Sequence[Example], *, at_most: int) -> list[Example]:
    """Return the dev examples to tune with: all, or as many as allowed, the same for every model."""
    return list(dev) if len(dev) <= at_most else random.Random(0).sample(dev, at_most)
