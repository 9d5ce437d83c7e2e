"""Predict the label set of each text with a trained model.

The output is a set by construction: no label twice, none that is unknown, and as many as the model's own size says.
--samples K also gives a probability for each label: the share of K drawn sets that hold it.
"""

import argparse
import sys
from itertools import islice

from setaug.cli.options import UsageError, add_input, checking_options, read_input, skipped_lines
from setaug.cli.progress import counting_from, progress_bar

_WINDOW = 4096
"""So many texts are read at once, and sorted by length; more do not have to fit into memory."""

EXAMPLES = """\
examples:
  setaug predict run/ test.jsonl -o predictions.jsonl
  setaug predict run/ test.jsonl --size-is 3 > three.jsonl
  setaug predict run/ test.jsonl --samples 16 --calibrate dev.jsonl -o probabilities.jsonl
  setaug predict run/ test.jsonl --decoding beam --no-constrain -o plain.jsonl
  echo '{"text": "We won!"}' | setaug predict run/ -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", metavar="MODEL", help="a folder that setaug train wrote")
    add_input(parser)
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write JSONL [standard output]")
    group = parser.add_argument_group("decoding")
    group.add_argument(
        "--decoding",
        choices=("greedy", "beam", "random", "top-k", "nucleus"),
        help="how to write: the likeliest token each time, a beam search, or sampling [greedy]",
    )
    group.add_argument(
        "--constrain",
        action=argparse.BooleanOptionalAction,
        help="let the model write nothing but a set [yes]",
    )
    group.add_argument("--size-is", type=int, metavar="N", help="each set shall have N labels")
    group.add_argument("--min-size", type=int, metavar="N", help="each set shall have at least N labels [0]")
    group.add_argument("--max-size", type=int, metavar="N", help="at most N [as the largest training set]")
    group.add_argument("--beams", type=int, metavar="N", help="the width of the beam [5]")
    group.add_argument("--top-k", type=int, metavar="N", help="for --decoding top-k [50]")
    group.add_argument("--top-p", type=float, metavar="P", help="for --decoding nucleus [0.9]")
    group.add_argument("--temperature", type=float, metavar="T", help="for sampling [1]")
    group = parser.add_argument_group("probabilities")
    group.add_argument("--samples", type=int, metavar="K", help="draw K sets per text and give label probabilities")
    group.add_argument(
        "--choose",
        choices=("expected-f1", "expected-jaccard", "size", "vote"),
        help="how to choose a set from the samples: highest expected F1 or Jaccard, the likeliest labels as many as "
        "the likeliest size, or all above --threshold [expected-f1]",
    )
    group.add_argument("--threshold", type=float, metavar="P", help="for --choose vote [0.5]")
    group.add_argument("--calibrate", metavar="FILE", help="examples to calibrate the probabilities with")
    group = parser.add_argument_group("other")
    group.add_argument("--rule", choices=("threshold", "top-k", "oracle-k"), help="for classifiers [threshold]")
    group.add_argument("--batch-size", type=int, metavar="N", help="sets that are written at once [32]")
    group.add_argument("--seed", type=int, metavar="N", help="for sampling [0]")
    group.add_argument("-q", "--quiet", action="store_true", help="no summary")


_DECODING = {
    "decoding": "name",
    "constrain": "constrained",
    "size_is": "size_is",
    "min_size": "min_size",
    "max_size": "max_size",
    "beams": "n_beams",
    "top_k": "top_k",
    "top_p": "top_p",
    "temperature": "temperature",
    "samples": "samples",
    "choose": "choose",
    "threshold": "threshold",
    "batch_size": "batch_size",
    "seed": "seed",
    "rule": "rule",
}
"""What an option changes, where it is given."""


def run(options: argparse.Namespace) -> None:
    """Predict a file."""
    import orjson

    from setaug.examples import Skipped
    from setaug.files import open_output
    from setaug.models import SetGenerator, load_model

    changes = {
        name: getattr(options, option) for option, name in _DECODING.items() if getattr(options, option) is not None
    }
    if options.calibrate is not None and not changes.get("samples"):
        raise UsageError("--calibrate is about the shares of samples; ask for some: --samples 16.")
    model = load_model(options.folder)
    skipped = Skipped() if options.skip_bad else None
    needs_labels = (options.rule or getattr(model, "rule", None)) == "oracle-k"
    examples = read_input(options, options.input, skipped=skipped, are_labelled=needs_labels)
    n_sets = n_labels = 0
    with open_output(options.output) as stream, progress_bar("loading the model") as progress, checking_options():
        if options.calibrate is not None:
            if not isinstance(model, SetGenerator):
                raise UsageError("only models that write sets can be calibrated by samples.")
            model.calibrate(read_input(options, options.calibrate, skipped=skipped), progress=progress, **changes)
        while window := list(islice(examples, _WINDOW)):
            for prediction in model.predict(window, progress=counting_from(n_sets, progress), **changes):
                stream.write(orjson.dumps(prediction.as_row(), option=orjson.OPT_APPEND_NEWLINE))
                n_sets += 1
                n_labels += len(prediction.labels)
    if not options.quiet:
        mean = f"{n_sets:,} sets with {n_labels / n_sets:.2f} labels on average" if n_sets else "no text to predict for"
        sys.stderr.write("\n".join([mean, *(skipped_lines(skipped) if skipped else [])]) + "\n")
