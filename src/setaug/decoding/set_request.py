"""The set parameters of a request to a server: labels, sizes and the written form."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from setaug.codec import SetCodec
from setaug.errors import DataError
from setaug.examples import check_labels, shown
from setaug.registry import DEFAULT_FORM, DEFAULT_SEPARATOR

LISTS_VARIABLE = "SETAUG_LABELS"
"""The environment variable that names a folder of label lists, ``NAME.txt`` with one label per line."""
ANY = "*"
"""Denotes an open vocabulary."""
PREFIX = "set_"
PARAMETERS = {
    "set_labels": "the labels: a list, the name of a list of the server, or * for any",
    "set_sizes": 'the sizes allowed: a number, a list of numbers, or a range such as "1-5"',
    "set_form": "the written form",
    "set_separator": "the text between two labels",
    "set_with_size": "whether the size comes first: 1 or 0",
}
"""The parameters of a request, with a phrase for each."""


@dataclass(frozen=True, kw_only=True)
class SetRequest:
    """The allowed sets of an answer.

    Parameters
    ----------
    labels
        The labels; None for any.
    sizes
        The sizes allowed; None for the constraint's default.
    codec
        How the set is written.

    Examples
    --------
    >>> SetRequest.read({"set_labels": ["joy", "love"], "set_sizes": "1-2", "temperature": 0}).sizes
    (1, 2)
    >>> SetRequest.read({"temperature": 0}) is None
    True

    """

    labels: tuple[str, ...] | None
    sizes: tuple[int, ...] | None
    codec: SetCodec

    @classmethod
    def read(cls, parameters: Mapping[str, Any] | None) -> "SetRequest | None":
        """Parse the parameters of a request; None without set parameters. Raise `ValueError` if one is invalid."""
        given = {name: value for name, value in (parameters or {}).items() if name.startswith(PREFIX)}
        if not given:
            return None
        if unknown := given.keys() - PARAMETERS.keys():
            raise ValueError(f"unknown parameter {min(unknown)}; use {', '.join(PARAMETERS)}.")
        if "set_labels" not in given:
            raise ValueError(f"set_labels is missing: {PARAMETERS['set_labels']}.")
        labels = _read_labels(given["set_labels"])
        sizes = _read_sizes(given["set_sizes"]) if "set_sizes" in given else None
        if labels is not None and sizes is not None and sizes[0] > len(labels):
            raise ValueError(f"set_sizes requires {sizes[0]} labels, but there are only {len(labels)}.")
        return cls(labels=labels, sizes=sizes, codec=_read_codec(given))

    def parameters(self) -> dict[str, Any]:
        """Return the parameters from which `read` creates this object."""
        codec = self.codec
        found: dict[str, Any] = {
            "set_labels": ANY if self.labels is None else list(self.labels),
            "set_form": codec.written_as,
            "set_with_size": int(codec.with_size),
        }
        if codec.separator != DEFAULT_SEPARATOR:
            found["set_separator"] = codec.separator
        if self.sizes is not None:
            found["set_sizes"] = list(self.sizes)
        return found


def _read_labels(value: object) -> tuple[str, ...] | None:
    if value == ANY:
        return None
    if isinstance(value, str):
        return label_list(value)
    try:
        labels = check_labels(value, "set_labels")
    except DataError as error:
        raise ValueError(str(error)) from None
    if not labels:
        raise ValueError(f"set_labels must not be empty; {ANY} allows any label.")
    return labels


def label_list(name: str) -> tuple[str, ...]:
    """Return the labels of a list on the server."""
    folder = os.environ.get(LISTS_VARIABLE)
    files = {path.stem: path for path in Path(folder).glob("*.txt")} if folder else {}
    if name not in files:
        known = f"it has {', '.join(sorted(files))}" if files else f"it has none (the folder {LISTS_VARIABLE} has them)"
        raise ValueError(f"the server has no list of labels named {shown(name)}; {known}.")
    return _read_list(files[name])


@lru_cache(maxsize=64)
def _read_list(path: Path) -> tuple[str, ...]:
    lines = path.read_text(encoding="utf-8").splitlines()
    labels = tuple(dict.fromkeys(line for line in lines if line.strip()))
    if not labels:
        raise ValueError(f"the list of labels {shown(path.stem)} is empty.")
    return labels


def _read_sizes(value: object) -> tuple[int, ...]:
    found: Sequence[object] = value if isinstance(value, list | tuple) else [value]
    if isinstance(value, str):
        first, _, last = value.partition("-")
        if first.isdecimal() and last.isdecimal() and int(first) <= int(last) < 10_000:
            found = range(int(first), int(last) + 1)
    sizes = tuple(size for size in found if type(size) is int and 0 <= size < 10_000)
    if not sizes or len(sizes) < len(found):
        raise ValueError(
            f'set_sizes must be a number, a list of numbers, or a range such as "1-5", got {shown(value)}.'
        )
    return tuple(sorted(set(sizes)))


def _read_codec(given: Mapping[str, Any]) -> SetCodec:
    form, separator = given.get("set_form", DEFAULT_FORM), given.get("set_separator", DEFAULT_SEPARATOR)
    with_size = given.get("set_with_size", True)
    if with_size not in (0, 1):
        raise ValueError(f"set_with_size must be 1 or 0, got {shown(with_size)}.")
    if not isinstance(separator, str):
        raise ValueError(f"set_separator must be a string, got {shown(separator)}.")
    try:
        return SetCodec(written_as=form, separator=separator, with_size=bool(with_size))
    except ValueError as error:
        message = str(error)
        for name in ("written_as", "separator"):
            message = message.replace(f"{name} must", f"{'set_form' if name == 'written_as' else 'set_separator'} must")
        raise ValueError(message) from None
