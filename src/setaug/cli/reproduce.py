"""The paper's tables and figures, run on its data sets with a model of your choice.

Each cell of a table is a training with a seed, and a way to get sets from it. What is finished is kept in cells.jsonl,
line by line, and never run again: a run that was stopped goes on where it was. The tables come out as Markdown and
HTML, beside the paper's values, with the spread over seeds and tests of significance; rows that the paper does not have
(the set constraint, votes over samples, TF-IDF with a linear classifier) come last.
"""

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from setaug.cli.options import UsageError, checking_options, default_workers, json_object
from setaug.cli.progress import progress_bar

if TYPE_CHECKING:
    from setaug.experiments.prompts import Prompts
    from setaug.experiments.runs import Setup

EXPERIMENTS = {
    "main": "Table 2: set search, classifiers, seq2seq, random orders and SETAUG, with and without size",
    "ablation": "without size, without TSAMPLE, random orders, frequent labels first",
    "reversed": "TSAMPLE's orders the wrong way round",
    "permutations": "2 to 10 orders per example, TSAMPLE's against random ones",
    "multilabel-k": "classifiers that take the k best labels, or as many as there truly are",
    "sampling": "five ways of decoding",
    "keyphrases": "KP20k: present and absent F1@M, beside One2Set's",
    "size": "how often the stated size is right, and kept to",
    "few-shot": "TSAMPLE's orders against random ones in the prompts of a language model; no training",
    "graphs": "the label graphs of the figures; no training",
}
EXAMPLES = f"""\
experiments:
{chr(10).join(f"  {name:14}{text}" for name, text in EXPERIMENTS.items())}

examples:
  setaug reproduce graphs --data-dir data/ -o results/
  setaug reproduce main --data-dir data/ --model facebook/bart-base --encoder google-bert/bert-base-uncased --dry-run
  setaug reproduce main --data-dir data/ --model facebook/bart-base --encoder google-bert/bert-base-uncased -o results/
  setaug reproduce ablation --data-dir data/ --model facebook/bart-base --data 'ufet[min2]' --seeds 15143 -o results/
  setaug reproduce few-shot --data-dir data/ --llm gpt-4.1-mini --seeds 0 1 2 3 4 -o results/
  setaug reproduce main --data-dir data/ --model tiny --data 'go-emotions[min3]' --learning-rate 1e-3 -o small/
"""

_SHOWN = (
    *(
        "data",
        "model",
        "encoder",
        "llm",
        "endpoint",
        "shots",
        "max_tokens",
        "request",
        "seeds",
        "epochs",
        "learning_rate",
    ),
    *("batch_size", "max_source_length", "precision", "classifier_learning_rate", "classifier_epochs", "samples"),
)
"""The options on which results depend."""
INTERRUPTED = "what was finished is kept, and goes on when it is called again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", choices=(*EXPERIMENTS, "all"), help="one of those below, or all of them"
    )
    parser.add_argument("-o", "--output", default="results", metavar="FOLDER", help="where results go [results]")
    data = parser.add_argument_group("data")
    data.add_argument("--data-dir", metavar="DIR", help="the folder that holds the data sets (see setaug data --help)")
    data.add_argument(
        "--data",
        nargs="+",
        default=[],
        metavar="NAME",
        help="which data sets, as in setaug data: ufet[min2,train600] [those of the experiment]",
    )
    data.add_argument("--download", action="store_true", help="take data sets from the Hugging Face hub")
    data.add_argument("--no-verify", action="store_true", help="do not compare files with their checksums")
    model = parser.add_argument_group("models and training")
    model.add_argument(
        "--model", metavar="NAME", help="the encoder-decoder: a name on the hub, a folder, or tiny (from nothing)"
    )
    model.add_argument(
        "--encoder", metavar="NAME", help="the encoder of the multi-label baseline; without it, its rows are left out"
    )
    model.add_argument(
        "--seeds", nargs="+", type=int, metavar="N", help="seeds of the trainings [15143 27122 999888, the paper's]"
    )
    model.add_argument("--epochs", type=int, metavar="N", help="passes over the training data [3]")
    model.add_argument("--learning-rate", type=float, metavar="R", help="[1e-5, the paper's; tiny: 1e-3]")
    model.add_argument("--batch-size", type=int, metavar="N", help="examples per step [8]")
    model.add_argument("--max-source-length", type=int, metavar="N", help="tokens of a text [120]")
    model.add_argument("--precision", choices=("float32", "bfloat16", "float16"), help="[float32]")
    model.add_argument(
        "--classifier-learning-rate", type=float, metavar="R", help="for the multi-label rows [as --learning-rate]"
    )
    model.add_argument(
        "--classifier-epochs", type=int, metavar="N", help="for the multi-label rows [three times --epochs]"
    )
    model.add_argument("--samples", type=int, metavar="N", help="for rows that vote over samples [16]")
    asked = parser.add_argument_group("language models (few-shot)")
    asked.add_argument("--llm", metavar="NAME", help="the language model, as its server calls it")
    asked.add_argument("--base-url", metavar="URL", help="where the server is, as in setaug prompt")
    asked.add_argument("--endpoint", choices=("chat", "completion"), help="[chat]")
    asked.add_argument("--shots", type=int, metavar="N", help="examples in each prompt [24]")
    asked.add_argument("--max-tokens", type=int, metavar="N", help="the longest answer [256]")
    asked.add_argument("--concurrency", type=int, metavar="N", help="requests under way at once [8]")
    asked.add_argument("--timeout", type=float, metavar="S", help="seconds to wait for an answer [120]")
    asked.add_argument("--retries", type=int, metavar="N", help="how often to ask again where the server is busy [8]")
    asked.add_argument("--key-variable", metavar="NAME", help="the variable with the key [OPENAI_API_KEY]")
    asked.add_argument("--request", metavar="JSON", help="further fields of each request; null leaves a field out")
    asked.add_argument("--skip-refused", action="store_true", help="give texts that the server refuses an empty set")
    how = parser.add_argument_group("running")
    how.add_argument(
        "--workers", type=int, metavar="N", help="trainings to run at once [one per core; 1 where there is a GPU]"
    )
    how.add_argument("--rows", nargs="+", default=[], metavar="NAME", help="run only these rows of the table")
    how.add_argument("--dry-run", action="store_true", help="list what would be run, with an estimate of the time")
    how.add_argument("--report", action="store_true", help="run nothing; write the tables of what is finished")
    how.add_argument("--keep-models", action="store_true", help="keep the trained models, in FOLDER/models")


