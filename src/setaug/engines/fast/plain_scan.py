"""The loops of the JSON scan in pure Python, for small inputs: the same output, without compilation.

The functions have the same names and arguments as the compiled ones. `scan` declines each line at first, so that a
parser decides whether it is valid; then only the positions of its fields are left to find.
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from types import ModuleType

import numpy as np
import orjson
from numpy.typing import NDArray

from setaug.orders.arrays import Ints

ACCEPTED, BLANK, DECLINED, VALID, REFUSED = 0, 1, 2, 3, 4
"""The status of a line after `scan` (the first three), and after a parser (the last two)."""

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_FIND_STRING = re.compile(_STRING)
_FIND_BRACKET = re.compile(_STRING + rb"|[\[\]{}]")
_OPEN = re.compile(rb"[ \t\r]*\{[ \t\r]*")
_KEY = re.compile(rb"[ \t\r]*(" + _STRING + rb")[ \t\r]*:[ \t\r]*")
_SCALAR = re.compile(_STRING + rb"|[^\[{\"][^,\]} \t\r\n]*")
_NEXT = re.compile(rb"[ \t\r]*([,}])")

Bytes = NDArray[np.uint8]
Spans = NDArray[np.int32]


def load_scan(is_plain: bool) -> ModuleType:
    """Return this module, or the one with the compiled loops; both return the same results."""
    return sys.modules[__name__] if is_plain else import_module("setaug.engines.fast.json_scan")


def last_line_end(block: Bytes, size: int) -> int:
    """Return the position after the last newline; 0 if there is none."""
    return block[:size].tobytes().rfind(b"\n") + 1


def count_marks(block: Bytes, size: int) -> tuple[int, int, bool]:
    """Count the newlines and the quotes, and return whether all bytes are ASCII."""
    lines = block[:size].tobytes()
    return lines.count(b"\n"), lines.count(b'"'), lines.isascii()


def scan(
    block: Bytes,
    at: int,
    size: int,
    names: Bytes,
    name_starts: Ints,
    lines: Ints,
    status: NDArray[np.int8],
    spans: Spans,
    labels: Spans,
    label_starts: Ints,
) -> int:
    """Find the fields of the lines whose status is VALID; return the number of lines."""
    data = block[:size].tobytes()
    fields: dict[bytes, list[int]] = {}
    for field, (start, end) in enumerate(pairwise(name_starts.tolist())):
        fields.setdefault(names[start:end].tobytes(), []).append(field)
    line = n_labels = 0
    while at < size:
        label_starts[line] = n_labels
        newline = data.find(b"\n", at)
        end = size if newline < 0 else newline
        lines[line] = at, end
        spans[line] = -1
        if status[line] == VALID:
            for key, start, stop in _members(data, at):
                for field in fields.get(key, ()):
                    spans[line, field] = start, stop
            is_found = spans[line, :2].min() >= 0 and data[spans[line, 0, 0]] == ord('"')
            status[line] = ACCEPTED if is_found else DECLINED
            if is_found:
                spans[line, 0] += 1, -1
                for match in _FIND_STRING.finditer(data, *spans[line, 1].tolist()):
                    labels[n_labels] = match.start() + 1, match.end() - 1
                    n_labels += 1
        elif status[line] != REFUSED:
            status[line] = DECLINED if data[at:end].strip(b" \t\r") else BLANK
        at = end + 1
        line += 1
    label_starts[line] = n_labels
    return line


def _members(data: bytes, at: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name of each member of a valid JSON object, and where its value starts and ends."""
    found = _OPEN.match(data, at)
    while found is not None and found[0].strip() != b"}":
        key = _KEY.match(data, found.end())
        if key is None:
            return
        name, end = key[1][1:-1], _value_end(data, key.end())
        yield orjson.loads(key[1]).encode() if b"\\" in name else name, key.end(), end
        found = _NEXT.match(data, end)


def _value_end(data: bytes, at: int) -> int:
    scalar = _SCALAR.match(data, at)
    if scalar is not None:
        return scalar.end()
    depth = 0
    for match in _FIND_BRACKET.finditer(data, at):
        depth += (match[0] in b"[{") - (match[0] in b"]}")
        if not depth:
            return match.end()
    return -1


