"""Augment whole files.

There are three steps: count the labels; count the label pairs whose order the labels' counts do not decide; write the
pairs of each example. An engine decides where they run.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from time import perf_counter

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines.fast.label_table import LabelTable
from setaug.engines.fast.pair_writer import PairWriter
from setaug.engines.job import AugmentReport, Engine, Job, Run, check_positive
from setaug.engines.local import LocalEngine
from setaug.engines.sources import find_files
from setaug.engines.writers import check_rows
from setaug.examples import Columns
from setaug.orders.arrays import freeze
from setaug.orders.edges import EdgeTable, edges_among
from setaug.orders.pair_counts import SpillingPairCounts
from setaug.registry import ORDERINGS
from setaug.settings import Progress
from setaug.storage import check_outputs, local_path
from setaug.vocabulary import joined_label


def augment_files(
    sources: str | Path | Iterable[str | Path],
    target: str | Path,
    augmenter: SetAugmenter | None = None,
    *,
    columns: Columns | None = None,
    kind: str | None = None,
    pair_format: PairFormat | None = None,
    carry: Sequence[str] = (),
    skip_bad: bool = False,
    shards: int | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> AugmentReport:
    """Write the pairs of all examples of one or more files.

    Parameters
    ----------
    sources
        Files (their suffixes name kind and compression), folders of such files, or URLs of either
        (``s3://bucket/folder``); ``-`` is standard input.
    target
        The path or URL of the file to write. It is written atomically.
    augmenter
        How to augment. It need not be fitted: orders are based on the labels of the sources.
    kind
        The kind of the sources, if not clear from their suffixes.
    carry
        Fields of a row to copy to its pairs; null where a row has no such field.
    skip_bad
        Whether to skip and count bad rows instead of stopping at the first.
    shards
        The number of files to write instead of one: for ``pairs.jsonl``, ``pairs-00000-of-00008.jsonl`` and so on.
        Concatenated, they equal the one file.
    engine
        Where to run: on this machine (`LocalEngine`) or on Ray (`RayEngine`).

    """
    check_positive("shards", shards)
    augmenter = (augmenter or SetAugmenter()).check()
    sources = [sources] if isinstance(sources, str | Path) else list(sources)
    check_outputs([target], sources)
    carry = tuple(dict.fromkeys(carry))
    job = Job(
        files=find_files(sources, kind),
        target=local_path(target),
        augmenter=augmenter,
        columns=columns or Columns(),
        pair_format=(pair_format or PairFormat()).check_carried(carry),
        carry=carry,
        skip_bad=skip_bad,
        shards=shards,
    )
    check_rows(target, job.pair_format)
    report = AugmentReport()
    start = perf_counter()
    with (engine or LocalEngine()).start(job, progress) as run:
        table = run.count_labels(report)
        report.n_labels = table.n_labels
        report.joined = joined_label(table.first_labels())
        report.n_pairs = report.n_examples * (augmenter.n_orders + 1)
        labels = table.labels() if ORDERINGS[augmenter.ordering].needs_names else []
        ordering = augmenter.make_ordering(
            labels, _find_edges(run, table, job, report.n_examples), is_plain=table.is_plain
        )
        run.write(table, PairWriter.of(augmenter, job.pair_format, carry, ordering, table), report)
    report.seconds = perf_counter() - start
    return report


def _find_edges(run: Run, table: LabelTable, job: Job, n_sets: int) -> EdgeTable:
    """Return the edges between labels that co-occur in a set."""
    thresholds = job.augmenter.thresholds
    bounds, cap = thresholds.bounds(table.counts), thresholds.sure_cap(n_sets)
    freeze(bounds)
    with SpillingPairCounts() as pairs:
        if ORDERINGS[job.augmenter.ordering].needs_edges:
            run.count_pairs(table, bounds, cap, pairs)
        return EdgeTable.joined(
            edges_among(keys, n_both, table.counts, n_sets, thresholds, cap=cap) for keys, n_both in pairs.parts()
        )
