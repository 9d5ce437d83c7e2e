"""Options that are made from settings."""

import argparse
from dataclasses import dataclass, field, fields

import pytest

from setaug.cli.shared.settings_options import add_settings, given_settings, parameter_docs
from setaug.settings import Decoding, TrainingSettings


@dataclass
class Toy:
    """A toy.

    Parameters
    ----------
    depth
        How deep, as 100 % of
        what there is.
    width
        How wide.
    name
        What ``it`` is called.
    is_loud
        Make noise.

    Notes
    -----
    width
        Not this.

    """

    depth: int | None = None
    width: float = 0.5
    name: str = field(default="a", metadata={"choices": {"a": "the first", "b": "the second"}})
    is_loud: bool = False


def make_parser(settings: type, **options: object) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toy")
    add_settings(parser.add_argument_group("toy"), settings, **options)  # type: ignore[arg-type]
    return parser


def test_the_docstring_is_the_help_with_defaults_and_choices() -> None:
    text = " ".join(make_parser(Toy).format_help().split())
    assert "--depth N how deep, as 100 % of what there is --width X how wide [0.5]" in text
    assert "--name {a,b} what it is called; a: the first; b: the second [a]" in text
    assert "--is-loud, --no-is-loud make noise [no]" in text


def test_only_what_was_given_is_returned() -> None:
    parser = make_parser(Toy, names={"is_loud": "loud"}, leave_out=("width",))
    names = {"is_loud": "loud"}
    assert given_settings(parser.parse_args([]), Toy, names=names) == {}
    given = given_settings(parser.parse_args(["--depth", "3", "--no-loud", "--name", "b"]), Toy, names=names)
    assert given == {"depth": 3, "is_loud": False, "name": "b"}
    assert Toy(**given) == Toy(depth=3, name="b")
    with pytest.raises(SystemExit):
        parser.parse_args(["--width", "1"])


@pytest.mark.parametrize("settings", [Decoding, TrainingSettings])
def test_each_setting_is_documented(settings: type) -> None:
    assert list(parameter_docs(settings)) == [one.name for one in fields(settings)]
