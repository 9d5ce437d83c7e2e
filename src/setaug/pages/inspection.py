"""What is to be known about label sets before training, as a page (`setaug inspect --html`)."""

from dataclasses import replace
from itertools import islice
from math import isfinite

from setaug.diagnosis import Diagnosis
from setaug.inspection import Inspection, frequent_labels
from setaug.orders.graph import Edge, OrderGraph, strongest_edges
from setaug.pages.charts import bars
from setaug.pages.frame import Section, frame
from setaug.pages.markup import MAX_LABEL, Markup, element, joined, label, paragraph, shortened
from setaug.pages.tables import facts, table

_MAX_SIZES, _DRAWN = 20, 5


def inspection_page(found: Inspection, name: str, *, top: int = 30, seed: int = 0) -> str:
    """Tell everything about label sets on a page that needs nothing else.

    Parameters
    ----------
    name
        What the data is called, such as the name of its file.
    top
        Draw at most so many labels, and list as many labels and edges.
    seed
        For the orders drawn as examples.

    """
    title = f"Label sets of {shortened(name, MAX_LABEL)}"
    if not found.n_sets:
        return frame(title, [paragraph("There are no examples in it.")], [])
    sections = [_sets(found), _labels(found, top), _graph(found, top), _orders(found), _examples(found, seed)]
    answer = []
    if found.diagnosis:
        answer = [element("p", found.diagnosis.sentence, class_="answer")]
        sections.append(_diagnosis(found.diagnosis))
    return frame(title, answer, [section for section in sections if section.parts])


def _sets(found: Inspection) -> Section:
    sizes = sorted(found.sizes)
    n_several = sum(n for size, n in found.sizes.items() if size > 1)
    parts = [
        facts(
            {
                "sets": f"{found.n_sets:,}",
                "different labels": f"{found.n_labels:,}",
                "labels a set": f"{found.mean_size:.2f}",
                "smallest and largest": f"{sizes[0]} to {sizes[-1]:,}",
                "with two labels or more": f"{n_several / found.n_sets:.1%}",
            }
        ),
        bars("How many sets have so many labels", _binned(found.sizes)),
    ]
    if found.n_repeated:
        parts.append(paragraph(f"{found.n_repeated:,} labels were repeated within their set, and merged."))
    if found.skipped.count:
        parts.append(paragraph(f"{found.skipped.count:,} bad lines were left out."))
    return Section("sets", "The sets", parts)


def _binned(sizes: dict[int, int]) -> list[tuple[str, int]]:
    """Give a bar for each size, and one for all sizes beyond the largest that is shown."""
    known = sorted(sizes)
    if len(known) <= _MAX_SIZES:
        return [(f"{size:,}", sizes[size]) for size in known]
    shown, rest = known[: _MAX_SIZES - 1], known[_MAX_SIZES - 1 :]
    return [(f"{size:,}", sizes[size]) for size in shown] + [(f"{rest[0]:,} or more", sum(sizes[s] for s in rest))]


def _labels(found: Inspection, top: int) -> Section:
    shown = frequent_labels(found.statistics)[: max(top, 0)]
    rows = [(label(name), f"{n:,}", f"{n / found.n_sets:.1%}") for name, n in shown]
    caption = f"The most frequent labels: {len(shown):,} of {found.n_labels:,}"
    once = paragraph(f"Of all labels, {found.n_once:,} stand in one set only.")
    listed = table(caption, ["label", "sets that hold it", "share of sets"], rows, sortable=True)
    return Section("labels", "The labels", [listed, once] if shown else [])


def _graph(found: Inspection, top: int) -> Section:
    thresholds = found.thresholds
    rule = paragraph(
        "A label is written before another where the two depend on each other (pointwise mutual information, pmi, "
        f"above {float(thresholds.min_pmi):g} bits) and the other is more than {float(thresholds.min_ratio):g} times "
        "as frequent: specific labels before the general ones that they imply. This gives "
        f"{found.n_edges:,} edges among the {found.n_pairs:,} pairs of labels that stand together in some set."
    )
    graph = found.graph(top=top)
    if not graph.edges:
        return Section("graph", "Which label goes before which", [rule])
    drawn = f"The {len(graph.labels):,} labels of the most frequent edges."
    edges = list(islice(strongest_edges(found.statistics, thresholds), max(top, 0)))
    listed = table(
        f"The most frequent edges, and why: {len(edges):,} of {found.n_edges:,}",
        ["before", "after", "sets that hold both", "pmi (bits)", "times as frequent"],
        [_edge_row(edge) for edge in edges],
        names=2,
        sortable=True,
    )
    return Section(
        "graph",
        "Which label goes before which",
        [rule, element("figure", element("figcaption", drawn), _picture(graph, drawn)), listed],
    )


