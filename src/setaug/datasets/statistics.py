"""Table 1 of the paper: statistics of the datasets, as counted and as printed.

Labels are counted over all three splits, which comes closest to the paper: in the training split alone UFET has 1,531
labels instead of 2,506, and its mean and KP20k's are far too large. The paper's heading "Train/test/dev" is taken
literally: its Reuters has more test than dev examples, as here (436 against about 300).
"""

from collections.abc import Callable, Mapping

from setaug.datasets.entry import Dataset, DatasetStatistics
from setaug.datasets.registry import parse_name


def dataset_statistics(dataset: Dataset) -> DatasetStatistics:
    """Count what Table 1 counts.

    Examples
    --------
    >>> from setaug import Example
    >>> train, test = [Example("We won!", ["joy", "pride"])], [Example("Who is there?", ["fear"])]
    >>> dataset_statistics(Dataset(name="feelings", train=train, dev=[], test=test, labels=None))
    DatasetStatistics(mean_labels=1.5, min_labels=1, max_labels=2, n_labels=3, n_train=1, n_test=1, n_dev=0)

    """
    sets = [example.labels for split in dataset.splits.values() for example in split]
    sizes = [len(labels) for labels in sets]
    return DatasetStatistics(
        mean_labels=sum(sizes) / len(sizes) if sizes else 0.0,
        min_labels=min(sizes, default=0),
        max_labels=max(sizes, default=0),
        n_labels=len({label for labels in sets for label in labels}),
        n_train=len(dataset.train),
        n_test=len(dataset.test),
        n_dev=len(dataset.dev),
    )


def paper_statistics(name: str) -> DatasetStatistics | None:
    """Return the paper's row of Table 1, if it describes this variant."""
    entry = parse_name(name).entry
    return entry.paper if entry.paper_variant == name else None


def statistics_table(found: Mapping[str, DatasetStatistics]) -> str:
    """Format statistics by name as a Markdown table, each row above the paper's."""
    rows = [("dataset", "", "labels per sample: mean / min / max", "different labels", "train / test / dev")]
    for name, statistics in found.items():
        rows.append((name, "found", *_cells(statistics, ".2f", "{:,}".format)))
        if paper := paper_statistics(name):
            rows.append(("", "paper", *_cells(paper, "g", _as_printed)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _cells(one: DatasetStatistics, mean: str, write: Callable[[int], str]) -> tuple[str, str, str]:
    return (
        f"{one.mean_labels:{mean}} / {one.min_labels} / {one.max_labels}",
        write(one.n_labels),
        " / ".join(map(write, (one.n_train, one.n_test, one.n_dev))),
    )


def _as_printed(count: int) -> str:
    """Format a count as the paper does: in thousands if it is rounded."""
    return f"{count:,}" if count % 100 else f"{count / 1000:g}k"
