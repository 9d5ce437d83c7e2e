"""The vocabulary: the known labels, and matching text to them up to case and white space."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from setaug.examples import Example, check_labels
from setaug.orders.statistics import LabelStatistics

SHARED = "texts of the dev data are also in the training data"
_TOO_MANY = 0.5
"""If so many of the dev texts are training texts, it is no coincidence: short texts repeat."""
JOINED = "most labels look like several labels in one"
_SAMPLE = 1000
"""How many labels are looked at to see whether they are joined."""


def check_vocabulary(vocabulary: str | Sequence[str]) -> None:
    """Raise unless the vocabulary is ``closed``, ``open`` or a list of labels."""
    if not isinstance(vocabulary, str):
        check_labels(vocabulary, "vocabulary")
    elif vocabulary not in ("closed", "open"):
        raise ValueError(f"vocabulary must be closed, open, or a list of labels, got {vocabulary!r}.")


def known_labels(
    statistics: LabelStatistics, vocabulary: str | Sequence[str], *, dev: Iterable[Example] = ()
) -> list[str] | None:
    """Return the labels that may be written, most frequent first, then those of dev data; None if any may be."""
    if vocabulary == "open":
        return None
    seen = [label for label, _ in statistics.most_common()]
    given = [] if isinstance(vocabulary, str) else vocabulary
    return list(dict.fromkeys([*seen, *(label for one in dev for label in one.labels), *given]))


def joined_label(labels: Iterable[str]) -> tuple[str, str] | None:
    """Return a label that looks like several, and their separator, if most of the first labels look so.

    Examples
    --------
    >>> joined_label(["joy,love", "fear", "love,pride"]), joined_label(["['joy', 'love']"])
    (('joy,love', ','), ("['joy', 'love']", '['))
    >>> joined_label(["joy", "love", "Smith, John"])

    """
    sample = list(islice(labels, _SAMPLE))
    for mark in ("[", ",", ";", "|", "\t"):
        joined = [label for label in sample if _is_joined(label, mark)]
        if 2 * len(joined) > len(sample):
            return joined[0], mark
    return None


def joined_sentence(joined: tuple[str, str], remedy: str) -> str:
    """Return the warning about a label that looks like several, with what to do."""
    label, _ = joined
    start = label if len(label) <= 60 else label[:60] + "..."
    return f"{JOINED}, such as {start!r}; {remedy}"


def warn_of_joined(labels: Iterable[str]) -> None:
    """Warn in Python if most labels look like several in one."""
    if joined := joined_label(labels):
        remedy = "parse them as lists first, such as with ast.literal_eval"
        if joined[1] != "[":
            remedy = f"if these are several labels, split them first, such as with .split({joined[1]!r})"
        warnings.warn(joined_sentence(joined, remedy), stacklevel=3)


def shared_sentence(n_shared: int, n_dev: int) -> str | None:
    """Return the warning about dev texts that are also training texts, if these are too many to be a coincidence."""
    if n_shared < max(n_dev * _TOO_MANY, 1):
        return None
    return f"{n_shared:,} of {n_dev:,} {SHARED}; scores on them, and sets tuned on them, are too optimistic"


def warn_of_shared(n_shared: int, n_dev: int) -> None:
    """Warn in Python if many dev texts are also training texts."""
    if sentence := shared_sentence(n_shared, n_dev):
        warnings.warn(sentence, stacklevel=3)


@contextmanager
def unwarned() -> Iterator[None]:
    """Ignore the warnings of this module, where they are given in another way."""
    with warnings.catch_warnings():
        for message in (JOINED, SHARED):
            warnings.filterwarnings("ignore", message=f".*{message}")
        yield


def _is_joined(label: str, mark: str) -> bool:
    return label[0] + label[-1] == "[]" if mark == "[" else mark in label.strip(mark)


class LabelIndex:
    """An index that matches text to labels.

    Examples
    --------
    >>> index = LabelIndex(["joy", "US", "us", "New York"])
    >>> index.find("new  york"), index.find("us"), index.find("Us"), index.find("sorrow")
    ('New York', 'us', None, None)

    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = frozenset(labels)
        self._by_form: dict[str, list[str]] = {}
        for label in sorted(self._labels):
            self._by_form.setdefault(_form(label), []).append(label)

    def __contains__(self, text: str) -> bool:
        return text in self._labels

    def find(self, text: str) -> str | None:
        """Return the label that equals the text, or the only one that does up to case and white space."""
        if text in self._labels:
            return text
        alike = self._by_form.get(_form(text), [])
        return alike[0] if len(alike) == 1 else None


def _form(text: str) -> str:
    return " ".join(text.casefold().split())
