"""Inspect label sets before training: statistics, the order graph with its reasons, and whether order will help.

"Will order help?" is measured: label-sequence models, one per ordering, are fitted on a part of the sets and compared
on the rest, at the given thresholds and at others. The report ends with advice and the matching training command. The
texts are not used; see docs/diagnosis.md for the limits of this measure.
"""

import argparse
from textwrap import wrap
from typing import TYPE_CHECKING

from setaug.cli.shared.options import (
    UsageError,
    add_html,
    add_input,
    add_thresholds,
    check_html,
    checking_options,
    columns_of,
    counted,
    joined_lines,
    skipped_lines,
    write_html,
)
from setaug.progress import progress_bar
from setaug.registry import BASELINE_ORDERING
from setaug.terminal import show, tell

if TYPE_CHECKING:
    from setaug.analysis.diagnosis import Diagnosis
    from setaug.analysis.inspection import Inspection
    from setaug.analysis.order_cost import OrderingScore
    from setaug.orders.graph import Edge, OrderGraph

EXAMPLES = """\
examples:
  setaug inspect train.jsonl
  setaug inspect train.jsonl --graph labels.svg --top 40
  setaug inspect train.jsonl --set volleyball match event --graph set.svg
  setaug inspect train.jsonl --html report.html
  setaug inspect train.jsonl --json > report.json
"""

