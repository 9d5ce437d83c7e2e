"""Table 1 of the paper: what the data sets are like, as found and as printed there.

Labels per sample and different labels are counted over all three splits, which comes nearest to the paper: over the
training split alone UFET has 1,531 labels instead of 2,506, and its mean and KP20k's are much too large. The heading
of the last column is "Train/test/dev" in the paper, and is read as it is written: for Reuters the paper has more of the
second than of the third, and 436 test documents have at least two topics, but only about 300 of a quarter of training.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from setaug.benchmarks.benchmark import Benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkStatistics:
    """Hold a row of Table 1."""

    mean_labels: float
    """Labels per example, in all splits."""
    min_labels: int
    max_labels: int
    n_labels: int
    """How many different labels the examples have, in all splits."""
    n_train: int
    n_test: int
    n_dev: int


PAPER_STATISTICS = {
    "go-emotions[min3]": BenchmarkStatistics(
        mean_labels=3.03, min_labels=3, max_labels=5, n_labels=28, n_train=600, n_test=100, n_dev=100
    ),
    "ufet[min2]": BenchmarkStatistics(
        mean_labels=5.4, min_labels=2, max_labels=18, n_labels=2519, n_train=2000, n_test=2000, n_dev=2000
    ),
    "reuters[min2]": BenchmarkStatistics(
        mean_labels=2.52, min_labels=2, max_labels=11, n_labels=90, n_train=900, n_test=400, n_dev=300
    ),
    "kp20k[absent,min3]": BenchmarkStatistics(
        mean_labels=3.87, min_labels=3, max_labels=79, n_labels=274_000, n_train=156_000, n_test=2000, n_dev=2000
    ),
}
"""The paper's numbers, rounded as they are there, for the variants that they are of."""


def benchmark_statistics(benchmark: Benchmark) -> BenchmarkStatistics:
    """Count what Table 1 counts.

    Examples
    --------
    >>> from setaug import Example
    >>> train, test = [Example("We won!", ["joy", "pride"])], [Example("Who is there?", ["fear"])]
    >>> benchmark_statistics(Benchmark(name="feelings", train=train, dev=[], test=test, labels=None))
    BenchmarkStatistics(mean_labels=1.5, min_labels=1, max_labels=2, n_labels=3, n_train=1, n_test=1, n_dev=0)

    """
    sets = [example.labels for split in benchmark.splits.values() for example in split]
    sizes = [len(labels) for labels in sets]
    return BenchmarkStatistics(
        mean_labels=sum(sizes) / len(sizes) if sizes else 0.0,
        min_labels=min(sizes, default=0),
        max_labels=max(sizes, default=0),
        n_labels=len({label for labels in sets for label in labels}),
        n_train=len(benchmark.train),
        n_test=len(benchmark.test),
        n_dev=len(benchmark.dev),
    )


def statistics_table(found: Mapping[str, BenchmarkStatistics]) -> str:
    """Write statistics by name as a Markdown table, below each the paper's where it has any."""
    rows = [("data set", "", "labels per sample: mean / min / max", "different labels", "train / test / dev")]
    for name, statistics in found.items():
        rows.append((name, "found", *_cells(statistics, ".2f", "{:,}".format)))
        if name in PAPER_STATISTICS:
            rows.append(("", "paper", *_cells(PAPER_STATISTICS[name], "g", _as_printed)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _cells(one: BenchmarkStatistics, mean: str, write: Callable[[int], str]) -> tuple[str, str, str]:
    return (
        f"{one.mean_labels:{mean}} / {one.min_labels} / {one.max_labels}",
        write(one.n_labels),
        " / ".join(map(write, (one.n_train, one.n_test, one.n_dev))),
    )


def _as_printed(count: int) -> str:
    """Write a count as the paper does, in thousands where it is rounded."""
    return f"{count:,}" if count % 100 else f"{count / 1000:g}k"
