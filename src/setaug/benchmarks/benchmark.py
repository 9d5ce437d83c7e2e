"""A data set in three splits, and how a part of it is chosen that never changes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from setaug.examples import Example


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Hold the three splits of a data set."""

    name: str
    """The canonical name, with the filters."""
    train: list[Example]
    dev: list[Example]
    test: list[Example]
    labels: tuple[str, ...] | None
    """All labels that there are, where the distribution fixes them."""

    @property
    def splits(self) -> dict[str, list[Example]]:
        """The splits by name."""
        return {"train": self.train, "dev": self.dev, "test": self.test}


def make_example(text: str, labels: Sequence[str], key: str) -> Example:
    """Make an example whose id survives writing."""
    return Example(text, tuple(labels), key, {"id": key})


def choose(examples: Sequence[Example], n_chosen: int) -> list[Example]:
    """Take some examples, always the same: those whose ids have the smallest hash. They stay in order.

    Examples
    --------
    >>> examples = [make_example("", (), str(number)) for number in range(9)]
    >>> [example.id for example in choose(examples, 3)]
    ['0', '2', '5']

    """
    ranked = sorted(range(len(examples)), key=lambda at: _hash(examples[at]))
    return [examples[at] for at in sorted(ranked[:n_chosen])]


def _hash(example: Example) -> bytes:
    return hashlib.blake2b(str(example.id).encode(), digest_size=16).digest()
