import csv
import gc
import gzip
import io
import json
import re
import sys
import tracemalloc
from collections.abc import Iterator

import orjson
import pyarrow as pa
import pytest
import zstandard
from datasets import ClassLabel, Dataset, Features, IterableDataset, List, Value
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from setaug import Example, SetAugError, read_examples, write_examples
from setaug.errors import DataError, FileError, MissingExtraError
from setaug.examples import Columns, Pair, Skipped, _excerpt, as_examples, make_examples, make_texts, read_stream, shown
from setaug.storage import open_again
from tests.strategies import any_label, any_text

PACK = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}
ROWS = [
    {"text": "We won!", "labels": ["joy", "pride"], "id": "x1", "extra": "e"},
    {"text": "日本 🎉", "labels": [], "id": "x2", "extra": ""},
    {"text": 'Line\nbreak, and "quote"', "labels": ["joy"], "id": "x3", "extra": "\t;"},
]
EXAMPLES = [Example(row["text"], tuple(row["labels"]), row["id"]) for row in ROWS]
GOOD = b'{"text": "a", "labels": ["x"]}\n'


def as_jsonl(rows) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def as_csv(rows, separator=",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, ["text", "labels", "id", "extra"], delimiter=separator)
    writer.writeheader()
    writer.writerows({**row, "labels": ";".join(row["labels"])} for row in rows)
    return out.getvalue().encode()


def as_parquet(rows) -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


FILES = {
    "jsonl": as_jsonl(ROWS),
    "csv": as_csv(ROWS),
    "tsv": as_csv(ROWS, "\t"),
    "parquet": as_parquet(ROWS),
}


@pytest.fixture
def read(tmp_path):
    """Give a function that writes a file and reads its examples."""

    def write_and_read(name: str, content: bytes, **options) -> list[Example]:
        (tmp_path / name).write_bytes(content)
        return list(read_examples(tmp_path / name, **options))

    return write_and_read


@pytest.fixture
def problem(read):
    """Give a function that reads a file and gives the message of its one error, which must be one line."""

    def message(name: str, content: bytes, error=DataError, **options) -> str:
        with pytest.raises(error) as caught:
            read(name, content, **options)
        assert len(str(caught.value).splitlines()) == 1
        assert len(str(caught.value)) < 250
        return str(caught.value)

    return message


def standard_input(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# --- files that are as they should be ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv"])
def test_files_are_read_whatever_their_kind_and_compression(read, kind, suffix):
    found = read(f"a.{kind}{suffix}", PACK[suffix](FILES[kind]))
    assert found == EXAMPLES
    assert [example.fields for example in found] == [{"id": row["id"], "extra": row["extra"]} for row in ROWS]


def test_parquet_files_are_read(read):
    assert read("a.parquet", FILES["parquet"]) == EXAMPLES
    assert read("a.parquet", as_parquet(ROWS * 1000)) == EXAMPLES * 1000


@pytest.mark.parametrize("kind", FILES)
def test_the_kind_of_file_may_be_given(read, kind):
    assert read("a.data", FILES[kind], kind=kind) == EXAMPLES


@pytest.mark.parametrize("kind", FILES)
def test_standard_input_is_read(monkeypatch, kind):
    standard_input(monkeypatch, FILES[kind])
    assert list(read_examples("-", kind=kind)) == EXAMPLES


def test_standard_input_is_jsonl_unless_told_otherwise(monkeypatch):
    standard_input(monkeypatch, FILES["jsonl"])
    assert list(read_examples("-")) == EXAMPLES


@pytest.mark.parametrize("kind", FILES)
def test_standard_input_can_be_read_twice(monkeypatch, kind):
    standard_input(monkeypatch, FILES[kind])
    with open_again("-") as opened:
        for _ in range(2):
            with opened() as stream:
                assert [example for _, example in read_stream(stream, "-", kind, Columns(), None)] == EXAMPLES


@pytest.mark.parametrize("kind", FILES)
def test_reading_leaves_the_stream_to_its_owner(kind):
    stream = io.BytesIO(FILES[kind])
    assert len(list(read_stream(stream, "a", kind, Columns(), None))) == 3
    gc.collect()
    assert not stream.closed


def test_rows_are_read_one_after_the_other(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(GOOD * 2 + b"broken")
    examples = read_examples(tmp_path / "a.jsonl")
    assert isinstance(examples, Iterator)
    assert next(examples) == Example("a", ("x",))
    examples.close()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"\r\n"])
def test_an_empty_file_has_no_examples(read, content):
    assert read("a.jsonl", content) == []


def test_an_empty_table_has_no_examples(read):
    assert read("a.csv", b"") == []
    assert read("a.csv", b"text,labels\n") == read("a.csv", b"text,labels") == []
    assert read("a.parquet", as_parquet([])) == []


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD * 2,
        GOOD.replace(b"\n", b"\r\n") * 2,
        GOOD * 2 + b"\n",
        b"\n" + GOOD + b" \t\r\n\n" + GOOD,
        GOOD + GOOD.strip(),
        b" " + GOOD + b'{"labels": ["\\u0078"],\t"text":"\\u0061"}',
    ],
)
def test_jsonl_may_look_different(read, content):
    assert read("a.jsonl", content) == [Example("a", ("x",))] * 2


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbftext,labels\na,x\na,x\n",
        b"text,labels\r\na,x\r\na,x\r\n",
        b"text,labels\n\na,x\n\n\na,x\n\n",
        b"text,labels\na,x\na,x",
        b'"text","labels"\n"a","x"\na," x "\n',
        b"labels,other,text\nx,,a\nx,,a\n",
        b"text,labels\ra,x\ra,x\r",
    ],
)
def test_csv_may_look_different(read, content):
    assert read("a.csv", content) == [Example("a", ("x",))] * 2


