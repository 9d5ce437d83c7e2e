"""Arrays and limits of the compiled loops: batches of label sets, and label pairs packed into 64-bit keys."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import factorial, lgamma, log
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]
Mask: TypeAlias = NDArray[np.bool_]
MAX_LISTED = 5
"""Up to this set size, all orders of all graphs are listed once."""
MAX_BITS = 64
"""Larger sets use `LinearExtensions`: in the loops, labels are the bits of one integer."""
MAX_QUICK_DOWN_SETS = 1 << 10
"""With the quick sampler, graphs with more down-sets are not counted."""
LEFT_OUT = -1.0
LOG2 = np.log2(np.maximum(np.arange(factorial(MAX_LISTED) + 1), 1))
LOG2_FACTORIALS = np.array([lgamma(size + 1.0) / log(2.0) for size in range(MAX_BITS + 1)])

_SHIFT, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def freeze(*arrays: NDArray[Any]) -> None:
    """Mark arrays read-only, so numba compiles one signature."""
    for array in arrays:
        array.flags.writeable = False


def pack_keys(first: Ints, second: Ints) -> Keys:
    """Return a key for each label pair: the first id * 2**32 + the second."""
    return first.astype(np.uint64) << _SHIFT | second.astype(np.uint64)


def unpack_keys(keys: Keys) -> tuple[Ints, Ints]:
    """Return the first and the second ids of label pairs.

    Examples
    --------
    >>> unpack_keys(pack_keys(np.array([1, 7]), np.array([2, 0])))
    (array([1, 7]), array([2, 0]))

    """
    return (keys >> _SHIFT).astype(np.int64), (keys & _LOW).astype(np.int64)


@dataclass(frozen=True, slots=True)
class SetBatch:
    """Label sets as ids: set i is ``ids[starts[i]:starts[i + 1]]``; an unknown label has the id -1."""

    starts: Ints
    ids: NDArray[np.int32]

    def __post_init__(self) -> None:
        freeze(self.starts, self.ids)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, sets: Iterable[Iterable[int]]) -> Self:
        """Build a batch from sets of ids."""
        ids: list[int] = []
        starts = [0]
        for members in sets:
            ids.extend(members)
            starts.append(len(ids))
        return cls(np.array(starts, np.int64), np.array(ids, np.int32))

    @property
    def sizes(self) -> Ints:
        """The number of labels of each set."""
        return np.diff(self.starts)

    @property
    def first_positions(self) -> Ints:
        """For each label, the position in `ids` at which its set starts."""
        return np.repeat(self.starts[:-1], self.sizes)

    def sets(self, start: int, end: int) -> "SetBatch":
        """Return the sets from `start` up to `end`."""
        first, last = self.starts[start], self.starts[end]
        return SetBatch(self.starts[start : end + 1] - first, self.ids[first:last])

    def select(self, chosen: Mask, known: Mask | None = None) -> "SetBatch":
        """Return the selected sets, reduced to known labels (a flag per id) if given."""
        wanted = np.repeat(chosen, self.sizes)
        if known is not None:
            wanted &= known[self.ids]
        ends = np.concatenate([[0], np.cumsum(wanted)])[self.starts]
        return SetBatch(np.concatenate([[0], ends[1:][chosen]]), self.ids[wanted])
