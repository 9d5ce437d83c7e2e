"""The page of an inspection: label sets before training (`setaug inspect --html`)."""

from dataclasses import replace
from itertools import islice
from math import isfinite

from markupsafe import Markup

from setaug.analysis.diagnosis import Diagnosis
from setaug.analysis.inspection import Inspection
from setaug.analysis.order_cost import OrderingScore
from setaug.orders.graph import OrderGraph, strongest_edges
from setaug.registry import BASELINE_ORDERING
from setaug.reporting.graph_pictures import to_svg
from setaug.reporting.html import MAX_LABEL, bars, beside, element, facts, join, label, scroll_box, shorten, table
from setaug.reporting.page import Section, page

_MAX_SIZES, _DRAWN = 20, 5


def inspection_page(found: Inspection, name: str, *, top: int = 30, seed: int = 0, command: str | None = None) -> str:
    """Return a self-contained page about label sets.

    Parameters
    ----------
    name
        The name of the data, such as its file name.
    top
        Maximum number of labels to draw, and of labels and edges to list.
    seed
        Seed for the orders of the example sets.
    command
        The command to show with the advice; by default the one for ``train.jsonl``.

    """
    title = f"Label sets of {shorten(name, MAX_LABEL)}"
    if not found.n_sets:
        return page(title, [element("p", "No examples.")], [])
    answer, measured = [], []
    if found.diagnosis:
        answer = [element("p", found.diagnosis.sentence, class_="answer")]
        measured = [_diagnosis(found.diagnosis, command or found.diagnosis.advice.command())]
    sections = [
        _graph(found, top),
        *measured,
        _sets(found),
        _orders(found),
        _labels(found, top),
        _examples(found, seed),
    ]
    return page(title, answer, sections)


def _sets(found: Inspection) -> Section:
    sizes = sorted(found.sizes)
    n_several = sum(n for size, n in found.sizes.items() if size > 1)
    parts = [
        facts(
            {
                "sets": f"{found.n_sets:,}",
                "distinct labels": f"{found.n_labels:,}",
                "labels per set": f"{found.mean_size:.2f}",
                "sizes": f"{sizes[0]} to {sizes[-1]:,}",
                "with two labels or more": f"{n_several / found.n_sets:.1%}",
            }
        ),
        bars("Number of sets by number of labels", _binned(found.sizes)),
    ]
    if found.n_repeated:
        parts.append(element("p", f"{found.n_repeated:,} duplicate labels within a set were merged."))
    if found.skipped.count:
        parts.append(element("p", f"{found.skipped.count:,} invalid lines were skipped."))
    return Section("sets", "The sets", parts, is_wide=False)


def _binned(sizes: dict[int, int]) -> list[tuple[str, int]]:
    """Return the number of sets by size; large sizes share the last bin."""
    known = sorted(sizes)
    if len(known) <= _MAX_SIZES:
        return [(f"{size:,}", sizes[size]) for size in known]
    shown, rest = known[: _MAX_SIZES - 1], known[_MAX_SIZES - 1 :]
    return [(f"{size:,}", sizes[size]) for size in shown] + [(f"{rest[0]:,} or more", sum(sizes[s] for s in rest))]


def _labels(found: Inspection, top: int) -> Section:
    shown = found.statistics.most_common(max(top, 0))
    rows = [(label(name), f"{n:,}", f"{n / found.n_sets:.1%}") for name, n in shown]
    caption = f"The most frequent labels: {len(shown):,} of {found.n_labels:,}"
    once = element("p", f"{found.n_once:,} labels occur in one set only.")
    listed = table(caption, ["label", "sets", "fraction of sets"], rows, sortable=True)
    return Section("labels", "The labels", [listed, once] if shown else [], is_wide=False)


def _graph(found: Inspection, top: int) -> Section:
    thresholds = found.thresholds
    rule = element(
        "p",
        "A label is written before another if the two depend on each other (pointwise mutual information, pmi, "
        f"above {float(thresholds.min_pmi):g} bits) and the other is more than {float(thresholds.min_ratio):g} times "
        "as frequent: specific labels before the general ones they imply. This gives "
        f"{found.n_edges:,} edges among the {found.n_pairs:,} label pairs that co-occur in some set.",
    )
    graph = found.graph(top=top)
    if not graph.edges:
        return Section("graph", "Which label goes before which", [rule])
    drawn = f"The {len(graph.labels):,} labels of the most frequent edges."
    edges = list(islice(strongest_edges(found.statistics, thresholds), max(top, 0)))
    listed = table(
        f"The most frequent edges, with reasons: {len(edges):,} of {found.n_edges:,}",
        ["before", "after", "sets with both", "pmi (bits)", "times as frequent"],
        [(label(e.before), label(e.after), f"{e.n_both:,}", f"{e.pmi:.2f}", f"{e.ratio:.1f}") for e in edges],
        names=2,
        sortable=True,
    )
    return Section(
        "graph",
        "Which label goes before which",
        [rule, element("figure", element("figcaption", drawn), _picture(graph, drawn)), listed],
        is_wide=False,
    )