def test_a_cell_may_be_long(read):
    text = "x" * 300_000
    assert read("a.csv", f"text,labels\n{text},y\n".encode()) == [Example(text, ("y",))]
    assert read("a.jsonl", as_jsonl([{"text": text, "labels": ["y"]}])) == [Example(text, ("y",))]


@pytest.mark.parametrize(
    ("cell", "labels"), [("", ()), ("  ", ()), ("a", ("a",)), (" a ; b c;a", ("a", "b c")), ("a,b", ("a,b",))]
)
def test_labels_stand_in_one_cell(read, cell, labels):
    assert read("a.tsv", f"text\tlabels\nt\t{cell}\n".encode()) == [Example("t", labels)]


def test_fields_and_the_delimiter_can_be_named(read):
    options = {"text_field": "input", "labels_field": "tags", "delimiter": "|"}
    assert read("a.csv", b"tags,input,text\nx|y;z,a,t\n", **options) == [Example("a", ("x", "y;z"))]
    (example,) = read("a.jsonl", b'{"input": "a", "tags": ["x"], "text": 3}', **options)
    assert (example.text, example.labels, example.fields) == ("a", ("x",), {"text": 3})


@given(st.lists(st.tuples(any_text, st.lists(any_label, unique=True, max_size=3)), max_size=4))
def test_any_texts_and_labels_come_through_jsonl(rows):
    content = as_jsonl({"text": text, "labels": labels} for text, labels in rows)
    found = [example for _, example in read_stream(io.BytesIO(content), "a", "jsonl", Columns(), None)]
    assert found == [Example(text, tuple(labels)) for text, labels in rows]


def test_a_label_given_twice_counts_once_and_is_told(read):
    row = {"text": "a", "labels": ["x", "y", "x", "x"]}
    assert read("a.jsonl", as_jsonl([row])) == [Example("a", ("x", "y"))]
    rows = io.BytesIO(as_jsonl([row, {"text": "b", "labels": []}]))
    assert [n for n, _ in read_stream(rows, "a.jsonl", "jsonl", Columns(), None)] == [2, 0]


# --- rows that are not as they should be ------------------------------------------------------------------------------

