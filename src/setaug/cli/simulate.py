"""The paper's simulation study: synthetic data with adjustable dependence between labels.

`setaug simulate data` writes such data for any tool. The studies train models on it from scratch, with three seeds, and
check a finding of the paper: a page with tables, and a plot (SVG and PNG). `proposals` and `objectives` measure what
the paper only derives: the quality of its orders as a proposal for the likelihood of a set, and as a training
objective. Run the same command again to continue after an interrupt.
"""

import argparse
import sys
from collections.abc import Iterable

from setaug.cli.shared.options import UsageError, checking_options, default_workers
from setaug.experiments.simulation.design import SCALES
from setaug.experiments.simulation.findings import FINDINGS
from setaug.progress import progress_bar

EXAMPLES = f"""\
studies:
{chr(10).join(f"  {name:14}{finding.help}" for name, finding in FINDINGS.items())}

examples:
  setaug simulate data --process blocks --block-size 2 --examples 1000 -o blocks.jsonl
  setaug simulate data --process partners --examples 1000 --seed 1 | setaug inspect - --min-ratio 1.1
  setaug simulate finding-1 --scale quick -o simulation/
  setaug simulate finding-4 --scale small -o simulation/ --workers 2
  setaug simulate all --scale small -o simulation/
"""
INTERRUPTED = "no data was written; a study stores finished training runs: run it again to continue"

_PROCESSES = {
    "blocks": "blocks whose last label is a function of the others",
    "partners": "symbols with partners that never occur alone",
    "sizes": "sets whose size is determined by the text",
}
_STUDY = ("scale", "workers")
_DATA = {
    "seed": "seed",
    "symbols": "n_symbols",
    "blocks": "n_blocks",
    "block_size": "block_size",
    "noise": "noise",
    "words": "n_words",
    "max_size": "max_size",
    "words_per_label": "words_per_label",
    "concentration": "concentration",
    "sort_prefix": "sort_prefix",
    "shuffle_text": "shuffle_text",
    "with_input": "with_input",
}
"""Parameters of the processes, by option."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "what",
        metavar="WHAT",
        choices=("data", *FINDINGS, "all"),
        help="data, one of the studies below, or all studies",
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="data: a file [standard output]; studies: a folder [simulation]"
    )
    add = parser.add_argument_group("studies").add_argument
    scales = "; ".join(f"{name}: {scale.help}" for name, scale in SCALES.items())
    add("--scale", choices=tuple(SCALES), help=f"{scales} [quick]")
    add("--workers", type=int, metavar="N", help="parallel training runs [one per core; 1 with a GPU]")
    add = parser.add_argument_group("data").add_argument
    processes = "; ".join(f"{name}: {text}" for name, text in _PROCESSES.items())
    add("--process", choices=tuple(_PROCESSES), help=f"{processes} [blocks]")
    add("--examples", type=int, metavar="N", help="number of examples [1000]")
    add("--seed", type=int, metavar="N", help="the same seed gives the same data [0]")
    add("--symbols", type=int, metavar="N", help="number N of symbols [30]")
    add("--blocks", type=int, metavar="B", help="blocks per set [6; partners: 3]")
    add("--block-size", type=int, metavar="K", help="labels per block [2]; with 1, labels are independent")
    add("--noise", type=float, metavar="P", help="probability epsilon of a random suffix [0.1]")
    add("--words", type=int, metavar="N", help="length of a text [36; partners: 24]")
    add("--max-size", type=int, metavar="N", help="sizes: maximum number of labels [8]")
    add("--words-per-label", type=int, metavar="N", help="sizes: length of a text per label [4]")
    add(
        "--concentration",
        type=float,
        metavar="A",
        help="concentration of the Dirichlet distribution [0.5; partners: 0.2]",
    )
    prefix = "blocks: whether the prefix of a block is sorted [yes]"
    add("--sort-prefix", action=argparse.BooleanOptionalAction, help=prefix)
    add("--shuffle-text", action="store_true", default=None, help="shuffle the words of a text")
    add("--with-input", action="store_true", default=None, help="also write the vector x, as a field")


def run(options: argparse.Namespace) -> None:
    """Write synthetic data, or run studies."""
    if options.what == "data":
        _refuse(options, _STUDY, "is for studies, not for data")
        _write_data(options)
    else:
        _refuse(options, sorted({*_DATA, "process", "examples"}), "is for data; the studies have their own data")
        _run_studies(options)


def _refuse(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} {why}.")


def _write_data(options: argparse.Namespace) -> None:
    from inspect import signature

    import orjson

    from setaug.experiments.simulation.processes import PROCESSES
    from setaug.storage import open_output

    name = options.process or "blocks"
    takes = signature(PROCESSES[name]).parameters
    unused = [option for option, parameter in _DATA.items() if parameter not in takes]
    _refuse(options, unused, f"does not apply to the process {name}")
    n_examples = 1000 if options.examples is None else options.examples
    if n_examples < 0:
        raise UsageError(f"--examples must not be negative, got {n_examples}.")
    given = {parameter: getattr(options, option) for option, parameter in _DATA.items()}
    settings = {parameter: value for parameter, value in given.items() if value is not None}
    with checking_options(), open_output(options.output or "-") as stream:
        for example in PROCESSES[name](n_examples, **settings):
            row = {**example.fields, "text": example.text, "labels": example.labels}
            stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def _run_studies(options: argparse.Namespace) -> None:
    from setaug.models import require_torch

    require_torch()
    from setaug.experiments.simulation.study import check_study, run_finding

    names = list(FINDINGS) if options.what == "all" else [options.what]
    scale, folder = options.scale or "quick", options.output or "simulation"
    workers = default_workers() if options.workers is None else options.workers
    with checking_options():
        check_study(names[0], scale, workers)
    for name in names:
        with progress_bar(f"{name}: first training run") as progress:
            study = run_finding(name, folder, scale=scale, workers=workers, progress=progress)
        sys.stdout.write(study.page.as_markdown() + "\n")
        sys.stdout.flush()
        sys.stderr.write("wrote " + ", ".join(map(str, study.paths)) + "\n")
