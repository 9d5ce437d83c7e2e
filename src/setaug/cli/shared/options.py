"""Options shared by several commands, and the error for invalid values."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setaug import registry
from setaug.cli.shared.settings_options import add_settings, given_settings
from setaug.errors import SetAugError
from setaug.settings import Endpoint
from setaug.terminal import tell

if TYPE_CHECKING:
    from setaug.augmenter import SetAugmenter
    from setaug.examples import Columns, Example, Skipped


_SERVER = {"max_retries": "retries"}
_AUGMENTER = {"n_orders": "orders", "with_size": "size", "random_state": "seed"}


class UsageError(SetAugError):
    """An option has an invalid value."""


@contextmanager
def checking_options() -> Iterator[None]:
    """Convert errors about arguments into a `UsageError`."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


_INPUTS = (
    "input",
    "train",
    "dev",
    "calibrate",
    "dev_predictions",
    "gold",
    "predictions",
    "first",
    "second",
    "labels",
    "vocabulary",
    "config",
)
_TEXTS = (
    *("system", "template", "separator", "instruction", "text_field", "labels_field", "delimiter"),
    *("columns", "carry", "set"),
)
_OUTPUTS = ("output", "answers", "graph", "html", "save_config")
_RUN_FILES = ("metrics.jsonl", "run.json", "setaug.json", "statistics.json", "config.json", "generation_config.json")
_MODEL_FILES = (
    "*.safetensors*",
    "*config.json",
    "setaug.json",
    "statistics.json",
    "README.md",
    "tokenizer*",
    "special_tokens*",
)


def check_places(options: argparse.Namespace) -> None:
    """Raise if an output would overwrite an input of the command or a file of the model it loads."""
    from setaug.storage import check_outputs

    _check_texts(options)
    inputs: list[Any] = []
    for name in _INPUTS:
        given = getattr(options, name, None)
        inputs += given if isinstance(given, list) else [given] if isinstance(given, str) else []
    outputs = [given for name in _OUTPUTS if isinstance(given := getattr(options, name, None), str)]
    if hasattr(options, "resume"):  # the output is the folder of a run
        outputs += [f"{options.output}/{name}" for name in _RUN_FILES]
    if outputs and isinstance(folder := getattr(options, "folder", None), str):
        inputs += [path for pattern in _MODEL_FILES for path in Path(folder).glob(pattern)]
    check_outputs(outputs, inputs)


def _check_texts(options: argparse.Namespace) -> None:
    """Raise if an option that becomes part of a text is not valid UTF-8; file names may be anything."""
    for name in _TEXTS:
        for given in _listed(getattr(options, name, None)):
            try:
                given.encode()
            except UnicodeEncodeError:
                shown = given.encode(errors="surrogateescape")
                raise UsageError(f"--{name.replace('_', '-')} is not valid UTF-8: {shown[:40]!r}.") from None


def _listed(given: object) -> list[str]:
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]


def add_input(parser: argparse.ArgumentParser, *, are_many: bool = False, of_model: bool = False) -> None:
    """Add the input, one file or several, and how to read it; `of_model` if a trained model says what is usual."""
    more = "folders of such files; URLs (s3://bucket/folder); " if are_many else ""
    parser.add_argument(
        "input",
        nargs="+" if are_many else None,
        metavar="INPUT",
        help=f"examples: .jsonl, .csv or .tsv (optionally .gz or .zst) or .parquet; {more}- for standard input (JSONL)",
    )
    group = parser.add_argument_group("reading")
    add_fields(group, of_model=of_model)
    group.add_argument(
        "--skip-bad", action="store_true", help="skip and count bad lines instead of stopping at the first"
    )


