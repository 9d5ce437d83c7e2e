"""One set from label probabilities, by one of `settings.CHOICES`: the same rule for every model.

Labels are taken as independent, except that their number follows a distribution over sizes. If PB is the distribution
of the number of labels that independent ones have (Poisson binomial), and q that of the sizes, then

    P(label i, size s) = p_i PB_{-i}(s - 1) q(s) / PB(s)

where PB_{-i} leaves label i out. These joint probabilities are all that the expected F1 of a set depends on: label i
adds the sum over s of 2 P(i, s) / (k + s) to the expected F1 of a set of k labels, so the best set of k labels is
found by sorting. `setaug.decoding.samples` does the same where whole sets were drawn.

For a model without a distribution over sizes, q(s) is proportional to PB(s) r(s). Labels are not independent, so PB
alone has the wrong sizes; the ratios r give them the shares that they have in the dev data, on average over the texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.errors import SizeError
from setaug.registry import check_choice
from setaug.settings import WAYS, Decoding, check_whole

Floats = NDArray[np.floating[Any]]
Hits = NDArray[np.bool_]

MAX_LABELS = 64
"""Of a text's labels, only so many of the most probable are considered for a set; more where sets may be large."""
_MAX_SIZE = 40
"""Up to this size, sets are not large: `MAX_LABELS` are enough."""
_CELLS = 128 * MAX_LABELS * _MAX_SIZE
"""Texts times labels times sizes at a time, which bounds memory."""
_MAX_TUNING = 1000
"""Of more dev examples, every second, third, ... compares the ways; more would only take longer."""
_TINY = 1e-9
_NEGLIGIBLE = 1e-4
"""Sizes above which a model finds all sets together less probable than this are not considered."""
_ERRORS = 2.0
"""By how many standard errors another way has to be better than the first on dev data."""
_MORE = 10
"""Examples with independent labels that are added to the sizes of dev data."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How to choose a set from label probabilities.

    Parameters
    ----------
    way
        One of `WAYS`.
    threshold
        The minimum probability of a label, for ``threshold``.
    k
        The number of labels, for ``top-k``.
    least
        The smallest set: 1 where the training data has no empty set.
    largest
        The largest set, unless a larger one is asked for; None for any.
    size_ratios
        How much more frequent each size (0, 1, 2, ...) is than if labels were independent, for models without a
        distribution over sizes; 1 for sizes that are not there.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.5, 0.1], [0.3, 0.2, 0.1]])
    >>> [chosen.tolist() for chosen in Rule(way="threshold", threshold=0.4).choose(probabilities)]
    [[0, 1], [0]]
    >>> [chosen.tolist() for chosen in Rule(way="top-k", k=2).choose(probabilities)]
    [[0, 1], [0, 1]]

    """

    way: str = "expected-f1"
    threshold: float = 0.5
    k: int = 1
    least: int = 1
    largest: int | None = None
    size_ratios: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_choice("choose", self.way, WAYS)
        check_whole("k", self.k, at_least=1)
        check_whole("least", self.least, at_least=0)
        check_whole("largest", self.largest, at_least=1, optional=True)
        # What was tuned may be above 1 or below 0, so that no label or every label is taken.
        if not isinstance(self.threshold, float | int) or not isfinite(self.threshold):
            raise ValueError(f"threshold must be a number, got {self.threshold!r}.")
        if not all(isinstance(ratio, float | int) and 0 <= ratio < inf for ratio in self.size_ratios):
            raise ValueError(f"size_ratios must be numbers of at least 0, got {self.size_ratios!r}.")

    def choose(
        self, probabilities: Floats, sizes: Floats | None = None, *, allowed: range | None = None
    ) -> list[NDArray[np.int64]]:
        """Return the columns of the labels of each row's set, the most probable first.

        Parameters
        ----------
        probabilities
            A row for each text, a column for each label.
        sizes
            The probability of each size (columns: 0, 1, 2, ...); by default that of independent labels.
        allowed
            The sizes that a set may have; by default those from `least` to `largest`.

        """
        if allowed is None:
            allowed = range(self.least, self._most(probabilities.shape[1]) + 1)
        counts, order = self._counts(probabilities, sizes, allowed)
        return [row[:count] for row, count in zip(order, counts, strict=True)]

    def _counts(
        self, probabilities: Floats, sizes: Floats | None, allowed: range
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the size of each set, and the columns in the order in which they are taken."""
        order = np.argsort(-probabilities, axis=1, kind="stable")
        if len(allowed) == 1:
            return np.full(len(order), min(allowed[0], order.shape[1])), order
        match self.way:
            case "threshold":
                counts = (probabilities >= self.threshold).sum(axis=1)
            case "top-k":
                counts = np.full(len(probabilities), self.k)
            case "size" if sizes is not None:
                counts = np.argmax(_within(sizes, allowed), axis=1)
            case _:
                return _optimal(self.way, probabilities, sizes, order, allowed, np.array(self.size_ratios))
        return np.clip(counts, allowed[0], allowed[-1]) if len(allowed) else counts, order

    def _most(self, n_labels: int) -> int:
        return n_labels if self.largest is None else max(min(self.largest, n_labels), self.least)

    def choose_asked(
        self,
        asked: Decoding,
        probabilities: Floats,
        sizes: Floats | None = None,
        *,
        true: Sequence[int] | None = None,
    ) -> list[NDArray[np.int64]]:
        """Return what `choose` returns, as a call asks for it.

        Parameters
        ----------
        asked
            The way, its threshold or k, and the sizes; what is not given is that of the rule.
        true
            The sizes of the true sets, for ``oracle-k``.

        """
        if true is not None:
            order = np.argsort(-probabilities, axis=1, kind="stable")
            return [row[:n] for row, n in zip(order, true, strict=True)]
        rule = replace(
            self,
            way=asked.choose if asked.choose in WAYS else self.way,
            threshold=self.threshold if asked.threshold is None else asked.threshold,
            k=self.k if asked.k is None else asked.k,
        )
        n_labels = probabilities.shape[1]
        allowed = asked.sizes(max(self._most(n_labels), asked.k or 0))
        if allowed[0] > n_labels:
            raise SizeError(f"{n_labels} labels are known, too few for a set of {allowed[0]}.")
        if asked.size_is is None and allowed[-1] >= self.least > allowed[0]:
            allowed = range(self.least, allowed[-1] + 1)
        return rule.choose(probabilities, sizes, allowed=allowed)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Rule":
        """Read it back."""
        return cls(**{**saved, "size_ratios": tuple(saved.get("size_ratios", ()))})

    @classmethod
    def fit(
        cls,
        probabilities: Floats,
        sizes: Floats | None,
        hits: Hits,
        n_true: NDArray[np.int64],
        *,
        least: int = 1,
        largest: int | None = None,
        ways: Sequence[str] = tuple(WAYS),
    ) -> tuple["Rule", float]:
        """Return the rule to use, and the mean F1 of its sets on dev data.

        A later way has to be better than an earlier one by more than two standard errors of the difference: on little
        dev data, a threshold that was tuned on it would often seem better than it is.

        Parameters
        ----------
        hits, n_true
            Which labels each example has, and how many (they may have labels without a column).
        least, largest
            The smallest and the largest set.
        ways
            The ways to try.

        """
        level, _ = tune_threshold(probabilities, hits, n_true, at_least_one=least == 1)
        k, _ = tune_k(probabilities, hits, n_true, largest=largest or probabilities.shape[1])
        rows = slice(None, None, -(-len(probabilities) // _MAX_TUNING) or 1)
        probabilities, hits, n_true = probabilities[rows], hits[rows], n_true[rows]
        sizes = None if sizes is None else sizes[rows]
        best: tuple[Rule, Floats] | None = None
        kept: dict[str, Any] = {"threshold": level, "k": k, "least": least, "largest": largest}
        if sizes is None:
            kept["size_ratios"] = fit_size_ratios(probabilities, n_true, largest or int(n_true.max()))
        for way in ways:
            rule = cls(way=way, **kept)
            scores = f1_scores(rule.choose(probabilities, sizes), hits, n_true)
            if best is None or _is_clearly_better(scores, best[1]):
                best = rule, scores
        if best is None:
            raise ValueError(f"ways must name some of {', '.join(WAYS)}, got none.")
        return best[0], float(best[1].mean())


def _is_clearly_better(scores: Floats, others: Floats) -> bool:
    """Return whether the mean gain exceeds two standard errors; one example alone never decides."""
    gains = scores - others
    return len(gains) > 1 and bool(gains.mean() > _TINY + _ERRORS * gains.std(ddof=1) / len(gains) ** 0.5)


def mean_f1(chosen: Sequence[NDArray[np.int64]], hits: Hits, n_true: NDArray[np.int64]) -> float:
    """Return the mean F1 of sets of columns."""
    return float(f1_scores(chosen, hits, n_true).mean())


def f1_scores(chosen: Sequence[NDArray[np.int64]], hits: Hits, n_true: NDArray[np.int64]) -> Floats:
    """Return the F1 of each set of columns."""
    scores = [
        2 * row[columns].sum() / (len(columns) + n) if len(columns) + n else 1.0
        for columns, row, n in zip(chosen, hits, n_true, strict=True)
    ]
    return np.array(scores, np.float64)


# --- the best set for an expected score -------------------------------------------------------------------------------


def _optimal(
    way: str, probabilities: Floats, sizes: Floats | None, order: NDArray[np.int64], allowed: range, ratios: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of labels with the highest expected score, and the order in which they are taken."""
    sizes = None if sizes is None or not len(sizes) else _within(sizes, allowed)
    most = _largest_size(probabilities, sizes, allowed)
    order = order[:, : _n_kept(probabilities.shape[1], max(most, allowed[0] if len(allowed) else 0))]
    counts = np.zeros(len(order), np.int64)
    for rows in _blocks(len(order), order.shape[1] * most):
        p = _taken(probabilities[rows], order[rows])
        independent = Independent.make(p, None if sizes is None else sizes[rows], allowed, most, ratios)
        if way == "expected-f1":
            counts[rows], at = independent.best_for_f1(allowed)
            order[rows] = np.take_along_axis(order[rows], at, axis=1)
        elif way == "expected-jaccard":
            counts[rows] = independent.best_for_jaccard(allowed)
        else:  # exact-match, and size without a distribution of its own
            counts[rows] = independent.most_probable(allowed, is_set=way == "exact-match")
    return counts, order


def _largest_size(probabilities: Floats, sizes: Floats | None, allowed: range) -> int:
    """Return the largest size that has to be considered."""
    if sizes is not None:
        tails = sizes[:, ::-1].cumsum(axis=1)[:, ::-1]  # a model leaves a little probability to each size
        return int(np.max(np.flatnonzero((tails > _NEGLIGIBLE).any(axis=0)), initial=0))
    if not len(allowed) or not len(probabilities):
        return _MAX_SIZE
    spread = np.sqrt((probabilities * (1 - probabilities)).sum(axis=1))
    likely = np.maximum(probabilities.sum(axis=1) + 4 * spread, (probabilities > 0.5).sum(axis=1))
    return max(_MAX_SIZE, min(int(likely.max()) + 1, allowed[-1]))


def _n_kept(n_labels: int, largest: int) -> int:
    """Return how many of the most probable labels are considered for sets of up to a size."""
    return min(n_labels, max(MAX_LABELS, largest * MAX_LABELS // _MAX_SIZE))


def _blocks(n_rows: int, n_cells: int) -> Iterator[slice]:
    """Split rows, of which each needs so many cells."""
    step = max(_CELLS // max(n_cells, MAX_LABELS * _MAX_SIZE), 1)
    return (slice(start, start + step) for start in range(0, n_rows, step))


def _taken(probabilities: Floats, order: NDArray[np.int64]) -> Floats:
    """Return the probabilities of some columns, none of them 0 or 1."""
    return np.clip(np.take_along_axis(probabilities, order, axis=1).astype(np.float64), _TINY, 1 - _TINY)


def fit_size_ratios(probabilities: Floats, n_true: NDArray[np.int64], largest: int) -> tuple[float, ...]:
    """Return how much more frequent each size up to the largest is on dev data than if labels were independent.

    A few more examples with independent labels are added, so that little dev data changes little.

    Examples
    --------
    >>> [round(ratio, 2) for ratio in fit_size_ratios(np.full((90, 2), 0.5), np.ones(90, np.int64), 2)]
    [0.1, 1.9, 0.1]

    """
    total, n_kept = np.zeros(largest + 1), _n_kept(probabilities.shape[1], largest)
    for rows in _blocks(len(probabilities), n_kept * largest):
        part = probabilities[rows]
        p = _taken(part, np.argsort(-part, axis=1, kind="stable")[:, :n_kept])
        total += _sums(p, largest)[:, -1].sum(axis=0)
    independent = np.maximum(total / len(probabilities), 1e-6)
    counts = np.bincount(np.minimum(n_true, largest), minlength=largest + 1)
    found = (counts + _MORE * independent) / ((len(n_true) + _MORE) * independent)
    return tuple(found.tolist())


def _within(sizes: Floats, allowed: range) -> Floats:
    """Return the probabilities of the allowed sizes alone; if they have none, all are equally probable."""
    width = max(sizes.shape[1], allowed[0] + 1 if len(allowed) else 0)
    padded = np.zeros((len(sizes), width))
    padded[:, : sizes.shape[1]] = sizes
    is_allowed = np.isin(np.arange(width), allowed)
    kept = np.where(is_allowed, padded, 0.0)
    total = kept.sum(axis=1, keepdims=True)
    found: Floats = np.where(total > _TINY, kept / np.maximum(total, _TINY), is_allowed / max(is_allowed.sum(), 1))
    return found


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent labels whose number follows a distribution; rows are texts.

    Parameters
    ----------
    p
        The probability of each label, in descending order.
    counts
        The probability of each number of labels, if they are independent (Poisson binomial).
    ratio
        The probability of each size, divided by that.

    """

    p: Floats
    counts: Floats
    ratio: Floats

    @classmethod
    def make(
        cls, p: Floats, sizes: Floats | None, allowed: range, most: int = _MAX_SIZE, ratios: Floats | None = None
    ) -> "Independent":
        """Return the distribution of up to so many labels; without sizes, of independent ones times the ratios."""
        most = min(p.shape[1], most if sizes is None else min(most, sizes.shape[1] - 1))
        counts = _sums(p, most)[:, -1]
        if sizes is None:
            known = np.ones(most + 1)
            if ratios is not None:
                known[: len(ratios)] = ratios[: most + 1]
            sizes = _within(counts * known, range(min(allowed[0], most), most + 1) if len(allowed) else range(most + 1))
        ratio = sizes[:, : most + 1] / np.maximum(counts, 1e-290)
        total = (ratio * counts).sum(axis=1, keepdims=True)  # 0 where none of the sizes is possible with these labels
        return cls(p, counts, np.where(total > _TINY, ratio / np.maximum(total, _TINY), 1.0))

    @property
    def sizes(self) -> Floats:
        """The probability of each size."""
        return self.counts * self.ratio

    def joint(self) -> Floats:
        """Return the probability of each label (second axis) together with each size (third axis)."""
        most = self.counts.shape[1] - 1
        before, behind = _sums(self.p, most)[:, :-1], _sums(self.p[:, ::-1], most)[:, -2::-1]
        found = np.zeros((*self.p.shape, most + 1))
        for size in range(1, most + 1):
            others = np.einsum("rls,rls->rl", before[:, :, :size], behind[:, :, size - 1 :: -1])
            found[:, :, size] = self.p * others * self.ratio[:, None, size]
        return found

    def best_for_f1(self, allowed: range) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of labels with the highest expected F1, and the labels' order for that number."""
        joint, n_labels = self.joint(), self.p.shape[1]
        best, counts = np.full(len(self.p), -1.0), np.zeros(len(self.p), np.int64)
        order = np.tile(np.arange(n_labels), (len(self.p), 1))
        for k in _candidates(allowed, n_labels):
            if k:
                gains = joint @ (2 / (k + np.arange(joint.shape[2])))
                taken = np.argsort(-gains, axis=1, kind="stable")
                value = np.take_along_axis(gains, taken[:, :k], axis=1).sum(axis=1)
            else:
                taken, value = order, self.sizes[:, 0]
            is_better = value > best + _TINY
            best[is_better], counts[is_better], order[is_better] = value[is_better], k, taken[is_better]
        # Within a set the most probable label comes first.
        for row, count in zip(order, counts, strict=True):
            row[:count] = np.sort(row[:count])
        return counts, order

    def best_for_jaccard(self, allowed: range) -> NDArray[np.int64]:
        """Return how many of the most probable labels have the highest expected Jaccard index."""
        n_labels, most = self.p.shape[1], self.counts.shape[1] - 1
        first, rest = _sums(self.p, most), _sums(self.p[:, ::-1], most)[:, ::-1]
        size = np.arange(most + 1)
        best, counts = np.full(len(self.p), -1.0), np.zeros(len(self.p), np.int64)
        for k in _candidates(allowed, n_labels):
            value = self.sizes[:, 0] if k == 0 else np.zeros(len(self.p))
            for both in range(1, min(k, most) + 1):  # the number of labels that are in the set, and true
                others = size[: most + 1 - both]  # those that are true, and not in the set
                weight = self.ratio[:, both:] * rest[:, k, : len(others)] * (both / (k + others))
                value = value + first[:, k, both] * weight.sum(axis=1)
            is_better = value > best + _TINY
            best[is_better], counts[is_better] = value[is_better], k
        return counts

    def most_probable(self, allowed: range, *, is_set: bool) -> NDArray[np.int64]:
        """Return the size of the most probable set, or the most probable size."""
        with np.errstate(divide="ignore"):
            value = np.log(self.ratio if is_set else self.sizes)
        if is_set:
            gains = np.cumsum(np.log(self.p) - np.log1p(-self.p), axis=1)[:, : value.shape[1] - 1]
            value = value + np.concatenate([np.zeros((len(value), 1)), gains], axis=1)
        value = np.where(np.isin(np.arange(value.shape[1]), allowed), value, -np.inf)
        counts: NDArray[np.int64] = np.argmax(value, axis=1)
        return np.where(np.isinf(value.max(axis=1)), min(allowed[0], self.p.shape[1]) if len(allowed) else 0, counts)


def _candidates(allowed: range, n_labels: int) -> list[int]:
    """Return the sizes to try; if too few labels are known for all of them, all labels."""
    return [k for k in allowed if k <= n_labels] or [n_labels if len(allowed) else 0]


def _sums(p: Floats, most: int) -> Floats:
    """Return the distribution of the number of labels among the first 0, 1, 2, ... (second axis), up to the most."""
    found = np.zeros((len(p), p.shape[1] + 1, most + 1))
    found[:, 0, 0] = 1
    for at in range(p.shape[1]):
        one = p[:, at, None]
        found[:, at + 1] = found[:, at] * (1 - one)
        found[:, at + 1, 1:] += found[:, at, :-1] * one
    return found


# --- thresholds and numbers of labels, tuned on dev data --------------------------------------------------------------


def tune_threshold(
    scores: Floats, hits: Hits, sizes: NDArray[np.int64], *, at_least_one: bool = False
) -> tuple[float, float]:
    """Return the threshold with the highest mean F1 of the sets, and that F1.

    Each row is an example, each column a label. Sorted by score, each label changes the F1 of its own example only, so
    a running sum of these changes gives the F1 of every threshold.

    Parameters
    ----------
    hits
        Which labels the examples have.
    sizes
        How many labels the examples have; they may have labels without a column.
    at_least_one
        Whether the best label is always taken.

    Examples
    --------
    >>> scores = np.array([[0.9, 0.6, 0.1], [0.2, 0.8, 0.4]])
    >>> hits = np.array([[True, True, False], [False, True, False]])
    >>> tune_threshold(scores, hits, hits.sum(axis=1))
    (0.5, 1.0)

    """
    ranked, f1 = _f1_by_size(scores, hits, sizes)
    if at_least_one:
        f1[:, 0] = f1[:, 1]
    flat = ranked.ravel()
    order = np.argsort(-flat, kind="stable")
    levels = flat[order]
    means = (f1[:, 0].sum() + np.cumsum(np.diff(f1, axis=1).ravel()[order])) / len(scores)
    ends = np.flatnonzero(np.append(levels[1:] < levels[:-1], True))
    best = ends[np.argmax(means[ends])]
    if f1[:, 0].mean() >= means[best]:
        return float(levels[0]) + 1.0, float(f1[:, 0].mean())
    below = levels[best + 1] if best + 1 < len(levels) else levels[best] - 1.0
    return float(levels[best] + below) / 2, float(means[best])


def tune_k(scores: Floats, hits: Hits, sizes: NDArray[np.int64], *, largest: int) -> tuple[int, float]:
    """Return the number of labels, from 1 to the largest, with the highest mean F1 of the sets, and that F1.

    Examples
    --------
    >>> hits = np.array([[True, True, False], [False, True, False]])
    >>> k, f1 = tune_k(np.array([[0.9, 0.6, 0.1], [0.2, 0.8, 0.4]]), hits, hits.sum(axis=1), largest=3)
    >>> k, round(f1, 3)
    (1, 0.833)

    """
    means = _f1_by_size(scores, hits, sizes)[1][:, 1 : largest + 1].mean(axis=0)
    best = int(np.argmax(means))
    return best + 1, float(means[best])


def _f1_by_size(scores: Floats, hits: Hits, sizes: NDArray[np.int64]) -> tuple[Floats, NDArray[np.float64]]:
    """Return each row's scores in descending order, and the F1 of its 0, 1, 2, ... best labels."""
    order = np.argsort(-scores, axis=1, kind="stable")
    f1 = np.empty((len(scores), scores.shape[1] + 1))
    f1[:, 0] = sizes == 0
    np.cumsum(np.take_along_axis(hits, order, axis=1), axis=1, out=f1[:, 1:])
    f1[:, 1:] *= 2 / (np.arange(1, scores.shape[1] + 1) + sizes[:, None])
    return np.take_along_axis(scores, order, axis=1), f1
