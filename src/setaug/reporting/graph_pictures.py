"""Pictures of order graphs (Algorithm 1, lines 1 to 6): Graphviz, Mermaid and SVG.

All three draw the transitive reduction: edges implied by others are omitted, so that a chain looks like a chain. The
SVG is a layered drawing: columns by the longest path to a label without successors, order by barycentre sweeps,
heights by least squares. It is self-contained: no script, no font, no identifiers that could clash.
"""

import re
from collections import Counter
from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import accumulate, pairwise
from math import ceil, isfinite, log, sqrt
from statistics import fmean
from typing import TypeAlias
from unicodedata import category, east_asian_width

from markupsafe import Markup

from setaug.orders.graph import Edge, OrderGraph
from setaug.reporting.html import element, join, legal
from setaug.reporting.style import GRAPH

Block: TypeAlias = tuple[list[Markup], float, float]
"""A part of the picture: its elements, its width, its height."""
Chain: TypeAlias = list[int]
"""The nodes of an edge: a label, a bend in each column between, a label."""

LINE, PAD, LONGEST, ROW, BEND, PORT, TIP, MARGIN = 28, 12, 190, 10, 6, 9, 8, 20
"""Pixels: a box's height, the padding of its text, the longest text; the gaps between boxes, around a bend, between
edges that end at one box; an arrow's tip; the margin of the picture."""
THIN, MIDDLE, THICK = 1.2, 2.2, 4.4
SWEEPS = 64


