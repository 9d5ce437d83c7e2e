"""Train a model that writes sets: any Hugging Face encoder-decoder or causal model, or a small one from scratch.

The default is the paper's method (SETAUG): each example is written in its given order and in sampled ones, specific
labels before the general ones they imply, with the number of labels first. The other methods are the paper's
baselines, trained on the same examples. During training, sets are generated for the dev data; the checkpoint with the
highest mean F1 is kept.
"""

import argparse
from contextlib import nullcontext
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from setaug.cli.shared.config import add_config, save_config
from setaug.cli.shared.options import (
    UsageError,
    add_input,
    add_orders,
    add_template,
    add_thresholds,
    add_written_form,
    checking_options,
    columns_of,
    joined_lines,
    make_augmenter,
    read_input,
    skipped_lines,
)
from setaug.cli.shared.scoring import named_vocabulary
from setaug.cli.shared.settings_options import add_settings, given_settings
from setaug.progress import progress_bar
from setaug.registry import describe
from setaug.settings import METHODS, PAPER_MODEL, SEEDS, TRACKERS, TrainingSettings
from setaug.terminal import tell

if TYPE_CHECKING:
    from setaug.examples import Example
    from setaug.models import SetModel

EXAMPLES = """\
examples:
  setaug train train.jsonl --dev dev.jsonl --model facebook/bart-base -o run/
  setaug train train.jsonl --dev dev.jsonl --model tiny --epochs 10 -o run/
  setaug train train.jsonl --dev dev.jsonl --model Qwen/Qwen2.5-0.5B-Instruct --lora 16 --learning-rate 2e-4 -o run/
  setaug train train.jsonl --dev dev.jsonl --model t5-base --method seq2seq --learning-rate 5e-4 -o baseline/
  setaug train train.jsonl --dev dev.jsonl --model facebook/bart-base --seeds -o runs/       the paper's three seeds
  setaug train train.jsonl --dev dev.jsonl --model facebook/bart-base -o run/ --resume       continue after a stop
  setaug train train.jsonl --epochs 5 -o run/ --save-config run.toml     write these options to a file
  setaug train --config run.toml --seed 2 -o second/                     read them; what is given here wins
  accelerate launch --num_processes 8 -m setaug train train.jsonl --model facebook/bart-large -o run/
"""


def INTERRUPTED(options: argparse.Namespace) -> str:  # noqa: N802 (read by its name, as a sentence or a function)
    """Return how to continue an interrupted run."""
    from setaug.models.model_folder import last_checkpoint

    folder = Path(getattr(options, "output", None) or ".")
    if any(last_checkpoint(place / "checkpoints") for place in (folder, *folder.glob("seed-*"))):
        return "continue from the last checkpoint with --resume"
    return "there is no checkpoint yet; run the same command to start over"


_NO_MODEL = (
    f"--model is missing; pass a model on the Hugging Face Hub (the paper's: {PAPER_MODEL}), a folder, or a small "
    "model from scratch (no download): tiny, mini, tiny-causal."
)
_NAMES = {"lora_rank": "lora"}
_FIXED = ("warmup", "weight_decay", "adam_epsilon")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_input(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="output folder for the model and its record"
    )
    parser.add_argument(
        "--dev",
        metavar="FILE",
        help="examples for selecting the best checkpoint; by default a part of the training data, see --held-out",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="an encoder-decoder or causal model on the Hugging Face Hub, a folder, or a model from scratch (no "
        "download): tiny, mini or base-from-scratch, each optionally with the suffix -no-positions, tiny-causal or "
        "mini-causal (required)",
    )
    parser.add_argument(
        "--report-to",
        nargs="+",
        choices=tuple(TRACKERS),
        metavar="NAME",
        help="also report loss and dev scores to " + "; ".join(f"{name}: {text}" for name, text in TRACKERS.items()),
    )
    parser.add_argument("--resume", action="store_true", help="continue the run in FOLDER from its last checkpoint")
    add_config(parser)
    group = parser.add_argument_group("method")
    group.add_argument(
        "--method",
        choices=tuple(METHODS),
        default="setaug",
        help=f"training method; {describe({name: method.help for name, method in METHODS.items()}, default='setaug')}",
    )
    group.add_argument(
        "--size",
        action=argparse.BooleanOptionalAction,
        help="write the set's size first [yes; seq2seq, classifier, set-search: no]",
    )
    add_orders(group)
    add_thresholds(group)
    add_written_form(group)
    add_template(group)
    group.add_argument(
        "--vocabulary",
        default="closed",
        metavar="closed|open|FILE",
        help="labels that can be predicted: closed: those of the training and dev data; open: any text; FILE: those of "
        "the data and those in FILE, one per line [closed]",
    )
    group.add_argument(
        "--companion",
        action=argparse.BooleanOptionalAction,
        help="also fit a TF-IDF classifier, and combine it with the model, weighted on the dev data; without dev data "
        "both have the same weight [yes, unless the data is so large that it would take long]",
    )
    group = parser.add_argument_group("training")
    add_settings(group, TrainingSettings, names=_NAMES, leave_out=_FIXED)
    group.add_argument(
        "--seeds",
        type=int,
        nargs="*",
        metavar="N",
        help="train once per seed, into FOLDER/seed-N; without values, the paper's three: "
        + ", ".join(map(str, SEEDS)),
    )


