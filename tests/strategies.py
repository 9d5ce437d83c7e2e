"""What several tests share: hypothesis strategies, posets, and ways to draw their orders."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from random import Random

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from scipy.stats import chisquare

from setaug.orders import (
    EdgeTable,
    LabelStatistics,
    LinearExtensions,
    OrderBatch,
    SetBatch,
    Stream,
    Thresholds,
    make_ordering,
)

Edges = list[tuple[int, int]]

# --- labels and texts -------------------------------------------------------------------------------------------------

any_char = st.characters(exclude_categories=["Cs"])
tricky_char = st.sampled_from("\\|,;:-\n\r\t \x0b\x1c\x85\xa0\u2003\ufeff\"'`nrstu0123abAB")
any_text = st.text(any_char | tricky_char)
any_label = st.text(tricky_char | any_char, min_size=1, max_size=12).filter(str.strip) | st.from_regex(
    r"\A[0-9]{1,12}\Z"
)
label_lists = st.lists(any_label, unique=True, max_size=6)

_FIXED_SEPARATORS = (" | ", ",", ", ", ";", "::", " - - ", "--", "-a-", "<sep>", "\n", "\n\n", "\t", " ", "  ", " \n")
separators = st.sampled_from(_FIXED_SEPARATORS) | st.text(
    any_char | tricky_char.filter(lambda char: char != "\\"), min_size=1, max_size=4
).filter(lambda text: not (text.strip() or text)[0].isalnum() and "\\" not in text)

# --- sequences of tokens ---------------------------------------------------------------------------------------------

END = 0
"""The token that ends a set; it stands in no other sequence."""


def token_sequences(max_token: int = 3, max_length: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    """Give short sequences of few tokens, so that many begin alike or are cut out of each other."""
    return st.lists(st.integers(1, max_token), min_size=1, max_size=max_length).map(tuple)


# --- counts -----------------------------------------------------------------------------------------------------------

pair_keys = st.integers(0, 40) | st.sampled_from([1 << 63, (1 << 64) - 1])

# --- label sets and thresholds ----------------------------------------------------------------------------------------

ALPHABET = "abcdefgh"
label_sets = st.lists(st.sampled_from(ALPHABET), unique=True, max_size=6)


def _repeat(kinds: list[tuple[list[str], int]]) -> list[list[str]]:
    return [list(labels) for labels, times in kinds for _ in range(times)]


corpora = st.lists(st.tuples(label_sets, st.integers(1, 30)), min_size=1, max_size=10).map(_repeat)
"""Lists of label sets, some of which come many times, so that counts differ much."""

pmi_bounds = st.sampled_from([-2, -1, 0, 1, 2, 0.5, -0.25, Fraction(1, 3), 1.3])
ratio_bounds = st.sampled_from([1, 1.2, 1.5, 2, 3.0, Fraction(7, 3), 2.7182818])
all_thresholds = st.builds(Thresholds, min_pmi=pmi_bounds, min_ratio=ratio_bounds)

# --- posets -----------------------------------------------------------------------------------------------------------


def random_edges(rng: Random, size: int, chance: float) -> Edges:
    """Give the edges of a random graph without cycles, its labels in no particular order."""
    line = rng.sample(range(size), size)
    return [(line[i], line[j]) for i in range(size) for j in range(i + 1, size) if rng.random() < chance]


@st.composite
def posets(draw: st.DrawFn, max_size: int = 6) -> tuple[int, Edges]:
    """Give a size and edges that form no cycle."""
    size = draw(st.integers(0, max_size))
    line = draw(st.permutations(range(size)))
    pairs = [(line[i], line[j]) for i in range(size) for j in range(i + 1, size)]
    return size, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


def chain(size: int) -> Edges:
    return list(pairwise(range(size)))


def fence(size: int) -> Edges:
    """0 < 1 > 2 < 3 > ..."""
    return [(i, i + 1) if i % 2 == 0 else (i + 1, i) for i in range(size - 1)]


def behind_chain(length: int, size: int, edges: Edges) -> tuple[int, Edges]:
    """Put a poset behind a chain: as many orders as before, in one connected part with so many more labels."""
    later = [(i + length, j + length) for i, j in edges]
    return length + size, [*chain(length), *((length - 1, length + i) for i in range(size)), *later]


def all_orders(size: int, edges: Edges) -> list[tuple[int, ...]]:
    """List the orders of a poset, by networkx."""
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(size))
    return [tuple(order) for order in nx.all_topological_sorts(graph)] if size else [()]


def is_allowed(order: Sequence[int], size: int, edges: Edges) -> bool:
    place = {label: at for at, label in enumerate(order)}
    return sorted(order) == list(range(size)) and all(place[i] < place[j] for i, j in edges)


def edge_table(size: int, edges: Edges) -> EdgeTable:
    """Count a poset's labels so that they have its edges: counts grow along them, and no other two labels meet."""
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(size))
    counts = np.zeros(size, np.int64)
    counts[list(nx.topological_sort(graph))] = np.arange(1, size + 1)
    pairs = np.unique(np.array([min(edge) << 32 | max(edge) for edge in edges], np.uint64))
    names = [str(i) for i in range(size)]
    statistics = LabelStatistics.from_counts(1000, names, counts, pairs, np.ones(len(pairs), np.int64))
    return statistics.edges(Thresholds(min_pmi=-1000, min_ratio=1))


