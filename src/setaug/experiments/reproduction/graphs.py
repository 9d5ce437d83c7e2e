"""The label graphs of the paper's figures: which labels TSAMPLE writes before which, on each dataset."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from setaug.analysis.inspection import Inspection, inspect_examples
from setaug.datasets import parse_name
from setaug.experiments.page import Line, Page, Picture, Table
from setaug.experiments.reproduction.experiment import GRAPHS, read_table
from setaug.experiments.reproduction.training_cells import Setup
from setaug.reporting.graph_pictures import to_svg
from setaug.settings import Progress
from setaug.storage import open_output


def draw_graphs(
    setup: Setup,
    folder: str | Path,
    *,
    data: Sequence[str] = (),
    command: str = "",
    progress: Progress | None = None,
) -> tuple[Page, list[Path]]:
    """Draw the label graph of each dataset's training examples; return the page and the files written."""
    given = read_table(GRAPHS)
    chosen = [parse_name(one) for one in data or given["data"]]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    counts, edges, pictures, written = [], [], [], []
    for number, variant in enumerate(chosen):
        name = str(variant)
        found = inspect_examples(setup.load(name).train, with_diagnosis=False)
        graph = found.graph(top=given["top"])
        path = place / f"{GRAPHS}-{re.sub('[^a-z0-9]+', '-', name).strip('-')}.svg"
        with open_output(path) as stream:
            stream.write(to_svg(graph).encode())
        written.append(path)
        pictures.append(Picture(path.name, f"{name}: {len(graph.labels)} labels with the most frequent edges"))
        counts.append(_count(name, found))
        edges += _look_up(name, given["edges"].get(variant.dataset, ()), found)
        if progress is not None:
            progress("graphs", number + 1, len(chosen))
    tables = [
        Table(
            "What the graphs hold",
            ["data", "training sets", "labels", "edges", "sets with an edge", "orders a set allows", "of"],
            counts,
            ["Orders: two to the mean of log2 of the number of orders of a set, with the graph and without."],
        )
    ]
    if edges:
        header = ["data", "before", "after", "edge", "sets with both", "PMI (bits)", "times as frequent"]
        note = "An edge needs more than 1 bit of PMI, and the later label more than 3 times as frequent."
        tables.append(Table("Edges that the paper names", header, edges, [note]))
    about = [f"The paper: {given['source']}. Specific labels stand on the left, general ones on the right."]
    about += [f"`{command}`"] if command else []
    page = Page(title=given["title"], about=about, tables=tables, pictures=pictures)
    return page, written + page.write(place / GRAPHS)


def _count(name: str, found: Inspection) -> Line:
    share = found.n_constrained_sets / found.n_sets if found.n_sets else 0.0
    orders = [f"{2**bits:.1f}" for bits in (found.mean_log2_orders, found.mean_log2_all_orders)]
    counts = [f"{n:,}" for n in (found.n_sets, found.n_labels, found.n_edges)]
    return Line([name, *counts, f"{100 * share:.0f} %", *orders])


def _look_up(data: str, edges: Iterable[Sequence[str]], found: Inspection) -> list[Line]:
    statistics = found.statistics
    lines = []
    for before, after in edges:
        if min(statistics.count(before), statistics.count(after)) == 0:
            lines.append(Line([data, before, after, "not among the labels", "", "", ""]))
            continue
        has_edge = statistics.precedes(before, after, found.thresholds)
        n_both = statistics.pair_count(before, after)
        pmi = f"{statistics.pmi(before, after):.2f}" if n_both else "never together"
        ratio = f"{float(statistics.ratio(after, before)):.2f}"
        lines.append(Line([data, before, after, "yes" if has_edge else "no", f"{n_both:,}", pmi, ratio]))
    return lines
