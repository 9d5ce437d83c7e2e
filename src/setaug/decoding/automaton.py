"""Automata that allow only sets as output: no label twice, and as many labels as the size says.

Both work on tokens alone. States are immutable, so the branches of a beam search can share them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from setaug.decoding.trie import TokenTrie, TrieNode

Tokens: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Choices:
    """The tokens that may come next: those listed, or all but those listed."""

    tokens: Tokens
    are_banned: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What has been read: the labels (indices or texts) in order, the size, and whether the output has ended."""

    labels: tuple[int, ...] | tuple[str, ...]
    size: int | None
    has_ended: bool


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that a set may have."""

    allowed: frozenset[int]

    @classmethod
    def between(cls, least: int, most: int) -> "Sizes":
        """Allow all sizes from the least to the most."""
        return cls(frozenset(range(least, most + 1)))

    @property
    def most(self) -> int:
        """The largest."""
        return max(self.allowed)

    def may_end(self, count: int, size: int | None) -> bool:
        """Return whether a set of `count` labels is complete; `size` is the stated size, if any."""
        return count == size if size is not None else count in self.allowed

    def may_go_on(self, count: int, size: int | None) -> bool:
        """Return whether a set of `count` labels may get another one."""
        return count < (self.most if size is None else size)


class SetAutomaton(Protocol):
    """Read the tokens of a set one by one."""

    def start(self) -> object:
        """Return the state before the first token."""
        ...

    def step(self, state: object, token: int) -> object | None:
        """Read a token; None where it may not stand."""
        ...

    def choices(self, state: object) -> Choices:
        """Return the tokens that may come next."""
        ...

    def reading(self, state: object) -> Reading:
        """Return what has been read."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    """A way to read the tokens so far: the node of a trie, the labels before it, the size."""

    node: TrieNode
    labels: tuple[int, ...] = ()
    size: int | None = None
    has_ended: bool = False


_Places: TypeAlias = tuple[_Place, ...]


class ClosedSets:
    """Read sets of known labels.

    Parameters
    ----------
    later
        The tokens of each label together with the separator before it; a label is known by its place here.
    first
        The tokens of each label at the start of the output, where sizes are not written.
    sizes
        How many labels a set may have.
    written_sizes
        The tokens of each size that may be written, in front of everything; None where sizes are not written.
    end
        The token that ends the output.
    prefix
        Tokens that always come first.

    """

    def __init__(
        self,
        *,
        later: Sequence[Sequence[int]],
        first: Sequence[Sequence[int]] | None,
        sizes: Sizes,
        written_sizes: dict[int, tuple[int, ...]] | None,
        end: int,
        prefix: Sequence[int] = (),
    ) -> None:
        self._sizes = sizes
        self._end = end
        self._prefix = TokenTrie([tuple(prefix)]) if prefix else None
        self._numbers = list(written_sizes or ())
        self._written = TokenTrie(list(written_sizes.values())) if written_sizes else None
        self._first = TokenTrie(first) if first is not None else None
        self._later = TokenTrie(later)
        self._label_roots = [trie.root for trie in (self._first, self._later) if trie is not None]

    def start(self) -> _Places:
        """Return the state before the first token: all ways to read the tokens so far."""
        return self._opening() if self._prefix is None else (_Place(self._prefix.root),)

    def _opening(self) -> _Places:
        first = self._written or self._first
        assert first is not None, "sets begin with their size, or with a label"
        return (_Place(first.root),)

    def step(self, state: object, token: int) -> _Places | None:
        """Read a token; None where it may not stand."""
        places: list[_Place] = []
        for place in cast(_Places, state):
            if place.has_ended:
                return (place,)
            may_end, may_go_on = self._may(place)
            if may_end and token == self._end:
                return (_Place(place.node, place.labels, place.size, has_ended=True),)
            child = place.node.child(token) if may_go_on else None
            if child is not None and (child.trie not in self._label_tries or child.has_unused(place.labels)):
                places.extend(self._follow(place, child))
        return tuple(places) or None

    @property
    def _label_tries(self) -> list[TokenTrie]:
        return [root.trie for root in self._label_roots]

    def _may(self, place: _Place) -> tuple[bool, bool]:
        """Return whether the set may end here, and whether it may go on."""
        if place.node not in self._label_roots:
            return False, True
        count = len(place.labels)
        return self._sizes.may_end(count, place.size), self._sizes.may_go_on(count, place.size)

    def _follow(self, place: _Place, child: TrieNode) -> Iterable[_Place]:
        """Go to a node; where something ends there, also go on behind it."""
        item = child.item
        if len(child.tokens):
            yield _Place(child, place.labels, place.size)
        if item is None:
            return
        if child.trie is self._prefix:
            yield from self._opening()
        elif child.trie is self._written:
            yield _Place(self._later.root, (), self._numbers[item])
        elif item not in place.labels:
            yield _Place(self._later.root, (*place.labels, item), place.size)

    def choices(self, state: object) -> Choices:
        """List the tokens that may come next."""
        lists = []
        for place in cast(_Places, state):
            may_end, may_go_on = self._may(place)
            if place.has_ended or may_end:
                lists.append(np.array([self._end]))
            if may_go_on and not place.has_ended:
                used = place.labels if place.node.trie in self._label_tries else ()
                lists.append(place.node.open_tokens(used))
        return Choices(lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists)))

    def reading(self, state: object) -> Reading:
        """Return what has been read, with labels as indices."""
        place = max(cast(_Places, state), key=lambda place: len(place.labels))
        return Reading(place.labels, place.size, place.has_ended)


@dataclass(frozen=True, slots=True)
class _OpenPlace:
    node: TrieNode | None
    """Where in a prefix or size; None inside the labels."""
    labels: tuple[str, ...] = ()
    size: int | None = None
    tokens: tuple[int, ...] = ()
    """Those of the label that is being written."""
    label: str | None = None
    """What they stand for, if it ended here."""
    to_come: tuple[int, ...] = ()
    """The rest of the separator that has begun."""
    has_ended: bool = False


class OpenSets:
    """Read sets of any labels: none twice, and as many as the size says.

    A label cannot hold the separator's first character, nor a special token.

    Parameters
    ----------
    read_label
        Returns the label that tokens spell, with the separator's in front if it has one; None if they are no complete
        label.
    spaces
        Tokens before the separator which may also stand in a label.
    separator
        The tokens between two labels.
    banned
        Tokens that may not stand in a label; the end and the separator's first token among them.
    max_label_tokens
        A label this long has to end as soon as it can.

    The other parameters are those of `ClosedSets`.

    """

    def __init__(
        self,
        *,
        read_label: Callable[[tuple[int, ...]], str | None],
        separator: tuple[int, ...],
        spaces: tuple[int, ...] = (),
        banned: Tokens,
        max_label_tokens: int,
        sizes: Sizes,
        written_sizes: dict[int, tuple[int, ...]] | None,
        end: int,
        prefix: Sequence[int] = (),
    ) -> None:
        self._read_label = read_label
        self._separator = separator
        self._behind_size = spaces + separator
        self._banned = np.setdiff1d(banned, [end, separator[0]])
        self._max_label_tokens = max_label_tokens
        self._sizes = sizes
        self._end = end
        self._prefix = TokenTrie([tuple(prefix)]) if prefix else None
        self._numbers = list(written_sizes or ())
        self._written = TokenTrie(list(written_sizes.values())) if written_sizes else None

    def start(self) -> _OpenPlace:
        """Return the state before the first token."""
        return self._opening() if self._prefix is None else _OpenPlace(self._prefix.root)

    def _opening(self) -> _OpenPlace:
        return _OpenPlace(None if self._written is None else self._written.root)

    def step(self, state: object, token: int) -> _OpenPlace | None:
        """Read a token; None where it may not stand."""
        place = cast(_OpenPlace, state)
        if place.has_ended:
            return place
        choices = self.choices(place)
        if (token in choices.tokens) == choices.are_banned:
            return None
        if place.node is not None:
            return self._step_in_node(place, place.node, token)
        if place.to_come:
            return _OpenPlace(None, place.labels, place.size, to_come=place.to_come[1:])
        if token not in (self._end, self._separator[0]):
            tokens = (*place.tokens, token)
            before = self._separator if place.labels or place.size else ()
            return _OpenPlace(None, place.labels, place.size, tokens, self._read_label(before + tokens))
        labels = place.labels if place.label is None else (*place.labels, place.label)
        if token == self._end:
            return _OpenPlace(None, labels, place.size, has_ended=True)
        return _OpenPlace(None, labels, place.size, to_come=self._separator[1:])

    def _step_in_node(self, place: _OpenPlace, node: TrieNode, token: int) -> _OpenPlace:
        child = node.child(token)
        if child is None:  # the end, or the separator, behind a size
            has_ended = token == self._end
            return _OpenPlace(None, (), place.size, to_come=self._behind_size[1:], has_ended=has_ended)
        item = child.item
        if child.trie is self._prefix:
            return _OpenPlace(child) if item is None else self._opening()
        return _OpenPlace(child, (), None if item is None else self._numbers[item])

    def choices(self, state: object) -> Choices:
        """Return the tokens that may come next."""
        place = cast(_OpenPlace, state)
        if place.has_ended:
            return Choices(np.array([self._end]))
        if place.to_come:
            return Choices(np.array(place.to_come[:1]))
        if place.node is not None:
            behind = [] if place.size is None else [self._behind_size[0] if place.size else self._end]
            return Choices(np.append(place.node.tokens, np.array(behind, np.int64)))
        stops = self._stops(place)
        if self._sizes.most == 0 or (stops and len(place.tokens) >= self._max_label_tokens):
            return Choices(np.array(stops))
        no_stops = [token for token in (self._end, self._separator[0]) if token not in stops]
        return Choices(np.append(self._banned, np.array(no_stops, np.int64)), are_banned=True)

    def _stops(self, place: _OpenPlace) -> list[int]:
        """List the tokens that may end the label that is being written, or the empty set."""
        if not place.tokens:
            is_start = not place.labels and place.size is None
            return [self._end] if is_start and self._sizes.may_end(0, None) else []
        if place.label is None or place.label in place.labels:
            return []
        count = len(place.labels) + 1
        stops = [self._end] if self._sizes.may_end(count, place.size) else []
        if self._sizes.may_go_on(count, place.size):
            stops.append(self._separator[0])
        return stops

    def reading(self, state: object) -> Reading:
        """Return what has been read, with labels as texts."""
        place = cast(_OpenPlace, state)
        return Reading(place.labels, place.size, place.has_ended)