def order_poset(
    size: int, edges: Edges, n_sets: int, n_orders: int = 1, *, name: str = "topological", seed: int = 0, **options
) -> OrderBatch:
    """Draw orders of one poset, for so many equal sets, by the compiled loop."""
    labels = [str(i) for i in range(size)]
    ordering = make_ordering(name, labels=labels, edges=edge_table(size, edges), **options)
    return ordering.orders(SetBatch.of([range(size)] * n_sets), n_orders, seed=seed, first_index=0)


def draw_counted(size: int, edges: Edges, n: int, *, seed: int = 11) -> list[tuple[int, ...]]:
    extensions = LinearExtensions(size, edges)
    return [tuple(extensions.draw(Stream(seed, i))) for i in range(n)]


def draw_huber(size: int, edges: Edges, n: int, *, seed: int = 12) -> list[tuple[int, ...]]:
    extensions = LinearExtensions(size, edges, max_states=0)
    return [tuple(extensions.draw(Stream(seed, i))) for i in range(n)]


def draw_compiled(size: int, edges: Edges, n: int, *, seed: int = 13, **options) -> list[tuple[int, ...]]:
    positions = order_poset(size, edges, n, seed=seed, **options).positions
    return [tuple(order) for order in positions.reshape(n, size).tolist()]


def draw_behind_chain(length: int, size: int, edges: Edges, n: int, *, seed: int = 14) -> list[tuple[int, ...]]:
    """Draw by the compiled loop's way for larger parts, by putting the poset behind a chain."""
    longer = order_poset(*behind_chain(length, size, edges), 1, n, seed=seed).positions.tolist()
    assert all(order[:length] == [*range(length)] for order in longer)
    return [tuple(i - length for i in order[length:]) for order in longer]


UNIFORM_WAYS: dict[str, Callable[..., list[tuple[int, ...]]]] = {
    "counted": draw_counted,
    "huber": draw_huber,
    "compiled": draw_compiled,
    "compiled, behind a chain": partial(draw_behind_chain, 6),
}


def p_uniform(drawn: Iterable[tuple[int, ...]], possible: list[tuple[int, ...]]) -> float:
    """Give the p-value of a chi-square test that draws are uniform over what is possible."""
    counts = Counter(drawn)
    assert counts.keys() <= set(possible)
    return chisquare([counts[order] for order in possible]).pvalue if len(possible) > 1 else 1.0
