r"""Labels with a separator between them, and the size in front (CARD: paper, section 3.2).

``3 | volleyball | match | event``

A label may hold any characters; ambiguous ones are escaped with a backslash (``\|`` the separator, ``\n`` a newline,
``\s`` a space at either end, ``\3`` the label "3" where sizes are written, ``\\`` a backslash).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from setaug.forms.form import MAX_DIGITS, DecodedSet, WrittenForm, collect, is_number

_NAMED = {"\n": "n", "\r": "r", "\t": "t", " ": "s"}
_BY_NAME = {name: char for char, name in _NAMED.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class SeparatedForm(WrittenForm):
    """Labels with a separator between them.

    Parameters
    ----------
    separator
        The text between two labels. Spaces around it are written, but optional when decoding.

    """

    separator: str = " | "

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str):
            raise TypeError(f"separator must be a string, got {self.separator!r}.")
        if not self.separator:
            raise ValueError("separator must not be empty.")
        if self.mark[0].isalnum() or "\\" in self.separator:
            raise ValueError(
                "separator must not start with a letter or a digit, or contain a backslash, because it would look like "
                f"a part of a label; got {self.separator!r}."
            )

    @cached_property
    def mark(self) -> str:
        """The separator without surrounding spaces, as decoding finds it."""
        return self.separator.strip() or self.separator

    @property
    def before(self) -> str:
        """The separator."""
        return self.separator

    @property
    def first(self) -> str:
        """The separator, if there is a size in front of it."""
        return self.separator if self.with_size else ""

    @property
    def special(self) -> str:
        """The first character of the separator."""
        return self.mark[0]

    @property
    def description(self) -> str:
        """What to write."""
        what = "the number of labels, then each label" if self.with_size else "all its labels"
        return f'{what}, separated by "{self.mark}"'

    def size_text(self, size: int) -> str:
        """Return the number."""
        return str(size) if self.with_size else ""

    def encode_label(self, label: str) -> str:
        """Return one label with escapes; most need none."""
        return label if label and not _suspicious(self.mark[0]).search(label) else super().encode_label(label)

    def escape(self, label: str) -> str:
        """Escape what would be ambiguous."""
        if is_number(label):
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
        first = parts[0][0]
        if self.with_size and is_number(first):
            del parts[0]
            if len(first) <= MAX_DIGITS:
                size = int(first)
            else:
                malformed.append(first)
        elif len(parts) == 1 and not first:
            del parts[0]
        return collect(parts, size, malformed)

    def _split(self, text: str) -> Iterator[tuple[str, str, bool]]:
        """Split at unescaped separators; yield each part raw, decoded, and whether its escapes are valid."""
        start = 0
        for found in _stops(self.mark).finditer(text):
            if text[found.start()] != "\\":
                yield _read(text[start : found.start()])
                start = found.end()
        yield _read(text[start:])


@lru_cache
def _stops(mark: str) -> re.Pattern[str]:
    """Match the separator, and whatever is escaped, which is none."""
    return re.compile(rf"\\.|{re.escape(mark)}", re.DOTALL)


@lru_cache
def _suspicious(mark_start: str) -> re.Pattern[str]:
    """Return a pattern for labels that may need escapes; a quick check, since most labels need none."""
    return re.compile(rf"[\\\n\r{re.escape(mark_start)}]|^\s|\s$|^[0-9]+$")


def _escape(char: str) -> str:
    if char.isspace() and char not in _NAMED:
        return f"\\u{ord(char):04x}"
    return "\\" + _NAMED.get(char, char)


def _read(raw: str) -> tuple[str, str, bool]:
    """Decode one part: strip unescaped whitespace around it, and undo escapes; also return whether they are valid."""
    stripped = raw.strip()
    if "\\" not in stripped:
        return stripped, stripped, True
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

    return stripped, _ESCAPE.sub(unescape, stripped), is_whole
