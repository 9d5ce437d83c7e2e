"""Pictures of order graphs: whatever the labels are, the three formats are well formed and show the same edges."""

import re
import shutil
import subprocess
from collections import Counter
from graphlib import CycleError
from itertools import combinations
from math import inf
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setaug.orders.graph import Edge, OrderGraph
from setaug.reporting.graph_pictures import to_dot, to_mermaid, to_svg
from setaug.reporting.html import legal
from setaug.reporting.style import GRAPH
from tests.strategies import tricky_char

SVG = "{http://www.w3.org/2000/svg}"
ODD = ('say "so"', "back\\slash\\", "two\nlines", "a|b[c]{d}(e)", "# 1. <b>&amp;</b>", "日本語", "\ud800\x00", "", " ")


@st.composite
def graphs(draw, alphabet=None, max_size=9):
    """Draw labels in any order, and edges without a cycle."""
    texts = st.text(alphabet or st.characters() | tricky_char, max_size=40)
    labels = draw(st.lists(texts, unique=True, max_size=max_size))
    pairs = list(combinations(labels, 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    edges = [
        Edge(*pair, draw(st.integers(0, 10**6)), *draw(st.sampled_from([(inf, inf), (3.2, 5.1)]))) for pair in chosen
    ]
    return draw(st.permutations(labels)), edges


def reduction(labels, edges):
    graph = nx.DiGraph([(edge.before, edge.after) for edge in edges])
    graph.add_nodes_from(labels)
    return set(nx.transitive_reduction(graph).edges)


def dot(labels, edges):
    return to_dot(OrderGraph(tuple(labels), tuple(edges)))


def mermaid(labels, edges):
    return to_mermaid(OrderGraph(tuple(labels), tuple(edges)))


def svg(labels, edges):
    return to_svg(OrderGraph(tuple(labels), tuple(edges)))


def boxes(picture):
    """Read each label's box: left, top, right, bottom."""
    found = []
    for block in ElementTree.fromstring(picture).iter(f"{SVG}g"):
        if "transform" in block.attrib:
            x, y = map(float, re.findall(r"[-\d.]+", block.get("transform")))
            for label in block.iterfind(f"{SVG}g[@class='label']"):
                rect = label.find(f"{SVG}rect")
                left, top, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
                found.append((label.findtext(f"{SVG}title"), (x + left, y + top, x + left + width, y + top + height)))
    return found


def arrows(picture):
    return ElementTree.fromstring(picture).findall(f".//{SVG}g[@class='edge']")


def tooltips(picture):
    return [arrow.findtext(f"{SVG}title") for arrow in arrows(picture)]


def widths(picture):
    return [float(arrow.find(f"{SVG}path[@class='line']").get("stroke-width")) for arrow in arrows(picture)]


def shown(picture):
    """Read the texts in the boxes."""
    return [text.text for text in ElementTree.fromstring(picture).iterfind(f".//{SVG}g[@class='label']/{SVG}text")]


@given(graphs())
@example((ODD, [Edge(*pair) for pair in combinations(ODD, 2)]))
@example((ODD, []))
def test_an_svg_of_any_labels_parses_and_holds_each_label_once(graph):
    labels, edges = graph
    assert Counter(label for label, _ in boxes(svg(labels, edges))) == Counter(map(legal, labels))


@given(graphs())
@example((ODD, [Edge(*pair) for pair in combinations(ODD, 2)]))
def test_boxes_lie_within_the_svg_and_never_overlap(graph):
    picture = svg(*graph)
    root = ElementTree.fromstring(picture)
    width, height = float(root.get("width")), float(root.get("height"))
    assert root.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"
    places = [place for _, place in boxes(picture)]
    for left, top, right, bottom in places:
        assert 0 < left < right < width
        assert 0 < top < bottom < height
    for one, other in combinations(places, 2):
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]


@given(graphs(alphabet="abcdefgh"))
def test_all_formats_draw_the_transitive_reduction(graph):
    labels, edges = graph
    expected = reduction(labels, edges)
    drawn = [tuple(tip.split(": ")[0].split(" → ")) for tip in tooltips(svg(labels, edges))]
    assert len(drawn) == len(expected)
    assert set(drawn) == expected
    for text, arrow in ((dot(labels, edges), "->"), (mermaid(labels, edges), "-->")):
        found = re.findall(rf"^  n(\d+) {arrow} n(\d+)", text, re.MULTILINE)
        assert len(found) == len(expected)
        assert {(labels[int(i)], labels[int(j)]) for i, j in found} == expected


@given(graphs(alphabet="abcdefgh"))
def test_a_label_stands_left_of_every_label_that_follows_it(graph):
    labels, edges = graph
    place = dict(boxes(svg(labels, edges)))
    for edge in edges:
        assert place[edge.before][2] < place[edge.after][0]


@given(graphs(alphabet="abcdefgh"))
def test_labels_without_edges_stand_left_of_the_others(graph):
    labels, edges = graph
    tied = {end for edge in edges for end in (edge.before, edge.after)}
    place = dict(boxes(svg(labels, edges)))
    for free in set(labels) - tied:
        assert all(place[free][2] < place[label][0] for label in tied)


@given(graphs(alphabet="abcdefgh"))
def test_arrows_pass_between_the_boxes(graph):
    """Between columns a curve may go anywhere; within one it runs level, at a height that no box takes."""
    picture = svg(*graph)
    (block,) = ElementTree.fromstring(picture).findall(f"./{SVG}g[@class='tied']") or [ElementTree.Element("g")]
    x, y = map(float, re.findall(r"[-\d.]+", block.get("transform", "0 0")))
    places = [place for _, place in boxes(picture)]
    for arrow in arrows(picture):
        line = arrow.find(f"{SVG}path[@class='line']").get("d")
        for start, level, end in re.findall(r"([\d.]+) ([\d.]+)H([\d.]+)", line):
            for left, top, right, bottom in places:
                apart = x + float(end) <= left + 0.2 or right <= x + float(start) + 0.2
                assert apart or not top < y + float(level) < bottom


@given(graphs())
@example((ODD, []))
def test_dot_quotes_any_label(graph):
    labels, edges = graph
    text = dot(labels, edges)
    statements = re.findall(r'^  n\d+ \[label="((?:[^"\\\n]|\\["\\n])*)"\];$', text, re.MULTILINE)
    back = {r"\\": "\\", r"\"": '"', r"\n": "\n", "&amp;": "&"}
    read = [re.sub(r'\\["\\n]|&amp;', lambda found: back[found[0]], label) for label in statements]
    assert read == [re.sub("\r\n?", "\n", legal(label)) for label in labels]
    assert re.sub(r"\\.", "", text).count('"') % 2 == 0
    text.encode()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_odd_labels():
    text = dot(ODD, [Edge(*pair) for pair in combinations(ODD, 2)])
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True, timeout=60)
    root = ElementTree.fromstring(done.stdout)
    assert len(root.findall(f".//{SVG}g[@class='node']")) == len(ODD)
    assert len(root.findall(f".//{SVG}g[@class='edge']")) == len(ODD) - 1
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {'say "so"', "back\\slash\\", "two", "lines", "a|b[c]{d}(e)", "日本語"} <= texts


