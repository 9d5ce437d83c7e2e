"""A trie over sorted token sequences: those with a common prefix are neighbours, so a node is a range of them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TrieNode:
    """The sequences with a common prefix: those at the sorted positions `start` to `stop`."""

    trie: "TokenTrie"
    start: int
    stop: int
    depth: int

    @property
    def item(self) -> int | None:
        """The item whose sequence ends here."""
        return int(self.trie.items[self.start]) if self.trie.lengths[self.start] == self.depth else None

    @cached_property
    def _children(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        start = self.start + (self.item is not None)
        if self.depth == self.trie.rows.shape[1]:
            return np.empty(0, np.int64), np.array([start])
        tokens, starts = np.unique(self.trie.rows[start : self.stop, self.depth], return_index=True)
        return tokens, np.append(starts + start, self.stop)

    @property
    def tokens(self) -> NDArray[np.int64]:
        """The next tokens, sorted."""
        return self._children[0]

    @property
    def starts(self) -> NDArray[np.int64]:
        """The start of each child's sequences, and the end of the last one's."""
        return self._children[1]

    @cached_property
    def _start_list(self) -> list[int]:
        found: list[int] = self.starts.tolist()
        return found

    def child(self, token: int) -> "TrieNode | None":
        """Follow a token."""
        known = self.trie.children.get((self.start, self.stop, self.depth, token))
        if known is not None:
            return known
        tokens, starts = self._children
        at = int(np.searchsorted(tokens, token))
        if at == len(tokens) or tokens[at] != token:
            return None
        child = TrieNode(self.trie, int(starts[at]), int(starts[at + 1]), self.depth + 1)
        self.trie.children[self.start, self.stop, self.depth, token] = child
        return child

    def has_unused(self, used: Collection[int]) -> bool:
        """Return whether an item below this node is unused."""
        places = self.trie.places
        return sum(self.start <= places[item] < self.stop for item in used) < self.stop - self.start

    def open_tokens(self, used: Collection[int]) -> NDArray[np.int64]:
        """Return the tokens that lead to an unused item."""
        tokens, starts = self.tokens, self._start_list
        places = [place for place in map(self.trie.places.__getitem__, used) if starts[0] <= place < self.stop]
        touched = Counter(bisect_right(starts, place) - 1 for place in places)
        closed = [at for at, count in touched.items() if count == starts[at + 1] - starts[at]]
        return np.delete(tokens, closed) if closed else tokens


class TokenTrie:
    """A trie that finds the tokens that can follow a prefix.

    Parameters
    ----------
    sequences
        Different, non-empty sequences of tokens; an item is the index of its sequence.

    Examples
    --------
    >>> trie = TokenTrie([(5, 6), (5,), (7, 8)])
    >>> trie.root.tokens.tolist(), trie.root.child(5).item, trie.root.child(5).tokens.tolist()
    ([5, 7], 1, [6])
    >>> trie.root.open_tokens({0, 1}).tolist()
    [7]

    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        if not len(sequences) or not all(sequences):
            raise ValueError("expected at least one sequence, each with at least one token.")
        order = sorted(range(len(sequences)), key=lambda item: tuple(sequences[item]))
        self.items = np.array(order, np.int64)
        self.lengths = np.array([len(sequences[item]) for item in order], np.int64)
        self.rows = np.full((len(order), int(self.lengths.max(initial=0))), -1, np.int64)
        for row, item in zip(self.rows, order, strict=True):
            row[: len(sequences[item])] = sequences[item]
        if (self.rows[1:] == self.rows[:-1]).all(axis=1).any():
            raise ValueError("the sequences must be distinct.")
        places = np.empty(len(order), np.int64)
        places[self.items] = np.arange(len(order))
        self.places: list[int] = places.tolist()
        self.children: dict[tuple[int, int, int, int], TrieNode] = {}
        self.root = TrieNode(self, 0, len(order), 0)

    def __len__(self) -> int:
        return len(self.items)
