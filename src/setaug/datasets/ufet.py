"""Ultra-Fine Entity Typing (Choi et al. 2018), the crowdsourced part: mentions with the types of their referents.

A text is ``mention : left context [ mention ] right context``. The form ``span`` is that of the paper's Table 7:
``left context [SPAN] mention [SPAN] right context``.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from setaug.datasets.entry import Dataset, DatasetEntry, DatasetStatistics, Form, make_example
from setaug.datasets.files import Distribution, Files, parse_lines
from setaug.errors import DataError
from setaug.examples import Example, check_labels, parse_json_row, shown

Write: TypeAlias = Callable[[str, str, str], str]
"""Return the text of a mention, its left and its right context."""


def _named(mention: str, left: str, right: str) -> str:
    return f"{mention} : {left} [ {mention} ] {right}"


def _marked(mention: str, left: str, right: str) -> str:
    return f"{left} [SPAN] {mention} [SPAN] {right}".strip()


def _read(files: Files, write: Write = _named) -> Dataset:
    """Read JSON lines with a mention, its context and its types."""
    *splits, ontology = files.names
    types = tuple(dict.fromkeys(line.strip() for _, line in files.lines(ontology)))
    rows = [list(_read_rows(files, name, write)) for name in splits]
    keys = [key for split in rows for key, _ in split]
    has_keys = all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys)
    train, dev, test = (
        [make_example(one.text, one.labels, key if has_keys else str(one.id)) for key, one in split] for split in rows
    )
    return Dataset(name="ufet", train=train, dev=dev, test=test, labels=types)


def _read_rows(files: Files, name: str, write: Write) -> Any:
    """Return each row's ``annot_id`` and its example, whose id is its position."""

    def parse(number: int, line: str) -> tuple[Any, Example]:
        row = parse_json_row(line.encode())
        labels = check_labels(_field(row, "y_str"), "y_str")
        return row.get("annot_id"), make_example(_text(row, write), labels, f"{Path(name).stem}-{number}")

    return parse_lines(files.lines(name), parse, name)


def _text(row: dict[str, Any], write: Write) -> str:
    mention = _field(row, "mention_span")
    if not isinstance(mention, str):
        raise DataError(f'"mention_span" must be a string, got {shown(mention)}.')
    left, right = (_tokens(row, name) for name in ("left_context_token", "right_context_token"))
    return write(mention, left, right)


def _tokens(row: dict[str, Any], name: str) -> str:
    tokens = _field(row, name)
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise DataError(f'"{name}" must be a list of strings, got {shown(tokens)}.')
    return " ".join(tokens)


def _field(row: dict[str, Any], name: str) -> Any:
    if name not in row:
        raise DataError(f'field "{name}" is missing.')
    return row[name]


ENTRY = DatasetEntry(
    name="ufet",
    help="mentions in sentences with the types of what they name",
    distribution=Distribution(
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
    ),
    read=_read,
    forms={"span": Form("mark the mention by [SPAN], as the paper's examples do", partial(_read, write=_marked))},
    paper_variant="ufet[min2]",
    paper=DatasetStatistics(
        mean_labels=5.4, min_labels=2, max_labels=18, n_labels=2519, n_train=2000, n_test=2000, n_dev=2000
    ),
)
