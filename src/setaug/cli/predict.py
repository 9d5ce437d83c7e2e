"""Predict the label set of each text with a trained model.

The output is a set by construction: no duplicate or unknown labels. By default, the set is chosen from label
probabilities (of the model, and of its companion if it has one): that with the highest expected F1, or by another rule
that was clearly better on the dev data; --choose written returns the set that the model generates.

Rows are streamed. To resume an interrupted run, run the same command again.
"""

import argparse
from typing import TYPE_CHECKING, Any

from setaug.cli.shared.options import (
    UsageError,
    add_input,
    add_output,
    checking_options,
    columns_of,
    read_input,
    skipped_lines,
)
from setaug.cli.shared.settings_options import add_settings, given_settings
from setaug.progress import progress_bar
from setaug.settings import Decoding, Progress
from setaug.terminal import tell

if TYPE_CHECKING:
    from setaug.models.predict_files import PredictReport

EXAMPLES = """\
examples:
  setaug predict run/ test.jsonl -o predictions.jsonl
  setaug predict run/ test.jsonl --size-is 3 > three.jsonl
  setaug predict run/ test.jsonl --top 10 -o rankings.jsonl
  setaug predict run/ test.jsonl --choose written -o written.jsonl
  setaug predict run/ test.jsonl --samples 16 --calibrate dev.jsonl -o probabilities.jsonl
  setaug predict run/ test.jsonl --decoding beam --no-constrain -o plain.jsonl
  setaug predict run/ tickets.csv --carry number date -o predictions.csv
  setaug predict run/ corpus/ more.jsonl -o predictions.jsonl.zst --shards 8
  setaug predict run/ s3://bucket/corpus -o s3://bucket/sets.jsonl --engine ray --shards 64 --workers 8 --gpus 1
  echo '{"text": "We won!"}' | setaug predict run/ -
"""


INTERRUPTED = "no output file was written; run the same command again to resume"

_NAMES = {"name": "decoding", "constrained": "constrain", "n_beams": "beams"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", metavar="MODEL", help="a folder written by setaug train, or org/name on the Hub")
    add_input(parser, are_many=True, of_model=True)
    group = parser.add_argument_group("output")
    add_output(group)
    group.add_argument(
        "--carry",
        nargs="+",
        metavar="FIELD",
        help="fields of a row to copy to its prediction [in CSV, TSV and Parquet files: the text]",
    )
    group.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="write N shards, FILE-00000-of-0000N and so on; concatenated, they have the same sets as a single file",
    )
    group = parser.add_argument_group("decoding")
    add_settings(group, Decoding, names=_NAMES)
    group.add_argument("--calibrate", metavar="FILE", help="examples to calibrate the probabilities on")
    group.add_argument(
        "--top", type=int, metavar="N", help="write the probabilities of the N most probable labels, at most 100 [100]"
    )
    group = parser.add_argument_group("execution")
    group.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="local: on this machine; ray: in actors on a Ray cluster, each of which loads the model once [local]",
    )
    group.add_argument("--workers", type=int, metavar="N", help="number of Ray actors [1]")
    group.add_argument(
        "--gpus", type=float, metavar="X", help="GPUs per Ray actor; 0.5 shares one GPU between two actors [0]"
    )
    group = parser.add_argument_group("other")
    group.add_argument("-q", "--quiet", action="store_true", help="no summary, except of bad lines")


def run(options: argparse.Namespace) -> None:
    """Predict files."""
    from setaug.engines.job import check_positive

    changes = given_settings(options, Decoding, names=_NAMES)
    if options.calibrate is not None and not changes.get("samples"):
        raise UsageError("--calibrate needs samples; add --samples 16, for example.")
    if options.engine == "local" and (options.workers is not None or options.gpus is not None):
        raise UsageError("--workers and --gpus are for --engine ray.")
    if options.engine == "ray" and options.shards is None:
        raise UsageError("--engine ray writes shards; add --shards 16, for example.")
    with checking_options():
        check_positive("shards", options.shards)
        check_positive("top", options.top)
    if options.top is not None:
        changes["top"] = options.top
    with progress_bar("loading the model") as progress, checking_options():
        report = (_on_ray if options.engine == "ray" else _here)(options, changes, progress)
    if not options.quiet:
        mean = f"{report.n_labels / report.n_sets:.2f} labels on average" if report.n_sets else ""
        tell(f"{report.n_sets:,} sets with {mean}" if report.n_sets else "no texts")
        if report.n_resumed:
            tell(f"{report.n_resumed:,} of them were resumed from an interrupted run")
    tell(*skipped_lines(report.skipped))


def _here(options: argparse.Namespace, changes: dict[str, Any], progress: Progress) -> "PredictReport":
    from setaug.models import load_model
    from setaug.models.hub import find_model
    from setaug.models.predict_files import folder_state, predict_files

    folder = find_model(options.folder)
    model, state = load_model(folder), folder_state(folder)
    if options.calibrate is not None:
        state += repr(_calibrate(model, options, changes, progress))
    return predict_files(
        model,
        options.input,
        options.output,
        columns=columns_of(options, model.columns_),
        kind=options.input_kind,
        carry=options.carry,
        skip_bad=options.skip_bad,
        shards=options.shards,
        state=state,
        progress=progress,
        **changes,
    )


def _on_ray(options: argparse.Namespace, changes: dict[str, Any], progress: Progress) -> "PredictReport":
    from setaug.models import load_model
    from setaug.models.hub import find_model
    from setaug.models.model_folder import read_card, saved_columns
    from setaug.models.predict_on_ray import Actors, predict_on_ray

    folder, learnt = find_model(options.folder), {}
    if options.calibrate is not None:
        learnt["calibration_"] = _calibrate(load_model(folder), options, changes, progress)
    return predict_on_ray(
        folder,
        options.input,
        options.output,
        shards=options.shards,
        actors=Actors(workers=1 if options.workers is None else options.workers, gpus=options.gpus or 0.0),
        columns=columns_of(options, saved_columns(read_card(folder))),
        kind=options.input_kind,
        carry=options.carry,
        skip_bad=options.skip_bad,
        learnt=learnt,
        progress=progress,
        **changes,
    )


def _calibrate(model: Any, options: argparse.Namespace, changes: dict[str, Any], progress: Progress) -> Any:
    """Calibrate a model on a file; return the calibration."""
    from setaug.examples import Skipped
    from setaug.models import SetGenerator

    if not isinstance(model, SetGenerator):
        raise UsageError("only generative models can be calibrated.")
    skipped = Skipped() if options.skip_bad else None
    examples = read_input(options, options.calibrate, skipped=skipped, remembered=model.columns_)
    model.calibrate(examples, progress=progress, **{name: value for name, value in changes.items() if name != "top"})
    tell(*skipped_lines(skipped))
    return model.calibration_
