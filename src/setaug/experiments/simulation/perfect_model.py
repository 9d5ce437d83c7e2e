"""The scores of a perfect model of the partner process: the ceiling of Findings 4 and 5.

A perfect model writes an order z of a set Y with probability p(Y | x) q(z | Y), where q is the distribution of training
orders: uniform, or uniform over those with each partner before its symbol. Everything is computed exactly, which
separates the effect of training from what orders can do at all.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from setaug.experiments.simulation.processes import paired_log2_probability

Sets = Mapping[frozenset[str], float]
_RARE = 0.004
"""Symbols with a smaller share of x are left out; their sets hardly ever occur."""
_ROWS = 1000
"""Sets that are compared with all others at once."""


def likely_sets(x: Sequence[float], *, n_blocks: int) -> dict[frozenset[str], float]:
    """Return the probability of each set of the partner process, without the rarest symbols of x."""
    symbols = [symbol for symbol, share in enumerate(x) if share > _RARE]
    found = {}
    for size in range(1, n_blocks + 1):
        for chosen in combinations(symbols, size):
            for joined in (each for n in range(size + 1) for each in combinations(chosen, n)):
                labels = frozenset([*(f"s{one}" for one in chosen), *(f"p{one}" for one in joined)])
                found[labels] = 2 ** paired_log2_probability(labels, x, n_blocks=n_blocks)
    total = sum(found.values())
    return {labels: probability / total for labels, probability in found.items()}


def prefix_probability(labels: frozenset[str], prefix: Sequence[str], topological: float) -> float:
    """Return the probability that an order of a set has this prefix, given the share of topological orders.

    Examples
    --------
    >>> prefix_probability(frozenset(["s1", "p1"]), ["p1"], topological=0.5)
    0.75

    """
    left = labels.difference(prefix)
    if len(left) + len(prefix) != len(labels):
        return 0.0
    any_order = factorial(len(left)) / factorial(len(labels))
    pairs = [(f"p{label[1:]}", label) for label in labels if label.startswith("s") and f"p{label[1:]}" in labels]
    position = {label: at for at, label in enumerate(prefix)}
    if any(symbol in position and position.get(partner, len(prefix)) > position[symbol] for partner, symbol in pairs):
        return (1 - topological) * any_order
    # Half of all orders have a partner before its symbol, independently for each pair that is still to be written.
    n_settled = sum(partner in position for partner, _ in pairs)
    return (1 - topological) * any_order + topological * any_order * (1 << n_settled)


def greedy_set(sets: Sets, topological: float) -> frozenset[str]:
    """Return the set of greedy decoding: the most likely next label until the end is more likely."""
    prefix: list[str] = []
    while True:
        scores: dict[str, float] = defaultdict(float)
        for labels, probability in sets.items():
            if len(labels) == len(prefix):
                scores[""] += probability * prefix_probability(labels, prefix, topological)
            elif labels.issuperset(prefix):
                for label in labels.difference(prefix):
                    scores[label] += probability * prefix_probability(labels, [*prefix, label], topological)
        best = max(sorted(scores), key=scores.__getitem__)
        if not best:
            return frozenset(prefix)
        prefix.append(best)


def expected_jaccards(sets: Sets) -> NDArray[np.float64]:
    """Return the expected Jaccard score of predicting each set."""
    names = sorted({label for labels in sets for label in labels})
    probabilities = np.array(list(sets.values()))
    members = np.array([[label in labels for label in names] for labels in sets], np.float64)
    sizes = members.sum(axis=1)
    found = np.empty(len(sets))
    for start in range(0, len(sets), _ROWS):
        rows = slice(start, start + _ROWS)
        both = members[rows] @ members.T
        found[rows] = (both / (sizes[rows, None] + sizes - both)) @ probabilities
    return found


def perfect_scores(inputs: Sequence[Sequence[float]], *, n_blocks: int, shares: Sequence[float]) -> dict[str, float]:
    """Return the mean Jaccard scores of a perfect model for inputs x.

    ``greedy 0.50`` is greedy decoding after training on orders half of which were topological, ``random`` is sampling,
    ``best`` is the set with the highest expected score.
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
