r"""CARD (paper, section 3.2): an order of labels and the set's size, as text and back.

``3 | volleyball | match | event``

A label may hold any characters; ambiguous ones are escaped with a backslash (``\|`` the separator, ``\n`` a newline,
``\s`` a space at either end, ``\3`` the label "3" where sizes are written, ``\\`` a backslash). Decoding never raises:
the text comes from a model, so errors in it are reported, not thrown.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_NAMED = {"\n": "n", "\r": "r", "\t": "t", " ": "s"}
_BY_NAME = {name: char for char, name in _NAMED.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_MAX_DIGITS = 9
"""A longer number in front is a malformed size, not a set of billions."""


@dataclass(frozen=True, slots=True)
class DecodedSet:
    """What was read from a model's text."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class SetCodec:
    r"""Encodes an order of labels as text, and decodes it.

    Parameters
    ----------
    separator
        The text between two labels. Spaces around it are written, but optional when decoding.
    with_size
        Whether the size of the set comes first (CARD).

    Examples
    --------
    >>> codec = SetCodec()
    >>> codec.encode(["volleyball", "match", "event"])
    '3 | volleyball | match | event'
    >>> codec.decode("3 | volleyball | match | match")
    DecodedSet(labels=('volleyball', 'match'), size=3, repeated=('match',), malformed=())
    >>> print(codec.encode(["a|b", "1984"]))
    2 | a\|b | \1984
    >>> codec.encode([])
    '0'

    """

    separator: str = " | "
    with_size: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str):
            raise TypeError(f"separator must be a string, got {self.separator!r}.")
        if not self.separator:
            raise ValueError("separator must not be empty.")
        if self.mark[0].isalnum() or "\\" in self.separator:
            raise ValueError(
                "separator must not start with a letter or a digit, nor hold a backslash, because it would look like "
                f"a part of a label; got {self.separator!r}."
            )

    @property
    def mark(self) -> str:
        """The separator without surrounding spaces, as decoding finds it."""
        return self.separator.strip() or self.separator

    def encode(self, order: Iterable[str]) -> str:
        """Return the labels as text, in the given order, after their number."""
        if isinstance(order, str):
            raise TypeError(f"expected labels, got the string {order!r}.")
        parts = [self.encode_label(label) for label in order]
        return self.separator.join([str(len(parts)), *parts] if self.with_size else parts)

    def encode_label(self, label: str) -> str:
        """Return one label with escapes, the same at any position."""
        if label and not _suspicious(self.mark[0]).search(label):
            return label
        if not label.strip():
            raise ValueError(f"a label must not be empty or blank, got {label!r}.")
        if _is_number(label):
            return "\\" + label if self.with_size else label
        first, last = len(label) - len(label.lstrip()), len(label.rstrip())
        return "".join(
            _escape(char) if self._is_special(label, at, first, last) else char for at, char in enumerate(label)
        )

    def _is_special(self, label: str, at: int, first: int, last: int) -> bool:
        char = label[at]
        if char in "\\\n\r" or not first <= at < last:
            return True
        is_near_end = len(label) - at < len(self.mark)
        return label.startswith(self.mark, at) or (is_near_end and self.mark.startswith(label[at:]))

    def decode(self, text: str) -> DecodedSet:
        """Return the labels and the size in any text; never raises."""
        is_blank = not self.mark.strip()  # then whitespace around the text would look like separators
        parts = list(self._split(text.strip() if is_blank else text))
        size = None
        malformed = []
        first = parts[0][0].strip()
        if self.with_size and _is_number(first):
            del parts[0]
            if len(first) <= _MAX_DIGITS:
                size = int(first)
            else:
                malformed.append(first)
        elif len(parts) == 1 and not first:
            del parts[0]
        return self._collect(parts, size, malformed)

    def _collect(self, parts: list[tuple[str, str, bool]], size: int | None, malformed: list[str]) -> DecodedSet:
        labels: dict[str, None] = {}
        repeated = []
        for raw, label, is_whole in parts:
            if not is_whole or not label.strip():
                malformed.append(raw.strip())
            if not label.strip():
                continue
            if label in labels:
                repeated.append(label)
            labels[label] = None
        return DecodedSet(tuple(labels), size, tuple(repeated), tuple(malformed))

    def _split(self, text: str) -> Iterator[tuple[str, str, bool]]:
        """Split at unescaped separators; yield each part raw, decoded, and whether its escapes are valid."""
        start = 0
        for found in _stops(self.mark).finditer(text):
            if text[found.start()] != "\\":
                yield (raw := text[start : found.start()], *_read(raw))
                start = found.end()
        yield (raw := text[start:], *_read(raw))


@lru_cache
def _stops(mark: str) -> re.Pattern[str]:
    """Match the separator, and whatever is escaped, which is none."""
    return re.compile(rf"\\.|{re.escape(mark)}", re.DOTALL)


@lru_cache
def _suspicious(mark_start: str) -> re.Pattern[str]:
    """Return a pattern for labels that may need escapes; a quick check, since most labels need none."""
    return re.compile(rf"[\\\n\r{re.escape(mark_start)}]|^\s|\s$|^[0-9]+$")


def repeats(labels: Iterable[str]) -> tuple[str, ...]:
    """Return each further mention of a label that was written before.

    Examples
    --------
    >>> repeats(["joy", "love", "joy", "joy"])
    ('joy', 'joy')

    """
    seen: set[str] = set()
    return tuple(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _escape(char: str) -> str:
    if char.isspace() and char not in _NAMED:
        return f"\\u{ord(char):04x}"
    return "\\" + _NAMED.get(char, char)


def _read(raw: str) -> tuple[str, bool]:
    """Decode one part: strip unescaped whitespace around it, and undo escapes; also return whether they are valid."""
    stripped = raw.strip()
    if "\\" not in stripped:
        return stripped, True
    is_whole = True

    def unescape(found: re.Match[str]) -> str:
        nonlocal is_whole
        code, char = found.groups()
        if code is not None and not 0xD800 <= int(code, 16) < 0xE000:
            return chr(int(code, 16))
        if code is None and char not in ("", "u"):
            return _BY_NAME.get(char, char)
        is_whole = False
        return found.group()

    return _ESCAPE.sub(unescape, stripped), is_whole
