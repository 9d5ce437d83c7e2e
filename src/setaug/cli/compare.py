"""Test whether the difference between two models on the same examples is significant.

Differences are the second model's score minus the first's. One-sided p-values test whether the second is better. Report
the permutation test; the bootstrap gives the confidence interval. For metrics that are proportions, the paper's
one-tailed test of two proportions is also reported.
"""

import argparse
from typing import TYPE_CHECKING

from setaug.cli.shared.options import checking_options
from setaug.cli.shared.scoring import (
    add_gold,
    add_macro,
    check_inputs,
    gold_columns,
    read_gold,
    read_vocabulary,
    warn_of_joined,
)
from setaug.terminal import show

if TYPE_CHECKING:
    from setaug.metrics import Comparison

EXAMPLES = """\
examples:
  setaug compare baseline.jsonl new.jsonl test.jsonl
  setaug compare baseline.jsonl new.jsonl test.jsonl --metric macro_f1 --rounds 2000
  setaug compare baseline.jsonl new.jsonl test.jsonl --metric exact_match --json
"""

METRICS = ("micro_f1", "macro_f1", "samples_f1", "jaccard", "exact_match", "micro_precision", "micro_recall")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("first", metavar="FIRST", help="predictions of the first model, the baseline (JSONL)")
    parser.add_argument("second", metavar="SECOND", help="predictions of the second model (JSONL)")
    add_gold(parser)
    group = parser.add_argument_group("comparing")
    group.add_argument("--metric", choices=METRICS, default="samples_f1", help="metric to compare [samples_f1]")
    add_macro(group)
    group.add_argument("--rounds", type=int, default=10_000, metavar="N", help="random rounds per test [10000]")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="random seed [0]")
    group.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Compare two files."""
    check_inputs(options, options.first, options.second)
    from setaug.errors import DataError
    from setaug.metrics import compare_sets, match
    from setaug.predictions import read_predictions
    from setaug.storage import display_name

    vocabulary = read_vocabulary(options.labels)
    columns = gold_columns(options)
    examples = read_gold(options, columns)
    predicted = []
    for path in (options.first, options.second):
        try:
            predicted.append(
                [one.labels for one in match(examples, read_predictions(path, delimiter=columns.delimiter))]
            )
        except DataError as error:
            raise error.located(source=error.source or display_name(path), line=error.line) from None
    with checking_options():
        found = compare_sets(
            [example.labels for example in examples],
            predicted[0],
            predicted[1],
            metric=options.metric,
            macro_over=options.macro_over,
            vocabulary=vocabulary,
            n_rounds=options.rounds,
            seed=options.seed,
        )
    warn_of_joined(examples)
    if options.json:
        _print_json(found)
    else:
        _print_table(found)


def _print_json(found: "Comparison") -> None:
    from dataclasses import asdict

    import orjson

    result = {**asdict(found), "sentence": found.sentence}
    show(*orjson.dumps(result, option=orjson.OPT_INDENT_2).decode().split("\n"))


def _print_table(found: "Comparison") -> None:
    boot, swaps = found.bootstrap, found.permutation
    over = f", averaged over the labels: {found.macro_over}" if found.macro_over else ""
    n_swaps = f"all {swaps.n_rounds:,}" if swaps.is_exact else f"{swaps.n_rounds:,} random"
    lines = [
        f"{found.metric} on {found.n_examples:,} examples{over}",
        f"  first        {found.first:8.4f}",
        f"  second       {found.second:8.4f}",
        f"  difference   {found.difference:+8.4f}   95 % interval {boot.low:+.4f} to {boot.high:+.4f}",
        "",
        f"{'p-values':23}{'one-sided':>10}{'two-sided':>11}",
        f"  {'paired permutation':21}{swaps.p_one_sided:10.4g}{swaps.p_two_sided:11.4g}   {n_swaps} permutations",
        f"  {'paired bootstrap':21}{boot.p_one_sided:10.4g}{boot.p_two_sided:11.4g}   {boot.n_rounds:,} resamples",
    ]
    if found.proportions is not None:
        z = f"   z = {found.proportions.z:.3f}; assumes independent labels and examples"
        lines.append(f"  {'two proportions':21}{found.proportions.p_one_sided:10.4g}{'':11}{z}")
    lines += ["  one-sided: the second is better; two-sided: they differ", "", found.sentence]
    show(*lines)
