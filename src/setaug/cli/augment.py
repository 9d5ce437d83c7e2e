"""Write training pairs for examples: a prompt, and the label set as completion.

Each example yields N + 1 pairs: the labels in the given order, then in N sampled orders. By default, label statistics
put specific labels before the general ones they imply (TSAMPLE), and each completion starts with the number of labels
(CARD): 3 | volleyball | match | event
"""

import argparse
from typing import TYPE_CHECKING

from setaug.cli.shared.options import (
    UsageError,
    add_input,
    add_ordering,
    add_orders,
    add_output,
    add_sampler,
    add_template,
    add_thresholds,
    add_written_form,
    checking_options,
    columns_of,
    counted,
    joined_lines,
    make_augmenter,
    read_input,
    skipped_lines,
)
from setaug.progress import progress_bar
from setaug.registry import DEFAULT_PAIR_FORMAT, ORDERINGS, PAIR_FORMATS, describe
from setaug.terminal import tell

if TYPE_CHECKING:
    from setaug.engines import AugmentReport, Engine

EXAMPLES = """\
examples:
  setaug augment train.jsonl -o pairs.jsonl
  setaug augment train.csv.gz --delimiter "," -o pairs.jsonl.zst --orders 4 --seed 1
  setaug augment train.jsonl -o chat.jsonl --format chat --system "Name the emotions." --template "Text: {text}"
  setaug augment train.jsonl -o t5.jsonl --format columns --columns source target --carry id
  setaug augment corpus/ more.jsonl -o pairs.jsonl.zst --shards 8
  setaug augment s3://bucket/corpus -o s3://bucket/pairs.jsonl.zst --engine ray
  zcat logs.jsonl.gz | setaug augment - --skip-bad > pairs.jsonl
"""

INTERRUPTED = "no output file was written (with --engine ray, the same command continues from the finished shards)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_input(parser, are_many=True)
    group = parser.add_argument_group("orders")
    add_orders(group)
    add_ordering(group, "how to choose the orders")
    add_sampler(group)
    group.add_argument(
        "--distinct", action="store_true", help="do not repeat an order of an example while others remain"
    )
    add_thresholds(group)
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed; the same seed gives the same bytes [0]"
    )
    group = parser.add_argument_group("output")
    add_output(group)
    group.add_argument(
        "--size", action=argparse.BooleanOptionalAction, default=True, help="write the set's size first [yes]"
    )
    add_written_form(group)
    add_template(group)
    group.add_argument(
        "--format",
        choices=tuple(PAIR_FORMATS),
        default=DEFAULT_PAIR_FORMAT,
        help=f"format of a pair; {describe(PAIR_FORMATS, default=DEFAULT_PAIR_FORMAT)}",
    )
    group.add_argument("--system", metavar="TEXT", help="a system message for the chat formats")
    group.add_argument("--columns", nargs=2, metavar=("PROMPT", "COMPLETION"), help="column names for --format columns")
    group.add_argument("--carry", nargs="+", default=[], metavar="FIELD", help="fields of a row to copy into its pairs")
    group.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="write N shards, FILE-00000-of-0000N and so on; concatenated, they equal the single file",
    )
    group = parser.add_argument_group("execution")
    group.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="local: on this machine; ray: in parallel tasks on a Ray cluster, one shard per task [local]",
    )
    group.add_argument("--workers", type=int, metavar="N", help="concurrent Ray tasks on this machine [one per core]")
    group = parser.add_argument_group("messages")
    group.add_argument("-q", "--quiet", action="store_true", help="no summary, except of bad lines")


def run(options: argparse.Namespace) -> None:
    """Augment files."""
    from setaug.augmenter import PairFormat
    from setaug.engines import augment_files
    from setaug.engines.job import check_positive

    with checking_options():
        augmenter = make_augmenter(options)
        pair_format = PairFormat.named(options.format, options.columns, system=options.system)
        pair_format.check_carried(options.carry)
        check_positive("shards", options.shards)
        engine = _engine(options)
    _warn_of_missing(options)
    waiting_for = {"waiting_for": "starting Ray"} if options.engine == "ray" else {}
    with progress_bar(**waiting_for) as progress:
        report = augment_files(
            options.input,
            options.output,
            augmenter,
            columns=columns_of(options),
            kind=options.input_kind,
            pair_format=pair_format,
            carry=options.carry,
            skip_bad=options.skip_bad,
            shards=options.shards,
            engine=engine,
            progress=progress,
        )
    summary = [] if options.quiet else _summary(report, options)
    tell(*summary, *joined_lines(report.joined), *skipped_lines(report.skipped))


def _warn_of_missing(options: argparse.Namespace) -> None:
    """Warn if none of the first rows has a field that is to be carried. Streams can be read only once."""
    from itertools import islice
    from pathlib import Path

    from setaug.engines.sources import find_files
    from setaug.examples import Skipped, listed, shown

    columns = columns_of(options)
    file = find_files(options.input, options.input_kind)[0] if options.carry else None
    if file is None or not Path(file.path).is_file():
        return
    first = list(islice(read_input(options, file.path, skipped=Skipped(), are_labelled=False), 1024))
    for name in options.carry:
        if first and name not in (columns.text, columns.labels) and not any(name in row.fields for row in first):
            there = listed([columns.text, *first[0].fields])
            tell(
                f"warning: none of the first {counted(len(first), 'row')} has the field {shown(name)}, "
                f"which is to be carried; the first has {there}."
            )


def _engine(options: argparse.Namespace) -> "Engine":
    from setaug.engines import LocalEngine, RayEngine

    if options.engine == "ray":
        return RayEngine(workers=options.workers)
    if options.workers is not None:
        raise UsageError("--workers is for --engine ray.")
    return LocalEngine()


def _summary(report: "AugmentReport", options: argparse.Namespace) -> list[str]:
    lines = [
        f"{report.n_examples:,} examples with {report.n_labels:,} distinct labels: wrote {report.n_pairs:,} pairs"
        f" in {report.seconds:.1f} s"
    ]
    if ORDERINGS[options.ordering].needs_edges:
        share = report.n_constrained / report.n_examples if report.n_examples else 0
        lines.append(
            f"{report.n_edges:,} edges in all sets; {share:.1%} of the sets have an edge;"
            f" mean log2 number of allowed orders {report.mean_log2_orders:.2f}"
        )
    if report.n_uncounted:
        lines.append(f"the mean excludes {report.n_uncounted:,} sets with too many orders to count")
    if report.n_rushed:
        lines.append(f"{report.n_rushed:,} sets are too large for uniform sampling; the quick sampler was used")
    if report.n_repeated:
        lines.append(f"merged {counted(report.n_repeated, 'duplicate label')}")
    if options.format == "chat" and options.carry:
        lines.append('OpenAI accepts only "messages" in a row: omit --carry for OpenAI files')
    return lines
