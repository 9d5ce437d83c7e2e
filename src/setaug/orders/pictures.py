"""Pictures of order graphs (what Algorithm 1, lines 1 to 6, has found): Graphviz, Mermaid and SVG.

All three draw the transitive reduction: an edge that follows from others is left out, so that a chain looks like a
chain. The SVG is a layered drawing: columns by the longest path to a label that nothing follows, order by barycentre
sweeps, heights by least squares. It needs nothing but itself: no script, no font, no identifiers that could clash.
"""

import re
from collections import Counter
from collections.abc import Sequence
from graphlib import TopologicalSorter
from html import escape
from itertools import accumulate, pairwise
from math import ceil, isfinite, log, sqrt
from statistics import fmean
from typing import TypeAlias
from unicodedata import category, east_asian_width

from setaug.orders.graph import Edge

Block: TypeAlias = tuple[list[str], float, float]
"""A part of the picture: its elements, its width, its height."""
Chain: TypeAlias = list[int]
"""An edge as the nodes that it passes: a label, a bend in each column between, a label."""

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 may not hold; Graphviz and files in UTF-8 cannot take it either."""
LINE, PAD, LONGEST, ROW, BEND, PORT, TIP, MARGIN = 28, 12, 190, 10, 6, 9, 8, 20
"""In pixels: a box's height, the room beside its text, the longest text; the room between boxes, for an edge that
passes by, between edges that end at one box, for an arrow's tip; the room around the picture."""
THIN, MIDDLE, THICK = 1.2, 2.2, 4.4
SWEEPS = 64
STYLE = """
.setaug-order { color-scheme: light dark }
.setaug-order text { font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; fill: #1f2933;
  text-anchor: middle; white-space: pre }
.setaug-order rect { fill: #2f6fde; stroke: #2f6fde }
.setaug-order .free rect { stroke-dasharray: 4 3 }
.setaug-order path { fill: none; stroke: #8a97a6 }
.setaug-order .tip { fill: #8a97a6; stroke: none }
.setaug-order .hit { stroke-width: 9px; stroke-opacity: 0; pointer-events: stroke }
.setaug-order .note text { font-size: 12px; fill: #5f6b78 }
@media (prefers-color-scheme: dark) {
  .setaug-order text { fill: #e8edf2 }
  .setaug-order rect { fill: #6ea8ff; stroke: #6ea8ff }
  .setaug-order path { stroke: #76838f }
  .setaug-order .tip { fill: #76838f }
  .setaug-order .note text { fill: #9aa7b4 }
}
.setaug-order .edge:hover .line { stroke: #e8590c }
.setaug-order .edge:hover .tip { fill: #e8590c }
"""


def dot(labels: Sequence[str], edges: Sequence[Edge]) -> str:
    r"""Write the graph in Graphviz's language.

    >>> print(dot(["event", 'a "big" match'], [Edge('a "big" match', "event")]))
    digraph order {
      rankdir=LR;
      node [shape=box, style=rounded];
      n0 [label="event"];
      n1 [label="a \"big\" match"];
      n1 -> n0 [penwidth=2.2, tooltip="a \"big\" match → event"];
    }

    """
    place, kept = _reduced(labels, edges)
    lines = ["digraph order {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    lines += [f'  n{i} [label="{_quoted(label)}"];' for label, i in place.items()]
    lines += [
        f'  n{place[edge.before]} -> n{place[edge.after]} [penwidth={width:.1f}, tooltip="{_quoted(_why(edge))}"];'
        for edge, width in zip(kept, _widths(kept), strict=True)
    ]
    return "\n".join([*lines, "}"])


def mermaid(labels: Sequence[str], edges: Sequence[Edge]) -> str:
    """Write the graph in Mermaid's language.

    >>> print(mermaid(["event", "match #1"], [Edge("match #1", "event")]))
    graph LR
      n0["event"]
      n1["match#32;#35;1"]
      n1 --> n0

    """
    place, kept = _reduced(labels, edges)
    lines = [f'  n{i}["{_entities(label)}"]' for label, i in place.items()]
    lines += [f"  n{place[edge.before]} --> n{place[edge.after]}" for edge in kept]
    return "\n".join(["graph LR", *lines])


def svg(labels: Sequence[str], edges: Sequence[Edge]) -> str:
    """Draw the graph as an SVG picture: specific labels on the left, general ones on the right.

    An arrow goes from the label that is written first to the one that is written later, the thicker the more sets
    hold both. Labels without an edge stand in a block of their own at the left.
    """
    place, kept = _reduced(labels, edges)
    tied = {end for edge in kept for end in (edge.before, edge.after)}
    graph, width, height = _layered([label for label in place if label in tied], kept)
    free, free_width, free_height = _stacked([label for label in place if label not in tied], height)
    left = MARGIN + free_width + (2 * MARGIN if graph and free else 0)
    inner = max(height, free_height)
    foot = MARGIN + inner + 26
    notes = [] if place else [_text(MARGIN + 50, foot, "no labels")]
    notes += [_text(MARGIN + free_width / 2, foot, "no fixed place")] if free else []
    notes += [_axis(left, left + width, foot)] if graph else []
    if len({edge.n_both for edge in kept}) > 1:
        notes.append(_text(left + width / 2, foot := foot + 20, "thicker: more sets hold both"))
    wide, high = ceil(left + (width if place else 100) + MARGIN), ceil(foot + MARGIN)
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" class="setaug-order" role="img" '
        f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">',
        "<title>Which label is written before which</title>",
        f"<desc>{len(place)} labels, the specific ones on the left, the general ones on the right. Each of "
        f"{len(kept)} arrows goes from one label to a later one; what follows from these is not drawn.</desc>",
        f"<style>{STYLE}</style>",
        *_group("free", free, MARGIN, MARGIN + (inner - free_height) / 2),
        *_group("tied", graph, left, MARGIN + (inner - height) / 2),
        *_group("note", notes, 0, 0),
        "</svg>",
    ]
    return "\n".join(lines)


