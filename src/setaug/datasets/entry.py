"""A dataset and its entry in the registry: name, files, reader, and the traits that other modules act on."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from setaug.datasets.files import Distribution, Files
from setaug.examples import Example


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The three splits of a dataset."""

    name: str
    """The canonical name, including filters."""
    train: list[Example]
    dev: list[Example]
    test: list[Example]
    labels: tuple[str, ...] | None
    """All labels, if the distribution fixes them."""

    @property
    def splits(self) -> dict[str, list[Example]]:
        """The splits by name."""
        return {"train": self.train, "dev": self.dev, "test": self.test}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStatistics:
    """One row of the paper's Table 1, counted over all splits."""

    mean_labels: float
    min_labels: int
    max_labels: int
    n_labels: int
    """Number of distinct labels."""
    n_train: int
    n_test: int
    n_dev: int


@dataclass(frozen=True, kw_only=True)
class Hub:
    """A dataset on the Hugging Face Hub."""

    repository: str
    arguments: Mapping[str, Any]
    """Further arguments of ``datasets.load_dataset``."""
    convert: Callable[[Sequence[Any], str], Dataset]
    """Build the dataset from its three splits and the name of the repository."""


@dataclass(frozen=True)
class Filter:
    """A filter that only some datasets have."""

    help: str
    keep: Callable[[list[Example]], list[Example]]


@dataclass(frozen=True)
class Form:
    """Another form of the texts of a dataset."""

    help: str
    read: Callable[[Files], Dataset]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of labels, and what follows from it for training and scoring."""

    name: str
    vocabulary: str
    """``closed`` or ``open``."""
    keyphrases: Any = None
    """How to average keyphrase scores; None if the labels are no keyphrases."""
    filters: Mapping[str, Filter] = field(default_factory=dict)
    """Filters beyond those that all datasets have."""


CLOSED = Kind(name="closed labels", vocabulary="closed")


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """An entry of the registry."""

    name: str
    help: str
    distribution: Distribution
    read: Callable[[Files], Dataset]
    kind: Kind = CLOSED
    score: str = "samples_f1"
    """The score that the paper's numbers fit on this dataset."""
    forms: Mapping[str, Form] = field(default_factory=dict)
    """Other forms of its texts, by name."""
    hub: Hub | None = None
    paper_variant: str | None = None
    """The variant, with filters, that the paper's Table 1 describes."""
    paper: DatasetStatistics | None = None
    """Its row of Table 1, rounded as printed."""


def make_example(text: str, labels: Sequence[str], key: str) -> Example:
    """Return an example that keeps its id when it is written."""
    return Example(text, tuple(labels), key, {"id": key})


def choose(examples: Sequence[Example], n_chosen: int) -> list[Example]:
    """Return the examples whose ids have the smallest hashes, in their original order.

    Examples
    --------
    >>> examples = [make_example("", (), str(number)) for number in range(9)]
    >>> [example.id for example in choose(examples, 3)]
    ['0', '2', '5']

    """

    def rank(at: int) -> bytes:
        return hashlib.blake2b(str(examples[at].id).encode(), digest_size=16).digest()

    return [examples[at] for at in sorted(sorted(range(len(examples)), key=rank)[:n_chosen])]