def add_fields(group: argparse._ArgumentGroup, *, of_model: bool = False) -> None:
    """Add the fields of texts and labels in a file."""
    usual = "the model's, or " if of_model else ""
    group.add_argument("--text-field", metavar="NAME", help=f"field of the text [{usual}text]")
    group.add_argument("--labels-field", metavar="NAME", help=f"field of the list of labels [{usual}labels]")
    group.add_argument("--delimiter", metavar="TEXT", help=f"separator of the labels in a CSV or TSV cell [{usual};]")
    group.add_argument(
        "--input-kind",
        choices=("jsonl", "csv", "tsv", "parquet"),
        help="file format [inferred from the suffix]",
    )


def add_output(group: argparse._ArgumentGroup) -> None:
    """Add the output file of a command that writes rows."""
    group.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="output file: .jsonl, .csv, .tsv (optionally .gz or .zst) or .parquet [standard output]",
    )


def add_orders(group: argparse._ArgumentGroup) -> None:
    """Add the number of orders per example."""
    text = f"additional orders per example [{registry.DEFAULT_N_ORDERS}]"
    group.add_argument("--orders", type=int, default=registry.DEFAULT_N_ORDERS, metavar="N", help=text)


def add_ordering(group: argparse._ArgumentGroup, purpose: str) -> None:
    """Add the choice of an ordering."""
    text = f"{purpose}; {registry.describe(registry.ORDERINGS, default=registry.DEFAULT_ORDERING)}"
    group.add_argument("--ordering", choices=tuple(registry.ORDERINGS), default=registry.DEFAULT_ORDERING, help=text)


def add_sampler(group: argparse._ArgumentGroup) -> None:
    """Add the choice of a sampler."""
    text = f"how to sample the orders; {registry.describe(registry.SAMPLERS, default=registry.DEFAULT_SAMPLER)}"
    group.add_argument("--sampler", choices=tuple(registry.SAMPLERS), default=registry.DEFAULT_SAMPLER, help=text)


def add_thresholds(parser: argparse._ArgumentGroup) -> None:
    """Add the thresholds of the edge rule."""
    parser.add_argument(
        "--min-pmi",
        type=float,
        default=registry.DEFAULT_MIN_PMI,
        metavar="BITS",
        help="two labels are dependent if their pointwise mutual information is above this (alpha)"
        f" [{registry.DEFAULT_MIN_PMI:g}]",
    )
    parser.add_argument(
        "--min-ratio",
        type=float,
        default=registry.DEFAULT_MIN_RATIO,
        metavar="R",
        help="the rarer of the two comes first if the other is more than R times as frequent (2**beta)"
        f" [{registry.DEFAULT_MIN_RATIO:g}]",
    )


def add_written_form(group: argparse._ArgumentGroup) -> None:
    """Add the text format of a set."""
    text = f"how to write a set; {registry.describe(registry.FORMS, default=registry.DEFAULT_FORM)}"
    group.add_argument("--written-as", choices=tuple(registry.FORMS), default=registry.DEFAULT_FORM, help=text)
    takers = ", ".join(name for name, entry in registry.FORMS.items() if entry.takes_separator)
    group.add_argument(
        "--separator",
        default=registry.DEFAULT_SEPARATOR,
        metavar="TEXT",
        help=f"the text between two labels, for --written-as {takers} [{registry.DEFAULT_SEPARATOR!r}]",
    )


def add_template(group: argparse._ArgumentGroup) -> None:
    """Add the template of prompts."""
    group.add_argument(
        "--template",
        default="{text}",
        metavar="TEXT",
        help="template of the prompt; {text} is replaced by the text [{text}]",
    )


def add_html(group: argparse._ArgumentGroup) -> None:
    """Add the path of an HTML page."""
    group.add_argument("--html", metavar="FILE", help="write a self-contained HTML page; - for standard output")


def check_html(options: argparse.Namespace) -> None:
    """Raise if a page has another suffix, or if two outputs go to standard output."""
    if options.html is None:
        return
    if options.html == "-" and options.json:
        raise UsageError("--html - and --json both write to standard output.")
    if options.html != "-" and not options.html.lower().removesuffix(".gz").endswith((".html", ".htm")):
        raise UsageError(f"--html must be a .html file (optionally .gz) or -, got {options.html!r}.")


