r"""CARD (paper, section 3.2): an order of labels and the set's size, as text and back.

``3 | volleyball | match | event``

A label may hold anything but nothing: what would be misread is escaped with a backslash (``\|`` the separator,
``\n`` a newline, ``\s`` a space at either end, ``\3`` the label "3" where sizes are written, ``\\`` a backslash).
Reading never raises: a model wrote the text, so whatever is wrong with it is reported, not thrown.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_NAMED = {"\n": "n", "\r": "r", "\t": "t", " ": "s"}
_BY_NAME = {name: char for char, name in _NAMED.items()}
_HEX = frozenset("0123456789abcdefABCDEF")
_MAX_DIGITS = 9
"""A longer number in front is a malformed size, not a set of billions."""


@dataclass(frozen=True, slots=True)
class DecodedSet:
    """Hold what was read from a model's text."""

    labels: tuple[str, ...]
    """The different labels, in the order written."""
    size: int | None = None
    """The size that the text states; None where it states none."""
    repeated: tuple[str, ...] = ()
    """Each further mention of a label that was written before."""
    malformed: tuple[str, ...] = ()
    """The parts that are no label, as they stand in the text: empty ones, and broken escapes (whose label is kept)."""

    @property
    def agrees(self) -> bool:
        """Tell whether the stated size is the number of different labels written."""
        return self.size == len(self.labels)


@dataclass(frozen=True, kw_only=True, slots=True)
class SetCodec:
    r"""Write an order of labels as text, and read it back.

    Parameters
    ----------
    separator
        What stands between two labels. Spaces around it are written, but not needed when reading.
    size
        Whether the set's size stands in front (CARD).

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
    size: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str):
            raise TypeError(f"separator must be a string, got {self.separator!r}.")
        if not self.separator:
            raise ValueError("separator must not be empty.")
        if self.mark[0].isalnum() or "\\" in self.separator:
            raise ValueError(
                "separator must not start with a letter or a digit, nor hold a backslash: it would be taken "
                f"for a part of a label. Got {self.separator!r}."
            )

    @property
    def mark(self) -> str:
        """The separator without the spaces around it: what reading looks for."""
        return self.separator.strip() or self.separator

    def encode(self, order: Iterable[str]) -> str:
        """Write the labels, in the order given, behind their number."""
        if isinstance(order, str):
            raise TypeError(f"expected labels, got the string {order!r}.")
        parts = [self.encode_label(label) for label in order]
        return self.separator.join([str(len(parts)), *parts] if self.size else parts)

    def encode_label(self, label: str) -> str:
        """Write one label, escaped where it would be misread; the same wherever it stands."""
        if label and not _suspicious(self.mark[0]).search(label):
            return label
        if not label.strip():
            raise ValueError(f"a label must not be empty or blank, got {label!r}.")
        if _is_number(label):
            return "\\" + label if self.size else label
        first, last = len(label) - len(label.lstrip()), len(label.rstrip())
        return "".join(
            _escape(char) if self._is_special(label, at, first, last) else char for at, char in enumerate(label)
        )

    def _is_special(self, label: str, at: int, first: int, last: int) -> bool:
        char = label[at]
        if char in "\\\n\r" or not first <= at < last:
            return True
        rest = label[at:]
        return rest.startswith(self.mark) or self.mark.startswith(rest)

    def decode(self, text: str) -> DecodedSet:
        """Read labels and size from any text; never raise."""
        is_blank = not self.mark.strip()  # then white space around the text would separate nothing from it
        parts = list(self._split(text.strip() if is_blank else text))
        size = None
        malformed = []
        first = parts[0][0].strip()
        if self.size and _is_number(first):
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
        """Cut at each separator that is not escaped; give each part raw, read, and whether its escapes are whole."""
        mark = self.mark
        start = at = 0
        while at < len(text):
            if text[at] == "\\":
                at += 2
            elif text.startswith(mark, at):
                yield (raw := text[start:at], *_read(raw))
                at += len(mark)
                start = at
            else:
                at += 1
        yield (raw := text[start:], *_read(raw))


@lru_cache
def _suspicious(mark_start: str) -> re.Pattern[str]:
    """Match any label that might need an escape; most need none, and this is quicker than looking closely."""
    return re.compile(rf"[\\\n\r{re.escape(mark_start)}]|^\s|\s$|^[0-9]+$")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _escape(char: str) -> str:
    if char.isspace() and char not in _NAMED:
        return f"\\u{ord(char):04x}"
    return "\\" + _NAMED.get(char, char)


def _read(raw: str) -> tuple[str, bool]:
    """Read one part: drop the white space around it that is not escaped, and undo the escapes."""
    raw = raw.lstrip()
    stripped = raw.rstrip()
    if "\\" not in stripped:
        return stripped, True
    read = []
    is_whole = True
    at = 0
    while at < len(stripped):
        char = stripped[at]
        at += 1
        if char == "\\" and at == len(stripped):
            is_whole = False
        elif char == "\\":
            char = stripped[at]
            at += 1
            code = stripped[at : at + 4]
            if char == "u" and len(code) == 4 and _HEX.issuperset(code) and not 0xD800 <= int(code, 16) < 0xE000:
                char = chr(int(code, 16))
                at += 4
            elif char == "u":
                char, is_whole = "\\u", False
            else:
                char = _BY_NAME.get(char, char)
        read.append(char)
    return "".join(read), is_whole
