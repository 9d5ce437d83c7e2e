"""The label graphs of the paper's figures: which label TSAMPLE writes before which, on each data set."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from setaug.benchmarks import Benchmark
from setaug.benchmarks.names import parse_name
from setaug.experiments.page import Line, Page, Picture, Table
from setaug.experiments.runs import Setup
from setaug.files import open_output
from setaug.inspection import Inspection, inspect_examples
from setaug.models.settings import Progress

GRAPHS = "graphs"


def read_graphs() -> dict[str, Any]:
    """Read which graphs to draw, and which edges the paper names."""
    return tomllib.loads((files("setaug.experiments") / "tables" / f"{GRAPHS}.toml").read_text("utf-8"))


def draw_graphs(
    setup: Setup,
    folder: str | Path,
    *,
    data: Sequence[str] = (),
    command: str = "",
    progress: Progress | None = None,
) -> tuple[Page, list[Path]]:
    """Draw the label graph of each data set, from its training examples; give the page and the files written."""
    given = read_graphs()
    chosen = [str(parse_name(one)) for one in data or given["data"]]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    counted, named, pictures, written = [], [], [], []
    for number, name in enumerate(chosen):
        benchmark = setup.load(name)
        found = inspect_examples(benchmark.train, with_diagnosis=False)
        graph = found.graph(top=given["top"])
        path = place / f"{GRAPHS}-{re.sub('[^a-z0-9]+', '-', name).strip('-')}.svg"
        with open_output(path) as stream:
            stream.write(graph.to_svg().encode())
        written.append(path)
        caption = f"{name}: {len(graph.labels)} labels with the most frequent edges"
        pictures.append(Picture(path.name, caption))
        counted.append(_counted(benchmark, found))
        named += _named(name, given["edges"].get(parse_name(name).benchmark, ()), found)
        if progress is not None:
            progress("graphs", number + 1, len(chosen))
    tables = [
        Table(
            "What the graphs hold",
            ["data", "training sets", "labels", "edges", "sets with an edge", "orders a set allows", "of"],
            counted,
            ["Orders: two to the mean of log2 of the number of orders of a set, with the graph and without."],
        )
    ]
    if named:
        header = ["data", "before", "after", "edge", "sets with both", "PMI (bits)", "times as frequent"]
        note = "An edge needs more than 1 bit of PMI, and the later label more than 3 times as frequent."
        tables.append(Table("Edges that the paper names", header, named, [note]))
    about = [f"The paper: {given['source']}. Specific labels stand on the left, general ones on the right."]
    page = Page(
        title=given["title"], about=about + ([f"`{command}`"] if command else []), tables=tables, pictures=pictures
    )
    return page, written + page.write(place / GRAPHS)


def _counted(benchmark: Benchmark, found: Inspection) -> Line:
    share = found.n_constrained_sets / found.n_sets if found.n_sets else 0.0
    cells = [
        benchmark.name,
        f"{found.n_sets:,}",
        f"{found.n_labels:,}",
        f"{found.n_edges:,}",
        f"{100 * share:.0f} %",
        f"{2**found.mean_log2_orders:.1f}",
        f"{2**found.mean_log2_all_orders:.1f}",
    ]
    return Line(cells)


def _named(data: str, edges: Iterable[Sequence[str]], found: Inspection) -> list[Line]:
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