def _reduced(labels: Sequence[str], edges: Sequence[Edge]) -> tuple[dict[str, int], list[Edge]]:
    """Give each label a number, and leave out the edges that follow from others."""
    place = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    after: list[dict[int, Edge]] = [{} for _ in place]
    for edge in edges:
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
        facts.append("1 set holds both" if edge.n_both == 1 else f"{edge.n_both:,} sets hold both")
    if isfinite(edge.pmi):
        facts.append(f"pmi {edge.pmi:.1f} bits")
    if isfinite(edge.ratio):
        facts.append(f"{edge.after} is {edge.ratio:,.1f} times as frequent")
    return f"{edge.before} → {edge.after}" + (": " if facts else "") + ", ".join(facts)


def _widths(edges: Sequence[Edge]) -> list[float]:
    """Give each edge a thickness by the logarithm of its count."""
    logs = [log(edge.n_both) for edge in edges if edge.n_both > 0]
    low, span = min(logs, default=0), max(logs, default=0) - min(logs, default=0)
    return [
        THIN + (THICK - THIN) * (log(edge.n_both) - low) / span if edge.n_both > 0 and span else MIDDLE
        for edge in edges
    ]


def _quoted(text: str) -> str:
    # Graphviz reads HTML's entities even in plain strings.
    text = ILLEGAL.sub("\ufffd", text).replace("\\", r"\\").replace('"', r"\"").replace("&", "&amp;")
    return re.sub("\r\n?|\n", r"\\n", text)


def _entities(text: str) -> str:
    # Mermaid reads a label as Markdown and as HTML; of all marks, only those that join two words are safe in both.
    def entity(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else "<br/>" if found[1] == "\n" else f"#{ord(found[1])};"

    return re.sub(r"(?<=[^\W_])[ _-](?=[^\W_])|([\W_])", entity, text) or "#32;"


def _layered(names: Sequence[str], edges: Sequence[Edge]) -> Block:
    """Draw the labels that have edges."""
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
    """Put each label left of all that follow it, as far right as it can stand, and bends where an edge passes by."""
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
    """Sort each column so that few edges cross, and give each node a height near its neighbours, without overlap."""
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
    """Tell for each node to which connected part it belongs; the largest sorts first."""
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
    """Find the heights nearest to the wanted ones, each with its weight, that keep the order and the gaps."""
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
    """Give each edge its height at each node; edges that end at one box share its side."""
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


def _arrow(edge: Edge, width: float, spans: Sequence[tuple[float, float]], heights: Sequence[float]) -> str:
    ends = [left for left, _ in spans[:-1]] + [spans[-1][0] - TIP]
    line = f"M{spans[0][1]:.1f} {heights[0]:.1f}"
    for at in range(1, len(spans)):
        middle = (spans[at - 1][1] + ends[at]) / 2
        line += f"H{spans[at - 1][1]:.1f}C{middle:.1f} {heights[at - 1]:.1f} "
        line += f"{middle:.1f} {heights[at]:.1f} {ends[at]:.1f} {heights[at]:.1f}"
    return (
        f'<g class="edge"><title>{_xml(_why(edge))}</title><path class="hit" d="{line}"/>'
        f'<path class="line" stroke-width="{width:.1f}" d="{line}"/>'
        f'<path class="tip" d="M{spans[-1][0]:.1f} {heights[-1]:.1f}l{-TIP} -4.5v9z"/></g>'
    )


def _box(name: str, left: float, right: float, row: float, size: float, general: float) -> str:
    return (
        f'<g class="label"><title>{_xml(name)}</title><rect x="{left:.1f}" y="{row - size / 2:.1f}" rx="8" '
        f'width="{right - left:.1f}" height="{size:.1f}" fill-opacity="{0.07 + 0.21 * general:.2f}"/>'
        f"{_text((left + right) / 2, row, _shortened(name))}</g>"
    )


def _axis(left: float, right: float, y: float) -> str:
    line = f'<path d="M{left + 58:.1f} {y:.1f}H{right - 60:.1f}"/>'
    tip = f'<path class="tip" d="M{right - 54:.1f} {y:.1f}l-7 -3.5v7z"/>'
    return _text(left + 26, y, "specific") + line + tip + _text(right - 24, y, "general")


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{_xml(text)}</text>'


def _group(kind: str, elements: Sequence[str], x: float, y: float) -> list[str]:
    return [f'<g class="{kind}" transform="translate({x:.1f} {y:.1f})">', *elements, "</g>"] if elements else []


def _xml(text: str) -> str:
    return escape(ILLEGAL.sub("\ufffd", text)).replace("\r", "&#13;")


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
