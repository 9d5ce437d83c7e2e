"""Show the method on data that it makes up itself: short news items with topics, from specific to general.

Writes examples, a picture of the label graph and training pairs into a folder, and shows them on the way.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path

EXAMPLES = """\
examples:
  setaug demo
  setaug demo somewhere/ --examples 5000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", nargs="?", default="demo", metavar="FOLDER", help="where to write [demo]")
    parser.add_argument("--examples", type=int, default=2000, metavar="N", help="how many examples to make up [2000]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="[0]")


def run(options: argparse.Namespace) -> None:
    """Make data, inspect it, augment it."""
    import orjson

    from setaug.cli import main
    from setaug.files import open_output
    from setaug.sample import sample_examples

    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    examples, pairs, picture = (str(folder / name) for name in ("examples.jsonl", "pairs.jsonl", "labels.svg"))
    with open_output(examples) as stream:
        for example in sample_examples(options.examples, seed=options.seed):
            row = {"id": example.id, "text": example.text, "labels": example.labels}
            stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    _say(f"Made {options.examples:,} examples: {examples}")
    _show(examples, 2)
    for command in (
        ["inspect", examples, "--graph", picture],
        ["inspect", examples, "--set", "event", "match", "tennis", "crowd"],
        ["augment", examples, "-o", pairs, "--orders", "2", "--seed", str(options.seed)],
    ):
        _say(f"$ setaug {' '.join(command)}")
        if code := main(command):
            sys.exit(code)
    _say(f"The first example's pairs, as they stand in {pairs}:")
    _show(pairs, 3)
    _say(f"Look at the label graph: {picture}")


def _say(message: str) -> None:
    sys.stdout.write(f"\n{message}\n")
    sys.stdout.flush()


def _show(path: str, n_lines: int) -> None:
    with open(path, encoding="utf-8") as lines:
        sys.stdout.write("".join(f"  {line}" for line in islice(lines, n_lines)))
    sys.stdout.flush()
