"""Options generated from the fields of a settings class, which owns names, types, defaults and help."""

import argparse
import inspect
import re
from collections.abc import Container, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, get_args


def add_settings(
    group: argparse._ArgumentGroup,
    settings: type,
    *,
    names: Mapping[str, str] | None = None,
    leave_out: Container[str] = (),
    only: Container[str] | None = None,
) -> None:
    """Add an option for each field of a settings class, with its help from the class docstring.

    Parameters
    ----------
    names
        Option names that differ from the field name.
    leave_out
        Fields without an option.
    only
        The fields with an option; by default all.

    """
    helps = parameter_docs(settings)
    for one in fields(settings):
        if one.name not in leave_out and (only is None or one.name in only):
            name = (names or {}).get(one.name, one.name)
            group.add_argument(f"--{name.replace('_', '-')}", dest=name, **_argument(one, helps[one.name]))


def given_settings(
    options: argparse.Namespace,
    settings: type,
    *,
    names: Mapping[str, str] | None = None,
    only: Container[str] | None = None,
) -> dict[str, Any]:
    """Return the fields whose options were given; the others keep the defaults of the class."""
    values = {one.name: getattr(options, (names or {}).get(one.name, one.name), None) for one in fields(settings)}
    return {name: value for name, value in values.items() if value is not None and (only is None or name in only)}


def parameter_docs(documented: type) -> dict[str, str]:
    """Return the description of each parameter in the "Parameters" section of a class docstring.

    Examples
    --------
    >>> from setaug.settings import TrainingSettings
    >>> parameter_docs(TrainingSettings)["accumulate"]
    'steps per update'

    """
    section = inspect.cleandoc(documented.__doc__ or "").partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    found = re.findall(r"^(\w+)\n((?:    .*\n?|\n)+)", section, re.MULTILINE)
    return {name: _sentence(text) for name, text in found}


def _sentence(text: str) -> str:
    joined = " ".join(text.split()).replace("``", "").removesuffix(".")
    return joined[:1].lower() + joined[1:] if joined[1:2].islower() else joined


def _argument(one: Field[Any], sentence: str) -> dict[str, Any]:
    """Return the arguments of ``add_argument`` for a field; its default is None."""
    choices = one.metadata.get("choices")
    kinds: tuple[Any, ...] = get_args(one.type) or (one.type,)
    kind = next(kind for kind in kinds if kind is not type(None))
    help_text = (sentence + _choices_help(choices) + _default(one)).replace("%", "%%")
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction, "default": None, "help": help_text}
    metavar = one.metadata.get("metavar") or {int: "N", float: "X"}.get(kind, "TEXT")
    shape = {"choices": tuple(choices)} if choices else {"metavar": metavar}
    return {"type": kind, "default": None, "help": help_text, **shape}


def _choices_help(choices: Mapping[str, Any] | None) -> str:
    told = {name: getattr(entry, "help", entry) for name, entry in (choices or {}).items()}
    return "".join(f"; {name}: {text}" for name, text in told.items() if isinstance(text, str))


def _default(one: Field[Any]) -> str:
    if one.default is None or one.default is MISSING:
        return ""
    if isinstance(one.default, bool):
        return " [yes]" if one.default else " [no]"
    return f" [{one.default:g}]" if isinstance(one.default, float) else f" [{one.default}]"
