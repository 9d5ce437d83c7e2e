"""Automata that accept only sets: no duplicate labels, and as many labels as the stated size.

Both work on tokens alone. States are immutable, so the branches of a beam search can share them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol, TypeAlias, cast

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
class PartialSet:
    """The set that an automaton has read so far, token by token.

    Unlike a `DecodedSet`, which is read from a whole text, it may be unfinished and has no flaws (a token that makes
    one is refused), and labels of a closed vocabulary are indices.
    """

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
        """The largest size."""
        return max(self.allowed)

    def may_end(self, count: int, size: int | None) -> bool:
        """Return whether a set of `count` labels is complete; `size` is the stated size, if any."""
        return count == size if size is not None else count in self.allowed

    def may_go_on(self, count: int, size: int | None) -> bool:
        """Return whether another label may follow `count` labels."""
        return count < (self.most if size is None else size)


class SetAutomaton(Protocol):
    """Read the tokens of a set one by one."""

    @property
    def tokens(self) -> Tokens | None:
        """All tokens that a set can contain, and the end; None for any."""
        ...

    def start(self) -> object:
        """Return the state before the first token."""
        ...

    def step(self, state: object, token: int) -> object | None:
        """Read a token; None where it may not stand."""
        ...

    def choices(self, state: object) -> Choices:
        """Return the tokens that may come next."""
        ...

    def reading(self, state: object) -> PartialSet:
        """Return what has been read."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    """A way to read the tokens so far: the node of a trie, the labels before it, the size."""

    node: TrieNode | None
    """None where the set is complete, so that only the end may come."""
    labels: tuple[int, ...] = ()
    size: int | None = None
    has_ended: bool = False


_Places: TypeAlias = tuple[_Place, ...]


class ClosedSets:
    """Read sets of known labels.

    Parameters
    ----------
    later
        The tokens of each label together with the text before it, and the text after it that goes on to another label;
        a label is known by its place here.
    first
        The same for the first label of a set; None if that is the same.
    later_last, first_last
        The same for the last label, with the text that ends the set; None if nothing ends it but the end token.
    empty
        The tokens in place of labels, if there are none.
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
        later_last: Sequence[Sequence[int]] | None = None,
        first_last: Sequence[Sequence[int]] | None = None,
        empty: Sequence[int] = (),
    ) -> None:
        self._sizes = sizes
        self._end = np.array([end])
        self._prefix = TokenTrie([tuple(prefix)]) if prefix else None
        self.numbers = list(written_sizes or ())
        self._written = TokenTrie(list(written_sizes.values())) if written_sizes else None
        self._empty = TokenTrie([tuple(empty)]) if empty else None
        self._later = TokenTrie(later)
        self._first = self._later if first is None else TokenTrie(first)
        self._later_last = self._later if later_last is None else TokenTrie(later_last)
        self._first_last = self._later_last if first_last is None else TokenTrie(first_last)
        self._has_last = later_last is not None

    @cached_property
    def tokens(self) -> Tokens:
        """All tokens that a set can contain, and the end, sorted."""
        tries = (self._prefix, self._written, self._empty, self._first, self._first_last, self._later, self._later_last)
        found = np.unique(np.concatenate([self._end, *(trie.rows.ravel() for trie in tries if trie is not None)]))
        return found[found >= 0]

    def start(self) -> _Places:
        """Return the state before the first token: all ways to read the tokens so far."""
        return self._opening() if self._prefix is None else (_Place(self._prefix.root),)

    def _opening(self) -> _Places:
        return tuple(self._go_on((), None)) if self._written is None else (_Place(self._written.root),)

    def _go_on(self, labels: tuple[int, ...], size: int | None) -> Iterator[_Place]:
        """Yield the possible continuations after the size, or after a label that may not be the last."""
        count = len(labels)
        if self._sizes.may_end(count, size) and not (labels and self._has_last):
            yield _Place(None if labels or self._empty is None else self._empty.root, labels, size)
        if not self._sizes.may_go_on(count, size):
            return
        if not self._has_last or self._sizes.may_go_on(count + 1, size):
            yield _Place((self._later if labels else self._first).root, labels, size)
        if self._has_last and self._sizes.may_end(count + 1, size):
            yield _Place((self._later_last if labels else self._first_last).root, labels, size)

    def step(self, state: object, token: int) -> _Places | None:
        """Read a token; None where it may not stand."""
        places: list[_Place] = []
        for place in cast(_Places, state):
            if place.has_ended:
                return (place,)
            if place.node is None:
                if token == self._end[0]:
                    return (_Place(None, place.labels, place.size, has_ended=True),)
                continue
            child = place.node.child(token)
            if child is not None and (self._is_fixed(child) or child.has_unused(place.labels)):
                places.extend(self._follow(place, child))
        return tuple(places) or None

    def _is_fixed(self, node: TrieNode) -> bool:
        """Return whether a node is not one of a label."""
        return node.trie is self._prefix or node.trie is self._written or node.trie is self._empty

    def _follow(self, place: _Place, child: TrieNode) -> Iterable[_Place]:
        """Move to a node; if a label or size ends there, also continue after it."""
        item = child.item
        if len(child.tokens):
            yield _Place(child, place.labels, place.size)
        if item is None:
            return
        if child.trie is self._prefix:
            yield from self._opening()
        elif child.trie is self._written:
            yield from self._go_on((), self.numbers[item])
        elif child.trie is self._empty:
            yield _Place(None, (), place.size)
        elif item in place.labels:
            return
        elif self._has_last and child.trie in (self._later_last, self._first_last):
            yield _Place(None, (*place.labels, item), place.size)
        else:
            yield from self._go_on((*place.labels, item), place.size)

    def choices(self, state: object) -> Choices:
        """List the tokens that may come next."""
        lists = []
        for place in cast(_Places, state):
            if place.node is None:
                lists.append(self._end)
            else:
                lists.append(place.node.open_tokens(() if self._is_fixed(place.node) else place.labels))
        return Choices(lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists)))

    def nodes(self, state: object) -> list[TrieNode]:
        """Return the nodes of a state in the tries of labels and sizes."""
        places = (place.node for place in cast(_Places, state))
        return [node for node in places if node is not None and node.trie not in (self._prefix, self._empty)]

    def size_if_ended(self, state: object) -> int | None:
        """Return the number of labels of a set that may end here and has not ended before; None if it may not end."""
        ends = [place for place in cast(_Places, state) if place.node is None and not place.has_ended]
        return len(ends[0].labels) if ends else None

    @property
    def end(self) -> int:
        """The token that ends the output."""
        return int(self._end[0])

    @property
    def label_tries(self) -> list[TokenTrie]:
        """The tries of labels, by their position in a set; each once."""
        return list(dict.fromkeys((self._first, self._later, self._first_last, self._later_last)))

    @property
    def size_trie(self) -> TokenTrie | None:
        """The trie of written sizes, if there are any."""
        return self._written

    @property
    def can_sum(self) -> bool:
        """Whether each label is in only one trie at any position, so that sums over tries count each label once."""
        return self._written is not None or not self._has_last

    def reading(self, state: object) -> PartialSet:
        """Return what has been read, with labels as indices."""
        place = max(cast(_Places, state), key=lambda place: len(place.labels))
        return PartialSet(place.labels, place.size, place.has_ended)


