"""Split examples into train, dev and test files.

Rows with the same text go to the same file, so no test text occurs in the training data. The split depends only on the
seed and the texts. The files are JSON lines with all fields of the rows, in their original order.
"""

import argparse

from setaug.cli.shared.options import UsageError, add_input, checking_options, columns_of, counted, skipped_lines
from setaug.terminal import tell

EXAMPLES = """\
examples:
  setaug split tickets.csv -o data/
  setaug split corpus/ -o data/ --dev 500 --test 1000 --seed 1
  setaug split examples.jsonl -o data/ --test 0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_input(parser, are_many=True)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="folder for train.jsonl, dev.jsonl and test.jsonl"
    )
    parser.add_argument("--dev", dest="n_dev", default="0.1", metavar="N", help="fraction or number of dev rows [0.1]")
    parser.add_argument(
        "--test", dest="n_test", default="0.1", metavar="N", help="fraction or number of test rows [0.1]"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed [0]")


def _part(name: str, text: str) -> float:
    """Return a fraction or a number of rows; 1.0 would be neither."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1 and not text.isdecimal():
        raise UsageError(f"--{name} must be a fraction below 1 or a number of rows, got {text}.")
    return value


def run(options: argparse.Namespace) -> None:
    """Split files."""
    from setaug.engines.split_files import split_files

    wanted = {"dev": _part("dev", options.n_dev), "test": _part("test", options.n_test)}
    with checking_options():
        report = split_files(
            options.input,
            options.output,
            **wanted,
            seed=options.seed,
            columns=columns_of(options),
            kind=options.input_kind,
            skip_bad=options.skip_bad,
        )
    tell(", ".join(f"{options.output.rstrip('/')}/{name}.jsonl: {n:,} rows" for name, n in report.n_rows.items()))
    for name, part in wanted.items():
        if part and not report.n_rows.get(name):
            tell(f"warning: no {name} rows: too few different texts for --{name} {part:g}")
    if report.n_repeated:
        tell(f"{counted(report.n_repeated, 'row')} with duplicate texts, kept in the same file")
    if report.n_unseen:
        tell(f"{counted(report.n_unseen, 'label')} of dev or test rows are not in the training rows")
    tell(*skipped_lines(report.skipped))
