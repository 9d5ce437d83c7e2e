"""Score predictions against the true sets: precision, recall, F and Jaccard, sizes, repeated and unknown labels.

Predictions are JSON lines with "labels" and, where known, "id", "size", "repeated", "unknown" and "malformed". They are
matched to the examples by id where both files have ids, and line by line otherwise.
"""

import argparse
import sys

from setaug.cli.scoring import add_gold, add_macro, check_inputs, read_gold, read_vocabulary

EXAMPLES = """\
examples:
  setaug evaluate predictions.jsonl test.jsonl
  setaug evaluate predictions.jsonl test.jsonl --macro-over vocabulary --labels labels.txt --per-label
  setaug evaluate predictions.jsonl test.csv --delimiter "," --json > scores.json
  setaug evaluate predictions.jsonl test.jsonl --keyphrases
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "predictions",
        metavar="PREDICTIONS",
        help="predictions: .jsonl (also with .gz or .zst behind); - for standard input",
    )
    add_gold(parser)
    group = parser.add_argument_group("scores")
    add_macro(group)
    group.add_argument("--keyphrases", action="store_true", help="score the labels as keyphrases of the texts too")
    group.add_argument(
        "--keyphrase-average",
        choices=("one2set", "documents"),
        default="one2set",
        help="F1 of precision and recall over all documents, or mean F1 of those with true phrases [one2set]",
    )
    group.add_argument("--per-label", action="store_true", help="score each label too")
    group.add_argument("--json", action="store_true", help="print everything as JSON, shares from 0 to 1")


def run(options: argparse.Namespace) -> None:
    """Score a file."""
    check_inputs(options, options.predictions)
    import orjson

    from setaug.metrics import evaluate
    from setaug.predictions import read_predictions

    vocabulary = read_vocabulary(options.labels)
    found = evaluate(
        read_predictions(options.predictions),
        read_gold(options),
        macro_over=options.macro_over,
        vocabulary=vocabulary,
        keyphrases=options.keyphrase_average if options.keyphrases else None,
        per_label=options.per_label,
    )
    text = orjson.dumps(found.as_dict(), option=orjson.OPT_INDENT_2).decode() if options.json else found.table()
    sys.stdout.write(text + "\n")
