"""Predict the label set of each text with a trained model.

The output is a set by construction: no duplicate or unknown labels, and exactly the size that the model states.
--samples K also returns a probability for each label: the fraction of K sampled sets that contain it.
"""

import argparse
from itertools import islice

from setaug.cli.shared.options import (
    UsageError,
    add_input,
    check_jsonl,
    checking_options,
    read_input,
    skipped_lines,
)
from setaug.cli.shared.progress import counting_from, progress_bar
from setaug.cli.shared.settings_options import add_settings, given_settings
from setaug.settings import Decoding
from setaug.terminal import json_line, tell

_WINDOW = 4096
"""Number of texts that are read and sorted by length at a time, which bounds memory."""

EXAMPLES = """\
examples:
  setaug predict run/ test.jsonl -o predictions.jsonl
  setaug predict run/ test.jsonl --size-is 3 > three.jsonl
  setaug predict run/ test.jsonl --samples 16 --calibrate dev.jsonl -o probabilities.jsonl
  setaug predict run/ test.jsonl --decoding beam --no-constrain -o plain.jsonl
  echo '{"text": "We won!"}' | setaug predict run/ -
"""


_NAMES = {"name": "decoding", "constrained": "constrain", "n_beams": "beams"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", metavar="MODEL", help="a folder written by setaug train")
    add_input(parser)
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="output file, JSONL [standard output]")
    group = parser.add_argument_group("decoding")
    add_settings(group, Decoding, names=_NAMES)
    group.add_argument("--calibrate", metavar="FILE", help="examples to calibrate the probabilities on")
    group = parser.add_argument_group("other")
    group.add_argument(
        "--rule", choices=("threshold", "top-k", "oracle-k"), help="how a classifier selects labels [threshold]"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no summary, except of bad lines")


def run(options: argparse.Namespace) -> None:
    """Predict a file."""
    from setaug.examples import Skipped
    from setaug.models import load_model
    from setaug.storage import open_output

    check_jsonl(options.output)
    changes = given_settings(options, Decoding, names=_NAMES)
    if options.rule is not None:
        changes["rule"] = options.rule
    if options.calibrate is not None and not changes.get("samples"):
        raise UsageError("--calibrate needs samples; add --samples 16, for example.")
    model = load_model(options.folder)
    skipped = Skipped() if options.skip_bad else None
    needs_labels = (options.rule or getattr(model, "rule", None)) == "oracle-k"
    examples = read_input(options, options.input, skipped=skipped, are_labelled=needs_labels)
    n_sets = n_labels = 0
    with open_output(options.output) as stream, progress_bar("loading the model") as progress, checking_options():
        if options.calibrate is not None:
            from setaug.models import SetGenerator

            if not isinstance(model, SetGenerator):
                raise UsageError("only models that write sets can be calibrated.")
            model.calibrate(read_input(options, options.calibrate, skipped=skipped), progress=progress, **changes)
        while window := list(islice(examples, _WINDOW)):
            for prediction in model.predict(window, progress=counting_from(n_sets, progress), **changes):
                stream.write(json_line(prediction.as_row()))
                n_sets += 1
                n_labels += len(prediction.labels)
    if not options.quiet:
        tell(f"{n_sets:,} sets with {n_labels / n_sets:.2f} labels on average" if n_sets else "no texts")
    tell(*skipped_lines(skipped))
