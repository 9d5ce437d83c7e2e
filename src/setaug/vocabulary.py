"""The labels that there are, and which one is meant by a text that differs only in case and white space."""

from collections.abc import Iterable, Sequence

from setaug.examples import check_labels
from setaug.orders.statistics import LabelStatistics


def check_vocabulary(vocabulary: str | Sequence[str]) -> None:
    """Raise unless it is ``closed``, ``open`` or a list of labels."""
    if not isinstance(vocabulary, str):
        check_labels(vocabulary, "vocabulary")
    elif vocabulary not in ("closed", "open"):
        raise ValueError(f"vocabulary must be closed, open, or a list of labels, got {vocabulary!r}.")


def known_labels(statistics: LabelStatistics, vocabulary: str | Sequence[str]) -> list[str] | None:
    """Give the labels that may be written, frequent ones first; None for an open vocabulary."""
    if vocabulary == "open":
        return None
    counted = zip(statistics.labels, statistics.counts.tolist(), strict=True)
    seen = [label for label, _ in sorted(counted, key=lambda pair: (-pair[1], pair[0]))]
    return seen if isinstance(vocabulary, str) else list(dict.fromkeys([*seen, *vocabulary]))


class LabelIndex:
    """Find the label that a text means.

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
        """Give the label itself, or the only one that differs from it in nothing but case and white space."""
        if text in self._labels:
            return text
        alike = self._by_form.get(_form(text), [])
        return alike[0] if len(alike) == 1 else None


def _form(text: str) -> str:
    return " ".join(text.casefold().split())