def write_html(page: str, path: str) -> None:
    """Write a page atomically."""
    from setaug.storage import open_output

    with open_output(path) as stream:
        stream.write(page.encode())
    if path != "-":
        tell(f"wrote {path}; open it in a browser")


def make_augmenter(options: argparse.Namespace, **changes: Any) -> "SetAugmenter":
    """Return an augmenter with the parameters that the command has options for, and with these changes."""
    from setaug.augmenter import SetAugmenter

    names = {field.name: _AUGMENTER.get(field.name, field.name) for field in fields(SetAugmenter)}
    given = {name: getattr(options, option) for name, option in names.items() if hasattr(options, option)}
    return SetAugmenter(**{**given, **changes}).check()


def columns_of(options: argparse.Namespace, remembered: "Columns | None" = None) -> "Columns":
    """Return the fields of text and labels in a row: those given, or those that a model was trained with."""
    from setaug.examples import Columns

    if options.delimiter == "":
        raise UsageError("--delimiter must not be empty.")
    given = {"text": options.text_field, "labels": options.labels_field, "delimiter": options.delimiter}
    return replace(remembered or Columns(), **{name: value for name, value in given.items() if value is not None})


def read_input(
    options: argparse.Namespace,
    path: str,
    *,
    skipped: "Skipped | None" = None,
    are_labelled: bool = True,
    remembered: "Columns | None" = None,
) -> "Iterator[Example]":
    """Read examples according to the options, and to the model that they are for."""
    from setaug.examples import read_examples

    columns = columns_of(options, remembered)
    return read_examples(
        path,
        text_field=columns.text,
        labels_field=columns.labels,
        are_labelled=are_labelled,
        delimiter=columns.delimiter,
        kind=options.input_kind,
        skipped=skipped,
    )


def add_server(group: argparse._ArgumentGroup) -> None:
    """Add the server of a language model, and how to send requests to it."""
    add_settings(group, Endpoint, names=_SERVER, leave_out=("max_wait", "request"))
    group.add_argument("--request", metavar="JSON", help="extra fields of each request; null removes a field")
    group.add_argument(
        "--skip-refused",
        action="store_true",
        help="predict an empty set for texts that the server rejects, and count them",
    )


def make_endpoint(options: argparse.Namespace) -> Endpoint:
    """Return the server that the options name."""
    request = {} if options.request is None else {"request": _json_object(options.request)}
    return Endpoint(**{**given_settings(options, Endpoint, names=_SERVER), **request})


def _json_object(text: str) -> dict[str, Any]:
    import json

    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--request must be a JSON object; {error}.") from None
    if not isinstance(found, dict):
        raise UsageError(f"--request must be a JSON object, got {text}.")
    return found


def joined_lines(joined: tuple[str, str] | None) -> list[str]:
    """Warn of labels that look like several joined ones, with what to do."""
    if joined is None:
        return []
    from setaug.vocabulary import joined_sentence

    _, mark = joined
    remedy = (
        "write them as a JSON list in a .jsonl file, or without brackets and quotes in a cell: joy;love"
        if mark == "["
        else f"if these are several labels, separate them with --delimiter {mark!r} (CSV, TSV) or put them into a list"
    )
    return [f"warning: {joined_sentence(joined, remedy)}"]


def skipped_lines(skipped: "Skipped | None") -> list[str]:
    """Describe the skipped lines; a quiet command reports them too."""
    if skipped is None or not skipped.count:
        return []
    first = "; the first ones" if skipped.count > len(skipped.first) else ""
    return [f"skipped {counted(skipped.count, 'bad line')}{first}:", *(f"  {message}" for message in skipped.first)]


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def default_workers() -> int:
    """Return the number of parallel training runs: one per core, or one with a GPU."""
    import torch

    if torch.accelerator.is_available():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