LONG = "x" * 1000


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"[1, 2]", "must be a JSON object, got [1, 2]; JSON lines have one object per line, not an array of them."),
        (b"3", "must be a JSON object, got 3."),
        (b"null", "must be a JSON object, got null."),
        (b'"text"', 'must be a JSON object, got "text".'),
        (b"{}", 'field "text" is missing; the row has no fields.'),
        (b'{"text": "a"}', 'field "labels" is missing; the row has "text".'),
        (b'{"txt": "a", "labels": []}', 'field "text" is missing; the row has "txt", "labels".'),
        (b'{"text": 3, "labels": []}', '"text" must be a string, got 3.'),
        (b'{"text": null, "labels": []}', '"text" must be a string, got null.'),
        (b'{"text": ["a"], "labels": []}', '"text" must be a string, got ["a"].'),
        (b'{"text": "a", "labels": null}', '"labels" must be a list of strings, got null.'),
        (b'{"text": "a", "labels": "x, y"}', '"labels" must be a list of strings, got "x, y".'),
        (b'{"text": "a", "labels": 3.5}', '"labels" must be a list of strings, got 3.5.'),
        (b'{"text": "a", "labels": {"x": 1}}', '"labels" must be a list of strings, got {"x": 1}.'),
        (b'{"text": "a", "labels": ["x", 3]}', '"labels" must be a list of strings, but contains 3.'),
        (b'{"text": "a", "labels": ["x", null]}', '"labels" must be a list of strings, but contains null.'),
        (b'{"text": "a", "labels": ["x", ["y"]]}', '"labels" must be a list of strings, but contains ["y"].'),
        (b'{"text": "a", "labels": ["x", true]}', '"labels" must be a list of strings, but contains true.'),
        (b'{"text": "a", "labels": ["x", ""]}', '"labels" contains an empty or blank label: "".'),
        (b'{"text": "a", "labels": [" \\n"]}', r'"labels" contains an empty or blank label: " \n".'),
        (
            b'{"text": "\xe4", "labels": []}',
            r"""invalid UTF-8, byte 0xe4 at column 11: b'{"text": "\xe4", "labels": []}'; convert the file to UTF-8.""",
        ),
        (f'{{"text": "a", "labels": "{LONG}"}}'.encode(), f'"labels" must be a list of strings, got "{LONG[:56]}....'),
    ],
)
def test_a_bad_row_of_jsonl_is_told_with_its_line_and_value(problem, row, message):
    assert problem("a.jsonl", GOOD + b"\n" + GOOD + row + b"\n" + GOOD) == f"line 4 of a.jsonl: {message}"


@pytest.mark.parametrize(
    ("row", "column", "excerpt"),
    [
        (b"{'text': 1}", 2, "{'text': 1}"),
        (b'{"text": NaN}', 10, '{"text": NaN}'),
        (b'{"text": "\\ud800"}', 11, r'{"text": "\ud800"}'),
        (b'{"text": "a"}}', 14, '{"text": "a"}}'),
        (b"{", 2, "{"),
        (f'{{"text": "{LONG}"'.encode(), 1012, f'{{"text": "{LONG[:47]}...'),
    ],
)
def test_broken_json_is_told_with_its_line_and_column(problem, row, column, excerpt):
    # What is wrong with it is in the words of orjson, which change.
    message = problem("a.jsonl", GOOD + b"\n" + GOOD + row + b"\n" + GOOD)
    assert re.fullmatch(f"line 4 of a.jsonl: not valid JSON, .+ at column {column}: {re.escape(excerpt)}", message)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"a", 'field "labels" is missing; the row has "text".'),
        (b"a,x;;y", '"labels" contains an empty or blank label: "".'),
        (b"a,x;", '"labels" contains an empty or blank label: "".'),
        (b"a,x,y,z", '4 cells, but the header has 2: "y".'),
        (b"\xe4,x", r"invalid UTF-8 in b'\xe4'; convert the file to UTF-8."),
        (b'"a\n\xff",x', r"invalid UTF-8 in b'a\n\xff'; convert the file to UTF-8."),
    ],
)
def test_a_bad_row_of_csv_is_told_with_its_line_and_value(problem, row, message):
    content = b'text,labels\n"two\nlines",x\n\n' + row + b"\na,x\n"
    assert problem("a.csv", content) == f"line 5 of a.csv: {message}"


@pytest.mark.parametrize("row", [b'"a" b,x', b'"a"b","x"'])
def test_quotes_that_do_not_fit_are_told_and_harm_no_other_row(read, problem, row):
    content = b"text,labels\na,x\n" + row + b"\na,x\n"
    assert problem("a.csv", content).startswith("line 3 of a.csv: unbalanced quotes")
    skipped = Skipped()
    assert read("a.csv", content, skipped=skipped) == [Example("a", ("x",))] * 2
    assert skipped.count == 1
    assert problem("a.csv", row + b"\na,x\n").startswith("line 1 of a.csv: unbalanced quotes")


def test_quotes_within_a_cell_are_kept(read):
    rows = b'text,labels\na "b" c,x\n"a ""b"" c",x\n'
    assert read("a.csv", rows) == [Example('a "b" c', ("x",))] * 2