def run(options: argparse.Namespace) -> None:
    """Run experiments, or say what that would take."""
    import setaug.models  # noqa: F401  says what is missing
    from setaug.experiments.experiment import FEW_SHOT, read_experiment
    from setaug.experiments.graphs import GRAPHS, draw_graphs
    from setaug.experiments.reproduction import check_rows, run_experiment

    names = _names(options)
    setup = _setup(options)
    workers = (1 if names == [FEW_SHOT] else default_workers()) if options.workers is None else options.workers
    if workers < 1:
        raise UsageError(f"--workers must be at least 1, got {workers}.")
    with checking_options():
        chosen = {name: _data_of(name, options.data, n_experiments=len(names)) for name in names}
        for name in set(names) - {GRAPHS}:
            check_rows(read_experiment(name), options.rows)
        for one in dict.fromkeys(one for data in chosen.values() for one in data):
            setup.load(one)
    for name, data in chosen.items():
        if not data:
            continue
        if options.dry_run:
            _list_cells(name, setup, options, data, workers)
            continue
        command = _command(name, options)
        with progress_bar(f"{name}: the first training") as progress:
            if name == GRAPHS:
                _, paths = draw_graphs(setup, options.output, data=data, command=command, progress=progress)
            else:
                _, paths = run_experiment(
                    name,
                    setup,
                    options.output,
                    data=data,
                    rows=options.rows,
                    workers=workers,
                    only_report=options.report,
                    command=command,
                    progress=progress,
                    tell=_tell,
                )
        sys.stdout.write("".join(f"{path}\n" for path in paths))
        sys.stdout.flush()


def _names(options: argparse.Namespace) -> list[str]:
    """Say which experiments are meant; raise if something that they need is not named."""
    from setaug.experiments.experiment import FEW_SHOT
    from setaug.experiments.graphs import GRAPHS

    names = [options.experiment]
    if options.experiment == "all":
        names = [name for name in EXPERIMENTS if name != FEW_SHOT or options.llm is not None]
    if options.report and options.dry_run:
        raise UsageError("--report and --dry-run exclude each other.")
    if options.data_dir is None and not options.download:
        raise UsageError("say where the data sets are (--data-dir), or that the hub has them (--download).")
    if options.model is None and not set(names) <= {GRAPHS, FEW_SHOT}:
        raise UsageError("say which encoder-decoder to train: --model facebook/bart-base, for example.")
    if options.llm is None and FEW_SHOT in names:
        raise UsageError("say which language model to ask: --llm gpt-4.1-mini, for example.")
    return names


def _setup(options: argparse.Namespace) -> "Setup":
    from setaug.experiments.runs import Setup
    from setaug.models.settings import SEEDS, TrainingSettings

    names = ("epochs", "learning_rate", "batch_size", "max_source_length", "precision")
    training = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    classifier = {name: value for name, value in training.items() if name != "epochs"}
    own = {"epochs": options.classifier_epochs, "learning_rate": options.classifier_learning_rate}
    classifier |= {name: value for name, value in own.items() if value is not None}
    models = {"encoder-decoder": options.model, "encoder": options.encoder, "language-model": options.llm}
    seeds = tuple(options.seeds or SEEDS)
    with checking_options():
        for seed in seeds:
            TrainingSettings(**training, seed=seed)
        TrainingSettings(**classifier)
    if len(set(seeds)) < len(seeds):
        raise UsageError("--seeds names a seed twice.")
    if options.samples is not None and options.samples < 1:
        raise UsageError(f"--samples must be at least 1, got {options.samples}.")
    return Setup(
        data_dir=options.data_dir,
        download=options.download,
        verify=not options.no_verify,
        models={kind: model for kind, model in models.items() if model is not None},
        training=training,
        classifier_training=classifier,
        seeds=seeds,
        samples=options.samples,
        keep_models=options.keep_models,
        prompts=_prompts(options),
    )


