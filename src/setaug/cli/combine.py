"""Combine the predictions of several models into one: a weighted mean of their label probabilities.

Predictions are JSON lines with "probabilities" (and optionally "sizes"), from any source. With --dev, the calibration
and weight of each model and the rule for choosing sets are tuned on dev data. Without it, all models have equal weight
and the set with the highest expected F1 is chosen.
"""

import argparse

from setaug.cli.shared.options import UsageError, add_fields, checking_options, read_input
from setaug.registry import describe
from setaug.settings import WAYS
from setaug.terminal import tell

EXAMPLES = """\
examples:
  setaug combine one.jsonl two.jsonl -o both.jsonl
  setaug combine one.jsonl two.jsonl --dev dev.jsonl --dev-predictions one-dev.jsonl two-dev.jsonl -o both.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("predictions", nargs="+", metavar="PREDICTIONS", help="predictions of each model, .jsonl")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="output file, JSONL [standard output]")
    parser.add_argument("--dev", metavar="FILE", help="examples with their true labels, to weight the models on")
    parser.add_argument(
        "--dev-predictions", nargs="+", default=[], metavar="FILE", help="predictions of each model for the dev data"
    )
    ways = {"best": "what is best on the dev data", **WAYS}
    parser.add_argument(
        "--choose", choices=tuple(ways), default="best", help="how to choose a set; " + describe(ways, default="best")
    )
    add_fields(parser.add_argument_group("reading the dev data"))


def run(options: argparse.Namespace) -> None:
    """Combine files."""
    from setaug.storage import check_jsonl

    check_jsonl(options.output)
    if (options.dev is None) != (not options.dev_predictions):
        raise UsageError("--dev and --dev-predictions must be given together.")
    from setaug.models.ensemble import combine_predictions
    from setaug.predictions import read_predictions, write_predictions

    with checking_options():
        found, mixture, f1 = combine_predictions(
            [list(read_predictions(path)) for path in options.predictions],
            dev=[] if options.dev is None else list(read_input(options, options.dev)),
            dev_files=[list(read_predictions(path)) for path in options.dev_predictions],
            choose=options.choose,
        )
    write_predictions(options.output, iter(found))
    parts = zip(options.predictions, mixture.weights, strict=True)
    tell(*(f"{path}: weight {weight:.2g}" for path, weight in parts))
    if f1 is not None:
        tell(f"mean F1 on the dev data: {f1:.3f}, by {mixture.rule.way}")