def test_a_bad_row_of_parquet_is_told_with_its_number_and_value(problem):
    rows = [{"text": "a", "labels": ["x"]}, {"text": "b", "labels": None}]
    expected = 'line 2 of a.parquet: "labels" must be a list of strings, got null.'
    assert problem("a.parquet", as_parquet(rows)) == expected
    expected = "line 1 of a.parquet: \"text\" must be a string, got b'\\xff'."
    assert problem("a.parquet", as_parquet([{"text": b"\xff", "labels": []}])) == expected


@pytest.mark.parametrize(
    "rows",
    [
        b'"a,x\nb,y\n',
        b'a,"x\nb,y\n',
    ],
)
def test_a_quoted_cell_that_never_ends_is_told(problem, rows):
    assert "line 2 of a.csv: " in problem("a.csv", b"text,labels\n" + rows)


def test_the_lines_that_an_open_quote_swallows_are_named_and_counted(read, problem):
    content = b'text,labels\na,x\n"b,y\n' + b"a,x\n" * 8
    assert problem("a.csv", content) == (
        "line 3 of a.csv: unbalanced quotes (unexpected end of data); lines 3 to 11 were read as one row."
    )
    skipped = Skipped()
    assert read("a.csv", content, skipped=skipped) == [Example("a", ("x",))]
    assert (skipped.count, len(skipped.first)) == (9, 1)
    skipped = Skipped()
    assert read("a.csv", content + b'"c",z\na,x\n', skipped=skipped) == [Example("a", ("x",))] * 2
    assert skipped.count == 10


def test_a_header_that_is_no_utf8_is_told(problem):
    message = r"line 1 of a.csv: invalid UTF-8 in b'\xe4'; convert the file to UTF-8."
    assert problem("a.csv", b"text,labels,\xe4\na,x,y\n") == message
    assert problem("a.csv", b"text,labels,\xe4\na,x,y\n", skipped=Skipped()) == message


def test_a_column_that_stands_twice_is_told(problem):
    message = 'line 1 of a.csv: there are 2 columns "text"; rename all but one.'
    assert problem("a.csv", b"text,labels,text\na,x,b\n") == message
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([["x"]]), pa.array(["b"])], ["text", "labels", "text"])
    out = io.BytesIO()
    parquet.write_table(table, out)
    assert problem("a.parquet", out.getvalue()) == 'a.parquet: there are 2 columns "text"; rename all but one.'


def test_a_carriage_return_within_quotes_is_kept(read):
    assert read("a.csv", b'text,labels\n"a\rb","x;\r\ny"\n') == [Example("a\rb", ("x", "y"))]


def test_parquet_that_is_no_utf8_makes_bad_rows(read, problem):
    texts = pa.array([b"a", b"b\xff", b"a"]).cast(pa.string(), safe=False)
    out = io.BytesIO()
    parquet.write_table(pa.table({"text": texts, "labels": [["x"]] * 3}), out)
    assert problem("a.parquet", out.getvalue()) == r"""line 2 of a.parquet: invalid UTF-8 in "text": b'b\xff'."""
    skipped = Skipped()
    assert read("a.parquet", out.getvalue(), skipped=skipped) == [Example("a", ("x",))] * 2
    assert skipped.count == 1


def test_parquet_pages_are_checked(problem):
    out = io.BytesIO()
    rows = [{"text": f"text number {k}", "labels": ["x"]} for k in range(100)]
    parquet.write_table(pa.Table.from_pylist(rows), out, write_page_checksum=True, compression="none")
    damaged = out.getvalue().replace(b"text number 7", b"text number 8", 1)
    assert "a.parquet: not a valid Parquet file" in problem("a.parquet", damaged, FileError)


@pytest.mark.parametrize("number", [2**64, -(2**70), 10**250, 1234567890123456789])
def test_whole_numbers_are_exact(read, number):
    (example,) = read("a.jsonl", json.dumps({"text": "a", "labels": [], "id": number, "n": {"m": [number]}}).encode())
    assert (example.id, example.fields["n"]) == (number, {"m": [number]})


