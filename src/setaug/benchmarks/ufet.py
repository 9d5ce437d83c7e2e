"""Ultra-Fine Entity Typing (Choi et al. 2018), the part that people annotated: mentions, and types of what they name.

A text is ``mention : left context [ mention ] right context``.
"""

from pathlib import Path
from typing import Any, NamedTuple

from setaug.benchmarks.benchmark import Benchmark, make_example
from setaug.benchmarks.distribution import Distribution, Files
from setaug.errors import DataError
from setaug.examples import check_labels, parse_json_row, shown

DISTRIBUTION = Distribution(
    title="Ultra-Fine Entity Typing",
    folder="ufet",
    layouts=[
        ("train.json", "dev.json", "test.json", "types.txt"),
        ("train.json", "dev.json", "test.json", "../ontology/types.txt"),
        ("crowd/train.json", "crowd/dev.json", "crowd/test.json", "ontology/types.txt"),
    ],
    expected="train.json, dev.json and test.json (of the folder crowd) and types.txt (of the folder ontology)",
    origin="nlp.cs.washington.edu/entity_type, as ultrafine_acl18.tar.gz",
    checksums={
        "train.json": "4b74c177886e4271da4b742b7907e7bed4ee069d4f7a6980628a19c401f7c777",
        "dev.json": "95d0d817ac80615747f8b57dc70005e42c5fd0e35a8268cbab1a8c56696bcc0a",
        "test.json": "76cc77039bef0c635ffe7f956b6bcc76d1d299c35a7ca9bce5c5a3b1ed0fc11f",
        "types.txt": "a65d4fc6615f0c041981fbbd5495c82a223d106e295ad727370edebe0cde7215",
    },
)


class _Row(NamedTuple):
    key: Any
    line_key: str
    text: str
    types: tuple[str, ...]


def read_ufet(files: Files) -> Benchmark:
    """Read JSON lines with a mention, what stands around it, and its types."""
    *splits, ontology = files.names
    types = tuple(dict.fromkeys(line.strip() for _, line in files.lines(ontology)))
    rows = [_read(files, name) for name in splits]
    keys = [row.key for split in rows for row in split]
    has_keys = all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys)
    train, dev, test = (
        [make_example(row.text, row.types, row.key if has_keys else row.line_key) for row in split] for split in rows
    )
    return Benchmark(name="ufet", train=train, dev=dev, test=test, labels=types)


def _read(files: Files, name: str) -> list[_Row]:
    rows = []
    for number, line in files.lines(name):
        try:
            row = parse_json_row(line.encode())
            types = check_labels(_field(row, "y_str"), "y_str")
            rows.append(_Row(row.get("annot_id"), f"{Path(name).stem}-{number}", _text(row), types))
        except DataError as error:
            raise DataError(error.problem, source=name, line=number) from None
    return rows


def _text(row: dict[str, Any]) -> str:
    mention = _field(row, "mention_span")
    if not isinstance(mention, str):
        raise DataError(f'"mention_span" must be a string, got {shown(mention)}.')
    left, right = (_tokens(row, name) for name in ("left_context_token", "right_context_token"))
    return f"{mention} : {left} [ {mention} ] {right}"


def _tokens(row: dict[str, Any], name: str) -> str:
    tokens = _field(row, name)
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise DataError(f'"{name}" must be a list of strings, got {shown(tokens)}.')
    return " ".join(tokens)


def _field(row: dict[str, Any], name: str) -> Any:
    if name not in row:
        raise DataError(f'field "{name}" is missing.')
    return row[name]
