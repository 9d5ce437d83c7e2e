"""The paper's datasets, from the files that their authors distribute: statistics, and conversion to JSON lines.

NAME is one of the datasets below, with or without filters in brackets (quote them in a shell); "all" is every dataset
as the paper uses it.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from setaug.cli.shared.options import checking_options
from setaug.datasets.registry import DATASETS, FILTERS
from setaug.terminal import show, tell

if TYPE_CHECKING:
    from setaug.datasets import Dataset, DatasetStatistics


def _describe() -> str:
    lines = ["datasets:", *(f"  {entry.name:12} {entry.help}" for entry in DATASETS.values())]
    lines += ["", "filters:", *(f"  {name:12} {meaning}" for name, meaning in FILTERS.items())]
    for kind in {entry.kind.name: entry.kind for entry in DATASETS.values()}.values():
        lines += [f"  {name:12} {one.help} ({kind.name})" for name, one in kind.filters.items()]
    for entry in DATASETS.values():
        lines += [f"  {name:12} {one.help} ({entry.name})" for name, one in entry.forms.items()]
    return "\n".join(lines)


EXAMPLES = f"""\
{_describe()}

examples:
  setaug data all --data-dir DATA                              # Table 1 of the paper, counted and printed
  setaug data 'go-emotions[min3]' --data-dir DATA -o emotions/ # train.jsonl, dev.jsonl, test.jsonl
  setaug data 'ufet[min2,train600]' --data-dir DATA -o types/ --stats
  setaug data 'kp20k[absent,min3]' --download --json
"""

INTERRUPTED = "files reported as written are complete, the others were not written"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("name", metavar="NAME", help="a dataset, such as ufet[min2,train600], or all")
    group = parser.add_argument_group("reading")
    group.add_argument("--data-dir", metavar="DIR", help="folder of the dataset, or its parent folder")
    on_hub = " or ".join(name for name, entry in DATASETS.items() if entry.hub)
    group.add_argument("--download", action="store_true", help=f"download {on_hub} from the Hugging Face Hub instead")
    group.add_argument("--no-verify", action="store_true", help="do not verify the checksums of the files")
    group = parser.add_argument_group("output")
    group.add_argument("--stats", action="store_true", help="print statistics beside the paper's (default without -o)")
    group.add_argument("--json", action="store_true", help="print the statistics as JSON")
    group.add_argument("-o", "--output", metavar="FOLDER", help="write train.jsonl, dev.jsonl and test.jsonl there")


def run(options: argparse.Namespace) -> None:
    """Read datasets, print their statistics, and write them."""
    from setaug.datasets import dataset_statistics, load_dataset, parse_name

    is_all = options.name == "all"
    with checking_options():
        paper = [entry.paper_variant for entry in DATASETS.values() if entry.paper_variant]
        names = paper if is_all else [str(parse_name(options.name))]
    if options.output is not None:
        _check_folder(Path(options.output))
    found = {}
    for name in names:
        with checking_options():
            dataset = load_dataset(name, options.data_dir, download=options.download, verify=not options.no_verify)
        found[name] = dataset_statistics(dataset)
        if options.output is not None:
            folder = Path(options.output)
            _write(dataset, folder / parse_name(name).dataset if is_all else folder)
    if options.stats or options.json or options.output is None:
        _print(found, options.json)


def _check_folder(folder: Path) -> None:
    from setaug.errors import FileError

    if folder.exists() and not folder.is_dir():
        raise FileError(
            f"cannot write to {folder}: it is a file; name a folder for train.jsonl, dev.jsonl, test.jsonl."
        )


def _write(dataset: "Dataset", folder: Path) -> None:
    from setaug.errors import FileError
    from setaug.examples import write_examples

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot create the folder {folder}: {error.strerror}.") from None
    for name, split in dataset.splits.items():
        path = folder / f"{name}.jsonl"
        write_examples(path, split)
        tell(f"wrote {path}: {len(split):,} examples")


def _print(found: "dict[str, DatasetStatistics]", as_json: bool) -> None:
    import orjson

    from setaug.datasets.statistics import paper_statistics, statistics_table

    if not as_json:
        show(*statistics_table(found).split("\n"))
        return
    papers = {name: paper_statistics(name) for name in found}
    rows = [
        {"name": name, "found": asdict(one), "paper": None if (paper := papers[name]) is None else asdict(paper)}
        for name, one in found.items()
    ]
    show(*orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode().split("\n"))