def _picture(graph: OrderGraph, name: str) -> Markup:
    """Draw a graph in a scrollable box; its labels are truncated, but stay distinct."""
    names = {
        long: long if len(long) <= MAX_LABEL else f"{at}: {shorten(long, MAX_LABEL)}"
        for at, long in enumerate(graph.labels, 1)
    }
    edges = [replace(edge, before=names[edge.before], after=names[edge.after]) for edge in graph.edges]
    return scroll_box(to_svg(OrderGraph(tuple(names.values()), tuple(edges)), with_style=False), name)


def _orders(found: Inspection) -> Section:
    share = found.n_constrained_pairs / found.n_set_pairs if found.n_set_pairs else 0
    rows = [
        ("sets with an edge", f"{found.n_constrained_sets:,}", f"{found.n_constrained_sets / found.n_sets:.1%}"),
        ("label pairs in sets with a fixed order", f"{found.n_constrained_pairs:,}", f"{share:.1%}"),
    ]
    kept, whole = found.mean_log2_orders, found.mean_log2_all_orders
    text = f"The mean log2 of the number of orders that a set allows is {kept:.2f}, of {whole:.2f} without the graph."
    if isfinite(kept) and max(kept, whole) < 60:
        text += f" As geometric means, these are {2**kept:,.1f} of {2**whole:,.1f} orders."
    return Section(
        "orders",
        "Allowed orders",
        [table("What the graph constrains", ["what", "number", "fraction"], rows), element("p", text)],
        is_wide=False,
    )


def _examples(found: Inspection, seed: int) -> Section:
    intro = element("p", "The small sets that the graph constrains most, each with sampled orders.")
    shown = [_example(found.graph(labels), at, seed) for at, labels in enumerate(found.example_sets, 1)]
    return Section("examples", "Examples", [intro, beside(*shown)] if shown else [])


def _example(graph: OrderGraph, number: int, seed: int) -> Markup:
    n_orders = graph.n_orders or 0
    drawn = graph.draw(min(n_orders, _DRAWN), seed=seed, distinct=True)
    of_all = OrderGraph(graph.labels).n_orders or 0
    return element(
        "article",
        element("h3", f"Set {number}: {n_orders:,} of {of_all:,} orders allowed"),
        _picture(graph, f"The order graph of set {number}"),
        element("p", "All of them:" if len(drawn) == n_orders else "Some of them:"),
        element("ol", *(element("li", join(map(label, order), " | ")) for order in drawn)),
    )


def _diagnosis(diagnosis: Diagnosis, command: str) -> Section:
    parts = [
        element("ul", *(element("li", sentence) for sentence in diagnosis.advice.sentences)),
        element("pre", element("code", command)),
        element("h3", "How it was measured"),
        element(
            "p",
            "On the labels alone, before any training: small models of label sequences, one per ordering, are fitted "
            "to one part of the sets and compared on the rest. Fewer bits mean that the sets are easier to predict. "
            "The texts are not used, so the gain of a model that reads them may differ.",
        ),
    ]
    if diagnosis.scores:
        rows = [_score_row(score, name) for name, score in diagnosis.scores.items()]
        caption = f"Bits per set, over {diagnosis.n_held_out:,} held-out sets"
        parts.append(table(caption, ["orders", "bits per set", "difference to random", "95 % interval"], rows))
    if diagnosis.trials:
        rows = [
            (
                f"{name}, pmi > {trial.min_pmi:g}, ratio > {trial.min_ratio:g}",
                *_score_row(score, name)[2:],
                f"{trial.n_edges:,}",
                f"{trial.constrained:.1%}",
            )
            for trial in diagnosis.trials
            for name, score in trial.scores.items()
        ]
        caption = f"With other thresholds, over {diagnosis.trials[0].n_held_out:,} held-out sets"
        parts.append(table(caption, ["orders", "difference", "95 % interval", "edges", "sets"], rows))
    return Section("help", "Will order help?", parts, is_wide=False)


def _score_row(score: OrderingScore, name: str) -> tuple[str, ...]:
    if name == BASELINE_ORDERING:
        return name, f"{score.bits:.3f}", "", ""
    return name, f"{score.bits:.3f}", f"{score.difference:+.3f}", f"{score.low:+.3f} to {score.high:+.3f}"
