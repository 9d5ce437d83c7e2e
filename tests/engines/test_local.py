"""Files in, files out: the same pairs as in Python, whole or not at all."""

import csv
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pandas as pd
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from setaug import Example, SetAugmenter, read_examples
from setaug.augmenter import PairFormat
from setaug.engines import augment_files, count_files, local
from setaug.engines.fast import blocks
from setaug.errors import DataError, FileError
from setaug.examples import Columns, Skipped
from setaug.orders import ORDERINGS, LabelStatistics
from setaug.sample import sample_examples
from tests.strategies import any_label, any_text

Rows = list[dict[str, Any]]
SHAPES = [
    PairFormat(),
    PairFormat.named("chat"),
    PairFormat.named("chat", system='Say "é"\n\x00\x01\\u0000\\u0001'),
    PairFormat.named("chat-prompt-completion"),
    PairFormat.named("chat-prompt-completion", system=""),
    PairFormat.named("columns", ('q"', "é")),
    PairFormat.named("columns", ("\x01-", "\x00--P")),
]


@pytest.fixture(scope="module", params=["plain", "compiled"], autouse=True)
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run each test in plain Python, as small inputs do, and through the compiled loops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "SMALL_INPUT", sys.maxsize if request.param == "plain" else 0)
        yield


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]], *, ascii_only: bool = False) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows))
    return path