class PartialLabel(NamedTuple):
    """The label that the tokens so far represent."""

    label: str | None
    """The label, if it may end here."""
    banned: Tokens
    """The tokens that may not come next within the label, including the end token and those that start another text."""


@dataclass(frozen=True, slots=True)
class _OpenPlace:
    node: TrieNode | None
    """The node in a prefix or size; None after it."""
    labels: tuple[str, ...] = ()
    size: int | None = None
    tokens: tuple[int, ...] = ()
    """The tokens of the current label."""
    partial: PartialLabel | None = None
    """The label that they represent; None outside labels."""
    stops: tuple[tuple[int, ...], ...] = ()
    """The rest of each text that may continue here: before the first label, after a label, or at the end."""
    has_ended: bool = False


class OpenSets:
    """Read sets of any labels: no duplicates, and as many as the stated size.

    Parameters
    ----------
    read_label
        Returns what the tokens of a label stand for; the tokens before the label are given first.
    first
        The tokens before the first label.
    between
        The tokens between two labels.
    last
        The tokens behind the last label, without the end token.
    empty
        The tokens in place of labels, if there are none.
    max_label_tokens
        A label this long has to end as soon as it can.

    The other parameters are those of `ClosedSets`.

    """

    def __init__(
        self,
        *,
        read_label: Callable[[tuple[int, ...], tuple[int, ...]], PartialLabel],
        first: tuple[int, ...] = (),
        between: tuple[int, ...],
        last: tuple[int, ...] = (),
        empty: tuple[int, ...] = (),
        max_label_tokens: int,
        sizes: Sizes,
        written_sizes: dict[int, tuple[int, ...]] | None,
        end: int,
        prefix: Sequence[int] = (),
    ) -> None:
        self._read_label = read_label
        self._first = first
        self._between = between
        self._last = (*last, end)
        self._empty = (*empty, end)
        self._max_label_tokens = max_label_tokens
        self._sizes = sizes
        self._end = end
        self._prefix = TokenTrie([tuple(prefix)]) if prefix else None
        self._numbers = list(written_sizes or ())
        self._written = TokenTrie(list(written_sizes.values())) if written_sizes else None

    tokens: ClassVar[None] = None
    """A set can contain any."""

    def start(self) -> _OpenPlace:
        """Return the state before the first token."""
        return self._opening() if self._prefix is None else _OpenPlace(self._prefix.root)

    def _opening(self) -> _OpenPlace:
        return self._behind_size(None) if self._written is None else _OpenPlace(self._written.root)

    def _behind_size(self, size: int | None) -> _OpenPlace:
        stops = (self._empty,) if self._sizes.may_end(0, size) else ()
        if not self._sizes.may_go_on(0, size):
            return _OpenPlace(None, size=size, stops=stops)
        if self._first:
            return _OpenPlace(None, size=size, stops=(*stops, self._first))
        return self._in_label((), size, (), stops)

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
        return self._step(place, token)

    def _step(self, place: _OpenPlace, token: int) -> _OpenPlace:
        rests = tuple(stop[1:] for stop in place.stops if stop[0] == token)
        if not rests:
            return self._in_label(place.labels, place.size, (*place.tokens, token))
        labels = place.labels
        if place.partial is not None and place.partial.label is not None:
            labels = (*labels, place.partial.label)
        if () not in rests:
            return _OpenPlace(None, labels, place.size, stops=rests)
        if token == self._end:
            return _OpenPlace(None, labels, place.size, has_ended=True)
        return self._in_label(labels, place.size, (), tuple(rest for rest in rests if rest))

    def _in_label(
        self,
        labels: tuple[str, ...],
        size: int | None,
        tokens: tuple[int, ...],
        stops: tuple[tuple[int, ...], ...] = (),
    ) -> _OpenPlace:
        """Return the state after the tokens of a label, with all possible continuations."""
        partial = self._read_label(self._between if labels else self._first, tokens)
        if partial.label is not None and partial.label not in labels:
            count = len(labels) + 1
            if self._sizes.may_end(count, size):
                stops = (*stops, self._last)
            if self._sizes.may_go_on(count, size):
                stops = (*stops, self._between)
        return _OpenPlace(None, labels, size, tokens, partial, stops)

    def _step_in_node(self, place: _OpenPlace, node: TrieNode, token: int) -> _OpenPlace:
        child = node.child(token)
        if child is None:  # the text after a size
            return self._step(self._behind_size(place.size), token)
        item = child.item
        if child.trie is self._prefix:
            return _OpenPlace(child) if item is None else self._opening()
        return _OpenPlace(child, (), None if item is None else self._numbers[item])

    def choices(self, state: object) -> Choices:
        """Return the tokens that may come next."""
        place = cast(_OpenPlace, state)
        if place.has_ended:
            return Choices(np.array([self._end]))
        if place.node is not None:
            behind = () if place.size is None else self._behind_size(place.size).stops
            return Choices(np.append(place.node.tokens, _starts(behind)))
        stops = _starts(place.stops)
        if place.partial is None or (len(stops) and len(place.tokens) >= self._max_label_tokens):
            return Choices(stops)
        return Choices(np.setdiff1d(place.partial.banned, stops), are_banned=True)

    def reading(self, state: object) -> PartialSet:
        """Return what has been read, with labels as texts."""
        place = cast(_OpenPlace, state)
        return PartialSet(place.labels, place.size, place.has_ended)


def _starts(texts: Iterable[tuple[int, ...]]) -> Tokens:
    return np.array(sorted({text[0] for text in texts}), np.int64)
