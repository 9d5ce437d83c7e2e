"""The paper's tables and figures, run on its datasets with a model of your choice.

A cell of a table is one training run with a seed and a decoding. Finished cells are stored in cells.jsonl and never run
again: run the same command to continue after an interrupt. Tables are written as Markdown and HTML, next to the
paper's values, with the spread over seeds and significance tests. Rows that are not in the paper (the set constraint,
votes over samples, TF-IDF with a linear classifier) come last.
"""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from setaug.cli.shared.options import UsageError, add_server, checking_options, default_workers, make_endpoint
from setaug.cli.shared.settings_options import add_settings, given_settings
from setaug.experiments.reproduction.experiment import EXPERIMENTS, FEW_SHOT, GRAPHS, read_experiment, read_table
from setaug.progress import progress_bar
from setaug.settings import RECIPES, SEEDS, TrainingSettings

if TYPE_CHECKING:
    from setaug.experiments.cells import Row
    from setaug.experiments.reproduction.training_cells import Prompts, Setup

NAMES = {**EXPERIMENTS, GRAPHS: "the label graphs of the figures; no training"}
EXAMPLES = f"""\
experiments:
{chr(10).join(f"  {name:14}{text}" for name, text in NAMES.items())}

examples:
  setaug reproduce graphs --data-dir data/ -o results/
  setaug reproduce main --data-dir data/ --model facebook/bart-base --encoder google-bert/bert-base-uncased --dry-run
  setaug reproduce main --data-dir data/ --model facebook/bart-base --encoder google-bert/bert-base-uncased -o results/
  setaug reproduce ablation --data-dir data/ --model facebook/bart-base --data 'ufet[min2]' --seeds 15143 -o results/
  setaug reproduce few-shot --data-dir data/ --llm gpt-4.1-mini --seeds 0 1 2 3 4 -o results/
  setaug reproduce main --data-dir data/ --model tiny --data 'go-emotions[min3]' --learning-rate 1e-3 -o small/
"""
INTERRUPTED = "finished cells are stored; run the same command again to continue"