@pytest.mark.parametrize("start", [b"", b" " * 5_000_000])
def test_only_the_start_of_a_long_bad_line_is_looked_at(start):
    line = start + '{"text": "é'.encode() + b"x" * 5_000_000
    tracemalloc.start()
    try:
        assert _excerpt(line) == '{"text": "é' + "x" * 46 + "..."
        assert tracemalloc.get_traced_memory()[1] < len(line) + 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "row",
    [
        b'{"text": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"text": {"a\\u0085\\u2028": 1}}',
        b'{"text": [' + b"1," * 100_000 + b"1]}",
        b'{"te\\nxt": 1}',
        '{"a\rb\u2028c": '.encode(),
        as_jsonl([{f"field {i}": i for i in range(500)}]),
    ],
)
def test_a_message_is_one_short_line_whatever_the_row_holds(problem, row):
    assert problem("a.jsonl", row).startswith("line 1 of a.jsonl: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"txt,labels\na,x\n", 'column "text" is missing; the header has "txt", "labels".'),
        (
            b"text;labels\na;x\n",
            'column "text" is missing; the header has "text;labels"; '
            "columns must be separated by commas in .csv and by tabs in .tsv files, not by ';'.",
        ),
        (b"text\na\n", 'column "labels" is missing; the header has "text".'),
    ],
)
def test_a_header_without_a_column_is_told_with_the_file(problem, content, message):
    assert problem("a.csv", content) == f"line 1 of a.csv: {message}"
    assert problem("a.csv", content, skipped=Skipped()) == f"line 1 of a.csv: {message}"


def test_the_place_of_a_bad_row_can_be_asked_for(read):
    with pytest.raises(DataError) as caught:
        read("a.jsonl", GOOD + b"3")
    assert (caught.value.source, caught.value.line) == ("a.jsonl", 2)
    assert caught.value.problem == "must be a JSON object, got 3."


def test_a_bad_row_of_standard_input_is_told(monkeypatch):
    standard_input(monkeypatch, GOOD + b"3")
    with pytest.raises(DataError, match=r"line 2 of standard input: must be a JSON object, got 3\."):
        list(read_examples("-"))


@pytest.mark.parametrize(
    ("name", "header", "good", "bad"),
    [("a.jsonl", b"", GOOD, b"\xff\n"), ("a.csv", b"text,labels\n", b"a,x\n", b"\xff,x\n")],
)
def test_bad_rows_can_be_skipped(read, name, header, good, bad):
    skipped = Skipped()
    found = read(name, header + (good + bad) * 7 + good, skipped=skipped)
    assert found == [Example("a", ("x",))] * 8
    assert skipped.count == 7
    first = 2 + header.count(b"\n")
    assert [message.split(":")[0] for message in skipped.first] == [f"line {first + 2 * k} of {name}" for k in range(5)]


def test_nothing_is_skipped_where_nothing_is_bad(read):
    skipped = Skipped()
    read("a.jsonl", GOOD, skipped=skipped)
    assert skipped == Skipped(count=0, first=[])


# --- files that cannot be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.jsonl.zst", "a.tsv.zst"])
@pytest.mark.parametrize("damage", ["not compressed", "wrong check sum", "garbage behind"])
def test_a_damaged_archive_is_told(problem, name, damage):
    _, kind, suffix = name.split(".")
    whole = PACK[f".{suffix}"](FILES[kind])
    damaged = {
        "not compressed": FILES[kind],
        "wrong check sum": whole[:-8] + bytes(byte ^ 1 for byte in whole[-8:]),
        "garbage behind": whole + b"garbage",
    }[damage]
    assert f"{name} is damaged: " in problem(name, damaged, FileError)


def cut_gzip() -> bytes:
    return gzip.compress(GOOD * 3)[:-8]


def cut_zstandard() -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(GOOD * 3) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("a.jsonl.gz", cut_gzip),
        ("a.jsonl.zst", cut_zstandard),
    ],
)
def test_an_archive_that_was_cut_off_between_two_rows_is_told(problem, name, cut):
    assert f"{name} is damaged: " in problem(name, cut(), FileError)


@pytest.mark.parametrize("content", [b"", b"nonsense", FILES["parquet"][:-10], b"PAR1" + FILES["jsonl"] + b"PAR1"])
def test_a_damaged_parquet_file_is_told(problem, content):
    assert problem("a.parquet", content, SetAugError).startswith("a.parquet: not a valid Parquet file")


def test_a_damaged_parquet_file_is_an_error_of_the_file(problem):
    assert "a.parquet" in problem("a.parquet", b"nonsense", FileError)