def run(options: argparse.Namespace) -> None:
    """Train, once per seed."""
    from setaug.models.model_card import dev_f1
    from setaug.models.neural.training.processes import disconnect, is_main_process
    from setaug.vocabulary import joined_label, unwarned

    if options.save_config is not None:
        save_config(options)
        return
    if options.model is None:
        raise UsageError(_NO_MODEL)
    _check_input(options)
    with checking_options():
        seeds = _seeds(options)
        for seed in seeds:
            _make_model(options, seed)  # check all before training the first
    skipped = _skipped(options)
    train = _read(options, options.input, skipped)
    dev = None if options.dev is None else _read(options, options.dev, skipped)
    if is_main_process():
        labels = dict.fromkeys(label for example in train for label in example.labels)
        tell(*joined_lines(joined_label(labels)), *skipped_lines(skipped))
        if options.resume and not Path(options.output).exists():
            tell(f"there is no run in {options.output} to resume; training starts from the beginning")
    best = []
    for seed in seeds:
        model = _make_model(options, seed)
        folder = Path(options.output) / f"seed-{seed}" if options.seeds is not None else Path(options.output)
        bar = progress_bar("loading the model") if is_main_process() else nullcontext()
        with bar as progress, checking_options(), unwarned():
            model.fit(
                train,
                columns=columns_of(options),
                dev=dev,
                folder=folder,
                resume=options.resume,
                progress=progress,
                report_to=options.report_to or (),
            )
        if is_main_process():
            _report(model, folder)
        if (f1 := dev_f1(model.record_)) is not None:
            best.append(f1)
    if len(best) > 1 and is_main_process():
        tell(f"over {len(best)} seeds: mean F1 on the dev data {mean(best):.3f}, standard deviation {stdev(best):.3f}")
    disconnect()


def _check_input(options: argparse.Namespace) -> None:
    """Raise if several processes would each read part of a stream."""
    from setaug.models.neural.training.processes import n_processes

    for path in (options.input, options.dev):
        is_stream = path == "-" or (path is not None and Path(path).exists() and not Path(path).is_file())
        if n_processes() > 1 and is_stream:
            raise UsageError(f"several processes cannot share the stream {path}; use a file.")


def _seeds(options: argparse.Namespace) -> tuple[int, ...]:
    if options.seeds is None:
        return SEEDS[:1] if options.seed is None else (options.seed,)
    if options.seed is not None:
        raise ValueError("--seed and --seeds cannot be given together.")
    return tuple(dict.fromkeys(options.seeds)) or SEEDS


def _make_model(options: argparse.Namespace, seed: int) -> "SetModel":
    from setaug.models import make_model

    training = TrainingSettings(**{**given_settings(options, TrainingSettings, names=_NAMES), "seed": seed})
    return make_model(
        options.method,
        options.model,
        size=options.size,
        augmenter=make_augmenter(options, with_size=True, random_state=seed),
        training=training,
        vocabulary=named_vocabulary(options.vocabulary),
        companion=options.companion,
    )


def _skipped(options: argparse.Namespace) -> Any:
    from setaug.examples import Skipped

    return Skipped() if options.skip_bad else None


def _read(options: argparse.Namespace, path: str, skipped: Any) -> "list[Example]":
    examples = list(read_input(options, path, skipped=skipped))
    if not examples:
        raise UsageError(f"{path} contains no examples.")
    return examples


def _report(model: "SetModel", folder: Path) -> None:
    from setaug.models.model_card import dev_f1
    from setaug.vocabulary import shared_sentence

    record: dict[str, Any] = model.record_
    lines = [
        f"{folder}: {record['n_examples']:,} examples, {record['n_pairs_per_epoch']:,} pairs per epoch, "
        f"{record['n_updates']:,} updates in {record['seconds']:.0f} s"
    ]
    if (f1 := dev_f1(record)) is not None:
        is_tuned_later = model.kind != "classifier" and f1 != record["best_f1"]
        written = f"; {record['best_f1']:.3f} before sets were tuned" if is_tuned_later else ""
        lines.append(f"mean F1 of the sets on the dev data: {f1:.3f}{written}")
    else:
        lines.append("no dev data (add --dev FILE, or --held-out 0.2), so the last checkpoint was kept")
        if model.kind == "generator" and model.mixture_ is None and model.labels_ is not None:
            lines.append("predict returns the sets that the model writes; --choose expected-f1 uses probabilities")
        elif len(members := getattr(model, "members_", ())) > 1:
            lines.append(f"nothing is calibrated, and {', '.join(members).replace('_', ' ')} count the same")
    if record.get("too_large_for_companion"):
        lines.append(
            "no TF-IDF companion was fitted: with so many words and labels, it would take long; --companion fits it"
        )
    if shared := shared_sentence(record.get("dev_texts_in_training", 0), record["n_dev"]):
        lines.append(shared)
    counts = {
        "texts_cut_off": "texts were truncated at --max-source-length",
        "left_out_targets_too_long": "examples were skipped: their labels need more than --max-target-length tokens",
        "labels_written_alike": "labels have the same tokens as another label, so the model cannot write them",
        "dev_labels_unseen_in_training": "labels of the dev data are not in the training data"
        + ("" if model.kind == "classifier" else "; they can be predicted, but were not trained on"),
    }
    lines.extend(f"{record[name]:,} {text}" for name, text in counts.items() if record.get(name))
    tell(*lines)
