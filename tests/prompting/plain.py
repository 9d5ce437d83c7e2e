"""Answers read the slow and plain way: one character at a time, thoughts by a pattern that is tried everywhere."""

import re

from setaug.codec import DecodedSet, SetCodec
from setaug.prompting.reading import _BREAKS, _BULLET, _FENCE, AnswerReader, ReadAnswer, _without_name

_THOUGHTS = re.compile(r".*</think>|<think>.*", re.DOTALL)
_BY_NAME = {"n": "\n", "r": "\r", "t": "\t", "s": " "}
_HEX = frozenset("0123456789abcdefABCDEF")


def split(mark: str, text: str) -> list[str]:
    parts = []
    start = at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(mark, at):
            parts.append(text[start:at])
            at += len(mark)
            start = at
        else:
            at += 1
    return [*parts, text[start:]]


def unescape(raw: str) -> tuple[str, bool]:
    stripped = raw.strip()
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


def decode(codec: SetCodec, text: str) -> DecodedSet:
    parts = split(codec.form.mark, text if codec.form.mark.strip() else text.strip())
    size = None
    malformed = []
    first = parts[0].strip()
    if codec.with_size and first.isascii() and first.isdigit():
        del parts[0]
        if len(first) <= 9:
            size = int(first)
        else:
            malformed.append(first)
    elif len(parts) == 1 and not first:
        del parts[0]
    labels: list[str] = []
    repeated = []
    for raw in parts:
        label, is_whole = unescape(raw)
        if not is_whole or not label.strip():
            malformed.append(raw.strip())
        if label.strip():
            (repeated if label in labels else labels).append(label)
    return DecodedSet(tuple(labels), size, tuple(repeated), tuple(malformed))


def read(reader: AnswerReader, text: str) -> ReadAnswer:
    said = (_without_name(line.strip()) for line in _BREAKS.split(_THOUGHTS.sub("", text)))
    lines = [line for line in said if line.strip() and not line.startswith(_FENCE)]
    found = decode(reader.codec, lines[0] if lines else "")
    if len(found.labels) <= 1 and reader.index is not None:
        found = _read_list(reader, lines, found)
    return reader._settle(found, text)


def _read_list(reader: AnswerReader, lines: list[str], found: DecodedSet) -> DecodedSet:
    assert reader.index is not None
    if any(reader.index.find(label) for label in found.labels) and len(lines) == 1:
        return found
    for parts in (lines, lines[0].split(",") if lines else []):
        labels = [_BULLET.sub("", part).strip() for part in parts]
        if len(labels) > 1 and all(reader.index.find(label) for label in labels):
            again = tuple(label for at, label in enumerate(labels) if label in labels[:at])
            return DecodedSet(tuple(dict.fromkeys(labels)), None, again)
    return found