def test_parquet_without_pyarrow_says_how_to_install_it(monkeypatch, problem):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = problem("a.parquet", FILES["parquet"], MissingExtraError)
    assert message == "Reading Parquet needs an optional dependency: pip install 'setaug[parquet]'"
    with pytest.raises(ImportError):
        problem("a.parquet", FILES["parquet"], ValueError)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none\.csv: No such file or directory\."):
        list(read_examples(tmp_path / "none.csv"))


def test_an_unknown_kind_is_told(problem):
    expected = "kind must be one of jsonl, csv, tsv, parquet, got 'xml'."
    assert problem("a.csv", b"", ValueError, kind="xml") == expected
    assert "cannot infer the file format" in problem("a.xml", b"", FileError)


# --- examples, and what they are made from ----------------------------------------------------------------------------


def test_an_example_holds_different_labels_in_the_order_given():
    example = Example("a", ["y", "x", "y"], "7", {"more": 1})
    assert (example.text, example.labels, example.id, example.fields) == ("a", ("y", "x"), "7", {"more": 1})
    assert example == Example("a", ("y", "x"), "7")
    assert len({example, Example("a", ("y", "x"), "7"), Example("a", ("x", "y"), "7")}) == 2


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        (3, [], '"text" must be a string, got 3.'),
        ("a", "joy", '"labels" must be a list of strings, got "joy".'),
        ("a", None, '"labels" must be a list of strings, got null.'),
        ("a", {"joy": 1}, '"labels" must be a list of strings, got {"joy": 1}.'),
        ("a", [object], "\"labels\" must be a list of strings, but contains <class 'object'>."),
        ("a", ["\t"], r'"labels" contains an empty or blank label: "\t".'),
    ],
)
def test_an_example_is_checked(text, labels, message):
    with pytest.raises(DataError) as caught:
        Example(text, labels)
    assert str(caught.value) == message


def test_pairs_compare_by_what_is_written():
    assert Pair("p", "c", {"id": 1}) == Pair("p", "c")
    assert Pair("p", "c") != Pair("p", "d")


def test_examples_are_given_as_they_are():
    assert list(as_examples(iter(EXAMPLES))) == EXAMPLES
    assert list(as_examples([])) == []


def test_rows_become_examples():
    assert list(as_examples(ROWS)) == EXAMPLES
    assert list(as_examples([ROWS[0], EXAMPLES[1]])) == EXAMPLES[:2]
    rows = [{"input": "a", "tags": {"x"}, "id": 3}]
    assert list(as_examples(rows, Columns(text="input", labels="tags"))) == [Example("a", ("x",), 3)]


def test_a_bad_row_is_told_with_its_number():
    with pytest.raises(
        DataError, match=r'line 2 of the data: "labels" must be a list of strings, got null; an empty set is \[\]\.'
    ):
        list(as_examples([ROWS[0], {"text": "a", "labels": None}]))


@pytest.mark.parametrize("data", [[3], ["text"], [("a", ["x"])]])
def test_what_is_neither_example_nor_row_is_refused(data):
    with pytest.raises(TypeError, match=r"expected examples or rows \(mappings\), got "):
        list(as_examples(data))


def test_long_and_strange_values_are_shown_short():
    assert shown("é\n") == '"é\\n"'
    assert shown(object) == "<class 'object'>"
    assert len(shown("x" * 100)) == len(shown(list(range(100)))) == 60
    assert json.loads(shown("x" * 58)) == "x" * 58


def named_labels(labels):
    """Make a data set whose class labels are stored as numbers."""
    features = Features({"text": Value("string"), "labels": List(ClassLabel(names=["joy", "anger", "pride"]))})
    return Dataset.from_dict({"text": ["a"] * len(labels), "labels": labels}, features=features)


def test_hugging_face_data_sets_become_examples():
    assert list(as_examples(Dataset.from_list(ROWS))) == EXAMPLES
    assert list(as_examples(Dataset.from_list(ROWS).to_iterable_dataset())) == EXAMPLES
    assert list(as_examples(IterableDataset.from_generator(lambda: iter(ROWS)))) == EXAMPLES


def test_class_labels_come_back_by_name():
    data = named_labels([[0, 2], [], [1]])
    expected = [Example("a", ("joy", "pride")), Example("a", ()), Example("a", ("anger",))]
    assert list(as_examples(data)) == list(as_examples(data.to_iterable_dataset())) == expected
    renamed = data.rename_column("labels", "tags")
    assert list(as_examples(renamed, Columns(labels="tags"))) == expected