def _edge_row(edge: Edge) -> tuple[str, ...]:
    return label(edge.before), label(edge.after), f"{edge.n_both:,}", f"{edge.pmi:.2f}", f"{edge.ratio:.1f}"


def _picture(graph: OrderGraph, name: str) -> Markup:
    """Draw a graph in a box that scrolls; its labels are cut short, but stay different."""
    names = {
        long: long if len(long) <= MAX_LABEL else f"{at}: {shortened(long, MAX_LABEL)}"
        for at, long in enumerate(graph.labels, 1)
    }
    edges = [replace(edge, before=names[edge.before], after=names[edge.after]) for edge in graph.edges]
    drawing = Markup(OrderGraph(tuple(names.values()), tuple(edges)).to_svg())
    return element("div", drawing, class_="scroll", tabindex=0, role="region", aria_label=name)


def _orders(found: Inspection) -> Section:
    share = found.n_constrained_pairs / found.n_set_pairs if found.n_set_pairs else 0
    rows = [
        ("sets with an edge", f"{found.n_constrained_sets:,}", f"{found.n_constrained_sets / found.n_sets:.1%}"),
        ("pairs in sets with a fixed order", f"{found.n_constrained_pairs:,}", f"{share:.1%}"),
    ]
    kept, whole = found.mean_log2_orders, found.mean_log2_all_orders
    text = (
        f"The mean log2 of the number of orders that a set allows is {kept:.2f}; were all orders allowed, it would be "
        f"{whole:.2f}."
    )
    if isfinite(kept) and max(kept, whole) < 60:
        text += f" In the geometric mean that is {2**kept:,.1f} of {2**whole:,.1f} orders."
    return Section(
        "orders",
        "How many orders sets allow",
        [table("What the graph decides", ["what", "number", "share"], rows), paragraph(text)],
    )


def _examples(found: Inspection, seed: int) -> Section:
    intro = paragraph("Small sets of the data about whose order the graph says most, each with orders drawn for it.")
    shown = [_example(found.graph(labels), at, seed) for at, labels in enumerate(found.example_sets, 1)]
    return Section("examples", "Examples", [intro, *shown] if shown else [])


def _example(graph: OrderGraph, number: int, seed: int) -> Markup:
    n_orders = graph.n_orders or 0
    drawn = graph.draw(min(n_orders, _DRAWN), seed=seed, distinct=True)
    of_all = OrderGraph(graph.labels).n_orders or 0
    return element(
        "article",
        element("h3", f"Set {number}: {n_orders:,} of {of_all:,} orders allowed"),
        _picture(graph, f"The order graph of set {number}"),
        paragraph("All of them:" if len(drawn) == n_orders else "Some of them:"),
        element("ol", *(element("li", joined(map(label, order), " | ")) for order in drawn)),
    )


def _diagnosis(diagnosis: Diagnosis) -> Section:
    parts = [
        paragraph(diagnosis.sentence),
        paragraph(
            "Measured on the labels alone, before any training: small models of label sequences are fitted to one part "
            "of the sets and compared on the other, with the labels in different orders. The fewer bits, the easier "
            "the sets are to predict. The texts are not read for it, so a model that reads them may gain more or less."
        ),
    ]
    if diagnosis.scores:
        rows = [
            (
                name,
                f"{score.bits:.3f}",
                "" if name == "random" else f"{score.difference:+.3f}",
                "" if name == "random" else f"{score.low:+.3f} to {score.high:+.3f}",
            )
            for name, score in diagnosis.scores.items()
        ]
        caption = f"Bits a set, over {diagnosis.n_held_out:,} sets that the models had not seen"
        parts.append(table(caption, ["orders", "bits a set", "difference to random", "95 % interval"], rows))
    return Section("help", "Will order help?", parts)
