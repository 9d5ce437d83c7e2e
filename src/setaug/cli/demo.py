"""Run the method on synthetic data.

First, short news items with topics, from specific to general: examples, a picture of the label graph, training pairs.
Then, symbols with partners (the paper's Finding 4): a plain sequence model and SETAUG are trained, and both predict,
as free text and under the set constraint; each pair is compared. Takes one to two minutes on two cores.
"""

import argparse
import shutil
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from setaug.storage import as_file_errors
from setaug.terminal import show

EXAMPLES = """\
examples:
  setaug demo
  setaug demo somewhere/ --examples 5000
  setaug demo --no-train
"""

_SPLITS = {"train": 1000, "dev": 100, "test": 300}
_METHODS = ("seq2seq", "setaug")
_WAYS = {"text": "--no-constrain", "constrained": "--constrain"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", nargs="?", default="demo", metavar="FOLDER", help="output folder [demo]")
    parser.add_argument("--examples", type=int, default=2000, metavar="N", help="number of news items [2000]")
    parser.add_argument("--epochs", type=int, default=6, metavar="N", help="training epochs [6]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed [0]")
    parser.add_argument(
        "--train", action=argparse.BooleanOptionalAction, default=True, help="also train and compare two models [yes]"
    )


def run(options: argparse.Namespace) -> None:
    """Write data, inspect it, augment it, train on it."""
    folder = Path(options.folder)
    with as_file_errors("write", folder):
        folder.mkdir(parents=True, exist_ok=True)
    _show_orders(folder, options)
    if options.train:
        _show_training(folder, options)


def _show_orders(folder: Path, options: argparse.Namespace) -> None:
    from setaug.examples import write_examples
    from setaug.sample import sample_examples

    examples, pairs, picture = (str(folder / name) for name in ("examples.jsonl", "pairs.jsonl", "labels.svg"))
    write_examples(examples, sample_examples(options.examples, seed=options.seed))
    _say(f"Wrote {options.examples:,} examples: {examples}")
    _show(examples, 2)
    _call("inspect", examples, "--graph", picture)
    _call("inspect", examples, "--set", "event", "match", "tennis", "crowd")
    _call("augment", examples, "-o", pairs, "--orders", "2", "--seed", str(options.seed))
    _say(f"The pairs of the first example, from {pairs}:")
    _show(pairs, 3)
    _say(f"The label graph: {picture}")


def _show_training(folder: Path, options: argparse.Namespace) -> None:
    from setaug.errors import MissingExtraError
    from setaug.examples import write_examples
    from setaug.experiments.simulation.processes import paired_symbols
    from setaug.models import require_torch

    try:
        require_torch()
    except MissingExtraError as error:
        _say(str(error))
        return
    symbols = paired_symbols(sum(_SPLITS.values()), n_symbols=12, concentration=0.1, seed=options.seed)
    files = {split: str(folder / f"symbols-{split}.jsonl") for split in _SPLITS}
    for split, n in _SPLITS.items():
        write_examples(files[split], islice(symbols, n))
    _say("Symbols whose partners occur half of the time; the text is a distribution over symbols:")
    _show(files["train"], 2)
    rows = []
    for method in _METHODS:
        model = folder / method
        shutil.rmtree(model, ignore_errors=True)
        settings = ["--epochs", str(options.epochs), "--batch-size", "16", "--min-ratio", "1.5"]
        settings += ["--seed", str(options.seed), "-o", str(model)]
        _call("train", files["train"], "--dev", files["dev"], "--model", "tiny", "--method", method, *settings)
        for way, flag in _WAYS.items():
            predictions = str(folder / f"{method}-{way}.jsonl")
            _call("predict", str(model), files["test"], flag, "-o", predictions)
            rows.append((method, way, predictions))
    jaccard = _table(rows, files["test"])
    for way in _WAYS:
        first, second = (path for _, decoded, path in rows if decoded == way)
        _call("compare", first, second, files["test"], "--metric", "jaccard")
    _say(conclusion(jaccard))


def conclusion(jaccard: Mapping[tuple[str, str], float]) -> str:
    """Compare like with like: the methods for each way of decoding, then the ways of decoding for each method.

    Examples
    --------
    >>> found = {("seq2seq", "text"): 0.5, ("setaug", "text"): 0.6}
    >>> print(conclusion(found | {("seq2seq", "constrained"): 0.7, ("setaug", "constrained"): 0.65}))
    Summary (Jaccard; one seed, so small differences are not meaningful):
      as text, setaug is 0.100 above seq2seq; constrained, 0.050 below.
      The constraint changes seq2seq by +0.200 and setaug by +0.050.

    """
    plain, ours = _METHODS
    gaps = [jaccard[ours, way] - jaccard[plain, way] for way in _WAYS]
    text, constrained = (f"{abs(gap):.3f} {'above' if gap >= 0 else 'below'}" for gap in gaps)
    first, second = (jaccard[method, "constrained"] - jaccard[method, "text"] for method in _METHODS)
    return (
        "Summary (Jaccard; one seed, so small differences are not meaningful):\n"
        f"  as text, {ours} is {text} {plain}; constrained, {constrained}.\n"
        f"  The constraint changes {plain} by {first:+.3f} and {ours} by {second:+.3f}."
    )


def _table(rows: list[tuple[str, str, str]], gold: str) -> dict[tuple[str, str], float]:
    """Print the scores; return the Jaccard index by method and decoding."""
    from rich.console import Console
    from rich.table import Table

    from setaug.examples import read_examples
    from setaug.metrics import evaluate
    from setaug.predictions import read_predictions

    jaccard = {}
    table = Table("trained as", "decoded as", "Jaccard", "F1", "labels", "with duplicates", "size agrees")
    examples = list(read_examples(gold))
    for method, way, path in rows:
        found = evaluate(examples, list(read_predictions(path)))
        sets, sizes = found.sets, found.sizes
        jaccard[method, way] = sets.jaccard
        agreement = "" if sizes.agreement_distinct is None else f"{sizes.agreement_distinct:.0%}"
        repeated = "" if sizes.repeated is None else f"{sizes.repeated:.0%}"
        scores = (f"{value:.3f}" for value in (sets.jaccard, sets.samples_f1))
        table.add_row(method, way, *scores, f"{sets.mean_predicted_size:.2f}", repeated, agreement)
    _say(f"On {len(examples)} test examples ({sets.mean_gold_size:.2f} labels on average):")
    Console(width=100).print(table)
    return jaccard


def _call(*command: str) -> None:
    from setaug.cli import main

    _say(f"$ setaug {' '.join(command)}")
    if code := main(list(command)):
        sys.exit(code)


def _say(message: str) -> None:
    show("", *message.split("\n"))
    sys.stdout.flush()


def _show(path: str, n_lines: int) -> None:
    with open(path, encoding="utf-8") as lines:
        show(*(f"  {line.rstrip()}" for line in islice(lines, n_lines)))
    sys.stdout.flush()
