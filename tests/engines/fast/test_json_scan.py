"""The compiled scan against a JSON parser: what it accepts means the same to both."""

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setaug.engines.fast import json_scan
from tests.strategies import any_text

NAMES = [b"text", b"labels", b"id"]


def scan(line: bytes, *, trusted: bool = False) -> tuple[int, list[Any]]:
    """Scan one line; give what became of it, and the fields' values as the spans tell them."""
    block = np.frombuffer(line, np.uint8)
    spans = np.empty((1, len(NAMES), 2), np.int32)
    labels, starts = np.empty((line.count(b'"') + 1, 2), np.int32), np.empty(3, np.int64)
    status = np.full(2, json_scan.VALID if trusted else 0, np.int8)
    names, name_starts = np.frombuffer(b"".join(NAMES), np.uint8), np.cumsum([0, *map(len, NAMES)])
    json_scan.scan(block, 0, len(line), names, name_starts, np.empty((2, 2), np.int64), status, spans, labels, starts)
    if status[0] != json_scan.ACCEPTED:
        return int(status[0]), []
    (start, end), _, (id_start, id_end) = spans[0].tolist()
    found = [line[a:b] for a, b in labels[: starts[1]].tolist()]
    return json_scan.ACCEPTED, [
        orjson.loads(b'"' + line[start:end] + b'"'),
        [orjson.loads(b'"' + raw + b'"') for raw in found],
        orjson.loads(line[id_start:id_end]) if id_start >= 0 else None,
    ]


def written(row: dict[str, Any], *, ascii_only: bool, spaced: bool) -> bytes:
    separators = (" ,\t", " : ") if spaced else (",", ":")
    return json.dumps(row, ensure_ascii=ascii_only, separators=separators).encode()


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text
nested = {"a": [1, {"b": []}, "]}"]}
rows = st.fixed_dictionaries(
    {"text": any_text, "labels": st.lists(any_text.filter(str.strip), max_size=4)},
    optional={"id": scalars | st.lists(scalars, max_size=3), "other": scalars, "nested": st.just(nested)},
)
plain_rows = st.fixed_dictionaries(
    {"text": any_text, "labels": st.lists(st.text('ghijk "\\é😀', min_size=1).map("x{}".format), max_size=4)},
    optional={"id": st.integers(-(10**12), 10**12) | any_text | st.lists(any_text), "other": st.none() | st.booleans()},
)


@given(rows, st.booleans(), st.booleans(), st.booleans())
def test_what_is_accepted_is_read_as_a_parser_reads_it(
    row: dict[str, Any], ascii_only: bool, spaced: bool, trusted: bool
) -> None:
    line = written(row, ascii_only=ascii_only, spaced=spaced)
    status, values = scan(line, trusted=trusted)
    if status == json_scan.ACCEPTED:
        assert values == [row["text"], row["labels"], row.get("id")]


@given(plain_rows, st.booleans(), st.booleans())
def test_ordinary_lines_are_accepted_and_nested_ones_where_they_are_known_to_be_valid(
    row: dict[str, Any], ascii_only: bool, spaced: bool
) -> None:
    line = written(row, ascii_only=ascii_only, spaced=spaced)
    assert scan(line) == (json_scan.ACCEPTED, [row["text"], row["labels"], row.get("id")])
    line = written({"nested": nested, **row}, ascii_only=ascii_only, spaced=spaced)
    assert scan(line)[0] == json_scan.DECLINED
    assert scan(line, trusted=True) == (json_scan.ACCEPTED, [row["text"], row["labels"], row.get("id")])


@settings(max_examples=600)
@given(rows, st.booleans(), st.data())
def test_a_damaged_line_is_accepted_only_if_a_parser_accepts_it_with_the_same_values(
    row: dict[str, Any], ascii_only: bool, data: st.DataObject
) -> None:
    line = bytearray(written(row, ascii_only=ascii_only, spaced=False))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line) - 1))
        byte = data.draw(st.sampled_from(b'{}[]",:\\ \t\r/ntu0159eE.-+xaDd8\x00\x1f\x7f'))
        match data.draw(st.sampled_from(["put", "cut", "change"])):
            case "put":
                line.insert(at, byte)
            case "cut":
                del line[at]
            case _:
                line[at] = byte
        if not line:
            return
    damaged = bytes(line)
    try:
        damaged.decode()
    except UnicodeDecodeError:
        return  # the encoding of a whole block is checked before
    status, values = scan(damaged)
    if status == json_scan.ACCEPTED:
        parsed = orjson.loads(damaged)
        assert values == [parsed["text"], parsed["labels"], parsed.get("id")]
        assert all(label.strip() for label in parsed["labels"])


@pytest.mark.parametrize(
    "line",
    [
        b'{"text":"a","labels":["  "]}',
        b'{"text":"a","labels":["\\u00a0\\t"]}',
        b'{"text":"a","labels":["\xc2\xa0\xe2\x80\x83\xe3\x80\x80"]}',
        b'{"text":"a","labels":[""]}',
        b'{"text":"a","labels":["b"],"text":"c"}',
        b'{"text":"a","labels":[],"id":{"b":1}}',
        b'{"text":"a","labels":[],"id":1e500}',
        b'{"text":"a","labels":[],"id":1e}',
        b'{"text":"a","labels":[],"id":1' + b"0" * 400 + b"}",
        b'{"text":"a","labels":[],"id":01}',
        b'{"text":"a","labels":[],"id":tru}',
        b'{"text":"a","labels":[],}',
        b'{"text":"a","labels":["b",]}',
        b'{"text":"a","labels":["b"]} x',
        b'{"text":"\\ud800","labels":[]}',
        b'{"text":"\\udc00\\ud800","labels":[]}',
        b'{"text":"a\x01","labels":[]}',
        b'{"text":"\\x","labels":[]}',
        b'{"text":3,"labels":[]}',
        b'{"text":"a"}',
        b'{"labels":[]}',
        b"{}",
        b"[]",
        b'{"text":"a","labels":["b"',
        b'{"text":"a',
    ],
)
def test_lines_that_need_a_closer_look_are_declined(line: bytes) -> None:
    assert scan(line)[0] == json_scan.DECLINED


@pytest.mark.parametrize(
    "line",
    [
        b'{"text":"a","labels":["b"],"id":-0.50}',
        b' {"labels" : [ "b" , "b"\t] , "text":"\\ud83d\\ude00"}\r',
        b'{"t\\u0065xt":"a","labels":[]}',
        b'{"text":"a","labels":[],"id":-1E+05}',
        b'{"text":"a","labels":[],"id":123456789012345678901}',
    ],
)
def test_plain_lines_are_accepted(line: bytes) -> None:
    assert scan(line)[0] == json_scan.ACCEPTED


def test_a_line_of_white_space_is_blank() -> None:
    assert scan(b" \t\r")[0] == json_scan.BLANK