_TRAINING = (
    *("epochs", "learning_rate", "batch_size", "max_source_length", "max_target_length", "patience"),
    *("precision", "weights"),
    *("lora_rank", "gradient_checkpointing"),
)
_NAMES = {"lora_rank": "lora"}
_SHOWN = (
    *("data", "model", "encoder", "llm", "endpoint", "shots", "max_tokens", "request", "seeds", *_TRAINING[:-2]),
    *("lora", "classifier_learning_rate", "classifier_epochs", "samples", "rows"),
)
"""The options on which results depend."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", choices=(*NAMES, "all"), help="one of the experiments below, or all"
    )
    parser.add_argument("-o", "--output", default="results", metavar="FOLDER", help="the output folder [results]")
    add = parser.add_argument_group("data").add_argument
    add("--data-dir", metavar="DIR", help="the folder of the datasets (see setaug data --help)")
    names = "datasets, as in setaug data: ufet[min2,train600] [those of the experiment]"
    add("--data", nargs="+", default=[], metavar="NAME", help=names)
    add("--download", action="store_true", help="download datasets from the Hugging Face Hub")
    add("--no-verify", action="store_true", help="do not verify the checksums of the files")
    group = parser.add_argument_group(
        "models and training",
        "Without these options, defaults trains as setaug train does, and the other experiments as the paper "
        f"({RECIPES['paper']}).",
    )
    add = group.add_argument
    add("--model", metavar="NAME", help="the generative model: a name on the Hub, a folder, or tiny (from scratch)")
    add(
        "--encoder", metavar="NAME", help="the encoder of the multi-label baseline [without it, these rows are skipped]"
    )
    add("--seeds", nargs="+", type=int, metavar="N", help=f"training seeds [{' '.join(map(str, SEEDS))}, the paper's]")
    add_settings(group, TrainingSettings, names=_NAMES, only=_TRAINING)
    add("--classifier-learning-rate", type=float, metavar="R", help="for the multi-label rows [--learning-rate]")
    add("--classifier-epochs", type=int, metavar="N", help="for the multi-label rows [three times --epochs]")
    add("--samples", type=int, metavar="N", help="samples per text, for rows that vote over samples [16]")
    group = parser.add_argument_group("language models (few-shot)")
    add = group.add_argument
    add("--llm", metavar="NAME", help="the language model, by its name on the server")
    add("--endpoint", choices=("chat", "completion"), help="chat messages, or one text to complete [chat]")
    add("--shots", type=int, metavar="N", help="examples per prompt [24]")
    add("--max-tokens", type=int, metavar="N", help="maximum length of an answer [256]")
    add_server(group)
    add = parser.add_argument_group("running").add_argument
    add("--workers", type=int, metavar="N", help="parallel training runs [one per core; 1 with a GPU]")
    add("--rows", nargs="+", default=[], metavar="NAME", help="run only these rows of the table")
    add("--dry-run", action="store_true", help="list the cells, and which of them are stored; run nothing")
    add("--report", action="store_true", help="write the tables of the stored results; run nothing")
    add("--keep-models", action="store_true", help="keep the trained models, in FOLDER/models")


def run(options: argparse.Namespace) -> None:
    """Run experiments, or list their cells."""
    names = _names(options)
    from setaug.models import require_torch

    require_torch()
    from setaug.experiments.reproduction.graphs import draw_graphs
    from setaug.experiments.reproduction.reproduce import run_experiment

    setup = _setup(options)
    workers = (1 if names == [FEW_SHOT] else default_workers()) if options.workers is None else options.workers
    if workers < 1:
        raise UsageError(f"--workers must be at least 1, got {workers}.")
    with checking_options():
        chosen = {name: _data_of(name, options.data, is_only=len(names) == 1) for name in names}
        for name in set(names) - {GRAPHS}:
            read_experiment(name).check_rows(options.rows)
        for one in dict.fromkeys(one for data in chosen.values() for one in data):
            setup.load(one)
    for name, data in chosen.items():
        if not data:
            continue
        if options.dry_run:
            _list_cells(name, setup, options, data)
            continue
        waiting_for = "tests of the stored results" if options.report else "first training run"
        with progress_bar(f"{name}: {waiting_for}") as progress:
            how: dict[str, Any] = {"data": data, "command": _command(name, options), "progress": progress}
            if name == GRAPHS:
                _, paths = draw_graphs(setup, options.output, **how)
            else:
                how |= {"rows": options.rows, "workers": workers, "only_report": options.report}
                _, paths = run_experiment(name, setup, options.output, **how, on_result=_report)
        sys.stdout.write("".join(f"{path}\n" for path in paths))
        sys.stdout.flush()


def _names(options: argparse.Namespace) -> list[str]:
    """Return the experiments to run; raise if an option that they need is missing."""
    names = [options.experiment]
    if options.experiment == "all":
        names = [name for name in NAMES if name != FEW_SHOT or options.llm is not None]
    if options.report and options.dry_run:
        raise UsageError("--report and --dry-run cannot be combined.")
    if options.data_dir is None and not options.download:
        raise UsageError("give the folder of the datasets (--data-dir), or download them (--download).")
    if options.model is None and not set(names) <= {GRAPHS, FEW_SHOT}:
        raise UsageError("give an encoder-decoder to train: --model facebook/bart-base, for example.")
    if options.llm is None and FEW_SHOT in names:
        raise UsageError("give a language model to prompt: --llm gpt-4.1-mini, for example.")
    return names


def _given(options: argparse.Namespace, **names: str) -> dict[str, Any]:
    """Return the options that were given, under other names."""
    found = {name: getattr(options, option) for name, option in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _setup(options: argparse.Namespace) -> "Setup":
    from setaug.experiments.reproduction.training_cells import Setup

    training = given_settings(options, TrainingSettings, names=_NAMES, only=_TRAINING)
    classifier = {name: value for name, value in training.items() if name not in ("epochs", "lora_rank", "weights")}
    classifier |= _given(options, epochs="classifier_epochs", learning_rate="classifier_learning_rate")
    seeds = tuple(options.seeds or SEEDS)
    with checking_options():
        for seed in seeds:
            TrainingSettings(**training, seed=seed)
        TrainingSettings(**classifier)
    if len(set(seeds)) < len(seeds):
        raise UsageError("--seeds has a duplicate.")
    if options.samples is not None and options.samples < 1:
        raise UsageError(f"--samples must be at least 1, got {options.samples}.")
    return Setup(
        data_dir=options.data_dir,
        download=options.download,
        verify=not options.no_verify,
        models=_given(options, **{"encoder-decoder": "model", "encoder": "encoder", "language-model": "llm"}),
        training=training,
        classifier_training=classifier,
        seeds=seeds,
        samples=options.samples,
        keep_models=options.keep_models,
        prompts=_prompts(options),
    )


def _prompts(options: argparse.Namespace) -> "Prompts":
    from setaug.experiments.reproduction.training_cells import Prompts
    from setaug.prompting import PromptedSetModel

    prompt = _given(options, shots="shots", kind="endpoint", max_tokens="max_tokens")
    with checking_options():
        endpoint = make_endpoint(options)
        PromptedSetModel("any", **prompt, endpoint=endpoint).check()
    return Prompts(**prompt, endpoint=endpoint, skip_refused=options.skip_refused)


def _data_of(name: str, given: list[str], *, is_only: bool) -> list[str]:
    """Return the datasets for an experiment: its own, or the given ones with the right type of labels."""
    from setaug.datasets.registry import DATASETS, parse_name

    if not given:
        return list(read_table(GRAPHS)["data"] if name == GRAPHS else read_experiment(name).data)
    variants = [parse_name(one) for one in given]
    if name == GRAPHS:
        return list(map(str, variants))
    vocabulary = read_experiment(name).vocabulary
    fit = [str(one) for one in variants if one.entry.kind.vocabulary == vocabulary]
    if len(fit) < len(variants) and is_only:
        entries = [entry for entry in DATASETS.values() if entry.kind.vocabulary == vocabulary]
        raise ValueError(f"{name} needs {entries[0].kind.name}; use {', '.join(entry.name for entry in entries)}.")
    return fit


def _command(name: str, options: argparse.Namespace) -> str:
    """Return the command that reproduces a page, without the number of workers; folders of models are named by content.

    With --report, it rebuilds the page from stored results, without the models.
    """
    from setaug.experiments.reproduction.training_cells import name_model

    call = ["setaug", "reproduce", name, *(["--download"] if options.download else ["--data-dir", "DIR"])]
    for option, value in _given(options, **{name: name for name in _SHOWN}).items():
        values = value if isinstance(value, list) else [value]
        if values:
            call += [f"--{option.replace('_', '-')}", *map(name_model, map(str, values))]
    return shlex.join(call)


def _report(row: "Row") -> None:
    """Report a finished cell."""
    from setaug.experiments.reproduction.training_cells import describe, describe_decoding

    sets = row["result"].get("sets")
    scores = "sets scored"
    if sets is not None:
        scores = ", ".join(f"{kind} F {100 * sets[f'{kind}_f1']:.1f}" for kind in ("micro", "macro", "samples"))
    what = f"{describe(row['cell'])} ({describe_decoding(row['cell'])})"
    sys.stderr.write(f"{what}: {scores}; {row['seconds']:.0f} s\n")


def _list_cells(name: str, setup: "Setup", options: argparse.Namespace, data: list[str]) -> None:
    """List the training runs of an experiment, with the number of cells, and how many of them are stored."""
    from pathlib import Path

    from setaug.experiments.cells import CELLS, Results
    from setaug.experiments.reproduction.reproduce import group_cells, make_plan
    from setaug.experiments.reproduction.training_cells import describe

    if name == GRAPHS:
        sys.stdout.write(f"{name}: nothing to train\n")
        return
    stored = Results(Path(options.output) / CELLS)
    groups = group_cells(make_plan(read_experiment(name), setup, data), options.rows)
    n_stored = [sum(cell in stored for cell in group) for group in groups]
    for group, n in zip(groups, n_stored, strict=True):
        sys.stdout.write(f"{describe(group[0])}: {len(group)} cells, {n} stored\n")
    n_cells, n_done = sum(map(len, groups)), sum(n_stored)
    sys.stdout.write(
        f"{name}: {n_cells} cells of {len(groups)} training runs, {n_done} stored, {n_cells - n_done} to run\n"
    )
