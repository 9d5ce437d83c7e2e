"""GoEmotions (Demszky et al. 2020): comments with the emotions that their readers found in them."""

from collections.abc import Sequence

from setaug.benchmarks.benchmark import Benchmark, make_example
from setaug.benchmarks.distribution import Distribution, Files
from setaug.errors import DataError
from setaug.examples import Example, shown

DISTRIBUTION = Distribution(
    title="GoEmotions",
    folder="goemotions",
    layouts=[("train.tsv", "dev.tsv", "test.tsv", names) for names in ("emotions.txt", "labels.txt")],
    expected="train.tsv, dev.tsv, test.tsv and emotions.txt (or labels.txt, the same under another name)",
    origin="google-research/google-research on GitHub, in the folder goemotions/data",
    checksums={
        "train.tsv": "1c254a142be5c00e80d819b9ae1bbd36d94b2eeb8f4b1271846508d57e57d9c5",
        "dev.tsv": "575489c079c9de1097062a01738f998590d6b7ead66dd1c9fd1d2ba01fd8bc62",
        "test.tsv": "0587b2dd8b27b97352adbfc3fb083d46005c8946657fdc2b1ca8b1cc7f1f8be4",
        "emotions.txt": "45c3ef86782d2a4d7fedcd6d8c111aa0d0e94720689bd164fac94fefb4495a89",
        "labels.txt": "45c3ef86782d2a4d7fedcd6d8c111aa0d0e94720689bd164fac94fefb4495a89",
    },
)


def read_go_emotions(files: Files) -> Benchmark:
    """Read lines of a text, the numbers of its emotions, and an id."""
    *splits, emotions = files.names
    names = tuple(line.strip() for _, line in files.lines(emotions))
    train, dev, test = (_read(files, name, names) for name in splits)
    return Benchmark(name="go-emotions", train=train, dev=dev, test=test, labels=names)


def _read(files: Files, name: str, names: Sequence[str]) -> list[Example]:
    examples = []
    for number, line in files.lines(name):
        try:
            examples.append(_example(line, names))
        except DataError as error:
            raise DataError(error.problem, source=name, line=number) from None
    return examples


def _example(line: str, names: Sequence[str]) -> Example:
    cells = line.split("\t")
    if len(cells) != 3 or not cells[2].strip():
        raise DataError(f"must be a text, label numbers and an id, separated by tabs, got {shown(line)}.")
    text, numbers, key = cells
    labels = []
    for number in numbers.split(","):
        if not (number.isascii() and number.isdigit() and int(number) < len(names)):
            raise DataError(f"{shown(number)} is no number of a label; there are 0 to {len(names) - 1}.")
        labels.append(names[int(number)])
    return make_example(text, labels, key)
