r"""Sets as JSON: ``["joy", "love"]``, with the size in front ``{"size": 2, "labels": ["joy", "love"]}``.

The escapes are those of JSON. Decoding is lenient: labels are read also where braces, brackets or commas are missing.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from setaug.forms.form import MAX_DIGITS, DecodedSet, WrittenForm, collect, is_number

_SIZE, _LABELS = "size", "labels"
_PART = re.compile(
    r"""
    "(?P<string> [^"\\]* (?:\\. [^"\\]*)* \\?) (?P<close>"?) (?P<is_key>\s*:)?  # also one that does not end
    | (?P<mark>[\[\]{},])
    | (?P<rest>[^\[\]{},"]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HIGH, _LOW, _HEX = "[dD][89abAB][0-9a-fA-F]{2}", "[dD][c-fC-F][0-9a-fA-F]{2}", "[0-9a-fA-F]"
_ESCAPE = re.compile(rf"\\(?:u({_HIGH})\\u({_LOW})|u({_HEX}{{4}})|(.?))", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_WHOLE = re.compile(
    rf'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u(?:[0-9a-cefA-CEF]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}}|{_HIGH}\\u{_LOW})))*'
)
"""Escaped characters of a label."""
_STARTED = re.compile(
    rf"\\(?:u(?:[0-9a-cefA-CEF]{_HEX}{{0,2}}|[dD](?:[0-7]{_HEX}?)?|[dD][89abAB]{_HEX}?"
    rf"|{_HIGH}(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?)?)?"
)
"""An escape that has begun."""


@dataclass(frozen=True, kw_only=True)
class JsonForm(WrittenForm):
    """A JSON array of labels; with the size, an object."""

    is_one_line: ClassVar[bool] = False

    @property
    def first(self) -> str:
        """The bracket and the first quote."""
        return ' ["' if self.with_size else '["'

    @property
    def before(self) -> str:
        """A space and a quote."""
        return ' "'

    @property
    def after(self) -> str:
        """A quote and a comma."""
        return '",'

    @property
    def last(self) -> str:
        """The last quote and the bracket."""
        return '"]}' if self.with_size else '"]'

    @property
    def empty(self) -> str:
        """The empty array."""
        return " []}" if self.with_size else "[]"

    @property
    def special(self) -> str:
        """Nothing but what JSON itself escapes."""
        return ""

    @property
    def description(self) -> str:
        """What to write."""
        what = "a JSON object with the number of labels and the labels" if self.with_size else "a JSON array of labels"
        return f"{what}, such as {self.encode(['first label', 'second label'])}"

    def size_text(self, size: int) -> str:
        """Return all up to the array."""
        return f'{{"{_SIZE}": {size}, "{_LABELS}":' if self.with_size else ""

    def escape(self, label: str) -> str:
        """Escape what JSON requires, and nothing else."""
        return json.dumps(label, ensure_ascii=False)[1:-1]

    def unfinished(self, raw: str) -> str | None:
        """Return the escape that has begun; None where JSON would refuse the string."""
        found = _WHOLE.match(raw)
        rest = raw[found.end() if found else 0 :]
        return rest if not rest or _STARTED.fullmatch(rest) else None

    def decode(self, text: str) -> DecodedSet:
        """Return the labels and the size in any text; never raises."""
        parts: list[tuple[str, str, bool]] = []
        malformed: list[str] = []
        size: int | None = None
        opened = closed = False
        key = previous = ""
        for kind, raw, label, is_whole in _scan(text):
            if kind == "rest" and key == _SIZE and is_number(raw) and len(raw) <= MAX_DIGITS:
                size = int(raw)
            elif kind == "string" and key != _SIZE and not closed:
                parts.append((raw, label, is_whole))
            elif kind == "[" and not opened:
                opened = True
            elif kind in (",", "]") and opened and not closed:
                if previous == "," or (kind, previous) == (",", "["):
                    malformed.append("")
                closed = kind == "]"
            elif (
                (kind == "key" and label not in (_SIZE, _LABELS))
                or kind in ("string", "rest", "[", "]")
                or (kind in "{}" and opened and not closed)
            ):
                malformed.append(raw)
            key, previous = label if kind == "key" else "", kind
        if opened and not closed:
            malformed.append("[")
        return collect(parts, size if self.with_size else None, malformed)


def _scan(text: str) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the kind of each part of a text, the part itself, the string it stands for, and whether it is valid."""
    for found in _PART.finditer(text):
        raw = found.group().strip()
        if found["string"] is not None:
            label, is_whole = _unescape(found["string"])
            if not found["close"]:  # cut off within a label
                yield "rest", raw, "", False
            else:
                yield "key" if found["is_key"] else "string", raw, label, is_whole
        elif raw:
            yield found["mark"] or "rest", raw, "", True


def _unescape(string: str) -> tuple[str, bool]:
    """Undo the escapes of a JSON string; also return whether it is valid."""
    is_whole = not _CONTROL.search(string)
    if "\\" not in string:
        return string, is_whole

    def unescape(found: re.Match[str]) -> str:
        nonlocal is_whole
        high, low, code, name = found.groups()
        if high is not None:
            return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
        if code is not None and not 0xD800 <= int(code, 16) < 0xE000:
            return chr(int(code, 16))
        if code is None and name in _NAMED:
            return _NAMED[name]
        is_whole = False
        return found.group()

    return _ESCAPE.sub(unescape, string), is_whole
