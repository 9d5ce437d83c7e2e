"""The paper's simulation study: made-up data in which the dependence between labels is a dial.

`setaug simulate data` writes such data, for any tool. `setaug simulate finding-1` (to 6) makes data up, trains models
on it from nothing, with three seeds, and says whether the paper's finding holds: a page with tables, and a picture (SVG
and PNG). `proposals` and `objectives` measure what the paper only derives: how good its orders are as a proposal for
the likelihood of a set, and as a training objective. A run that was stopped goes on where it was.
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from setaug.cli.options import UsageError, checking_options, default_workers
from setaug.cli.progress import progress_bar

if TYPE_CHECKING:
    from setaug.examples import Example

STUDIES = {
    "finding-1": "shuffled labels cost a model more, but only where labels depend on each other",
    "finding-2": "less so when it was trained with random orders",
    "finding-3": "the same without position embeddings",
    "finding-4": "topological against random orders: training perplexity, overlap, likelihood of sets",
    "finding-5": "topological against random orders, in five ways of decoding",
    "finding-6": "with and without the size in front",
    "proposals": "topological against uniform orders as a proposal for the likelihood of a set",
    "objectives": "training on bounds of the likelihood of a set",
}
EXAMPLES = f"""\
studies:
{chr(10).join(f"  {name:12}{text}" for name, text in STUDIES.items())}

examples:
  setaug simulate data --process blocks --block-size 2 --examples 1000 -o blocks.jsonl
  setaug simulate data --process partners --examples 1000 --seed 1 | setaug inspect - --min-ratio 1.1
  setaug simulate finding-1 --scale quick -o simulation/
  setaug simulate finding-4 --scale small -o simulation/ --workers 2
  setaug simulate all --scale small -o simulation/
"""

INTERRUPTED = "no data was written; a study keeps what was finished, and goes on when it is called again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "what",
        metavar="WHAT",
        choices=("data", *STUDIES, "all"),
        help="data, one of the studies below, or all of them",
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="the file for data [standard output]; the folder of a study [simulation]"
    )
    study = parser.add_argument_group("studies")
    study.add_argument(
        "--scale",
        choices=("quick", "small", "paper"),
        help="quick: a minute or two; small: up to half an hour on two cores; paper: the shape of BART-base, which "
        "needs a GPU [quick]",
    )
    study.add_argument(
        "--workers", type=int, metavar="N", help="trainings to run at once [one per core; 1 where there is a GPU]"
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--process",
        choices=("blocks", "partners", "sizes"),
        help="blocks whose last label follows from the others; symbols with partners that never come alone; sets whose "
        "size follows from the text [blocks]",
    )
    data.add_argument("--examples", type=int, metavar="N", help="how many to make up [1000]")
    data.add_argument("--seed", type=int, metavar="N", help="same seed, same data [0]")
    data.add_argument("--symbols", type=int, metavar="N", help="the number N of symbols [30]")
    data.add_argument("--blocks", type=int, metavar="B", help="blocks per set [6; partners: 3]")
    data.add_argument(
        "--block-size", type=int, metavar="K", help="labels per block [2]; with 1 no label follows from another"
    )
    data.add_argument("--noise", type=float, metavar="P", help="how often a suffix is random (epsilon) [0.1]")
    data.add_argument("--words", type=int, metavar="N", help="the length of a text [36; partners: 24]")
    data.add_argument("--max-size", type=int, metavar="N", help="sizes: the most labels [8]")
    data.add_argument("--words-per-label", type=int, metavar="N", help="sizes: the length of a text per label [4]")
    data.add_argument(
        "--concentration", type=float, metavar="A", help="of the Dirichlet distribution [0.5; partners: 0.2]"
    )
    data.add_argument(
        "--sort-prefix",
        action=argparse.BooleanOptionalAction,
        help="blocks: whether a block's first labels stand in the order of their numbers [yes]",
    )
    data.add_argument("--shuffle-text", action="store_true", default=None, help="words in any order, not sorted")
    data.add_argument("--with-input", action="store_true", default=None, help="also write the vector x, as a field")


_STUDY = ("scale", "workers")
_ALL_DATA = {"symbols": "n_symbols", "concentration": "concentration"}
_ALL_DATA |= {"shuffle_text": "shuffle_text", "with_input": "with_input", "seed": "seed"}
_BLOCK = {"block_size": "block_size", "noise": "noise"}
_TAKES = {
    "blocks": {**_ALL_DATA, **_BLOCK, "blocks": "n_blocks", "words": "n_words", "sort_prefix": "sort_prefix"},
    "partners": {**_ALL_DATA, "blocks": "n_blocks", "words": "n_words"},
    "sizes": {**_ALL_DATA, **_BLOCK, "max_size": "max_size", "words_per_label": "words_per_label"},
}
"""Which options a process takes, and what they are called there."""


def run(options: argparse.Namespace) -> None:
    """Make data up, or run a study on it."""
    if options.what == "data":
        _refuse(options, _STUDY, "is for studies, not for data")
        _write_data(options)
    else:
        given = {name for takes in _TAKES.values() for name in takes} | {"process", "examples"}
        _refuse(options, sorted(given), "is for data; the studies have data of their own")
        _run_studies(options)


def _refuse(options: argparse.Namespace, names: Any, why: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} {why}.")


def _write_data(options: argparse.Namespace) -> None:
    import orjson

    from setaug.files import open_output
    from setaug.simulation import PROCESSES

    process = options.process or "blocks"
    takes = _TAKES[process]
    known = {name for each in _TAKES.values() for name in each}
    _refuse(options, sorted(known - takes.keys()), f"means nothing to the process {process}")
    n_examples = 1000 if options.examples is None else options.examples
    if n_examples < 0:
        raise UsageError(f"--examples must not be negative, got {n_examples}.")
    settings = {takes[name]: getattr(options, name) for name in takes if getattr(options, name) is not None}
    with checking_options(), open_output(options.output or "-") as stream:
        for example in PROCESSES[process](n_examples, **settings):
            stream.write(orjson.dumps(_row(example), option=orjson.OPT_APPEND_NEWLINE))


def _row(example: "Example") -> dict[str, Any]:
    return {**example.fields, "text": example.text, "labels": example.labels}


def _run_studies(options: argparse.Namespace) -> None:
    import setaug.models  # noqa: F401  says what is missing
    from setaug.experiments.study import check_study, run_finding

    names = list(STUDIES) if options.what == "all" else [options.what]
    scale, folder = options.scale or "quick", options.output or "simulation"
    workers = default_workers() if options.workers is None else options.workers
    with checking_options():
        check_study(names[0], scale, workers)
    for name in names:
        with progress_bar(f"{name}: the first training") as progress:
            study = run_finding(name, folder, scale=scale, workers=workers, progress=progress)
        sys.stdout.write(study.as_markdown() + "\n")
        sys.stdout.flush()
        sys.stderr.write("wrote " + ", ".join(map(str, study.paths)) + "\n")
