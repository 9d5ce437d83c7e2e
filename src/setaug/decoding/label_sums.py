"""The probability of every known label, from a model's next-token distributions while it generates sets.

A label is in a set if it is written at one of its places. So the probability that a set has the label is the mean, over
sampled sets, of the sum over their places of the probability that the label is written next (a Rao-Blackwell estimate:
a label need not be sampled to have one). The probability that a label is written next is a product along its tokens in
the trie. Where no sample went into a branch with several labels, these share its probability as they share the training
data; such branches are improbable.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from setaug.decoding.automaton import ClosedSets
from setaug.decoding.trie import TokenTrie, TrieNode

Floats = NDArray[np.float64]


class NodeSums:
    """The next-token distributions observed at the nodes of tries, for one text."""

    def __init__(self) -> None:
        self._seen: dict[TrieNode, tuple[float, Floats]] = {}

    def add(self, nodes: Iterable[TrieNode], tokens: NDArray[np.int64], probabilities: Floats, weight: float) -> None:
        """Add the observation at a node: the probabilities of the next tokens, sorted by token."""
        for node in nodes:
            places = np.minimum(np.searchsorted(tokens, node.tokens), len(tokens) - 1)
            found = np.where(tokens[places] == node.tokens, probabilities[places], 0.0) * weight
            before, total = self._seen.get(node, (0.0, 0.0))
            self._seen[node] = before + weight, total + found

    def expected_counts(self, trie: TokenTrie, prior: Floats, n_samples: float) -> Floats:
        """Return how often each item of a trie is written, on average.

        Parameters
        ----------
        prior
            The weight of each item, for branches that no sample went into.
        n_samples
            The weight of all samples together.

        """
        ranked = prior[trie.items]
        found = np.zeros(len(trie))
        if trie.root in self._seen:
            _, total = self._seen[trie.root]
            self._spread(trie.root, total / n_samples, ranked, found)
        counts = np.empty(len(trie))
        counts[trie.items] = found
        return counts

    def _spread(self, node: TrieNode, masses: Floats, prior: Floats, found: Floats) -> None:
        """Spread the probability of each child of a node over the items below it."""
        starts = node.starts
        if not len(node.tokens):
            return
        below = np.add.reduceat(prior[starts[0] : starts[-1]], starts[:-1] - starts[0])
        shares = np.repeat(masses / below, np.diff(starts))
        found[starts[0] : starts[-1]] = prior[starts[0] : starts[-1]] * shares
        for at, token in enumerate(node.tokens.tolist()):
            if starts[at + 1] - starts[at] < 2:
                continue
            child = node.trie.children.get((node.start, node.stop, node.depth, token))
            if child is None or child not in self._seen:
                continue
            weight, total = self._seen[child]
            means = total / weight
            if child.item is not None:
                found[child.start] = masses[at] * max(1.0 - float(means.sum()), 0.0)
            self._spread(child, masses[at] * means, prior, found)


class LabelTally:
    """Accumulate label probabilities while a model generates sets.

    Parameters
    ----------
    n_texts, n_each
        The number of texts, and of sets that are drawn of each.

    """

    def __init__(self, automaton: ClosedSets, n_texts: int, n_each: int) -> None:
        self._automaton, self._n_each = automaton, n_each
        self._sums = [NodeSums() for _ in range(n_texts)]
        self._sizes: list[defaultdict[int, float]] = [defaultdict(float) for _ in range(n_texts)]

    def add(self, text: int, state: object, tokens: NDArray[np.int64], shares: Floats, n_sets: int) -> None:
        """Add the probabilities of the next tokens (sorted) after a common prefix of `n_sets` sets of a text."""
        self._sums[text].add(self._automaton.nodes(state), tokens, shares, n_sets)
        size = self._automaton.size_if_ended(state)
        if size is not None:
            self._sizes[text][size] += float(shares[tokens == self._automaton.end].sum()) * n_sets

    def probabilities(self, prior: Floats, n_sizes: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the probability of each label (columns) of each text (rows), and that of each size: 0, 1, 2, ...

        Parameters
        ----------
        prior
            The weight of each label, for branches of the trie that no set went into.

        """
        automaton, n_each = self._automaton, self._n_each
        labels = np.zeros((len(self._sums), len(prior)), np.float32)
        sizes = np.zeros((len(self._sums), n_sizes), np.float32)
        numbers = np.array(automaton.numbers, np.int64)
        for at, sums in enumerate(self._sums):
            counts = [sums.expected_counts(trie, prior, n_each) for trie in automaton.label_tries]
            labels[at] = np.minimum(np.sum(counts, axis=0), 1.0)
            if automaton.size_trie is not None:
                sizes[at, numbers] = sums.expected_counts(automaton.size_trie, 1 / (1.0 + numbers), n_each)
                continue
            for size, weight in self._sizes[at].items():
                sizes[at, size] = weight / n_each
        return labels, sizes
