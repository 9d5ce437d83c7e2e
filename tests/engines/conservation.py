"""Rows in = pairs out / (orders + 1) + rows reported as bad: all kinds of files, all options, read back by others.

    python -m tests.engines.conservation --files 2000 [--first 0] [--ray 30]

A file is drawn from its number alone. What it holds is known before it is written; what `setaug augment` makes of it is
read with json, csv, pandas and pyarrow, and must be the pairs of `SetAugmenter`, which knows no files. Each case runs
through the compiled loops and again in plain Python, which must write the same bytes.
"""

import argparse
import contextlib
import csv
import gzip
import io
import json
import math
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
import zstandard
from pyarrow import parquet

from setaug import Example, SetAugmenter, progress
from setaug.augmenter import PairFormat
from setaug.cli import main
from setaug.engines import local
from setaug.engines.fast import blocks, plain_scan
from setaug.examples import Columns
from setaug.orders import ORDERINGS
from setaug.registry import PAIR_FORMATS

NAMES = [
    *("text", "labels", "id", "score", "é", "😀", " ", "a b", "\u2028", "\ufeffx", "a/b", "'", "\x7f", "\x00"),
    *('a"b', "a\\b", "a\tb", "a\nb", "a\rb", "a,b", 'a\\"b', '"', "\\u0041", "{", "]:", "naïve", "𐍈", "\u00a0"),
    *("", "\x1f\x0b"),
]
CHARACTERS = [
    *"abcxyzABC0189 .,;:|/\\\"'{}[]()<>&=+-_#%éß日本😀𐍈\n\r\t\x0b\x0c\x00\x01\x1b\x1c\x1f\x7f\x85\u2028\u2029",
    *("\r\n", "\ufeff", "\u00a0", "\u200b", "e\u0301", "\ufffd", "\uffff", "NULL", "nan", "\\u0041"),
]
NUMBERS = [
    *("0", "-0", "7", "-1", "1.50", "0.10", "-0.0", "1e5", "1E+05", "1e-7", "2.5e-08", "1e300", "-1e-300", "5e-324"),
    *("1.7976931348623157e308", "9007199254740993", "1234567890123456", "1234567890123456789", "9223372036854775807"),
    *("-9223372036854775808", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-" + "9" * 25),
    *("1" * 40, "1" + "0" * 150, "9" * 250, "0.1000000000000000055511151231257827", "123456789.123e-20", "1e-400"),
]
BAD_LINES = [
    *(b'{"%s": "a", "%s": ["x"', b"[1]", b"3", b'{"%s": "a"}', b'{"n": 1}', b"\x0b", b"\x0c\x0c", b" \x1c", b"\x00"),
    *(b'{"%s": 3, "%s": []}', b'{"%s": "a", "%s": "x"}', b'{"%s": "a", "%s": null}', b'{"%s": "a", "%s": ["x", 3]}'),
    *(b'{"%s": "a", "%s": ["x", " "]}', b'{"%s": "a", "%s": ["\\u00a0\\t"]}', b'{"%s": "\xff", "%s": []}', b"\xff"),
    *(b'{"%s": "\\ud800", "%s": []}', b'{"%s": "a", "%s": [], "n": 1e999}', b'{"%s": "a", "%s": [], "n": NaN}'),
    *(b'{"%s": "a", "%s": [], "n": 1' + b"0" * 400 + b"}", b'{"%s": "a\rb", "%s": []}', b'{"%s": "a\x01", "%s": []}'),
    *(b'{"%s": "a", "%s": []} x', b'{"%s": "a", "%s": [], "n": 01}', b'{"%s": "a", "%s": [], "n": {"m": [}}'),
]
PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@dataclass
class Row:
    """A row: what it means, and for JSONL how its fields are written."""

    text: str
    labels: list[str]
    fields: dict[str, Any]
    raw: dict[str, str] = field(default_factory=dict)


class Draw(random.Random):
    """All that a file is drawn from."""

    def chance(self, share: float) -> bool:
        return self.random() < share

    def string(self, most: int = 30) -> str:
        n = 3000 if self.chance(0.01) else self.randrange(most)
        return "".join(self.choices(CHARACTERS, k=n)).encode(errors="ignore").decode()

    def label(self) -> str:
        while True:
            label = self.string(8) if self.chance(0.4) else self.choice("abcdefgh") * self.randint(1, 2)
            if label.strip():
                return label

    def raw_value(self, depth: int = 0) -> str:
        """Write any JSON value in some way."""
        space = self.choice(["", "", " ", "\t", " \r", "\r"])
        match self.randrange(7 if depth < 3 else 4):
            case 0:
                return self.choice(["true", "false", "null"])
            case 1 | 2:
                return self.choice(NUMBERS)
            case 3:
                return self.raw_string(self.string(12))
            case 4 | 5:
                items = [self.raw_value(depth + 1) for _ in range(self.randrange(4))]
                return f"[{space}" + f"{space},".join(items) + f"{space}]"
            case _:
                names = self.sample(NAMES, self.randrange(4))
                items = [f"{self.raw_string(name)}{space}:{self.raw_value(depth + 1)}" for name in names]
                return "{" + space + f",{space}".join(items) + "}"

    def raw_string(self, text: str) -> str:
        if self.chance(0.1):
            return '"' + "".join(f"\\u{k:04X}" for k in memoryview(text.encode("utf-16-le")).cast("H")) + '"'
        return json.dumps(text, ensure_ascii=self.chance(0.5))

    def typed(self) -> Callable[[], Any]:
        """Draw a type that a Parquet column can have, and give what draws its values."""
        return self.choice(
            [
                lambda: self.randrange(-(2**63), 2**63),
                lambda: self.choice([0.1, -2.5e-8, 1e300, 1e16, 123456789.25, 5e-324]),
                lambda: self.string(12),
                lambda: self.chance(0.5),
                lambda: [self.randrange(2**62) for _ in range(self.randint(1, 3))],
                lambda: {"a": self.string(5), "b\t": [self.chance(0.5)]},
            ]
        )


@dataclass
class Source:
    """A file, and what is known of it."""

    name: str
    content: bytes
    rows: list[Row]
    n_bad: int


@dataclass
class Case:
    """Sources, options, and where to write."""

    sources: list[Source]
    options: dict[str, Any]
    target: str
    block_size: int
    columns: Columns

    @property
    def rows(self) -> list[Row]:
        return [row for source in self.sources for row in source.rows]

    @property
    def n_bad(self) -> int:
        return sum(source.n_bad for source in self.sources)

    def arguments(self, folder: Path) -> list[str]:
        found = [str(folder / source.name) for source in self.sources]
        for name, value in self.options.items():
            option = f"--{name.replace('_', '-')}"
            if isinstance(value, list):
                found += [option, *value]
            else:
                found.append(option if value is True else "--no-size" if value is False else f"{option}={value}")
        return [*found, f"--output={folder / self.target}"]

    def used(self) -> list[str]:
        """Name the options that differ from their defaults, and the kinds of files."""
        kinds = [f"in {'.'.join(source.name.split('.')[1:])}" for source in self.sources]
        return [*self.options, *kinds, f"out {self.target.partition('.')[2]}", *["bad rows"] * (self.n_bad > 0)]


def draw_case(number: int, *, is_ray: bool = False) -> Case:
    draw = Draw(number)
    names = draw.sample(NAMES, 8)
    text, labels, *others = names if draw.chance(0.6) else ["text", "labels", *(set(names) - {"text", "labels"})]
    others.sort()
    delimiter = draw.choice([";", "|", ",", "\t", "::", " ", "é", '"', "\n", "\\"])
    columns = Columns(text=text, labels=labels, delimiter=delimiter)
    with_bad = draw.chance(0.45)
    options = draw_options(draw, columns, others[:4], with_bad)
    if is_ray or draw.chance(0.15):
        options["shards"] = draw.choice([1, 2, 5])
    is_chat = options.get("format", "").startswith("chat")
    target = draw.choice(["jsonl", "parquet"] if is_chat else ["jsonl", "csv", "tsv", "parquet"])
    n_files = draw.choice([1, 1, 1, 2, 3])
    kinds = [draw.choice(["jsonl", "jsonl", "csv", "tsv", "parquet"]) for _ in range(n_files)]
    types = None
    if target == "parquet":  # a column has one type
        kinds = [kinds[0]] if kinds[0] == "parquet" else [kinds[0]] * n_files
        types = {name: draw.typed() for name in others[:4]}
    sources = []
    for at, kind in enumerate(kinds):
        pack = draw.choice(["", ".gz", ".zst"]) if kind != "parquet" else ""
        content, rows, n_bad = WRITERS[kind](draw, columns, others, with_bad, types)
        sources.append(Source(f"in{at}.{kind}{pack}", PACK[pack](content), rows, n_bad))
    if len(kinds) == 1 and draw.chance(0.2):
        options["input_kind"] = kinds[0]
        sources[0].name = sources[0].name.replace(f".{kinds[0]}", ".data")
    pack = draw.choice(["", ".gz", ".zst"]) if target != "parquet" else ""
    return Case(sources, options, f"out.{target}{pack}", draw.choice([1, 64, 1000, 1 << 21]), columns)


def draw_options(draw: Draw, columns: Columns, others: list[str], with_bad: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    choices: dict[str, list[Any]] = {
        "orders": [0, 1, 3, 5],
        "ordering": [name for name in ORDERINGS if name != "topological"],
        "sampler": ["quick"],
        "distinct": [True],
        "min_pmi": [0, -1, 0.5],
        "min_ratio": [1, 1.5],
        "seed": [1, 7, 2**40],
        "size": [False],
        "separator": [";", " → ", "\n", '"', "\t| ", "||", "\x00", ", ", "、"],
        "template": ["a {text}", 'Q: "{text}"\nA:\\', "{text}\r", "\x00{text}\u2028", "{{text}}"],
        "format": [name for name in PAIR_FORMATS if name != "prompt-completion"],
    }
    for name, values in choices.items():
        if draw.chance(0.3):
            options[name] = draw.choice(values)
    if options.get("format", "").startswith("chat") and draw.chance(0.5):
        options["system"] = draw.choice(["", 'Say "é"\n', "\x00\x01\\u0000\\u0001", draw.string()])
    carried = draw.sample(others, draw.choice([0, 1, 2, 3]))
    if carried and draw.chance(0.1):
        carried.append(draw.choice([columns.text, columns.labels]))
    if options.get("format") == "columns":
        options["columns"] = draw.sample([name for name in NAMES if name not in carried], 2)
    if carried:
        options["carry"] = carried
    for name, option in (("text", "text_field"), ("labels", "labels_field"), ("delimiter", "delimiter")):
        if getattr(columns, name) != getattr(Columns(), name):
            options[option] = getattr(columns, name)
    if (with_bad and draw.chance(0.9)) or draw.chance(0.1):
        options["skip_bad"] = True
    return options


def some(draw: Draw) -> range:
    return range(draw.choice([0, 1, 2, 5, 12, 30]))


def draw_set(draw: Draw, pool: list[str]) -> list[str]:
    return draw.choices(pool, k=draw.choice([0, 1, 2, 2, 3, 5]))


def write_jsonl(
    draw: Draw, columns: Columns, others: list[str], with_bad: bool, types: dict[str, Callable[[], Any]] | None
) -> tuple[bytes, list[Row], int]:
    pool = [draw.label() for _ in range(6)]
    lines, rows, n_bad = [], [], 0
    for _ in some(draw):
        names = others if types else draw.sample(others, draw.randrange(len(others) + 1))
        raw = {
            name: draw.raw_value() if not types or name not in types else json.dumps(types[name]()) for name in names
        }
        row = Row(draw.string(), draw_set(draw, pool), {name: json.loads(value) for name, value in raw.items()}, raw)
        if len(str(row.fields)) > 4000:
            continue
        rows.append(row)
        lines.append(write_line(draw, columns, row))
        if draw.chance(0.1):
            lines.append(draw.choice([b"", b" ", b"\t \r"]))
        if with_bad and draw.chance(0.3):
            keys = [json.dumps(name).encode()[1:-1] for name in (columns.text, columns.labels)]
            bad = draw.choice(BAD_LINES)
            lines.append(bad.replace(b"%s", keys[0], 1).replace(b"%s", keys[1], 1))
            n_bad += 1
    between = draw.choice([b"\n", b"\r\n"])
    start = b"\xef\xbb\xbf" if draw.chance(0.2) else b""
    return start + between.join(lines) + (between if draw.chance(0.7) else b""), rows, n_bad


def write_line(draw: Draw, columns: Columns, row: Row) -> bytes:
    pairs = [(columns.text, draw.raw_string(row.text))]
    pairs.append((columns.labels, "[" + draw.choice([",", " , "]).join(map(draw.raw_string, row.labels)) + "]"))
    row.raw |= dict(pairs)
    pairs += [(name, raw) for name, raw in row.raw.items() if name not in (columns.text, columns.labels)]
    draw.shuffle(pairs)
    if draw.chance(0.1):  # a field that stands twice: the last is taken
        pairs.insert(0, (draw.choice(pairs)[0], draw.raw_value()))
    space, colon = draw.choice(["", " ", "\t", "\r"]), draw.choice([":", ": ", " :"])
    inside = f",{space}".join(f"{draw.raw_string(name)}{colon}{value}" for name, value in pairs)
    return f"{space}{{{space}{inside}}}{space}".encode()


def write_delimited(
    separator: str, draw: Draw, columns: Columns, others: list[str], with_bad: bool, _: object
) -> tuple[bytes, list[Row], int]:
    out, delimiter = io.StringIO(newline=""), columns.delimiter
    header = [columns.text, columns.labels, *others]
    draw.shuffle(header)
    end = draw.choice(["\n", "\r\n", "\r"])
    needs_all = end != "\r\n" or header[0].startswith("\ufeff")
    quoting = csv.QUOTE_ALL if needs_all or draw.chance(0.5) else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writerow(header)
    # White space around a label is dropped, and what separates labels cannot stand in one.
    drawn = (draw.label().strip() for _ in range(6))
    pool = [each for each in drawn if f"x{delimiter}{each}{delimiter}x".split(delimiter) == ["x", each, "x"]] or ["x"]
    rows, n_bad = [], 0
    for _ in some(draw):
        row = Row(draw.string(), draw_set(draw, pool), {name: draw.string(12) for name in others})
        cells = {columns.text: row.text, columns.labels: delimiter.join(row.labels), **row.fields}
        writer.writerow([cells[name] for name in header])
        rows.append(row)
        if draw.chance(0.1):
            out.write(end)
        if with_bad and draw.chance(0.3):
            n_bad += 1
            match draw.randrange(4):
                case 0:
                    writer.writerow([*header, "one more"])
                case 1:
                    writer.writerow(["only one"])
                case 2:
                    bad = {**cells, columns.labels: f"x{delimiter}{delimiter}y"}
                    writer.writerow([bad[name] for name in header])
                case _:
                    bad = {**cells, columns.text: "\udcff"}
                    writer.writerow([bad[name] for name in header])
    if with_bad and draw.chance(0.3):
        n_lines = draw.randint(1, 4)
        out.write(f'"never closed{separator}x{end}' + f"a{separator}b{end}" * (n_lines - 1))
        n_bad += n_lines
    start = b"\xef\xbb\xbf" if draw.chance(0.2) else b""
    return start + out.getvalue().encode(errors="surrogateescape"), rows, n_bad


def write_parquet(
    draw: Draw, columns: Columns, others: list[str], with_bad: bool, _: object
) -> tuple[bytes, list[Row], int]:
    pool = [draw.label() for _ in range(6)]
    types = {name: draw.typed() for name in others}
    texts: list[bytes | None] = []
    sets: list[list[str] | None] = []
    fields: list[dict[str, Any]] = []
    rows, n_bad = [], 0
    for _ in some(draw):
        found = {name: None if draw.chance(0.1) else types[name]() for name in others}
        row = Row(draw.string(), draw_set(draw, pool), found)
        rows.append(row)
        texts.append(row.text.encode())
        sets.append(row.labels)
        fields.append(row.fields)
        if with_bad and draw.chance(0.3):
            n_bad += 1
            text, labels = draw.choice([(b"a\xff", []), (None, []), (b"a", None), (b"a", [" "]), (b"a", ["x", None])])
            texts.append(text)
            sets.append(labels)
            fields.append(row.fields)
    arrays = [
        pa.array(texts, pa.binary()).cast(pa.string(), safe=False),
        pa.array(sets, pa.list_(pa.string())),
        *(pa.array([row[name] for row in fields]) for name in others),
    ]
    table = pa.Table.from_arrays(arrays, names=[columns.text, columns.labels, *others])
    table = table.select(draw.sample(range(len(arrays)), len(arrays)))
    out = io.BytesIO()
    parquet.write_table(table, out, row_group_size=draw.choice([1, 3, 1000]))
    return out.getvalue(), rows, n_bad


WRITERS: dict[str, Callable[..., tuple[bytes, list[Row], int]]] = {
    "jsonl": write_jsonl,
    "csv": lambda *rest: write_delimited(",", *rest),
    "tsv": lambda *rest: write_delimited("\t", *rest),
    "parquet": write_parquet,
}


def expected_rows(case: Case) -> Iterator[dict[str, Any]]:
    """Make the pairs in Python, without files; each with all that is carried."""
    options = case.options
    taken = ("ordering", "sampler", "distinct", "min_pmi", "min_ratio", "separator", "template")
    augmenter = SetAugmenter(
        n_orders=options.get("orders", 2),
        random_state=options.get("seed", 0),
        with_size=options.get("size", True),
        **{name: options[name] for name in taken if name in options},
    )
    shape = pair_format(case)
    examples = [Example(row.text, row.labels) for row in case.rows]
    for at, pair in enumerate(augmenter.fit(examples).augment(examples)):
        row = case.rows[at // (augmenter.n_orders + 1)]
        every = {**row.fields, case.columns.text: row.text, case.columns.labels: row.labels}
        yield shape.row(pair) | {name: every.get(name) for name in options.get("carry", [])}


def pair_format(case: Case) -> PairFormat:
    options = case.options
    return PairFormat.named(
        options.get("format", "prompt-completion"), options.get("columns"), system=options.get("system")
    )


def run_case(number: int, folder: Path, *, is_ray: bool = False) -> Case:
    """Draw a case, run it, and compare; raise where something is not as it should be."""
    case = draw_case(number, is_ray=is_ray)
    for source in case.sources:
        (folder / source.name).write_bytes(source.content)
    code, message = run_augment(case, folder, is_ray=is_ray)
    outputs = sorted(path for path in folder.iterdir() if path.name.startswith("out"))
    if not is_ray:
        compare_paths(case, folder, (code, message), outputs)
    if case.n_bad and "skip_bad" not in case.options:
        assert code == 2, message
        assert message.splitlines()[-1].startswith("setaug augment: line "), message
        assert not outputs
        return case
    assert code == 0, message
    n_pairs = len(case.rows) * (case.options.get("orders", 2) + 1)
    assert re.search(rf"^{len(case.rows):,} examples with ", message, re.MULTILINE), message
    assert f" wrote {n_pairs:,} pairs" in message, message
    skipped = re.search(r"^skipped ([\d,]+) bad lines?[:;]", message, re.MULTILINE)
    assert (int(skipped[1].replace(",", "")) if skipped else 0) == case.n_bad, message
    assert len(outputs) == case.options.get("shards", 1)
    names = [*pair_format(case).names, *case.options.get("carry", [])]
    compare(case, names, list(expected_rows(case)), outputs)
    return case


def run_augment(case: Case, folder: Path, *, is_ray: bool = False, small_input: int = 0) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed."""
    told = io.StringIO()
    arguments = ["augment", *case.arguments(folder), *["--engine=ray"] * is_ray]
    with (
        contextlib.redirect_stderr(told),
        mock.patch.object(blocks, "BLOCK_SIZE", case.block_size),
        mock.patch.object(local, "SMALL_INPUT", small_input),
        mock.patch.object(progress, "LINE_EVERY", math.inf),  # the first case may compile for longer
    ):
        code = main(arguments)
    return code, told.getvalue()


def compare_paths(case: Case, folder: Path, compiled: tuple[int, str], outputs: list[Path]) -> None:
    """Run again in plain Python; files and messages must be the same."""
    contents = {path.name: path.read_bytes() for path in outputs}
    for path in outputs:
        path.unlink()
    failing = AssertionError("compiled code ran on the plain path")
    with mock.patch.object(plain_scan, "import_module", side_effect=failing):
        code, message = run_augment(case, folder, small_input=sys.maxsize)
    took = re.compile(r" in [\d.]+ s$|^compiling .*\n", re.MULTILINE)
    found, wanted = (code, took.sub("", message)), (compiled[0], took.sub("", compiled[1]))
    assert found == wanted, (found, wanted)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith("out")} == contents


def compare(case: Case, names: list[str], wanted: list[dict[str, Any]], outputs: list[Path]) -> None:
    """Read what was written with other libraries, and compare it with what it should be."""
    kind = case.target.split(".")[1]
    contents = [unpacked(path) for path in outputs]
    if kind == "jsonl":
        lines = b"".join(contents).decode().split("\n")
        assert lines.pop() == ""
        assert [exact(json.loads(line)) for line in lines] == [exact(row) for row in wanted]
        for line in lines:
            assert "\r" not in line  # nor is it the end of a line to those who take it for one
        check_source_bytes(case, lines)
    elif kind == "parquet":
        tables = [parquet.read_table(path, page_checksum_verification=True) for path in outputs]
        assert all(table.column_names == names for table in tables)
        assert [exact(row) for table in tables for row in table.to_pylist()] == [exact(row) for row in wanted]
        frames = [pd.read_parquet(path) for path in outputs]
        assert sum(len(frame) for frame in frames) == len(wanted)
    else:
        separator = "\t" if kind == "tsv" else ","
        texts = [[cell(row[name]) for name in names] for row in wanted]
        found = [read_cells(content, separator) for content in contents]
        assert all(rows[0] == names for rows in found)
        assert [row for rows in found for row in rows[1:]] == texts
        frames = [read_pandas(content, separator) for content in contents]
        assert [row for frame in frames for row in frame[1:]] == texts


def check_source_bytes(case: Case, lines: list[str]) -> None:
    n_each = case.options.get("orders", 2) + 1
    for at, row in enumerate(case.rows):
        for name in case.options.get("carry", []):
            if name in row.raw:
                kept = f"{json.dumps(name, ensure_ascii=False)}:{row.raw[name]}".replace("\r", " ")
                if not set(name) & {"\x7f", "\u2028"}:
                    assert kept in lines[at * n_each], (kept, lines[at * n_each])


def unpacked(path: Path) -> bytes:
    opened = {".gz": gzip.open, ".zst": zstandard.open}.get(path.suffix, open)
    with opened(path, "rb") as stream:
        return bytes(stream.read())


def exact(value: object) -> str:
    """Tell apart what Python takes for equal (1, 1.0 and true)."""
    return json.dumps(value, sort_keys=True)


def cell(value: object) -> str:
    """Write a value as a CSV cell: strings and numbers as they are, lists and objects as JSON."""
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def read_cells(content: bytes, separator: str) -> list[list[str]]:
    csv.field_size_limit(sys.maxsize)
    return list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=separator, strict=True))


def read_pandas(content: bytes, separator: str) -> list[list[str]]:
    # The compiled reader of pandas ends a cell at a NUL, whoever wrote it.
    engine = "python" if b"\x00" in content else "c"
    frame = pd.read_csv(
        io.BytesIO(content), sep=separator, header=None, dtype=str, na_filter=False, engine=engine, encoding="utf-8"
    )
    return [list(row) for row in frame.itertuples(index=False)]


@contextlib.contextmanager
def ray() -> Iterator[None]:
    """Start Ray once, for many files."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()


def run_many(numbers: range, *, is_ray: bool = False) -> Counter[str]:
    """Run many cases; count rows, and how often each option was used."""
    counts: Counter[str] = Counter()
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            try:
                case = run_case(number, Path(folder), is_ray=is_ray)
            except BaseException as error:
                error.add_note(f"case {number}: {draw_case(number, is_ray=is_ray).used()}")
                raise
        counts.update(set(case.used()))
        counts.update({"cases": 1, "files": len(case.sources), "rows": len(case.rows), "bad": case.n_bad})
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ray", type=int, default=0, help="so many more on Ray")
    given = parser.parse_args()
    found = run_many(range(given.first, given.first + given.files))
    if given.ray:
        with ray():
            found.update({f"ray {k}": n for k, n in run_many(range(given.ray), is_ray=True).items() if " " not in k})
    sys.stdout.write("\n".join(f"{name}: {n:,}" for name, n in sorted(found.items())) + "\n")
