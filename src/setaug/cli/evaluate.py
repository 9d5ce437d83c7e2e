"""Score predictions against the true sets: precision, recall, F and Jaccard, sizes, repeated and unknown labels.

Predictions have "labels" and optionally "id", "size", "repeated", "unknown" and "malformed". They are
matched to the examples by id if both files have ids, and line by line otherwise.
"""

import argparse

from setaug.cli.shared.options import add_html, check_html, checking_options, write_html
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

EXAMPLES = """\
examples:
  setaug evaluate predictions.jsonl test.jsonl
  setaug evaluate predictions.jsonl test.jsonl --macro-over vocabulary --labels labels.txt --per-label
  setaug evaluate predictions.jsonl test.csv --delimiter "," --json > scores.json
  setaug evaluate predictions.jsonl test.jsonl --keyphrases
  setaug evaluate predictions.jsonl test.jsonl --html report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "predictions",
        metavar="PREDICTIONS",
        help="predictions: .jsonl, .csv or .tsv (optionally .gz or .zst) or .parquet; - for standard input (JSONL)",
    )
    add_gold(parser)
    group = parser.add_argument_group("scores")
    add_macro(group)
    group.add_argument("--keyphrases", action="store_true", help="also score the labels as keyphrases of the texts")
    group.add_argument(
        "--keyphrase-average",
        choices=("one2set", "documents"),
        default="one2set",
        help="F1 of mean precision and recall over all documents, or mean F1 of documents with true phrases [one2set]",
    )
    group.add_argument("--per-label", action="store_true", help="also score each label")
    group.add_argument("--json", action="store_true", help="print everything as JSON, with fractions from 0 to 1")
    group = parser.add_argument_group("HTML page")
    add_html(group)
    group.add_argument("--top", type=int, default=200, metavar="N", help="maximum number of labels to list [200]")
    group.add_argument("--worst", type=int, default=20, metavar="N", help="number of worst examples to show [20]")


def run(options: argparse.Namespace) -> None:
    """Score a file."""
    check_inputs(options, options.predictions)
    check_html(options)
    from setaug.settings import check_whole

    with checking_options():
        for name in ("top", "worst"):
            check_whole(name, getattr(options, name), at_least=0)
    from setaug.predictions import read_predictions

    vocabulary = read_vocabulary(options.labels)
    columns = gold_columns(options)
    predictions = list(read_predictions(options.predictions, delimiter=columns.delimiter))
    examples = read_gold(options, columns)
    import orjson

    from setaug.metrics import evaluate, match  # slow; a missing file is reported before
    from setaug.storage import display_name

    found = evaluate(
        examples,
        predictions,
        macro_over=options.macro_over,
        vocabulary=vocabulary,
        keyphrases=options.keyphrase_average if options.keyphrases else None,
        per_label=options.per_label,
    )
    warn_of_joined(examples, predictions)
    if options.html:
        from setaug.reporting.evaluation import evaluation_page

        names = display_name(options.gold), display_name(options.predictions)
        limits = {"top": options.top, "worst": options.worst}
        matched = match(examples, predictions)
        write_html(evaluation_page(found, examples, matched, names, vocabulary=vocabulary, **limits), options.html)
    if options.html == "-":
        return
    text = orjson.dumps(found.to_dict(), option=orjson.OPT_INDENT_2).decode() if options.json else found.table()
    show(*text.split("\n"))
