"""Options and readers shared by the commands that score predictions: true sets and lists of labels."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from setaug.cli.shared.options import UsageError, add_fields, columns_of, joined_lines, read_input
from setaug.terminal import tell

if TYPE_CHECKING:
    from setaug.examples import Columns, Example
    from setaug.predictions import Prediction

MACRO_OVER = ("gold", "gold-or-predicted", "vocabulary")


def add_gold(parser: argparse.ArgumentParser) -> None:
    """Add the file of true sets and how to read it."""
    parser.add_argument(
        "gold",
        metavar="GOLD",
        help="examples with their true labels: .jsonl, .csv or .tsv (optionally .gz or .zst) or .parquet",
    )
    group = parser.add_argument_group("reading the true sets")
    add_fields(group, of_model=True)
    group.add_argument("--model", metavar="FOLDER", help="a model folder; the fields are those it was trained with")


def add_macro(parser: argparse._ArgumentGroup) -> None:
    """Add the labels of macro averages."""
    parser.add_argument(
        "--macro-over",
        choices=MACRO_OVER,
        default="gold",
        help="average macro scores over labels in true sets, in true or predicted sets, or in --labels [gold]",
    )
    parser.add_argument("--labels", metavar="FILE", help="the vocabulary: a text file, one label per line")


def check_inputs(options: argparse.Namespace, *paths: str) -> None:
    """Raise if two inputs are standard input, or if the vocabulary is missing."""
    if [*paths, options.gold, options.labels].count("-") > 1:
        raise UsageError("only one of the inputs can be standard input.")
    if options.macro_over == "vocabulary" and options.labels is None:
        raise UsageError("--macro-over vocabulary needs --labels FILE.")


def gold_columns(options: argparse.Namespace) -> "Columns":
    """Return the fields of the true sets: those given, or those of a model."""
    if options.model is None:
        return columns_of(options)
    from setaug.models.model_folder import read_card, saved_columns

    return columns_of(options, saved_columns(read_card(options.model)))


def read_gold(options: argparse.Namespace, columns: "Columns") -> "list[Example]":
    """Read the examples with the true sets."""
    from setaug.errors import DataError
    from setaug.storage import display_name

    examples = list(read_input(options, options.gold, remembered=columns))
    if not examples:
        raise DataError("no examples to score.", source=display_name(options.gold))
    return examples


def warn_of_joined(*sources: "Iterable[Example | Prediction]") -> None:
    """Warn of the first source of labels of which most look like several in one."""
    from setaug.vocabulary import joined_label

    for source in sources:
        labels = dict.fromkeys(label for one in source for label in one.labels)
        if joined := joined_label(labels):
            tell(*joined_lines(joined))
            return


def read_vocabulary(path: str | None) -> list[str] | None:
    """Read the labels of a text file, one per line; blank lines are skipped."""
    if path is None:
        return None
    from setaug.errors import DataError, FileError
    from setaug.storage import BROKEN_ARCHIVE, display_name, open_input

    try:
        with open_input(path) as stream:
            lines = stream.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except BROKEN_ARCHIVE as error:
        raise FileError(f"{display_name(path)} is damaged: {error}.") from None
    labels = []
    for number, line in enumerate(lines, 1):
        try:
            label = line.decode().removesuffix("\r")
        except UnicodeDecodeError:
            raise DataError(f"invalid UTF-8: {line[:40]!r}.", source=display_name(path), line=number) from None
        if label.strip():
            labels.append(label)
    return labels


def named_vocabulary(given: str) -> "str | list[str]":
    """Return the vocabulary: ``closed``, ``open``, or the labels of a file."""
    if given in ("closed", "open"):
        return given
    if not Path(given).exists():
        raise UsageError(f"--vocabulary must be closed, open or a file of labels; there is no file {given}.")
    return read_vocabulary(given) or []