def read_jsonl(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def sample_rows(n: int = 300) -> Rows:
    return [{"id": e.id, "text": e.text, "labels": list(e.labels)} for e in sample_examples(n)]


def wide_rows() -> Rows:
    """Rows with sets of many sizes, up to 70 labels."""
    rows = sample_rows(60)
    for size in (6, 9, 17, 30, 45, 70):
        rows += [{"text": str(size), "labels": [f"l{k}" for k in range(size) if (k + row) % 7]} for row in range(9)]
    return rows


def expected(rows: Rows, augmenter: SetAugmenter, pair_format: PairFormat | None = None) -> Rows:
    examples = [Example(row["text"], row["labels"]) for row in rows]
    pair_format = pair_format or PairFormat()
    return [pair_format.row(pair) for pair in augmenter.fit(examples).augment(examples)]


@pytest.mark.parametrize("ordering", ORDERINGS)
@pytest.mark.parametrize(
    "options", [{}, {"sampler": "quick"}, {"distinct": True}, {"with_size": False, "separator": "; "}]
)
def test_a_files_pairs_are_those_of_the_augmenter(ordering: str, options: dict[str, Any], tmp_path: Path) -> None:
    rows = wide_rows()
    augmenter = SetAugmenter(ordering=ordering, random_state=5, **options)
    report = augment_files(write_jsonl(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl", augmenter)
    assert read_jsonl(tmp_path / "out.jsonl") == expected(rows, augmenter)
    assert (report.n_examples, report.n_pairs) == (len(rows), 3 * len(rows))


@given(
    st.lists(st.fixed_dictionaries({"text": any_text, "labels": st.lists(any_label, max_size=5)}), max_size=12),
    st.booleans(),
    st.sampled_from([" | ", ";", "\n", '"', "→ "]),
    st.sampled_from(["{text}", 'a "{text}"\n']),
    st.sampled_from(SHAPES),
)
def test_any_text_and_any_label_come_through(
    tmp_path_factory: pytest.TempPathFactory,
    rows: Rows,
    ascii_only: bool,
    separator: str,
    template: str,
    pair_format: PairFormat,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    augmenter = SetAugmenter(separator=separator, template=template, min_pmi=0, min_ratio=1)
    source = write_jsonl(folder / "in.jsonl", rows, ascii_only=ascii_only)
    report = augment_files(source, folder / "out.jsonl", augmenter, pair_format=pair_format)
    assert read_jsonl(folder / "out.jsonl") == expected(rows, augmenter, pair_format)
    assert report.n_repeated == sum(len(row["labels"]) - len(set(row["labels"])) for row in rows)
    assert report.n_labels == len({label for row in rows for label in row["labels"]})


@pytest.mark.parametrize("pair_format", SHAPES)
def test_lines_are_those_that_orjson_writes_for_the_pairs(pair_format: PairFormat, tmp_path: Path) -> None:
    rows = sample_rows(20)
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    augment_files(source, tmp_path / "out.jsonl", pair_format=pair_format)
    lines = [orjson.dumps(row) + b"\n" for row in expected(rows, SetAugmenter(), pair_format)]
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines)


@pytest.mark.parametrize("block_size", [1, 100, 1 << 20])
def test_the_size_of_a_block_does_not_change_a_byte(
    block_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", wide_rows())
    augment_files(source, tmp_path / "usual.jsonl")
    monkeypatch.setattr(blocks, "BLOCK_SIZE", block_size)
    augment_files(source, tmp_path / "other.jsonl")
    assert (tmp_path / "usual.jsonl").read_bytes() == (tmp_path / "other.jsonl").read_bytes()


def test_a_bad_line_does_not_change_how_those_around_it_are_written(tmp_path: Path) -> None:
    """Whether a text is copied with its escapes does not depend on what stands near."""
    good = [b'{"text":"caf\\u00e9 %d","labels":["a\\u00e9"]}\n' % k for k in range(9)]
    (tmp_path / "good.jsonl").write_bytes(b"".join(good))
    (tmp_path / "bad.jsonl").write_bytes(b"".join([*good[:5], b'{"text":"\xff","labels":[]}\n', *good[5:]]))
    augment_files(tmp_path / "good.jsonl", tmp_path / "from_good.jsonl")
    assert augment_files(tmp_path / "bad.jsonl", tmp_path / "from_bad.jsonl", skip_bad=True).skipped.count == 1
    assert (tmp_path / "from_bad.jsonl").read_bytes() == (tmp_path / "from_good.jsonl").read_bytes()


def test_the_hash_seed_does_not_change_a_byte(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", wide_rows())
    outputs = set()
    for seed in "1", "2":
        command = [sys.executable, "-m", "setaug", "augment", str(source), "--ordering", "topological"]
        run = subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, check=True, capture_output=True)
        outputs.add(run.stdout)
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("start", "between", "end"), [(b"", b"\n", b""), (b"\xef\xbb\xbf", b"\r\n", b"\r\n"), (b"\n \n", b"\n\n", b"\n\t")]
)
def test_marks_blank_lines_and_line_ends_do_not_matter(
    start: bytes, between: bytes, end: bytes, tmp_path: Path
) -> None:
    rows = sample_rows(5)
    source = tmp_path / "in.jsonl"
    source.write_bytes(start + between.join(json.dumps(row).encode() for row in rows) + end)
    augment_files(source, tmp_path / "out.jsonl")
    assert read_jsonl(tmp_path / "out.jsonl") == expected(rows, SetAugmenter())


def write_kind(path: Path, rows: Rows) -> Path:
    match path.suffixes:
        case [".csv"]:
            lines = [f'{row["id"]},"{row["text"]}","{" ; ".join(row["labels"])}"\n' for row in rows]
            path.write_text("id,text,labels\n" + "".join(lines))
        case [".tsv", ".gz"]:
            lines = [f"{row['text']}\t{';'.join(row['labels'])}\n" for row in rows]
            path.write_bytes(gzip.compress(("text\tlabels\n" + "".join(lines)).encode()))
        case [".jsonl", *packed]:
            lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
            pack = {".gz": gzip.compress, ".zst": zstandard.compress}
            path.write_bytes(pack[packed[0]](lines) if packed else lines)
        case _:
            parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("name", ["in.csv", "in.tsv.gz", "in.jsonl.zst", "in.parquet"])
def test_every_kind_of_input_gives_the_same_pairs(name: str, tmp_path: Path) -> None:
    rows = sample_rows(50)
    augment_files(write_kind(tmp_path / name, rows), tmp_path / "out.jsonl")
    assert read_jsonl(tmp_path / "out.jsonl") == expected(rows, SetAugmenter())


@pytest.mark.parametrize("name", ["out.csv", "out.tsv.gz", "out.parquet", "out.jsonl.zst", "out.jsonl.gz"])
def test_every_kind_of_output_can_be_read_back(name: str, tmp_path: Path) -> None:
    rows = sample_rows(50)
    pair_format = PairFormat.named("columns", ("text", "target"))
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    augment_files(source, tmp_path / name, pair_format=pair_format, carry=["id"])
    wanted = [(row["text"], row["target"]) for row in expected(rows, SetAugmenter(), pair_format)]
    if name == "out.parquet":
        table = parquet.read_table(tmp_path / name).to_pylist()
        assert [(row["text"], row["target"]) for row in table] == wanted
        assert [row["id"] for row in table] == [row["id"] for row in rows for _ in range(3)]
    elif "jsonl" in name:
        opened = gzip.open if name.endswith("gz") else zstandard.open
        with opened(tmp_path / name, "rt") as lines:
            assert [(row["text"], row["target"]) for row in map(json.loads, lines)] == wanted
    else:
        # No cell holds the delimiter, so each completion is read as one label.
        read = read_examples(tmp_path / name, labels_field="target", delimiter="\0")
        assert [(example.text, example.labels[0]) for example in read] == wanted


def test_fields_are_carried_as_they_are_and_null_where_a_row_has_none(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "labels": ["x"], "id": 12345678901234567890123, "m": {"b": [1.50, "]"]}},
        {"text": "b", "labels": [], "labels2": None},
    ]
    source = write_jsonl(tmp_path / "in.jsonl", rows[1:] + rows[:0])
    augment_files(source, tmp_path / "out.jsonl", SetAugmenter(n_orders=0), carry=["labels", "m", "labels2"])
    assert read_jsonl(tmp_path / "out.jsonl") == [
        {"prompt": "b", "completion": "0", "labels": [], "m": None, "labels2": None}
    ]
    source.write_text('{"text":"a","labels":["x"],"n":1.50,"m":{"b":["]"]}}\n{"text":"b","labels":[],"n":0.10}\n')
    augment_files(source, tmp_path / "out.jsonl", SetAugmenter(n_orders=0), carry=["n", "m"])
    assert '"n":0.10,"m":null}' in (tmp_path / "out.jsonl").read_text()
    assert read_jsonl(tmp_path / "out.jsonl")[0] == {"prompt": "a", "completion": "1 | x", "n": 1.5, "m": {"b": ["]"]}}


def test_an_empty_file_gives_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("")
    report = augment_files(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    assert (report.n_examples, report.mean_log2_orders) == (0, 0.0)


BAD = {
    b'{"text": "a", "labels": ["x"': "not valid JSON",
    b"[1]": "must be a JSON object, got [1]",
    b'{"text": "a"}': 'field "labels" is missing; the row has "text"',
    b'{"labels": []}': 'field "text" is missing',
    b'{"text": 3, "labels": []}': '"text" must be a string, got 3',
    b'{"text": "a", "labels": "x"}': '"labels" must be a list of strings, got "x"',
    b'{"text": "a", "labels": null}': '"labels" must be a list of strings, got null',
    b'{"text": "a", "labels": ["x", 3]}': '"labels" must be a list of strings, but contains 3',
    b'{"text": "a", "labels": [["x"]]}': '"labels" must be a list of strings, but contains ["x"]',
    b'{"text": "a", "labels": ["x", ""]}': '"labels" contains an empty or blank label: ""',
    b'{"text": "a", "labels": ["\\u00a0 \\t"]}': '"labels" contains an empty or blank label',
    b'{"text": "a\xff", "labels": []}': "invalid UTF-8, byte 0xff at column 12",
    b'{"text": "\\ud800", "labels": []}': "not valid JSON",
}


@pytest.mark.parametrize(("line", "problem"), BAD.items())
def test_a_bad_line_is_named_and_nothing_is_written(line: bytes, problem: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b'{"text": "a", "labels": []}\n\n' + line + b'\n{"text": "b", "labels": []}\n')
    with pytest.raises(DataError) as error:
        augment_files(source, target)
    assert str(error.value).startswith(f"line 3 of in.jsonl: {problem}")
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_bad_lines_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    good = sample_rows(20)
    source = tmp_path / "in.jsonl"
    lines = [json.dumps(row).encode() for row in good]
    source.write_bytes(b"\n".join([*BAD, *lines, *BAD]) + b"\n")
    report = augment_files(source, tmp_path / "out.jsonl", skip_bad=True)
    assert read_jsonl(tmp_path / "out.jsonl") == expected(good, SetAugmenter())
    assert report.skipped.count == 2 * len(BAD)
    assert len(report.skipped.first) == 5
    assert report.skipped.first[1].startswith("line 2 of in.jsonl: must be a JSON object")


def test_bad_cells_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('text,labels\n"two\nlines",a;b\nx,a;;b\n')
    with pytest.raises(DataError, match=r'line 4 of in.csv: "labels" contains an empty or blank label: ""'):
        augment_files(tmp_path / "in.csv", tmp_path / "out.jsonl")


def test_an_error_keeps_the_output_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("old")
    (tmp_path / "in.jsonl").write_text("{")
    with pytest.raises(DataError):
        augment_files(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == "old"


@pytest.mark.parametrize("name", ["chat", "chat-prompt-completion"])
def test_chat_messages_do_not_go_into_a_csv_file(name: str, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", sample_rows(3))
    with pytest.raises(FileError, match="chat messages do not fit into a CSV cell"):
        augment_files(source, tmp_path / "out.csv", pair_format=PairFormat.named(name))
    assert os.listdir(tmp_path) == ["in.jsonl"]


def swap_in_place(source: Path) -> None:
    """Exchange two halves: the size is the same, and all lines are good ones but one."""
    content = source.read_bytes()
    source.write_bytes(content[len(content) // 2 :] + content[: len(content) // 2])


def replace_by_another(source: Path) -> None:
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in reversed(sample_rows(100)))
    beside = source.with_suffix(".new")
    beside.write_bytes(gzip.compress(lines) if source.suffix == ".gz" else lines)
    beside.replace(source)


def change_one_byte(source: Path) -> None:
    content = bytearray(source.read_bytes())
    content[len(content) // 2] ^= 1
    source.write_bytes(content)


def cut_short(source: Path) -> None:
    os.truncate(source, source.stat().st_size // 2)


def add_rows(source: Path) -> None:
    content = source.read_bytes()  # twice the rows, in any of the formats
    source.write_bytes(content + content)


CHANGES = [swap_in_place, replace_by_another, change_one_byte, cut_short, add_rows]


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "in.jsonl.zst"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shards", [None, 2])
def test_a_file_that_changes_between_the_passes_is_refused_by_name(
    name: str, change: Callable[[Path], None], shards: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_jsonl(tmp_path / "first.jsonl", sample_rows(10))
    source = write_kind(tmp_path / name, sample_rows(100))
    write = local.LocalRun.write
    monkeypatch.setattr(local.LocalRun, "write", lambda run, *rest: (change(source), write(run, *rest)))
    with pytest.raises(FileError, match=rf"{name} changed while it was read"):
        augment_files([first, source], tmp_path / "out.jsonl", shards=shards)
    assert sorted(os.listdir(tmp_path)) == ["first.jsonl", name]


@pytest.mark.parametrize("name", ["in.csv", "in.parquet"])
def test_a_file_of_another_kind_is_read_once_and_may_change(name: str, tmp_path: Path) -> None:
    source = write_kind(tmp_path / name, sample_rows(50))
    augment_files(source, tmp_path / "before.jsonl")
    augment_files(source, tmp_path / "after.jsonl", progress=lambda *news: source.write_bytes(b"nothing"))
    assert (tmp_path / "after.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()


NUMBERS = [
    "1234567890123456789",
    "-1e-7",
    "1E+05",
    "12345678901234567890123",
    "1.50",
    '{"a": [1e2, {"b": 99999999999999999999}]}',
]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_carried_number_keeps_its_bytes(number: str, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(f'{{"text": "a", "labels": ["x"], "n": {number}}}\n')
    report = augment_files(source, tmp_path / "out.jsonl", SetAugmenter(n_orders=0), carry=["n"])
    assert (tmp_path / "out.jsonl").read_text() == f'{{"prompt":"a","completion":"1 | x","n":{number}}}\n'
    assert report.n_examples == 1
    augment_files(source, tmp_path / "out.csv", SetAugmenter(n_orders=0), carry=["n"])
    with (tmp_path / "out.csv").open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert json.loads(row["n"]) == json.loads(number)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize("name", ['"', "\\", "a\tb", "a\rb", "é\\u00e9", "\x00", "", "😀"])
def test_the_name_of_a_field_may_be_anything(name: str, kind: str, tmp_path: Path) -> None:
    row = {f"t{name}": "a", f"l{name}": ["x"], name: "c"}
    if kind == "jsonl":
        source = write_jsonl(tmp_path / "in.jsonl", [row, row])
        with source.open("a") as lines:
            lines.write(json.dumps(row, ensure_ascii=True).replace("t", "\\u0074", 1) + "\n")
    else:
        source = tmp_path / "in.csv"
        with source.open("w", newline="") as lines:
            csv.writer(lines, quoting=csv.QUOTE_ALL).writerows([list(row), *[["a", "x", "c"]] * 3])
    columns = Columns(text=f"t{name}", labels=f"l{name}")
    augment_files(source, tmp_path / "out.jsonl", SetAugmenter(n_orders=0), columns=columns, carry=[name])
    assert read_jsonl(tmp_path / "out.jsonl") == [{"prompt": "a", "completion": "1 | x", name: "c"}] * 3


def test_of_a_field_that_stands_twice_the_last_is_taken(tmp_path: Path) -> None:
    line = '{"labels": 3, "n": 1, "text": null, "n": 2, "labels": ["x"], "text": "b", "labels": ["y", "z"]}\n'
    (tmp_path / "in.jsonl").write_text(line)
    augment_files(tmp_path / "in.jsonl", tmp_path / "out.jsonl", SetAugmenter(n_orders=0), carry=["n"])
    assert read_jsonl(tmp_path / "out.jsonl") == [{"prompt": "b", "completion": "2 | y | z", "n": 2}]
    assert [example.labels for example in read_examples(tmp_path / "in.jsonl")] == [("y", "z")]


def test_a_valid_line_that_is_not_understood_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a", "labels": ["x"]}\n{"text" "b"}\n')
    monkeypatch.setattr(blocks, "parse_json_row", lambda line: {"text": "b", "labels": []})
    with pytest.raises(RuntimeError, match=r"an error in setaug: a valid row of in.jsonl, near line 2"):
        augment_files(tmp_path / "in.jsonl", tmp_path / "out.jsonl", skip_bad=True)
    assert os.listdir(tmp_path) == ["in.jsonl"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
def test_a_carriage_return_in_a_cell_is_quoted(suffix: str, tmp_path: Path) -> None:
    texts = ["a\rb", "\r", "a\r\nb", "a\nb", 'a"b', "a,b\tc", "\ufeff", "plain"]
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text, "labels": ["x"]} for text in texts])
    pair_format = PairFormat.named("columns", ("\ufefftext", "labels"))
    augment_files(source, tmp_path / f"out.{suffix}", SetAugmenter(n_orders=0), pair_format=pair_format)
    read = read_examples(tmp_path / f"out.{suffix}", text_field="\ufefftext")
    assert [example.text for example in read] == texts
    frame = pd.read_csv(tmp_path / f"out.{suffix}", sep="\t" if "tsv" in suffix else ",", dtype=str)
    assert frame.iloc[:, 0].tolist() == texts


@pytest.mark.parametrize("blank", [b"", b" ", b"\t\r", b"\x0b", b"\x0c", b"\x1c \x1f", b"\xc2\x85", b"\xc2\xa0"])
def test_both_ways_of_reading_agree_on_what_a_blank_line_is(blank: bytes, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b'{"text": "a", "labels": []}\n' + blank + b"\n")
    skipped = Skipped()
    assert len(list(read_examples(source, skipped=skipped))) == 1
    report = augment_files(source, tmp_path / "out.jsonl", skip_bad=True)
    assert (report.n_examples, report.skipped) == (1, skipped)
    assert skipped.count == bool(blank.strip(b" \t\r"))


@pytest.mark.parametrize("length", [9_990, 15_000, 30_000])
@pytest.mark.parametrize("first", ["text", "labels"])
def test_a_line_that_is_too_long_is_refused(
    first: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setaug.examples.MAX_LINE", 10_000)
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 100)
    row = {"text": "a" * 9_000, "labels": ["x"]}
    source = write_jsonl(tmp_path / "in.jsonl", [row, {first: row[first], **row, "text": "a" * length}])
    message = r"line 2 of in\.jsonl: longer than 10,000 bytes"
    with pytest.raises(DataError, match=message):
        augment_files(source, tmp_path / "out.jsonl", skip_bad=True)
    with pytest.raises(DataError, match=message):
        list(read_examples(source, skipped=Skipped()))
    (tmp_path / "in.csv").write_text(f"text,labels\n{'a' * 30_000},x\nb,y\n")
    report = augment_files(tmp_path / "in.csv", tmp_path / "out.jsonl", skip_bad=True)
    assert (report.n_examples, report.skipped.first) == (1, ["line 2 of in.csv: longer than 10,000 bytes; split it."])


def test_a_number_that_json_does_not_have_makes_a_bad_row(tmp_path: Path) -> None:
    scores = [0.5, float("nan"), float("-inf"), 1e300]
    rows = [{"text": "a", "labels": ["x"], "score": score, "deep": [{"s": score}]} for score in scores]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    for name in ("score", "deep"):
        report = augment_files(
            tmp_path / "in.parquet", tmp_path / "out.jsonl", SetAugmenter(n_orders=0), carry=[name], skip_bad=True
        )
        assert [row[name] for row in read_jsonl(tmp_path / "out.jsonl")] == [rows[0][name], rows[3][name]]
        assert report.skipped.first == [
            f'line 2 of in.parquet: the carried field "{name}" is nan, which is not valid JSON.',
            f'line 3 of in.parquet: the carried field "{name}" is -inf, which is not valid JSON.',
        ]


def parquet_of(values: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Carry values into a Parquet file, each in a block of its own; give what is read back."""
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 1)
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "a", "labels": [], "v": value} for value in values])
    augment_files(source, tmp_path / "out.parquet", SetAugmenter(n_orders=0), carry=["v"])
    return [row["v"] for row in parquet.read_table(tmp_path / "out.parquet").to_pylist()]


@pytest.mark.parametrize("values", [[None, None, 3], [[], ["a"], []], [{"a": None}, {"a": "b"}], [None], [2**63 - 1]])
def test_values_reach_a_parquet_file(values: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parquet_of(values, tmp_path, monkeypatch) == values


@pytest.mark.parametrize(
    "values",
    [[1, 2.5], [1.5, True], [{"a": 1}, {"a": 1, "b": 2}], [1, "a"], [2**64], [0.5, 2**53 + 1], [{}], [[1], [True]]],
)
def test_what_a_parquet_file_would_change_is_refused(
    values: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileError, match=r"^Parquet cannot store [^\n]*$"):
        parquet_of(values, tmp_path, monkeypatch)
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_parquet_output_has_checksums(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", sample_rows(100))
    augment_files(source, tmp_path / "out.parquet")
    content = bytearray((tmp_path / "out.parquet").read_bytes())
    content[content.index(b"2 | ") + 200] ^= 1
    (tmp_path / "out.parquet").write_bytes(content)
    with pytest.raises(FileError, match=r"out\.parquet: not a valid Parquet file \([^\n]*$"):
        list(read_examples(tmp_path / "out.parquet", text_field="prompt", are_labelled=False))


def test_a_pipe_can_be_read_although_it_is_read_twice(tmp_path: Path) -> None:
    rows = sample_rows(30)
    os.mkfifo(tmp_path / "pipe.jsonl")
    text = "".join(json.dumps(row) + "\n" for row in rows)
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(tmp_path / 'pipe.jsonl')!r}, 'w').write({text!r})"])
    augment_files(tmp_path / "pipe.jsonl", tmp_path / "out.jsonl")
    assert writer.wait() == 0
    assert read_jsonl(tmp_path / "out.jsonl") == expected(rows, SetAugmenter())


def test_progress_is_told_for_both_passes(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    source = write_jsonl(tmp_path / "in.jsonl", sample_rows(10))
    augment_files(source, tmp_path / "out.jsonl", progress=lambda *news: told.append(news))
    assert told == [("reading", 10, None), ("writing", 10, 10)]


def test_other_column_names_and_an_unknown_suffix(tmp_path: Path) -> None:
    source = tmp_path / "in.data"
    source.write_text('{"t": "a", "l": ["x"]}\n')
    columns = Columns(text="t", labels="l")
    with pytest.raises(FileError, match="cannot infer the file format"):
        augment_files(source, tmp_path / "out.jsonl", columns=columns)
    augment_files(source, tmp_path / "out.jsonl", SetAugmenter(n_orders=0), columns=columns, kind="jsonl")
    assert read_jsonl(tmp_path / "out.jsonl") == [{"prompt": "a", "completion": "1 | x"}]


def test_a_files_statistics_are_those_of_its_sets(tmp_path: Path) -> None:
    rows = wide_rows()
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    with count_files(source) as counted:
        assert counted.statistics() == LabelStatistics().update(row["labels"] for row in rows)


def test_bad_rows_of_a_counted_file_are_noted(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("{\n")
    skipped = Skipped()
    with count_files(tmp_path / "in.jsonl", skipped=skipped) as counted:
        assert (counted.n_sets, skipped.count) == (0, 1)


def test_damaged_archives_are_an_error(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"text": "a", "labels": []}\n' * 1000)
    (tmp_path / "in.jsonl.gz").write_bytes(whole[:-20])
    with pytest.raises(FileError, match=r"in.jsonl.gz is damaged"):
        augment_files(tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl")
    assert os.listdir(tmp_path) == ["in.jsonl.gz"]


def in_files(folder: Path, rows: Rows, sizes: Iterable[int] = (40, 1, 0, 100)) -> Path:
    """Write rows to several files of several kinds, in the order of their names."""
    folder.mkdir()
    kinds = [".jsonl", ".csv", ".jsonl.gz", ".parquet", ".jsonl.zst"]
    rest = rows
    for number, (kind, size) in enumerate(zip(kinds, (*sizes, len(rows)), strict=True)):
        write_kind(folder / f"{number}{kind}", rest[:size])
        rest = rest[size:]
    return folder


def test_many_files_of_many_kinds_are_as_one(tmp_path: Path) -> None:
    rows = sample_rows(400)
    folder = in_files(tmp_path / "in", rows)
    one = write_jsonl(tmp_path / "one.jsonl", rows)
    report = augment_files(folder, tmp_path / "many.jsonl", carry=["id"])
    assert report.n_examples == 400
    augment_files(one, tmp_path / "single.jsonl", carry=["id"])
    as_text = [{**row, "id": str(row["id"])} for row in read_jsonl(tmp_path / "single.jsonl")]
    assert [{**row, "id": str(row["id"])} for row in read_jsonl(tmp_path / "many.jsonl")] == as_text
    with count_files([folder]) as many, count_files(one) as single:
        assert many.statistics() == single.statistics()


@pytest.mark.parametrize("shards", [1, 3, 7, 400])
@pytest.mark.parametrize("block_size", [100, 1 << 20])
def test_shards_one_behind_the_other_are_the_file(
    shards: int, block_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_SIZE", block_size)
    source = write_jsonl(tmp_path / "in.jsonl", wide_rows())
    augment_files(source, tmp_path / "one.jsonl", carry=["id"])
    report = augment_files(source, tmp_path / "out" / "part.jsonl", carry=["id"], shards=shards)
    paths = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in paths] == [f"part-{k:05}-of-{shards:05}.jsonl" for k in range(shards)]
    assert b"".join(path.read_bytes() for path in paths) == (tmp_path / "one.jsonl").read_bytes()
    sizes = [len(path.read_bytes().splitlines()) for path in paths]
    assert sum(sizes) == report.n_pairs
    assert max(sizes) - min(sizes) <= 3


def test_shards_are_compressed_by_suffix_and_an_empty_one_can_be_read(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", sample_rows(2))
    for suffix in ("jsonl.gz", "csv.zst", "parquet"):
        augment_files(source, tmp_path / f"out.{suffix}", shards=3)
        names = [f"out-0000{k}-of-00003.{suffix}" for k in range(3)]
        if suffix == "parquet":
            tables = [parquet.read_table(tmp_path / name) for name in names]
            assert [table.num_rows for table in tables] == [0, 3, 3]
            assert pa.concat_tables(tables).column_names == ["prompt", "completion"]
        else:
            columns = {"text_field": "prompt", "are_labelled": False}
            assert [len(list(read_examples(tmp_path / name, **columns))) for name in names] == [0, 3, 3]


def test_addresses_are_read_and_written(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    rows = sample_rows(50)
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    memory.pipe("/engine/in/a.jsonl.gz", gzip.compress(source.read_bytes()))
    try:
        augment_files(source, tmp_path / "out.jsonl")
        augment_files("memory://engine/in", "memory://engine/out.jsonl.zst")
        written = zstandard.ZstdDecompressor().decompressobj().decompress(memory.cat("/engine/out.jsonl.zst"))
        assert written == (tmp_path / "out.jsonl").read_bytes()
        augment_files("memory://engine/in", "memory://engine/out.jsonl", shards=2)
        shards = [memory.cat(f"/engine/out-0000{k}-of-00002.jsonl") for k in range(2)]
        assert b"".join(shards) == (tmp_path / "out.jsonl").read_bytes()
        memory.pipe("/engine/in/b.jsonl", b"{}\n")
        with pytest.raises(DataError, match=r"line 1 of memory://engine/in/b.jsonl: field"):
            augment_files("memory://engine/in", "memory://engine/bad.jsonl")
        assert not memory.exists("/engine/bad.jsonl")
        with pytest.raises(FileError, match="cannot read memory://engine/none"):
            augment_files("memory://engine/none.jsonl", "memory://engine/bad.jsonl")
    finally:
        memory.rm("/engine", recursive=True)


def test_a_bad_line_is_told_with_its_own_file(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_jsonl(folder / "a.jsonl", sample_rows(3))
    (folder / "b.jsonl").write_text('{"text": "x", "labels": ["a"]}\n{"text": 1}\n')
    with pytest.raises(DataError, match=rf"line 2 of {folder}/b.jsonl: field"):
        augment_files(folder, tmp_path / "out.jsonl", shards=2)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    report = augment_files(folder, tmp_path / "out.jsonl", skip_bad=True)
    assert (report.n_examples, report.skipped.count) == (4, 1)


@pytest.mark.parametrize("shards", [0, -1, True, 1.5])
def test_a_number_of_shards_that_makes_no_sense_is_refused(shards: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shards must be a positive integer"):
        augment_files("in.jsonl", tmp_path / "out.jsonl", shards=shards)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_file_without_rows_before_others_changes_nothing(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    source = write_jsonl(tmp_path / "b.jsonl", sample_rows(5))
    augment_files([tmp_path / "a.jsonl", source], tmp_path / f"two.{suffix}")
    augment_files(source, tmp_path / f"one.{suffix}")
    assert (tmp_path / f"two.{suffix}").read_bytes() == (tmp_path / f"one.{suffix}").read_bytes()


def test_shards_never_replace_what_is_read(tmp_path: Path) -> None:
    sources = [write_jsonl(tmp_path / f"train-0000{k}-of-00002.jsonl", sample_rows(9)) for k in range(2)]
    before = [path.read_bytes() for path in sources]
    with pytest.raises(FileError, match="already exists"):
        augment_files(sources, tmp_path / "train.jsonl", shards=2)
    assert [path.read_bytes() for path in sources] == before


def test_a_carriage_return_between_values_is_no_end_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"text":"a","labels":["x"],"more":[1,\r2]}\n')
    augment_files(tmp_path / "in.jsonl", tmp_path / "out.parquet", carry=["more"])
    assert parquet.read_table(tmp_path / "out.parquet").to_pylist()[0]["more"] == [1, 2]


def test_a_mark_at_the_start_does_not_spill_more_than_the_file(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'\xef\xbb\xbf{"text":"a","labels":["x"]}\n')
    with count_files(tmp_path / "in.jsonl") as counted:
        assert counted.spill._file.seek(0, 2) < 1000


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_temporary_files_that_find_no_room_are_named(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; from setaug.cli import main; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "sys.exit(main(['augment', '-', '-q', '-o', 'out.jsonl']))"
    )
    lines = b'{"text":"a","labels":["x"]}\n' * 100
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", code], input=lines, capture_output=True, cwd=tmp_path, env=environment
    )
    message = f"setaug augment: cannot write a temporary file in {tmp_path}: File too large; set TMPDIR.\n"
    assert (found.returncode, found.stderr.decode()) == (2, message)
    assert not list(tmp_path.iterdir())


def test_a_carried_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([["x"]]), pa.array([1]), pa.array([2])], list("tlcc"))
    parquet.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "in.csv").write_text("t,l,c,c,,\na,x,1,2,,\n")
    for name in ("in.csv", "in.parquet"):
        augment_files(tmp_path / name, tmp_path / "out.jsonl", columns=Columns(text="t", labels="l"))
        with pytest.raises(DataError, match='there are 2 columns "c"; rename all but one'):
            augment_files(tmp_path / name, tmp_path / "out.jsonl", columns=Columns(text="t", labels="l"), carry=["c"])


@pytest.mark.parametrize("is_nested", [False, True])
def test_carried_times_keep_all_their_digits_or_are_refused(is_nested: bool, tmp_path: Path) -> None:
    def carry(values: pa.DataType, digits: int) -> Any:
        array = pa.array([digits], pa.int64()).cast(values)
        column = pa.StructArray.from_arrays([array], ["at"]) if is_nested else array
        table = pa.table({"text": ["a"], "labels": [["x"]], "c": column})
        parquet.write_table(table, tmp_path / "in.parquet")
        augment_files(tmp_path / "in.parquet", tmp_path / "out.jsonl", carry=["c"])
        found = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])["c"]
        return found["at"] if is_nested else found

    assert carry(pa.timestamp("ns"), 1577836800123456000) == "2020-01-01T00:00:00.123456"  # as pandas writes them
    assert carry(pa.time64("us"), 3723000001) == "01:02:03.000001"
    with pytest.raises(DataError, match="a carried field cannot be written as JSON"):
        carry(pa.timestamp("ns"), 1577836800123456789)
    with pytest.raises(FileError, match='the carried field "c" has times in nanoseconds; convert it to microseconds'):
        carry(pa.time64("ns"), 3723000000001)