_JOINED = "all.jsonl"
_PICTURES = {".svg": "to_svg", ".dot": "to_dot", ".gv": "to_dot", ".mmd": "to_mermaid", ".mermaid": "to_mermaid"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_input(parser, are_many=True)
    add_thresholds(parser.add_argument_group("order graph"))
    group = parser.add_argument_group("output")
    group.add_argument("--graph", metavar="FILE", help="draw the order graph: .svg, .dot or .mmd (Mermaid)")
    add_html(group)
    group.add_argument(
        "--top", type=int, default=30, metavar="N", help="maximum number of labels to draw and to list [30]"
    )
    group.add_argument("--set", nargs="+", metavar="LABEL", help="show (and draw) only the order graph of this set")
    group.add_argument("--json", action="store_true", help="print everything as JSON")
    group.add_argument("--no-diagnosis", action="store_true", help='skip "will order help?"')
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the held-out split [0]")


def run(options: argparse.Namespace) -> None:
    """Inspect a file."""
    from setaug.analysis.inspection import inspect_file
    from setaug.engines.job import check_positive
    from setaug.orders.edges import Thresholds
    from setaug.vocabulary import joined_label

    with checking_options():
        check_positive("top", options.top)
        thresholds = Thresholds(min_pmi=options.min_pmi, min_ratio=options.min_ratio)
    picture = _picture(options.graph)
    check_html(options)
    if options.html and options.set:
        raise UsageError("--html and --set cannot be combined: --html shows all the data, --set one set.")
    with progress_bar() as progress:
        found = inspect_file(
            options.input,
            thresholds=thresholds,
            columns=columns_of(options),
            kind=options.input_kind,
            skip_bad=options.skip_bad,
            with_diagnosis=not (options.no_diagnosis or options.set),
            seed=options.seed,
            progress=progress,
        )
    if not found.n_sets:
        tell(*skipped_lines(found.skipped))
        raise UsageError(f"{_told(options.input)} contains no examples.")
    graph = found.graph(options.set, top=options.top)
    if options.graph:
        _draw(graph, options.graph, picture)
    if options.html:
        _write_page(found, options)
    if options.html != "-":
        _print(found, graph, options)
    if not found.statistics.labels:
        tell("warning: no example has a label; check --labels-field")
    tell(*joined_lines(joined_label(found.statistics.labels)), *skipped_lines(found.skipped))


def _told(inputs: list[str]) -> str:
    from setaug.storage import display_name

    return display_name(inputs[0]) if len(inputs) == 1 else f"{len(inputs)} inputs"


def _picture(path: str | None) -> str:
    suffix = "" if path is None else path[path.rfind(".") :].lower()
    if path is not None and suffix not in _PICTURES:
        raise UsageError(f"--graph writes {', '.join(_PICTURES)}; got {path!r}.")
    return _PICTURES.get(suffix, "")


def _draw(graph: "OrderGraph", path: str, picture: str) -> None:
    from setaug.reporting import graph_pictures
    from setaug.storage import open_output

    with open_output(path) as stream:
        stream.write(getattr(graph_pictures, picture)(graph).encode())
    tell(f"wrote {path}: the order graph of {len(graph.labels)} labels")


def _print(found: "Inspection", graph: "OrderGraph", options: argparse.Namespace) -> None:
    if options.json:
        _print_json(found, graph, options)
    elif options.set:
        _print_set(graph, found, options.seed)
    else:
        _print_report(found, options)


def _write_page(found: "Inspection", options: argparse.Namespace) -> None:
    from setaug.reporting.inspection import inspection_page

    command = _command(found.diagnosis, options) if found.diagnosis else None
    page = inspection_page(found, _told(options.input), top=options.top, seed=options.seed, command=command)
    write_html(page, options.html)


def _print_json(found: "Inspection", graph: "OrderGraph", options: argparse.Namespace) -> None:
    from dataclasses import asdict

    import orjson

    result = found.to_dict()
    result["command"] = _command(found.diagnosis, options) if found.diagnosis else None
    if options.set:
        result["set"] = {
            "labels": graph.labels,
            "edges": [asdict(edge) for edge in graph.edges],
            "n_orders": str(graph.n_orders) if graph.n_orders is not None else None,
            "log2_orders": graph.log2_orders,
        }
    text = orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode()
    show(*text.split("\n"))


def _print_set(graph: "OrderGraph", found: "Inspection", seed: int) -> None:
    unseen = [label for label in graph.labels if not found.statistics.count(label)]
    lines = [f"{len(graph.labels)} labels, {len(graph.edges)} edges"]
    lines += [_why(edge) for edge in graph.edges]
    if unseen:
        lines.append(f"  not in the data, so without edges: {', '.join(unseen)}")
    if graph.n_orders is None:
        lines.append("too many orders to count; some of them:")
    else:
        lines.append(f"{graph.n_orders:,} allowed orders (log2 {graph.log2_orders:.2f}); some of them:")
    lines += [f"  {' | '.join(order)}" for order in graph.draw(min(graph.n_orders or 5, 5), seed=seed, distinct=True)]
    show(*lines)


def _why(edge: "Edge") -> str:
    return (
        f"  {edge.before} -> {edge.after}: {edge.n_both:,} sets contain both, pmi {edge.pmi:.2f} bits,"
        f" {edge.after} is {edge.ratio:.1f} times as frequent"
    )


def _print_report(found: "Inspection", options: argparse.Namespace) -> None:
    if not found.n_sets:
        show("no examples")
        return
    sizes = sorted(found.sizes)
    n_several = sum(n for size, n in found.sizes.items() if size > 1)
    lines = [
        "Label sets",
        f"  {found.n_sets:,} sets, {found.n_labels:,} distinct labels",
        f"  {found.mean_size:.2f} labels per set on average, from {sizes[0]} to {sizes[-1]};"
        f" {n_several / found.n_sets:.1%} have two or more",
        f"  {found.n_once:,} labels occur in one set only",
        "  most frequent: " + ", ".join(f"{label} ({n:,})" for label, n in found.top_labels[:6]),
    ]
    if found.n_repeated:
        lines.append(f"  merged {counted(found.n_repeated, 'duplicate label')} within sets")
    share = found.n_constrained_pairs / found.n_set_pairs if found.n_set_pairs else 0
    lines += [
        "",
        f"Label graph (pmi above {found.thresholds.min_pmi:g} bits, more than {found.thresholds.min_ratio:g} times as"
        " frequent)",
        f"  {found.n_edges:,} edges among the {found.n_pairs:,} label pairs that co-occur",
        f"  {found.n_constrained_sets / found.n_sets:.1%} of the sets have an edge;"
        f" {share:.1%} of the label pairs in sets have a fixed order",
        f"  mean log2 number of allowed orders: {found.mean_log2_orders:.2f} of {found.mean_log2_all_orders:.2f}",
    ]
    if found.top_edges:
        lines += ["  the most frequent edges, with reasons:", *(f"  {_why(edge)}" for edge in found.top_edges)]
    if found.diagnosis:
        lines += ["", "Will order help?", *_diagnosis_lines(found.diagnosis)]
        lines += ["", "Advice", *_advice_lines(found.diagnosis, options)]
    if max(sizes) == 1 and found.n_sets > 1:
        lines += ["", "Every set has at most one label. Check --delimiter and --labels-field."]
    show(*lines)


def _diagnosis_lines(diagnosis: "Diagnosis") -> list[str]:
    lines = [f"  {line}" for line in wrap(diagnosis.sentence, 98)]
    if diagnosis.scores:
        lines.append(f"  {'orders':12} {'bits/set':>10}   difference to random orders, with 95 % interval")
    for name, score in diagnosis.scores.items():
        difference = _difference(score) if name != BASELINE_ORDERING else ""
        lines.append(f"  {name:12} {score.bits:10.3f}   {difference}".rstrip())
    for trial in diagnosis.trials:
        lines.append(
            f"  with --min-pmi {trial.min_pmi:g} --min-ratio {trial.min_ratio:g}: {counted(trial.n_edges, 'edge')},"
            f" {trial.constrained:.1%} of the sets ({trial.n_held_out:,} held-out sets)"
        )
        lines += [f"  {name:12} {score.bits:10.3f}   {_difference(score)}" for name, score in trial.scores.items()]
    return lines


def _difference(score: "OrderingScore") -> str:
    return f"{score.difference:+.3f}  ({score.low:+.3f} to {score.high:+.3f})"


def _advice_lines(diagnosis: "Diagnosis", options: argparse.Namespace) -> list[str]:
    lines = []
    for sentence in diagnosis.advice.sentences:
        first, *others = wrap(sentence, 96)
        lines += [f"  - {first}", *(f"    {line}" for line in others)]
    if len(options.input) > 1:
        lines.append(f"  - setaug train reads one file: write all examples to {_JOINED} first.")
    return [*lines, "", f"  {_command(diagnosis, options)}"]


def _command(diagnosis: "Diagnosis", options: argparse.Namespace) -> str:
    """Return the training command of the advice, with the same input and the same fields."""
    reading = ["--input-kind", options.input_kind] if options.input_kind else []
    if options.skip_bad:
        reading.append("--skip-bad")
    source = options.input[0] if len(options.input) == 1 else _JOINED
    return diagnosis.advice.command(source, columns=columns_of(options), options=reading)
