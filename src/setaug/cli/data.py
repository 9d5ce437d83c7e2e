"""The paper's data sets, from the files that their authors distribute: what they are like, and as JSON lines.

NAME is go-emotions, ufet, reuters or kp20k, with filters in brackets (which a shell may want quoted): minN keeps the
examples with at least N labels, trainN takes N training examples, always the same, and for kp20k present or absent
keeps the keyphrases that are, or are not, in the text. "all" is the four as the paper used them.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from setaug.cli.options import checking_options

if TYPE_CHECKING:
    from setaug.benchmarks import Benchmark, BenchmarkStatistics

EXAMPLES = """\
examples:
  setaug data all --data-dir DATA                              # Table 1 of the paper, found and printed
  setaug data 'go-emotions[min3]' --data-dir DATA -o emotions/ # train.jsonl, dev.jsonl, test.jsonl
  setaug data 'ufet[min2,train600]' --data-dir DATA -o types/ --stats
  setaug data 'kp20k[absent,min3]' --download --json
"""

INTERRUPTED = "the files that it said were written are whole, the others were not written"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("name", metavar="NAME", help="a data set, as in ufet[min2,train600], or all")
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--data-dir", metavar="DIR", help="the folder of the data set, or one that holds it in a folder of its name"
    )
    group.add_argument(
        "--download", action="store_true", help="get go-emotions or kp20k from the Hugging Face hub instead"
    )
    group.add_argument(
        "--no-verify", action="store_true", help="also read files that are not those that the authors distribute"
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--stats", action="store_true", help="print statistics beside the paper's; so it does where -o is not given"
    )
    group.add_argument("--json", action="store_true", help="print the statistics as JSON")
    group.add_argument("-o", "--output", metavar="FOLDER", help="write train.jsonl, dev.jsonl and test.jsonl there")


def run(options: argparse.Namespace) -> None:
    """Read data sets, tell what they are like, write them."""
    from setaug.benchmarks import PAPER_VARIANTS, benchmark_statistics, load_benchmark, parse_name

    is_all = options.name == "all"
    with checking_options():
        names = list(PAPER_VARIANTS.values()) if is_all else [str(parse_name(options.name))]
    if options.output is not None:
        _check_folder(Path(options.output))
    found = {}
    for name in names:
        with checking_options():
            benchmark = load_benchmark(name, options.data_dir, download=options.download, verify=not options.no_verify)
        found[name] = benchmark_statistics(benchmark)
        if options.output is not None:
            folder = Path(options.output)
            _write(benchmark, folder / name.partition("[")[0] if is_all else folder)
    if options.stats or options.json or options.output is None:
        _print(found, options.json)


def _check_folder(folder: Path) -> None:
    from setaug.errors import FileError

    if folder.exists() and not folder.is_dir():
        raise FileError(
            f"cannot write to {folder}: it is a file; name a folder for train.jsonl, dev.jsonl, test.jsonl."
        )


def _write(benchmark: "Benchmark", folder: Path) -> None:
    import orjson

    from setaug.errors import FileError
    from setaug.files import open_output

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}.") from None
    for name, split in benchmark.splits.items():
        path = folder / f"{name}.jsonl"
        with open_output(path) as stream:
            for example in split:
                row = {"id": example.id, "text": example.text, "labels": example.labels}
                stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        sys.stderr.write(f"wrote {path}: {len(split):,} examples\n")


def _print(found: "dict[str, BenchmarkStatistics]", as_json: bool) -> None:
    import orjson

    from setaug.benchmarks import PAPER_STATISTICS, statistics_table

    if not as_json:
        sys.stdout.write(statistics_table(found) + "\n")
        return
    rows = [
        {
            "name": name,
            "found": asdict(one),
            "paper": asdict(PAPER_STATISTICS[name]) if name in PAPER_STATISTICS else None,
        }
        for name, one in found.items()
    ]
    sys.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
