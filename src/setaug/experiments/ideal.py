"""What a model would score that had learnt the partner process perfectly: the ceiling of Findings 4 and 5.

Such a model writes an order z of a set Y with probability p(Y | x) q(z | Y), where q is how the orders that it was
trained on were chosen: at random, or such that each partner stands before its symbol. All of it can be added up by
hand, so what training adds or leaves out is told apart from what orders can do at all.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from setaug.simulation import paired_log2_probability

Sets = Mapping[frozenset[str], float]
_RARE = 0.004
"""Symbols with less of x than this are left out; what they would take part in hardly ever comes."""
_ROWS = 1000
"""So many sets are compared with all others at once."""


def likely_sets(x: Sequence[float], *, n_blocks: int) -> dict[frozenset[str], float]:
    """Give the probability of each set that the partner process makes of x, without its rarest symbols."""
    symbols = [symbol for symbol, share in enumerate(x) if share > _RARE]
    found = {}
    for size in range(1, n_blocks + 1):
        for chosen in combinations(symbols, size):
            for joined in (each for n in range(size + 1) for each in combinations(chosen, n)):
                labels = frozenset([*(f"s{one}" for one in chosen), *(f"p{one}" for one in joined)])
                found[labels] = 2 ** paired_log2_probability(labels, x, n_blocks=n_blocks)
    total = sum(found.values())
    return {labels: chance / total for labels, chance in found.items()}


def topological_share(n_added: int) -> float:
    """Give the share of topological orders, where so many are added to a random one."""
    return n_added / (n_added + 1)


def chance_of_start(labels: frozenset[str], start: Sequence[str], topological: float) -> float:
    """Give the chance that an order of a set begins so, if such a share of orders are topological, the rest random.

    Examples
    --------
    >>> chance_of_start(frozenset(["s1", "p1"]), ["p1"], topological=0.5)
    0.75

    """
    left = labels.difference(start)
    if len(left) + len(start) != len(labels):
        return 0.0
    any_order = factorial(len(left)) / factorial(len(labels))
    pairs = [(f"p{label[1:]}", label) for label in labels if label.startswith("s") and f"p{label[1:]}" in labels]
    place = {label: at for at, label in enumerate(start)}
    if any(symbol in place and place.get(partner, len(start)) > place[symbol] for partner, symbol in pairs):
        return (1 - topological) * any_order
    # Half of all orders have a partner before its symbol, independently for each pair that is yet to be written.
    n_settled = sum(partner in place for partner, _ in pairs)
    return (1 - topological) * any_order + topological * any_order * (1 << n_settled)


def greedy_set(sets: Sets, topological: float) -> frozenset[str]:
    """Write the likeliest next label again and again, until ending is likelier."""
    start: list[str] = []
    while True:
        chances: dict[str, float] = defaultdict(float)
        for labels, chance in sets.items():
            if len(labels) == len(start):
                chances[""] += chance * chance_of_start(labels, start, topological)
            elif labels.issuperset(start):
                for label in labels.difference(start):
                    chances[label] += chance * chance_of_start(labels, [*start, label], topological)
        likeliest = max(sorted(chances), key=chances.__getitem__)
        if not likeliest:
            return frozenset(start)
        start.append(likeliest)


def expected_jaccards(sets: Sets) -> NDArray[np.float64]:
    """Give the Jaccard score that each set has on average, if it is the one predicted."""
    names = sorted({label for labels in sets for label in labels})
    chances = np.array(list(sets.values()))
    holds = np.array([[label in labels for label in names] for labels in sets], np.float64)
    sizes = holds.sum(axis=1)
    found = np.empty(len(sets))
    for start in range(0, len(sets), _ROWS):
        rows = slice(start, start + _ROWS)
        both = holds[rows] @ holds.T
        found[rows] = (both / (sizes[rows, None] + sizes - both)) @ chances
    return found


def ideal_scores(inputs: Sequence[Sequence[float]], *, n_blocks: int, shares: Sequence[float]) -> dict[str, float]:
    """Give the mean Jaccard scores of a perfect model for inputs x.

    ``greedy 0.5`` is greedy decoding after training on orders half of which were topological, ``random`` is sampling,
    ``best`` is the set with the highest expected score, of those that can come.
    """
    totals: dict[str, float] = defaultdict(float)
    for x in inputs:
        sets = likely_sets(x, n_blocks=n_blocks)
        scores = dict(zip(sets, expected_jaccards(sets).tolist(), strict=True))
        totals["best"] += max(scores.values())
        totals["random"] += sum(sets[labels] * score for labels, score in scores.items())
        for share in shares:
            totals[f"greedy {share:.2f}"] += scores[greedy_set(sets, share)]
    return {name: total / len(inputs) for name, total in totals.items()}
