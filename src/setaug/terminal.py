"""Text for a terminal: data cannot move the cursor, change colours, or reverse the text direction."""

import json
import re
import sys
from typing import Any, TextIO

import orjson

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 and C1 controls, bidirectional marks and overrides, line and paragraph separators, and surrogates."""
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(line: str) -> str:
    r"""Return a line with control characters escaped as in JSON.

    JSON text stays equivalent: a parser reads the same strings.

    Examples
    --------
    >>> print(printable("joy\x1b[31m\nlove"))
    joy\u001b[31m\nlove

    """
    return _UNSAFE.sub(_escape, line)


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def show(*lines: str, stream: TextIO | None = None) -> None:
    """Write lines to a stream, by default standard output, with control characters escaped."""
    (stream or sys.stdout).write("".join(f"{printable(line)}\n" for line in lines))


def tell(*lines: str) -> None:
    """Write lines to standard error, with control characters escaped."""
    show(*lines, stream=sys.stderr)


def json_line(row: Any) -> bytes:
    r"""Return a row as a printable line of JSON, with exact integers of any size.

    Examples
    --------
    >>> json_line({"id": 2**64})
    b'{"id":18446744073709551616}\n'

    """
    try:
        line = orjson.dumps(row).decode()
    except orjson.JSONEncodeError:  # a number beyond 64 bits
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    return printable(line).encode() + b"\n"