def intern(
    block: Bytes,
    spans: Spans,
    first: int,
    ids: NDArray[np.int32],
    slots: Ints,
    ends: Ints,
    arena: Bytes,
    secret: NDArray[np.uint64],
    n_known: int,
) -> tuple[int, int]:
    """Look up the numbers of the strings in the spans from `first` on; add new ones, and stop where room is short.

    String k is ``arena[ends[k]:ends[k + 1]]``. Returns the number of spans done, and of known strings.
    """
    data = block.tobytes()
    for k, (start, end) in enumerate(spans[first:].tolist(), first):
        text = data[start:end]
        slot = _find_slot(text, slots, ends, arena)
        if slots[slot] < 0:
            arena_end = int(ends[n_known])
            if 2 * n_known >= len(slots) or n_known + 1 == len(ends) or arena_end + len(text) > len(arena):
                return k, n_known
            slots[slot] = n_known
            arena[arena_end : arena_end + len(text)] = np.frombuffer(text, np.uint8)
            ends[n_known + 1] = arena_end + len(text)
            n_known += 1
        ids[k] = slots[slot]
    return len(spans), n_known


def refill_slots(slots: Ints, ends: Ints, arena: Bytes, secret: NDArray[np.uint64], n_known: int) -> None:
    """Insert the known strings into a larger, empty table."""
    for k in range(n_known):
        slots[_find_slot(arena[ends[k] : ends[k + 1]].tobytes(), slots, ends, arena)] = k


def _find_slot(text: bytes, slots: Ints, ends: Ints, arena: Bytes) -> int:
    """Return the slot of a string, or the empty one where it would be. Python's hash is secret in itself."""
    mask = len(slots) - 1
    slot = hash(text) & mask
    while (known := slots[slot]) >= 0 and arena[ends[known] : ends[known + 1]].tobytes() != text:
        slot = (slot + 1) & mask
    return slot


def merge_repeats(starts: Ints, ids: NDArray[np.int32], counts: Ints, last_row: NDArray[np.int32], row: int) -> int:
    """Drop repeated labels within each set, in place, and count the others; return how many were dropped."""
    kept: list[int] = []
    ends, labels = starts.tolist(), ids.tolist()
    for i, (start, end) in enumerate(pairwise(ends)):
        kept += dict.fromkeys(labels[start:end])
        starts[i + 1] = len(kept)
    ids[: len(kept)] = kept
    np.add.at(counts, kept, 1)
    return len(labels) - len(kept)


def find_special(arena: Bytes, ends: Ints, n_known: int, marks: NDArray[np.bool_], special: NDArray[np.bool_]) -> None:
    """Mark the strings that may need an escape of the codec: here, all of them."""
    special[:n_known] = True


def put_pairs(
    block: Bytes,
    texts: Spans,
    carried: Spans,
    starts: Ints,
    ids: NDArray[np.int32],
    orders: NDArray[np.int32],
    label_bytes: Bytes,
    label_starts: Ints,
    label_ends: Ints,
    openings: Bytes,
    opening_starts: Ints,
    between: Bytes,
    last: Bytes,
    head: Bytes,
    middle: Bytes,
    foot: Bytes,
    keys: Bytes,
    key_starts: Ints,
    out: Bytes,
) -> int:
    """Write the pairs of each example: the order given, then the orders drawn; return the number of bytes."""
    data, label_data, key_data = block.tobytes(), label_bytes.tobytes(), keys.tobytes()
    labels = [label_data[a:b] for a, b in zip(label_starts.tolist(), label_ends.tolist(), strict=True)]
    names = [key_data[a:b] for a, b in pairwise(key_starts.tolist())]
    opening_data, starts_of = openings.tobytes(), opening_starts.tolist()
    joint, behind = between.tobytes(), last.tobytes()
    rows = zip(pairwise(starts.tolist()), texts.tolist(), carried.tolist(), strict=True)
    numbers, drawn = ids.tolist(), orders.tolist()
    pieces = []
    for (start, end), (text_start, text_end), spans in rows:
        before = head.tobytes() + data[text_start:text_end] + middle.tobytes()
        values = [data[a:b].replace(b"\r", b" ") if a >= 0 else b"null" for a, b in spans]
        after = foot.tobytes() + b"".join([n + v for n, v in zip(names, values, strict=True)]) + b"}\n"
        size = end - start
        before += opening_data[starts_of[size] : starts_of[size + 1]]
        after = behind + after if size else after
        all_orders = [range(size), *(row[start:end] for row in drawn)]
        pieces += [before + joint.join([labels[numbers[start + k]] for k in order]) + after for order in all_orders]
    written = b"".join(pieces)
    out[: len(written)] = np.frombuffer(written, np.uint8)
    return len(written)
