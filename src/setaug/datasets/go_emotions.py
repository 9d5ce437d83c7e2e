"""GoEmotions (Demszky et al. 2020): Reddit comments labelled with emotions."""

from collections.abc import Sequence
from typing import Any

from setaug.datasets.entry import Dataset, DatasetEntry, DatasetStatistics, Hub, make_example
from setaug.datasets.files import Distribution, Files, parse_lines
from setaug.errors import DataError
from setaug.examples import Example, as_examples, shown


def _read(files: Files) -> Dataset:
    """Read lines of a text, the numbers of its emotions, and an id."""
    *splits, emotions = files.names
    names = tuple(line.strip() for _, line in files.lines(emotions))
    train, dev, test = (
        list(parse_lines(files.lines(name), lambda _, line: _example(line, names), name)) for name in splits
    )
    return Dataset(name="go-emotions", train=train, dev=dev, test=test, labels=names)


def _example(line: str, names: Sequence[str]) -> Example:
    cells = line.split("\t")
    if len(cells) != 3 or not cells[2].strip():
        raise DataError(f"expected a text, label numbers and an id, separated by tabs, got {shown(line)}.")
    text, numbers, key = cells
    labels = []
    for number in numbers.split(","):
        if not (number.isascii() and number.isdigit() and int(number) < len(names)):
            raise DataError(f"{shown(number)} is not the number of a label; expected 0 to {len(names) - 1}.")
        labels.append(names[int(number)])
    return make_example(text, labels, key)


def _convert(splits: Sequence[Any], repository: str) -> Dataset:
    names = tuple(splits[0].features["labels"].feature.names)
    train, dev, test = (
        [make_example(one.text, one.labels, str(one.id)) for one in as_examples(split)] for split in splits
    )
    return Dataset(name="go-emotions", train=train, dev=dev, test=test, labels=names)


ENTRY = DatasetEntry(
    name="go-emotions",
    help="comments with the emotions that readers found in them",
    distribution=Distribution(
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
    ),
    read=_read,
    score="macro_f1",
    hub=Hub(repository="google-research-datasets/go_emotions", arguments={"name": "simplified"}, convert=_convert),
    paper_variant="go-emotions[min3]",
    paper=DatasetStatistics(
        mean_labels=3.03, min_labels=3, max_labels=5, n_labels=28, n_train=600, n_test=100, n_dev=100
    ),
)
