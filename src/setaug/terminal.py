"""Text for a terminal: data in it cannot move the cursor, change colours, or turn the direction of reading."""

import json
import re
import sys
from typing import Any, TextIO

import orjson

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 and C1 controls, marks and overrides of direction, line and paragraph separators, and halves of characters."""
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(line: str) -> str:
    r"""Return a line in which controls are escaped as in JSON.

    Inside the strings of a JSON text this changes nothing that a reader of JSON sees.

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
    """Write lines to a stream, by default standard output, with controls escaped."""
    (stream or sys.stdout).write("".join(f"{printable(line)}\n" for line in lines))


def tell(*lines: str) -> None:
    """Write lines to standard error, with controls escaped."""
    show(*lines, stream=sys.stderr)


def json_line(row: Any) -> bytes:
    r"""Return a row as a line of JSON that may be printed; whole numbers are exact, whatever their size.

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