@pytest.mark.parametrize("labels", [[-1], None, [None]])
def test_class_labels_without_a_name_are_told(labels):
    with pytest.raises(DataError, match="line 2 of the data: "):
        list(as_examples(named_labels([[0], labels])))


def test_a_data_set_without_the_columns_is_told():
    with pytest.raises(DataError, match=r'line 1 of the data: field "labels" is missing; the row has "text"\.'):
        list(as_examples(Dataset.from_list([{"text": "a"}])))
    data = Dataset.from_dict(
        {"text": ["a"], "labels": [1]},
        features=Features({"text": Value("string"), "labels": ClassLabel(names=["x", "y"])}),
    )
    with pytest.raises(DataError, match=r'"labels" must be a list of strings, got 1\.'):
        list(as_examples(data))


FRAMES = {
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "columns": lambda columns: columns,
    "rows": lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_are_read_row_by_row(kind: str) -> None:
    table = FRAMES[kind]({"id": [7, 8], "text": ["We won!", "Hello"], "labels": [["joy", "pride"], []]})
    assert list(as_examples(table)) == [Example("We won!", ("joy", "pride"), 7), Example("Hello", (), 8)]
    assert make_texts(table) == (["We won!", "Hello"], [7, 8])
    assert make_examples(table, [{"a"}, {"b"}]) == [Example("We won!", ("a",), 7), Example("Hello", ("b",), 8)]


def test_a_column_of_texts_and_a_tuple_of_texts_and_sets() -> None:
    texts = pytest.importorskip("pandas").Series(["a", "b"])
    assert make_texts(texts)[0] == ["a", "b"]
    assert make_examples((texts, [["x"], ["y"]])) == [Example("a", ("x",)), Example("b", ("y",))]
    assert make_examples((Example("a", ("x",)), Example("b", ()))) == [Example("a", ("x",)), Example("b", ())]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"text": "We won!", "labels": ["joy"]}, "got str for 'text'; put a single row into a list"),
        ({"text": ["a", "b"], "labels": [["x"]]}, "columns must have the same length, got {'text': 2, 'labels': 1}"),
        ({"body": ["a"]}, 'field "text" is missing; the row has "body"'),
    ],
)
def test_tables_that_cannot_be_read_are_refused(table: dict[str, object], problem: str) -> None:
    with pytest.raises((TypeError, ValueError, DataError), match=re.escape(problem)):
        make_texts(table)


def test_splits_are_not_a_data_set() -> None:
    datasets = pytest.importorskip("datasets")
    split = datasets.Dataset.from_dict({"text": ["a"], "labels": [["x"]]})
    with pytest.raises(TypeError, match=r"got a mapping of splits; choose one, such as data\['train'\]"):
        list(as_examples(datasets.DatasetDict(train=split)))


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_written_examples_are_read_back_with_all_their_fields(tmp_path, suffix) -> None:
    path = tmp_path / f"e.jsonl{suffix}"
    rows = [*ROWS, {"text": "\x1b[31m", "labels": ["é"], "id": 2**70, "extra": {"deep": [None, 1.5]}}]
    write_examples(path, as_examples(rows))
    read = list(read_examples(path))
    assert read == list(as_examples(rows))
    assert [{**one.to_dict()} for one in read] == rows


def test_an_id_is_written_once_and_only_if_there_is_one(tmp_path) -> None:
    write_examples(tmp_path / "e.jsonl", [Example("a", ["x"]), Example("b", [], 7), Example("c", [], 8, {"id": 1})])
    lines = (tmp_path / "e.jsonl").read_text().splitlines()
    assert lines == [
        '{"text":"a","labels":["x"]}',
        '{"id":7,"text":"b","labels":[]}',
        '{"id":8,"text":"c","labels":[]}',
    ]


@pytest.mark.parametrize("name", ["text", "labels"])
def test_no_field_is_lost_where_a_name_is_taken(tmp_path, name) -> None:
    (example,) = as_examples([{"tweet": "a", "tags": ["x"], name: "other"}], Columns(text="tweet", labels="tags"))
    with pytest.raises(DataError, match=f'must not be named "{name}"'):
        write_examples(tmp_path / "e.jsonl", [example])
    with pytest.raises(FileError, match="suffix"):
        write_examples(tmp_path / "e.parquet", [])
    assert not list(tmp_path.iterdir())
