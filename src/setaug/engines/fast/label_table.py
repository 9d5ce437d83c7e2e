"""Labels as bytes: numbered, counted and encoded, without a Python string for each."""

import secrets
from collections.abc import Iterator

import numpy as np
import orjson
from numpy.typing import NDArray

from setaug.engines.fast.blocks import Block
from setaug.engines.fast.plain_scan import load_scan
from setaug.errors import FileError
from setaug.forms.form import WrittenForm
from setaug.orders.arrays import SetBatch

_MAX_ROW = (1 << 31) - 1


class LabelTable:
    r"""Labels numbered by their JSON text, with the number of sets that contain each.

    One label can be spelled in several ways (``"caf\u00e9"``); all spellings have the number of the canonical one.
    """

    def __init__(self, *, is_plain: bool = False) -> None:
        self.is_plain = is_plain
        self._n_known = self._n_learnt = self._row = 0
        self._secret = np.array([secrets.randbits(64), secrets.randbits(64) | 1], np.uint64)
        self._slots = np.full(1 << 12, -1, np.int64)
        self._ends = np.zeros((1 << 11) + 1, np.int64)
        self._arena = np.zeros(1 << 15, np.uint8)
        self._number = np.zeros(1 << 11, np.int32)
        self._last_row = np.full(1 << 11, -1, np.int32)
        self._counts = np.zeros(1 << 11, np.int64)

    def number(self, block: NDArray[np.uint8], spans: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the numbers of the labels in the spans of a block."""
        spellings = self._intern(block, spans)
        if self._n_learnt < self._n_known:
            self._learn_spellings()
        return self._number[spellings]

    def _intern(self, block: NDArray[np.uint8], spans: NDArray[np.int32]) -> NDArray[np.int32]:
        ids = np.empty(len(spans), np.int32)
        done = 0
        while True:
            done, self._n_known = load_scan(self.is_plain).intern(
                block, spans, done, ids, self._slots, self._ends, self._arena, self._secret, self._n_known
            )
            if done == len(spans):
                return ids
            self._grow(int(spans[done, 1] - spans[done, 0]))

    def _grow(self, n_bytes: int) -> None:
        """Make room for at least one more label of `n_bytes` bytes."""
        if 2 * self._n_known >= len(self._slots) or self._n_known + 1 == len(self._ends):
            self._ends = np.append(self._ends, np.zeros(len(self._ends) - 1, np.int64))
            self._number = np.append(self._number, np.zeros_like(self._number))
            self._counts = np.append(self._counts, np.zeros_like(self._counts))
            self._last_row = np.append(self._last_row, np.full_like(self._last_row, -1))
            self._slots = np.full(2 * len(self._slots), -1, np.int64)
            load_scan(self.is_plain).refill_slots(self._slots, self._ends, self._arena, self._secret, self._n_known)
        if self._ends[self._n_known] + n_bytes > len(self._arena):
            self._arena = np.append(self._arena, np.zeros(max(len(self._arena) // 2, n_bytes), np.uint8))

    def _learn_spellings(self) -> None:
        """Find the canonical spelling of each new one."""
        while (first := self._n_learnt) < (last := self._n_known):
            self._number[first:last] = np.arange(first, last)
            self._n_learnt = last
            escapes = self._ends[first] + np.flatnonzero(self._arena[self._ends[first] : self._ends[last]] == 0x5C)
            for which in np.unique(np.searchsorted(self._ends[: last + 1], escapes, "right") - 1).tolist():
                plainest = orjson.dumps(self.label(which))[1:-1]
                span = np.array([[0, len(plainest)]], np.int32)
                self._number[which] = self._intern(np.frombuffer(plainest, np.uint8), span)[0]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of sets that contain each label, by number; zero for non-canonical spellings."""
        return self._counts[: self._n_known]

    def merge_repeats(self, starts: NDArray[np.int64], ids: NDArray[np.int32]) -> int:
        """Drop duplicate labels of sets in place (updating `starts`), count the others; return the number dropped."""
        n_sets = len(starts) - 1
        if self._row + n_sets > _MAX_ROW:
            self._last_row[:] = -1
            self._row = 0
        n_dropped = load_scan(self.is_plain).merge_repeats(starts, ids, self._counts, self._last_row, self._row)
        self._row += n_sets
        return int(n_dropped)

    def number_sets(self, block: Block) -> tuple[SetBatch, int]:
        """Count the labels of a block's rows; return the sets as numbers, and the number of dropped duplicates."""
        ids = self.number(block.bytes, block.label_spans)
        n_dropped = self.merge_repeats(block.label_starts, ids)
        return SetBatch(block.label_starts, ids[: block.label_starts[-1]]), n_dropped

    def spelt(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return all spellings: their bytes, the end of each, and the number of sets that contain it."""
        return self._arena[: self._ends[self._n_known]], self._ends[: self._n_known + 1], self.counts

    def add_counts(self, arena: NDArray[np.uint8], ends: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add the `spelt` of another table."""
        numbers = self.number(arena, _spans(ends))
        np.add.at(self._counts, numbers, counts)

    def find(self, other: "LabelTable", first: int) -> NDArray[np.int32] | None:
        """Return this table's numbers of another table's spellings from `first` on; None if one is unknown."""
        arena, ends, _ = other.spelt()
        ids = np.empty(len(ends) - 1 - first, np.int32)
        if not load_scan(self.is_plain).find(
            arena, _spans(ends[first:]), ids, self._slots, self._ends, self._arena, self._secret
        ):
            return None
        return self._number[ids]

    def finish(self) -> None:
        """Free the lookup table; no labels can be added afterwards."""
        self._slots = np.zeros(0, np.int64)
        self._number = self._last_row = np.zeros(0, np.int32)

    def raw(self, number: int) -> bytes:
        """Return the JSON text of a label, without the quotes."""
        return self._arena[self._ends[number] : self._ends[number + 1]].tobytes()

    def label(self, number: int) -> str:
        """Return a label by number."""
        return str(orjson.loads(b'"' + self.raw(number) + b'"'))

    def first_labels(self) -> Iterator[str]:
        """Yield the labels by number, including spellings that are not canonical."""
        return (self.label(number) for number in range(self._n_known))

    def labels(self) -> list[str]:
        """Return all labels by number, including spellings that are not canonical."""
        return list(self.first_labels())

    @property
    def n_labels(self) -> int:
        """The number of distinct labels."""
        return int(np.count_nonzero(self.counts))

    def encoded(self, form: WrittenForm) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return the labels as a form writes them in a JSON string: bytes, and the start and end of each."""
        special = np.ones(self._n_known, np.bool_)
        if form.special is not None:
            marks = np.zeros(256, np.bool_)
            marks[[char.encode()[0] for char in form.special]] = True
            load_scan(self.is_plain).find_special(self._arena, self._ends, self._n_known, marks, special)
        starts, ends = self._ends[: self._n_known], self._ends[1 : self._n_known + 1]
        if not special.any():
            return self._arena[:], starts, ends
        starts, ends = starts.copy(), ends.copy()
        written = []
        size = len(self._arena)
        for number in np.flatnonzero(special).tolist():
            written.append(orjson.dumps(form.encode_label(self.label(number)))[1:-1])
            starts[number], ends[number] = size, size + len(written[-1])
            size = int(ends[number])
        return np.append(self._arena, np.frombuffer(b"".join(written), np.uint8)), starts, ends


def _spans(ends: NDArray[np.int64]) -> NDArray[np.int32]:
    if ends[-1] > _MAX_ROW:
        raise FileError("a part of the input has more than 2 GB of distinct labels; split it.")
    return np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int32)
