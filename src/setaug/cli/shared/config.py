"""Options from a TOML file: the command line overrides the file, and the file overrides the defaults."""

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from setaug.cli.shared.options import UsageError

_NOT_KEPT = ("help", "config", "save_config")
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options that read and write a file of options."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="read options from a TOML file (epochs = 5); command-line options override it",
    )
    parser.add_argument(
        "--save-config",
        metavar="FILE",
        help="write all options with their help to a TOML file for --config, and exit; - for standard output",
    )


def parse_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; if the command has ``--config``, the file that it names replaces the defaults."""
    actions = {_name(action): action for action in parser._actions if action.dest not in _NOT_KEPT}
    if not any(action.dest == "config" for action in parser._actions):
        return parser.parse_args(arguments)
    before = {name: action.default for name, action in actions.items()}
    with _optional(list(actions.values())):
        options = parser.parse_args(arguments)
        values = {} if options.config is None else read_config(options.config, actions)
        for name, value in values.items():
            actions[name].default = value
        if options.save_config is not None:
            options = parser.parse_args(arguments)
            options.config_text = _as_toml(parser, options, before)
            return options
    with _optional([actions[name] for name in values]):
        return parser.parse_args(arguments)


@contextmanager
def _optional(actions: Sequence[argparse.Action]) -> Iterator[None]:
    """Make these options optional."""
    before = [(action, action.required, action.nargs) for action in actions]
    for action in actions:
        action.required = False
        if not action.option_strings and action.nargs is None:
            action.nargs = "?"
    try:
        yield
    finally:
        for action, required, nargs in before:
            action.required, action.nargs = required, nargs


def read_config(path: str, actions: dict[str, argparse.Action]) -> dict[str, Any]:
    """Read a file of options; raise if a name is unknown or a value has the wrong type."""
    import tomllib

    try:
        with open(path, "rb") as stream:
            found = tomllib.load(stream)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    values = {}
    for key, value in found.items():
        name = key.replace("_", "-")
        if name not in actions:
            near = get_close_matches(name, actions, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else "; setaug train --save-config - lists all."
            raise UsageError(f"{path}: there is no option {key!r}{hint}")
        values[name] = _checked(f"{path}: {key}", value, actions[name])
    return values


def _checked(what: str, value: Any, action: argparse.Action) -> Any:
    if action.nargs in ("*", "+"):
        if not isinstance(value, list) or (action.nargs == "+" and not value):
            raise UsageError(f"{what} must be a list, got {_shown(value)}.")
        return [_checked_one(what, one, action) for one in value]
    return _checked_one(what, value, action)


def _checked_one(what: str, value: Any, action: argparse.Action) -> Any:
    kind: Any = bool if action.nargs == 0 else action.type or str
    if not (type(value) is kind or (kind is float and type(value) is int)):
        raise UsageError(f"{what} must be {_KINDS[kind]}, got {_shown(value)}.")
    if action.choices is not None and value not in action.choices:
        raise UsageError(f"{what} must be one of {', '.join(action.choices)}, got {_shown(value)}.")
    return value


def _shown(value: Any) -> str:
    return "a table" if isinstance(value, dict) else repr(value)


def save_config(options: argparse.Namespace) -> None:
    """Write the file that ``--save-config`` names."""
    from setaug.storage import open_output

    with open_output(options.save_config) as stream:
        stream.write(options.config_text.encode())


def _as_toml(parser: argparse.ArgumentParser, options: argparse.Namespace, defaults: dict[str, Any]) -> str:
    """Return the options as TOML; those with their default values are comments."""
    lines = [f"# {parser.prog} --config FILE"]
    for group in parser._action_groups:
        for action in group._group_actions:
            if action.dest in _NOT_KEPT:
                continue
            name, value = _name(action), getattr(options, action.dest)
            text = " ".join((action.help or "").replace("%%", "%").split())
            lines += ["", *textwrap.wrap(text, 110, initial_indent="# ", subsequent_indent="# ")]
            shown = action.metavar or "..." if value is None else _toml(value)
            lines.append(f"{'# ' if value is None or value == defaults[name] else ''}{name} = {shown}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    r"""Return a value as TOML.

    Examples
    --------
    >>> _toml(["a\n\x7f", 1e-5, True])
    '["a\\n\\u007f", 1e-05, true]'

    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _name(action: argparse.Action) -> str:
    """Return the name of an option in a file: its long form without dashes."""
    return next((text[2:] for text in action.option_strings if text.startswith("--")), action.dest)