@given(graphs())
@example((ODD, []))
def test_mermaid_labels_hold_no_mark_of_its_syntax(graph):
    labels, edges = graph
    lines = mermaid(labels, edges).split("\n")
    assert lines[0] == "graph LR"
    assert len(lines) == 1 + len(labels) + len(reduction(labels, edges))
    for i, (label, line) in enumerate(zip(labels, lines[1:], strict=False)):
        (inside,) = re.findall(rf'^  n{i}\["(.+)"\]$', line)
        assert not re.search(r"[^\w -]", re.sub(r"<br/>|#\d+;", "", inside))
        assert re.sub(r"#(\d+);", lambda found: chr(int(found[1])), inside.replace("<br/>", "\n")) == (label or " ")
        line.encode()


@pytest.mark.parametrize(
    ("edge", "reason"),
    [
        (Edge("match", "event"), "match → event"),
        (
            Edge("match", "event", 41, 3.21, 5.07),
            "match → event: 41 sets contain both, pmi 3.2 bits, event is 5.1 times as frequent",
        ),
        (Edge("a", "b", 1, -0.5, 1234.5), "a → b: 1 set contains both, pmi -0.5 bits, b is 1,234.5 times as frequent"),
    ],
)
def test_a_tooltip_says_why_there_is_an_edge(edge, reason):
    labels = (edge.before, edge.after)
    assert tooltips(svg(labels, [edge])) == [reason]
    assert f'tooltip="{reason}"' in dot(labels, [edge])