def _prompts(options: argparse.Namespace) -> "Prompts":
    from setaug.experiments.prompts import Prompts
    from setaug.prompting import Endpoint, PromptedSetModel

    def given(**named: Any) -> dict[str, Any]:
        return {name: value for name, value in named.items() if value is not None}

    with checking_options():
        endpoint = Endpoint(
            **given(
                base_url=options.base_url,
                concurrency=options.concurrency,
                timeout=options.timeout,
                max_retries=options.retries,
                key_variable=options.key_variable,
                request=None if options.request is None else json_object(options.request),
            )
        )
        asked = given(shots=options.shots, kind=options.endpoint, max_tokens=options.max_tokens)
        PromptedSetModel("any", **asked, endpoint=endpoint).check()
    return Prompts(**asked, endpoint=endpoint, skip_refused=options.skip_refused)


def _data_of(name: str, given: list[str], *, n_experiments: int) -> list[str]:
    """Give the data sets named that an experiment is about, or its own; none where it is about none of those named."""
    from setaug.benchmarks import parse_name
    from setaug.experiments.experiment import read_experiment
    from setaug.experiments.graphs import GRAPHS, read_graphs

    if not given:
        return list(read_graphs()["data"] if name == GRAPHS else read_experiment(name).data)
    names = [str(parse_name(one)) for one in given]
    if name == GRAPHS:
        return names
    is_about_phrases = name == "keyphrases"
    fit = [one for one in names if one.startswith("kp20k") == is_about_phrases]
    if len(fit) < len(names) and n_experiments == 1:
        about = "kp20k" if is_about_phrases else "the data sets with fixed labels, not kp20k"
        raise ValueError(f"{name} is about {about}.")
    return fit


def _command(name: str, options: argparse.Namespace) -> str:
    """Write the call that makes a page, without what is of no use elsewhere: where files are, how many at once."""
    call = ["setaug", "reproduce", name, *(["--download"] if options.download else ["--data-dir", "DIR"])]
    for option in _SHOWN:
        call += _given(option, getattr(options, option))
    return shlex.join(call)


def _given(option: str, value: Any) -> list[str]:
    if value is None or value == []:
        return []
    values = (
        [os.path.basename(os.path.normpath(value)) if os.path.isdir(value) else value]
        if isinstance(value, str)
        else value
    )
    return [f"--{option.replace('_', '-')}", *map(str, values if isinstance(values, list) else [values])]


def _tell(row: dict[str, Any]) -> None:
    """Say which cell is finished."""
    from setaug.experiments.runs import describe, describe_decoding

    sets = row["result"]["sets"]
    scores = ", ".join(f"{kind} F {100 * sets[f'{kind}_f1']:.1f}" for kind in ("micro", "macro", "samples"))
    what = f"{describe(row['cell'])} ({describe_decoding(row['cell'])})"
    sys.stderr.write(f"{what}: {scores}; {row['seconds']:.0f} s\n")


def _list_cells(name: str, setup: "Setup", options: argparse.Namespace, data: list[str], workers: int) -> None:
    """List trainings, which of their cells are finished, and how long the others may take."""
    from pathlib import Path

    import torch

    from setaug.experiments.cells import cell_key, read_results
    from setaug.experiments.estimate import Estimate
    from setaug.experiments.experiment import read_experiment
    from setaug.experiments.graphs import GRAPHS
    from setaug.experiments.reproduction import CELLS, plan_groups
    from setaug.experiments.runs import describe

    if name == GRAPHS:
        sys.stdout.write(f"{name}: no training, seconds\n")
        return
    experiment = read_experiment(name)
    groups = plan_groups(experiment, setup, data, options.rows)
    done = read_results(Path(options.output) / CELLS)
    cells = [cell for group in groups for cell in group]
    estimate = Estimate(setup, done, cells, has_gpu=torch.accelerator.is_available())
    total = 0.0
    for group in groups:
        left = [cell for cell in group if cell_key(cell) not in done]
        seconds = estimate.seconds(left) if left else 0.0
        total += seconds
        state = f"about {_minutes(seconds)}" if left else "finished"
        n_done = len(group) - len(left)
        sys.stdout.write(f"{describe(group[0])}: {len(group)} cells, {n_done} finished; {state}\n")
    n_left = sum(cell_key(cell) not in done for cell in cells)
    basis = "by the cells that are finished" if estimate.is_measured else "a guess: nothing is finished yet"
    sys.stdout.write(
        f"{name}: {len(cells)} cells of {len(groups)} trainings, {n_left} cells to run; about "
        f"{_minutes(total / workers)} with {workers} at once ({basis})\n"
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{max(seconds / 60, 0.1):.1f} minutes"
