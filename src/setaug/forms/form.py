"""What every written form has: the texts around labels, escapes, and decoding that never raises."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

MAX_DIGITS = 9
"""A longer number is a malformed size, not a set of billions."""


@dataclass(frozen=True, slots=True)
class DecodedSet:
    """The set in a whole text, with the flaws of the text; nothing is known about the vocabulary yet."""

    labels: tuple[str, ...]
    """The distinct labels, in the order written."""
    size: int | None = None
    """The size that the text states, if any."""
    repeated: tuple[str, ...] = ()
    """Repetitions of labels."""
    malformed: tuple[str, ...] = ()
    """Malformed parts, as in the text: empty ones, and those with broken escapes (whose label is kept)."""

    @property
    def agrees(self) -> bool:
        """Whether the stated size is the number of distinct labels."""
        return self.size == len(self.labels)


@dataclass(frozen=True, kw_only=True)
class WrittenForm(ABC):
    """A written form: the size (if it is written), then each label between two texts, or a text for the empty set.

    The first label follows `first`, each further one follows `before`; the last label is followed by `last`, each
    earlier one by `after`. The codec, the compiled loops and the constraint use these texts. Texts are tokenized in
    parts, split between `after` and `before` and between the size and `first`, so put a space there.

    Parameters
    ----------
    with_size
        Whether the size of the set comes first (CARD).

    """

    with_size: bool = True

    is_one_line: ClassVar[bool] = True
    """Whether a language model is expected to answer in one line."""

    @property
    def first(self) -> str:
        """The text before the first label."""
        return ""

    @property
    @abstractmethod
    def before(self) -> str:
        """The text before each further label."""

    @property
    def after(self) -> str:
        """The text after a label that another one follows."""
        return ""

    @property
    def last(self) -> str:
        """The text after the last label."""
        return ""

    @property
    def empty(self) -> str:
        """The text in place of labels, if there are none."""
        return ""

    @property
    def special(self) -> str | None:
        """Characters that `escape` changes; None if not known, which is slower.

        Labels without any of them, without backslashes, quotes and controls, with no white space at either end, and
        that are no number are copied without a call of `escape`.
        """
        return None

    @property
    @abstractmethod
    def description(self) -> str:
        """What to write, for the instruction to a language model: "Label the text: write ..."."""

    @abstractmethod
    def size_text(self, size: int) -> str:
        """Return the text of the size; it is empty if sizes are not written."""

    @abstractmethod
    def escape(self, label: str) -> str:
        """Return a label that is not blank with escapes, the same at any position."""

    @abstractmethod
    def decode(self, text: str) -> DecodedSet:
        """Return the labels and the size in any text; never raises."""

    def unfinished(self, raw: str) -> str | None:
        """Return the unfinished escape at the end of a prefix of an escaped label; None if it is not a valid prefix.

        This decides what a model can write in an open vocabulary. By default there are no escapes, and a label cannot
        contain the texts that may follow it.
        """
        return None if any(mark in raw for mark in self.marks) else ""

    @property
    def marks(self) -> frozenset[str]:
        """The characters that show where a label ends."""
        return frozenset((text.strip() or text)[0] for text in (self.between, self.last) if text)

    @property
    def between(self) -> str:
        """The text between two labels."""
        return self.after + self.before

    @property
    def unsized(self) -> Self:
        """The same form without sizes."""
        return replace(self, with_size=False)

    def opening(self, size: int) -> str:
        """Return the text before the first label, or the whole text of the empty set."""
        return self.size_text(size) + (self.first if size else self.empty)

    def encode_label(self, label: str) -> str:
        """Return one label with escapes; raise if it is blank."""
        if not label.strip():
            raise ValueError(f"a label must not be empty or blank, got {label!r}.")
        return self.escape(label)

    def encode(self, order: Iterable[str]) -> str:
        """Return the labels as text, in the given order."""
        parts = [self.encode_label(label) for label in order]
        if not parts:
            return self.opening(0)
        return self.opening(len(parts)) + self.between.join(parts) + self.last

    def list_labels(self, labels: Iterable[str]) -> str:
        """Return labels as in a set, without their number."""
        parts = [self.encode_label(label) for label in labels]
        bare = self.unsized
        return bare.first + self.between.join(parts) + bare.last if parts else bare.empty

    def read_label(self, raw: str) -> str | None:
        """Return the label that an escaped label stands for; None if it is not exactly one."""
        bare = self.unsized
        read = bare.decode(bare.first + raw + bare.last)
        return read.labels[0] if len(read.labels) == 1 and not (read.malformed or read.repeated) else None


def collect(parts: Iterable[tuple[str, str, bool]], size: int | None, malformed: Iterable[str] = ()) -> DecodedSet:
    """Return the set that parts make: each is a part as in the text, its label, and whether it is well-formed."""
    labels: dict[str, None] = {}
    repeated, broken = [], list(malformed)
    for raw, label, is_whole in parts:
        if not is_whole or not label.strip():
            broken.append(raw)
        if not label.strip():
            continue
        if label in labels:
            repeated.append(label)
        labels[label] = None
    return DecodedSet(tuple(labels), size, tuple(repeated), tuple(broken))


def is_number(text: str) -> bool:
    """Return whether a text is ASCII digits alone."""
    return text.isascii() and text.isdigit()