def test_thickness_grows_with_the_logarithm_of_the_count():
    edges = [Edge("a", "z", 1), Edge("b", "z", 10), Edge("c", "z", 100), Edge("d", "z", 0)]
    one, ten, hundred, unknown = widths(svg("abcdz", edges))
    assert one < unknown < hundred
    assert ten == pytest.approx((one + hundred) / 2, abs=0.05)


def test_edges_with_equal_counts_are_equally_thick_and_nothing_speaks_of_thickness():
    picture = svg("abc", [Edge("a", "c", 7), Edge("b", "c", 7)])
    assert len(set(widths(picture))) == 1
    assert "thicker" not in picture


@pytest.mark.parametrize("character", ["x", "W", "語", "i", " y"])
def test_a_long_label_is_shortened_and_kept_whole_in_its_title(character):
    label = character * 200
    picture = svg([label, "short"], [Edge("short", label)])
    assert label in dict(boxes(picture))
    text, short = sorted(shown(picture), key=len, reverse=True)
    assert text.endswith("…")
    assert label.startswith(text.removesuffix("…"))
    assert short == "short"


def test_wide_characters_get_wide_boxes():
    (_, narrow), (_, wide) = boxes(svg(["nnnnnnnn", "語語語語語語語語", "z"], [Edge("nnnnnnnn", "語語語語語語語語")]))[
        1:
    ]
    assert wide[2] - wide[0] > 1.3 * (narrow[2] - narrow[0])


def test_labels_without_edges_are_stacked_in_a_block():
    places = [place for _, place in boxes(svg([f"label {i}" for i in range(100)], []))]
    assert len({left for left, *_ in places}) == 5
    assert len({top for _, top, *_ in places}) == 20


@given(st.lists(st.sampled_from(list(combinations("abcdefg", 2))), unique=True, min_size=6))
def test_parts_that_do_not_touch_do_not_mix(pairs):
    edges = [Edge(*pair) for pair in pairs] + [Edge(*pair) for pair in combinations("XYZ", 2)]
    place = dict(boxes(svg("XaYbZcdefg", edges)))
    for part in nx.weakly_connected_components(nx.DiGraph(pairs)):
        above = {place[one][1] < place[other][1] for one in part for other in "XYZ" if place[one][0] == place[other][0]}
        assert len(above) <= 1


def test_no_labels_give_a_small_picture():
    root = ElementTree.fromstring(svg([], []))
    assert root.get("role") == "img"
    assert root.findtext(f".//{SVG}text") == "no labels"
    assert dot([], []).endswith("}")
    assert mermaid([], []) == "graph LR"


def test_an_svg_explains_itself():
    root = ElementTree.fromstring(svg("ab", [Edge("a", "b")]))
    assert root[0].tag == f"{SVG}title"
    assert root[1].tag == f"{SVG}desc"
    notes = [text.text for text in root.iterfind(f"./{SVG}g[@class='note']/{SVG}text")]
    assert notes == ["specific", "general"]
    assert "prefers-color-scheme: dark" in root.findtext(f"{SVG}style")


def test_repeated_labels_and_edges_are_drawn_once():
    picture = svg("aabb", [Edge("a", "b", 5), Edge("a", "b", 5)])
    assert len(boxes(picture)) == 2
    assert len(arrows(picture)) == 1


def test_a_cycle_is_refused():
    with pytest.raises(CycleError):
        svg("ab", [Edge("a", "b"), Edge("b", "a")])


@given(graphs())
def test_the_same_graph_gives_the_same_picture(graph):
    assert svg(*graph) == svg(*graph)


def test_a_long_chain_with_all_its_edges_is_drawn_as_a_chain():
    labels = [f"label {i}" for i in range(120)]
    edges = [Edge(*pair) for pair in combinations(labels, 2)]
    picture = svg(labels, edges)
    assert len(arrows(picture)) == 119
    assert len({top for _, (_, top, _, _) in boxes(picture)}) == 1


def test_a_picture_within_a_page_leaves_the_style_to_the_page():
    graph = OrderGraph(("event", "match", "home"), (Edge("match", "event"),))
    alone, within = to_svg(graph), to_svg(graph, with_style=False)
    assert GRAPH in alone
    width = int(re.findall(r'<svg[^>]* width="(\d+)"', alone)[0])
    least = re.search(r' style="min-width:(\d+)px"', within)
    assert least is not None
    assert 0.6 * width < int(least[1]) < 0.8 * width  # it may shrink to fit, but not to become illegible
    assert alone.replace(f"<style>{GRAPH}</style>\n", "") == within.replace(least[0], "")