def to_dot(graph: OrderGraph) -> str:
    r"""Return the graph in Graphviz's language.

    Examples
    --------
    >>> print(to_dot(OrderGraph(("event", 'a "big" match'), (Edge('a "big" match', "event"),))))
    digraph order {
      rankdir=LR;
      node [shape=box, style=rounded];
      n0 [label="event"];
      n1 [label="a \"big\" match"];
      n1 -> n0 [penwidth=2.2, tooltip="a \"big\" match → event"];
    }

    """
    place, kept = _reduced(graph)
    lines = ["digraph order {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    lines += [f'  n{i} [label="{_quoted(label)}"];' for label, i in place.items()]
    lines += [
        f'  n{place[edge.before]} -> n{place[edge.after]} [penwidth={width:.1f}, tooltip="{_quoted(_why(edge))}"];'
        for edge, width in zip(kept, _widths(kept), strict=True)
    ]
    return "\n".join([*lines, "}"])


def to_mermaid(graph: OrderGraph) -> str:
    """Return the graph in Mermaid's language, which Markdown pages show.

    Examples
    --------
    >>> print(to_mermaid(OrderGraph(("event", "match #1"), (Edge("match #1", "event"),))))
    graph LR
      n0["event"]
      n1["match#32;#35;1"]
      n1 --> n0

    """
    place, kept = _reduced(graph)
    lines = [f'  n{i}["{_entities(label)}"]' for label, i in place.items()]
    lines += [f"  n{place[edge.before]} --> n{place[edge.after]}" for edge in kept]
    return "\n".join(["graph LR", *lines])


def to_svg(graph: OrderGraph, *, with_style: bool = True) -> Markup:
    """Return the graph as an SVG picture: specific labels on the left, general ones on the right.

    An arrow goes from the label that is written first to the later one, the thicker the more sets contain both. Labels
    without an edge are in their own block on the left. A page of `reporting.page` has the style already.
    """
    place, kept = _reduced(graph)
    tied = {end for edge in kept for end in (edge.before, edge.after)}
    drawn, width, height = _layered([label for label in place if label in tied], kept)
    free, free_width, free_height = _stacked([label for label in place if label not in tied], height)
    left = MARGIN + free_width + (2 * MARGIN if drawn and free else 0)
    inner = max(height, free_height)
    foot = MARGIN + inner + 26
    notes = [] if place else [_text(MARGIN + 50, foot, "no labels")]
    notes += [_text(MARGIN + free_width / 2, foot, "no fixed order")] if free else []
    notes += _axis(left, left + width, foot) if drawn else []
    if len({edge.n_both for edge in kept}) > 1:
        notes.append(_text(left + width / 2, foot := foot + 20, "thicker: more sets contain both"))
    wide, high = ceil(left + (width if place else 100) + MARGIN), ceil(foot + MARGIN)
    about = (
        f"{len(place)} labels, the specific ones on the left, the general ones on the right. Each of {len(kept)} "
        "arrows goes from one label to a later one; edges that follow from these are not drawn."
    )
    lines = [
        element("title", "Which label is written before which"),
        element("desc", about),
        *([element("style", Markup(GRAPH))] if with_style else []),
        _group("free", free, MARGIN, MARGIN + (inner - free_height) / 2),
        _group("tied", drawn, left, MARGIN + (inner - height) / 2),
        _group("note", notes, 0, 0),
    ]
    size: dict[str, str | float] = {"width": wide, "height": high, "viewBox": f"0 0 {wide} {high}"}
    if not with_style:  # in a page: shrunk to fit, as long as it can be read
        size["style"] = f"min-width:{round(0.7 * wide)}px"
    picture = element(
        "svg", join(lines, "\n"), xmlns="http://www.w3.org/2000/svg", class_="setaug-order", role="img", **size
    )
    return Markup(legal(picture).replace("\r", "&#13;"))


def _reduced(graph: OrderGraph) -> tuple[dict[str, int], list[Edge]]:
    """Return a number for each label, and the edges that do not follow from others (transitive reduction)."""
    place = {label: i for i, label in enumerate(dict.fromkeys(graph.labels))}
    after: list[dict[int, Edge]] = [{} for _ in place]
    for edge in graph.edges:
        after[place[edge.before]].setdefault(place[edge.after], edge)
    general_first = list(TopologicalSorter(dict(enumerate(after))).static_order())
    rank = {i: at for at, i in enumerate(general_first)}
    reached = [0] * len(place)
    for i in general_first:
        for j in sorted(after[i], key=rank.__getitem__, reverse=True):
            if reached[i] >> j & 1:
                del after[i][j]
            reached[i] |= reached[j] | 1 << j
    return place, [edge for row in after for edge in row.values()]


def _why(edge: Edge) -> str:
    facts = []
    if edge.n_both:
        facts.append("1 set contains both" if edge.n_both == 1 else f"{edge.n_both:,} sets contain both")
    if isfinite(edge.pmi):
        facts.append(f"pmi {edge.pmi:.1f} bits")
    if isfinite(edge.ratio):
        facts.append(f"{edge.after} is {edge.ratio:,.1f} times as frequent")
    return f"{edge.before} → {edge.after}" + (": " if facts else "") + ", ".join(facts)


def _widths(edges: Sequence[Edge]) -> list[float]:
    """Return the thickness of each edge, by the logarithm of its count."""
    logs = [log(edge.n_both) for edge in edges if edge.n_both > 0]
    low, span = min(logs, default=0), max(logs, default=0) - min(logs, default=0)
    return [
        THIN + (THICK - THIN) * (log(edge.n_both) - low) / span if edge.n_both > 0 and span else MIDDLE
        for edge in edges
    ]


def _quoted(text: str) -> str:
    # Graphviz reads HTML's entities even in plain strings.
    text = legal(text).replace("\\", r"\\").replace('"', r"\"").replace("&", "&amp;")
    return re.sub("\r\n?|\n", r"\\n", text)


def _entities(text: str) -> str:
    # Mermaid reads a label as Markdown and as HTML; of all marks, only those that join two words are safe in both.
    def entity(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else "<br/>" if found[1] == "\n" else f"#{ord(found[1])};"

    return re.sub(r"(?<=[^\W_])[ _-](?=[^\W_])|([\W_])", entity, text) or "#32;"


def _layered(names: Sequence[str], edges: Sequence[Edge]) -> Block:
    """Draw the labels that have edges, and the edges."""
    place = {name: i for i, name in enumerate(names)}
    columns, chains = _columns(len(names), [(place[edge.before], place[edge.after]) for edge in edges])
    degrees = Counter((chain[end], end) for chain in chains for end in (0, -1))
    sizes = [max(LINE, PORT * (1 + max(degrees[i, 0], degrees[i, -1]))) for i in range(len(names))]
    sizes += [BEND] * (sum(map(len, columns)) - len(names))
    rows = _rows(columns, chains, sizes)
    height = max((row + size / 2 for row, size in zip(rows, sizes, strict=True)), default=0)
    gap = min(150, 70 + height / 8)
    spans: dict[int, tuple[float, float]] = {}
    boxes, right = [], -gap
    for at, column in enumerate(columns):
        shown = [i for i in column if i < len(names)]
        left, right = right + gap, right + gap + max(_box_width(names[i]) for i in shown)
        spans.update(dict.fromkeys(column, (left, right)))
        boxes += [_box(names[i], left, right, rows[i], sizes[i], at / (len(columns) - 1)) for i in shown]
    arrows = [
        _arrow(edge, width, [spans[i] for i in chain], heights)
        for edge, width, chain, heights in zip(edges, _widths(edges), chains, _ports(chains, rows), strict=True)
    ]
    return arrows + boxes, max(right, 0), height


def _columns(count: int, pairs: Sequence[tuple[int, int]]) -> tuple[list[list[int]], list[Chain]]:
    """Assign labels to columns, left of their successors and as far right as possible; add bends to long edges."""
    after: list[list[int]] = [[] for _ in range(count)]
    for first, then in pairs:
        after[first].append(then)
    steps = [0] * count
    for i in TopologicalSorter(dict(enumerate(after))).static_order():
        steps[i] = max((1 + steps[j] for j in after[i]), default=0)
    columns: list[list[int]] = [[] for _ in range(max(steps, default=-1) + 1)]
    for i in range(count):
        columns[-1 - steps[i]].append(i)
    chains = []
    for first, then in pairs:
        bends = range(count, count := count + steps[first] - steps[then] - 1)
        for at, bend in enumerate(bends):
            columns[at - steps[first]].append(bend)
        chains.append([first, *bends, then])
    return columns, chains


def _rows(columns: list[list[int]], chains: Sequence[Chain], sizes: Sequence[float]) -> list[float]:
    """Sort each column so that few edges cross; return a height per node, near its neighbours and without overlap."""
    near: list[tuple[list[int], list[int]]] = [([], []) for _ in sizes]
    for chain in chains:
        for at, (i, j) in enumerate(pairwise(chain)):
            pull = 4 if 0 < at < len(chain) - 2 else 1  # bends pull at each other, which keeps long edges straight
            near[i][1].extend([j] * pull)
            near[j][0].extend([i] * pull)
    part = _parts(len(sizes), chains)
    rows = [0.0] * len(sizes)
    for sweep in range(SWEEPS):
        side, sorting = sweep % 2, sweep < SWEEPS // 4
        for column in columns[:: -1 if side else 1]:
            beside = {i: (near[i][side] if sorting else near[i][0] + near[i][1]) or [i] for i in column}
            wanted = {i: fmean(rows[j] for j in beside[i]) for i in column}
            if sorting:
                column.sort(key=lambda i: (part[i], wanted[i]))
            gaps = [(sizes[i] + sizes[j]) / 2 + ROW * (1 + (part[i] != part[j])) for i, j in pairwise(column)]
            for i, row in zip(column, _spread([(wanted[i], len(beside[i])) for i in column], gaps), strict=True):
                rows[i] = row
    top = min((row - size / 2 for row, size in zip(rows, sizes, strict=True)), default=0)
    return [row - top for row in rows]


def _parts(count: int, chains: Sequence[Chain]) -> list[tuple[int, int]]:
    """Return a key per node for its connected component; the largest sorts first."""
    parts = [[i] for i in range(count)]
    for chain in chains:
        whole = parts[chain[0]]
        for i in chain:
            if parts[i] is not whole:
                whole += parts[i]
                for j in parts[i]:
                    parts[j] = whole
    return [(-len(part), part[0]) for part in parts]


def _spread(wanted: Sequence[tuple[float, float]], gaps: Sequence[float]) -> list[float]:
    """Return the heights nearest to the wanted ones (height, weight) that keep the order and the gaps."""
    offsets = [0.0, *accumulate(gaps)]
    runs: list[tuple[float, float, int]] = []  # height, weight, length: nodes that touch move as one
    for (height, weight), offset in zip(wanted, offsets, strict=True):
        run = (height - offset, weight, 1)
        while runs and runs[-1][0] >= run[0]:
            other = runs.pop()
            heavy = run[1] + other[1]
            run = ((run[0] * run[1] + other[0] * other[1]) / heavy, heavy, run[2] + other[2])
        runs.append(run)
    heights = [height for height, _, length in runs for _ in range(length)]
    return [height + offset for height, offset in zip(heights, offsets, strict=True)]


def _ports(chains: Sequence[Chain], rows: Sequence[float]) -> list[list[float]]:
    """Return the height of each edge at each node; edges that end at one box share its side."""
    heights = [[rows[i] for i in chain] for chain in chains]
    for end, beside in ((0, 1), (-1, -2)):
        meeting: dict[int, list[int]] = {}
        for k in sorted(range(len(chains)), key=lambda k: rows[chains[k][beside]]):
            meeting.setdefault(chains[k][end], []).append(k)
        for group in meeting.values():
            for at, k in enumerate(group):
                heights[k][end] += (at - (len(group) - 1) / 2) * PORT
    return heights


def _stacked(names: Sequence[str], height: float) -> Block:
    """Draw the labels without edges, in columns about as high as the rest."""
    high = max(int(height + ROW) // (LINE + ROW), ceil(sqrt(4 * len(names))), 1)
    boxes, right = [], -2.0 * ROW
    for start in range(0, len(names), high):
        column = names[start : start + high]
        left, right = right + 2 * ROW, right + 2 * ROW + max(90, *map(_box_width, column))
        boxes += [_box(name, left, right, LINE / 2 + at * (LINE + ROW), LINE, 0) for at, name in enumerate(column)]
    return boxes, max(right, 0), max(0, min(high, len(names)) * (LINE + ROW) - ROW)


def _arrow(edge: Edge, width: float, spans: Sequence[tuple[float, float]], heights: Sequence[float]) -> Markup:
    ends = [left for left, _ in spans[:-1]] + [spans[-1][0] - TIP]
    line = f"M{spans[0][1]:.1f} {heights[0]:.1f}"
    for at in range(1, len(spans)):
        middle = (spans[at - 1][1] + ends[at]) / 2
        line += f"H{spans[at - 1][1]:.1f}C{middle:.1f} {heights[at - 1]:.1f} "
        line += f"{middle:.1f} {heights[at]:.1f} {ends[at]:.1f} {heights[at]:.1f}"
    return element(
        "g",
        element("title", _why(edge)),
        element("path", class_="hit", d=line),
        element("path", class_="line", stroke_width=f"{width:.1f}", d=line),
        element("path", class_="tip", d=f"M{spans[-1][0]:.1f} {heights[-1]:.1f}l{-TIP} -4.5v9z"),
        class_="edge",
    )


def _box(name: str, left: float, right: float, row: float, size: float, general: float) -> Markup:
    opacity = f"{0.07 + 0.21 * general:.2f}"
    place = {"x": f"{left:.1f}", "y": f"{row - size / 2:.1f}", "width": f"{right - left:.1f}", "height": f"{size:.1f}"}
    rect = element("rect", rx=8, fill_opacity=opacity, **place)
    return element("g", element("title", name), rect, _text((left + right) / 2, row, _shortened(name)), class_="label")


def _axis(left: float, right: float, y: float) -> list[Markup]:
    line = element("path", d=f"M{left + 58:.1f} {y:.1f}H{right - 60:.1f}")
    tip = element("path", class_="tip", d=f"M{right - 54:.1f} {y:.1f}l-7 -3.5v7z")
    return [_text(left + 26, y, "specific"), line, tip, _text(right - 24, y, "general")]


def _text(x: float, y: float, text: str) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y + 4.5:.1f}")


def _group(kind: str, elements: Sequence[Markup], x: float, y: float) -> Markup:
    if not elements:
        return Markup()
    return element("g", join(elements, "\n"), class_=kind, transform=f"translate({x:.1f} {y:.1f})")


def _shortened(text: str) -> str:
    text = re.sub("\r\n?|[\n\u2028\u2029]", "↵", text).replace("\t", " ")
    ends = list(accumulate(map(_character_width, text)))
    if not ends or ends[-1] <= LONGEST:
        return text
    return text[: sum(end <= LONGEST - 13 for end in ends)].rstrip() + "…"


def _box_width(name: str) -> float:
    return max(48, sum(map(_character_width, _shortened(name))) + 2 * PAD)


def _character_width(character: str) -> float:
    # Fonts differ: rather too wide than too narrow.
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    if east_asian_width(character) in "WF":
        return 14
    if character in "fijlrtI .,:;'|!()[]/-":
        return 5.2
    return 12.6 if character in "mwMW@%" else 9.6 if character in "<>&+=#" or not character.islower() else 7.8
