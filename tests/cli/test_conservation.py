"""Rows in are rows out, or are counted as bad: ids and order stay, whatever the files are like."""

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import zstandard

from setaug.cli import main
from tests.conftest import EXAMPLES
from tests.prompting.server import ModelServer, Relay

ODD = [
    "\r",
    "\x0b",
    "\x0c",
    "\x00",
    "\ufeff",
    "\n",
    "\r\n",
    "\u2028",
    "\x85",
    "\t",
    '"',
    "\\",
    ",",
    ";",
    "'",
    "é",
    "🎉",
]
NAMES = [
    "text",
    "labels",
    'a "quote"',
    "back\\slash",
    "tab\there",
    "",
    " ",
    "日本",
    "a,b",
    "a;b",
    "\ufeffx",
    "line\nbreak",
]
KINDS = ["jsonl", "jsonl.gz", "jsonl.zst", "csv", "csv.gz", "csv.zst", "tsv", "tsv.gz", "parquet"]
IDS: list[Any] = [
    7,
    "x",
    "7",
    1.5,
    True,
    False,
    "",
    "a\x1b[0m\u2028",
    -3,
    2**62,
    "é",
    1e300,
    [1, "a"],
    {"a": {"b": None}},
]
LABELS = sorted({label for example in EXAMPLES for label in example.labels})


@dataclass(frozen=True)
class Made:
    """A file, the ids of its good rows in order, and the number of its bad rows."""

    path: Path
    options: list[str]
    ids: list[Any]
    n_bad: int


def make(folder: Path, command: str, kind: str, seed: int) -> Made:
    rng = random.Random(f"{command} {kind} {seed}")
    is_json, is_parquet = kind.startswith("jsonl"), kind == "parquet"
    names = [name for name in NAMES if is_json or is_parquet or ("\n" not in name and name.strip("\ufeff "))]
    text, labels = rng.sample(names, 2)
    rows, ids, n_bad = [], [], 0
    for at in range(rng.randint(1, 24)):
        written = "".join(rng.choice([*ODD, "a", " word "]) for _ in range(rng.randint(0, 8)))
        if not (is_json or is_parquet):
            written = written.replace("\x00", "")  # no CSV holds it
        row: dict[str, Any] = {text: f"text {at} {written}", labels: rng.sample(LABELS, rng.randint(0, 3))}
        row["id"] = rng.choice(IDS) if is_json else f"{at} {rng.choice(['', 'é', ','])}"
        if is_json and rng.random() < 0.2:
            del row["id"]
        if is_json and rng.random() < 0.25:
            row[text] = rng.choice([3, None, ["a"], {}, "half a character \ud800"])
            n_bad += 1
        else:
            ids.append(row.get("id"))
        rows.append(row)
    path = folder / f"in-{seed}.{kind}"
    if is_parquet:
        pd.DataFrame(rows).to_parquet(path)
    else:
        _write(path, _lines(rows, rng) if is_json else _table(rows, labels, "\t" if kind.startswith("tsv") else ","))
    return Made(path, ["--text-field", text, "--labels-field", labels], ids, n_bad)


def _lines(rows: list[dict[str, Any]], rng: random.Random) -> str:
    ends = [rng.choice(["\n", "\r\n", "\n\n", "\n \n"]) for _ in rows]
    start = rng.choice(["", "\ufeff"])
    written = (json.dumps(row, ensure_ascii="\\ud800" in json.dumps(row) or rng.random() < 0.5) for row in rows)
    return start + "".join(line + end for line, end in zip(written, ends, strict=True))


def _table(rows: list[dict[str, Any]], labels: str, delimiter: str) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({**row, labels: ";".join(row[labels])} for row in rows)
    return stream.getvalue()


def _write(path: Path, text: str) -> None:
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data)
    if path.suffix == ".zst":
        data = zstandard.compress(data)
    path.write_bytes(data)


@pytest.fixture(scope="module")
def answering() -> Iterator[Relay]:
    def trouble(n_asked: int, body: dict[str, Any]) -> Any:
        message = {"role": "assistant", "content": f"2 | joy | label {n_asked}"}
        return 200, {}, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    with Relay(ModelServer(Path("none"))).running() as relay:
        relay.trouble = trouble
        yield relay


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["predict", "score", "prompt"])
def test_rows_in_are_rows_out_or_counted(
    name: str,
    kind: str,
    generator_folder: Path,
    answering: Relay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    for seed in range(2):
        quiet = ["-q"] if seed % 2 else []
        made = make(tmp_path, name, kind, seed)
        output = tmp_path / f"{name}-{seed}.jsonl"
        before = _prompting(made, answering, tmp_path) if name == "prompt" else [name, str(generator_folder)]
        code = main([*before, str(made.path), *made.options, "--skip-bad", "-o", str(output), *quiet])
        err = capfd.readouterr().err
        if name == "prompt" and not made.ids:
            assert code == 2
            assert "contains no examples" in err
            continue
        assert code == 0, err
        counted = re.search(r"skipped (\d+) bad lines?(?:; the first ones)?:", err)
        assert (int(counted[1]) if counted else 0) == made.n_bad, err
        read = [json.loads(line) for line in output.read_text(encoding="utf-8").split("\n") if line]
        assert [row.get("id") for row in read] == made.ids
        assert len(pd.read_json(output, lines=True)) == len(made.ids) if made.ids else not read


def _prompting(made: Made, server: Relay, folder: Path) -> list[str]:
    """Ask a server; the training file has the same names of fields."""
    _, text, _, labels = made.options
    train = folder / "train.parquet" if made.path.suffix == ".parquet" else folder / f"train{made.path.suffixes[0]}"
    rows = [{"id": one.id, text: one.text, labels: list(one.labels)} for one in EXAMPLES]
    match train.suffix:
        case ".parquet":
            pd.DataFrame(rows).to_parquet(train)
        case ".jsonl":
            train.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case suffix:
            train.write_bytes(_table(rows, labels, "\t" if suffix == ".tsv" else ",").encode())
    return ["prompt", "--train", str(train), "--model", "any", "--base-url", server.url, "--shots", "1"]
