"""Which label goes before which (Algorithm 1, line 3), compared exactly.

Label b is written before label a if ``pmi(a, b) > min_pmi`` and a is more than `min_ratio` times as frequent as b: the
joint probability cancels in the difference of the two conditional log-probabilities. With n sets, that is

    n_ab * n > 2**min_pmi * n_a * n_b    and    n_a > min_ratio * n_b

Counts are integers and are compared as integers: a difference of logarithms would turn ties into edges.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from setaug.orders.arrays import Ints, Keys, Mask, freeze, pack_keys, unpack_keys

Number: TypeAlias = int | float | Fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholds:
    """Thresholds of the edge rule: the dependence and the frequency ratio that fix the order of two labels.

    Parameters
    ----------
    min_pmi
        The paper's alpha, in bits: the pointwise mutual information must be above it.
    min_ratio
        The paper's ``2**beta``: the later label must be more than this many times as frequent as the earlier one.

    Examples
    --------
    >>> Thresholds(min_ratio=0.5)
    Traceback (most recent call last):
      ...
    ValueError: min_ratio must be at least 1, got 0.5.

    """

    min_pmi: Number = 1.0
    min_ratio: Number = 3.0
    _pmi: Fraction = field(init=False, repr=False, compare=False)
    _ratio: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pmi", _as_fraction("min_pmi", self.min_pmi))
        object.__setattr__(self, "_ratio", _as_fraction("min_ratio", self.min_ratio))
        if self._ratio < 1:
            raise ValueError(f"min_ratio must be at least 1, got {self.min_ratio}.")
        if abs(self._pmi) > 1000:
            raise ValueError(f"min_pmi must be a number of bits between -1000 and 1000, got {self.min_pmi}.")

    def exceeds_pmi(self, n_both: int, n_a: int, n_b: int, n_sets: int) -> bool:
        """Return whether the pmi of two labels is above `min_pmi`, exactly."""
        if n_both == 0:
            return False
        above, below = n_both * n_sets, n_a * n_b
        if self._pmi.denominator == 1:
            bits = self._pmi.numerator
            return above > below << bits if bits >= 0 else above << -bits > below
        # 2**min_pmi is irrational here, so the two sides never tie and enough digits decide.
        digits = 40
        while True:
            with localcontext() as context:
                context.prec = digits
                log_ratio = (Decimal(above) / Decimal(below)).ln() / Decimal(2).ln()
                difference = log_ratio - Decimal(self._pmi.numerator) / Decimal(self._pmi.denominator)
            if abs(difference) > Decimal(10) ** (6 - digits):
                return difference > 0
            digits *= 2

    def pmi_mask(self, n_both: Ints, n_a: Ints, n_b: Ints, n_sets: int) -> Mask:
        """Return `exceeds_pmi` for many label pairs at once; floats decide all but the close ones."""
        share = n_both * (n_sets / 2.0 ** float(self._pmi)) / (n_a.astype(float) * n_b.astype(float))
        result: Mask = share > 1
        for close in np.flatnonzero(np.abs(share - 1) < 1e-9):
            result[close] = self.exceeds_pmi(int(n_both[close]), int(n_a[close]), int(n_b[close]), n_sets)
        return result

    def exceeds_ratio(self, n_later: int, n_earlier: int) -> bool:
        """Return whether one label is more than `min_ratio` times as frequent as another."""
        return n_later * self._ratio.denominator > n_earlier * self._ratio.numerator

    def bounds(self, counts: Ints) -> Ints:
        """Return two columns: each count, and the largest count that is *not* more than `min_ratio` times as large."""
        numerator, denominator = self._ratio.numerator, self._ratio.denominator
        if int(counts.max(initial=1)) * numerator < 1 << 63:
            return np.stack([counts, counts * np.int64(numerator) // np.int64(denominator)], axis=1)
        different, which = np.unique(counts, return_inverse=True)
        most = np.iinfo(np.int64).max
        floors = np.array([min(int(n) * numerator // denominator, most) for n in different], np.int64)
        return np.stack([counts, floors[which]], axis=1)

    def sure_cap(self, n_sets: int) -> float:
        """Return a bound: co-occurring labels whose counts have a product below it always exceed `min_pmi`."""
        return float(n_sets * 2.0 ** -float(self._pmi) * (1 - 1e-9))


def _as_fraction(name: str, value: Number) -> Fraction:
    """Return the exact value of a decimal: 1.2 is 6/5, so 6 is not more than 1.2 times 5."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | np.number):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    try:
        return value if isinstance(value, Fraction) else Fraction(str(value))
    except ValueError:
        raise ValueError(f"{name} must be a finite number, got {value}.") from None


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """The edges between labels, as arrays for the compiled loops."""

    bounds: Ints
    """Per label: its count, and the largest count of another label to which it has no edge."""
    keys: Keys
    """The edges that are looked up, packed: from the first label to the second."""
    n_both: Ints
    """The number of sets that contain both labels of each of these edges."""
    cap: float = 0.0
    """Labels of one set whose counts have a product below `cap` have an edge that need not be looked up.
    Zero unless each set occurs in the data that was counted."""

    def __post_init__(self) -> None:
        freeze(self.bounds, self.keys, self.n_both)

    @classmethod
    def joined(cls, tables: Iterable["EdgeTable"]) -> "EdgeTable":
        """Join tables, at least one, that differ only in their edges."""
        first, *others = tables
        keys = [first.keys, *(table.keys for table in others)]
        n_both = [first.n_both, *(table.n_both for table in others)]
        return cls(first.bounds, np.concatenate(keys), np.concatenate(n_both), first.cap)


def edges_among(
    pairs: Keys, n_both: Ints, counts: Ints, n_sets: int, thresholds: Thresholds, *, cap: float = 0.0
) -> EdgeTable:
    """Return the edges among counted label pairs (keys as `kernels.pair_keys` makes them)."""
    low, high = unpack_keys(pairs)
    first = np.where(counts[low] <= counts[high], low, high)
    then = low + high - first
    bounds = thresholds.bounds(counts)
    unlike = counts[then] > bounds[first, 1]
    first, then, n_both = first[unlike], then[unlike], n_both[unlike]
    dependent = thresholds.pmi_mask(n_both, counts[first], counts[then], n_sets)
    return EdgeTable(bounds, pack_keys(first[dependent], then[dependent]), n_both[dependent], cap)
