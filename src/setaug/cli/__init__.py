"""The command line: one short module per command, imported only when it is called."""

import argparse
import io
import os
import signal
import sys
from contextlib import nullcontext, redirect_stderr
from importlib import import_module
from types import FrameType, ModuleType
from typing import NoReturn

from setaug import __version__
from setaug.cli.shared.config import parse_options
from setaug.cli.shared.options import check_places
from setaug.errors import DataError, SetAugError
from setaug.terminal import printable, tell

COMMANDS = {
    "inspect": "statistics of label sets, the label graph, and whether order will help",
    "split": "split examples into train, dev and test files",
    "augment": "write training pairs: informative label orders, with the set's size",
    "train": "train a model that writes sets",
    "predict": "predict the set of each text with a trained model",
    "prompt": "predict the set of each text with a language model and a few-shot prompt",
    "score": "compute the likelihood of the true sets under a trained model",
    "push": "push a trained model to the Hugging Face Hub",
    "combine": "combine the predictions of several models",
    "evaluate": "score predictions against the true sets",
    "compare": "test whether the difference between two models is significant",
    "data": "statistics of the paper's datasets, and conversion to JSON lines",
    "reproduce": "run the paper's tables on its datasets, with a model of your choice",
    "serve": "serve a web page to explore label sets and try a model, and a JSON API",
    "simulate": "synthetic data with adjustable dependence, and the paper's findings on it",
    "demo": "run the whole method on synthetic data",
}

_HELP = """\
Turn any seq2seq model or LLM into a model that writes sets.

commands:
{commands}

try it:
  setaug demo
  setaug inspect demo/examples.jsonl
  setaug augment demo/examples.jsonl -o pairs.jsonl --orders 2 --seed 0
  setaug train train.jsonl --dev dev.jsonl --model facebook/bart-base -o run/
  setaug predict run/ test.jsonl -o predictions.jsonl
  setaug evaluate predictions.jsonl test.jsonl

`setaug COMMAND --help` explains a command.
"""


_LESS = {
    "augment": "try fewer --orders",
    "train": "try a smaller --batch-size, --orders or --max-source-length",
    "predict": "try a smaller --batch-size",
}
"""How to reduce memory use."""


class _Parser(argparse.ArgumentParser):
    """A parser whose error messages escape control characters."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def main(argv: list[str] | None = None) -> int:
    """Run a command; return the exit code: 0, or 2 for invalid input or usage."""
    arguments = sys.argv[1:] if argv is None else argv
    parser = _Parser(
        prog="setaug",
        usage="setaug [--version] COMMAND ...",
        description=_HELP.format(commands="\n".join(f"  {name:9} {text}" for name, text in COMMANDS.items())),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"setaug {__version__}")
    if not arguments or arguments[0] not in COMMANDS:
        parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
        _parse(parser, arguments)
    name = arguments[0]
    command = import_module(f"setaug.cli.{name}")
    parser = _Parser(
        prog=f"setaug {name}",
        description=command.__doc__,
        epilog=command.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    options = argparse.Namespace()
    try:
        options = _parse(parser, arguments[1:])
        check_places(options)
        _run(command, options)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, as a shell reports it
    except KeyboardInterrupt:
        left = getattr(command, "INTERRUPTED", "no output file was written")
        return _say(f"setaug {name}: interrupted; {left(options) if callable(left) else left}", 130)
    except MemoryError:
        return _say(f"setaug {name}: not enough memory; {_LESS.get(name, 'try a smaller input')}", 2)
    except (SetAugError, OSError) as error:
        return _say(f"setaug {name}: {error}{_advice(error, options)}", 2)
    return 0


def _advice(error: Exception, options: argparse.Namespace) -> str:
    """Return what to do about a field that is missing."""
    missing = error.missing if isinstance(error, DataError) else None
    if not hasattr(options, f"{missing}_field"):
        return ""
    order = " Predictions come first, then the true sets." if missing == "text" and hasattr(options, "gold") else ""
    return f" If it has another name, pass --{missing}-field.{order}"


def _parse(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    with nullcontext() if _speaks() else redirect_stderr(io.StringIO()):
        return parse_options(parser, arguments)


def _say(message: str, code: int) -> int:
    if _speaks():
        tell(message)
    return code


def _speaks() -> bool:
    """Return whether this process prints errors: under ``accelerate launch``, the first process of each machine."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _run(command: ModuleType, options: argparse.Namespace) -> None:
    """Run a command; SIGTERM unwinds the stack, so partial output is removed."""
    stopped = []

    def stop(signum: int, frame: FrameType | None) -> None:
        stopped.append(signum)
        sys.exit(128 + signum)

    signal.signal(signal.SIGTERM, stop)
    try:
        command.run(options)
        sys.stdout.flush()
    except BaseException:
        if stopped:  # compiled code may have turned it into another error
            sys.exit(128 + stopped[0])
        raise
