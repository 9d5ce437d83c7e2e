"""Significance tests for the difference between two models.

Three tests, for a *first* model (the baseline) and a *second* one, on the same examples. Differences are second minus
first, and one-sided p-values are for the claim that the second is better.

- *Paired permutation*: under the null hypothesis, the two predictions for an example are exchangeable. They are swapped
  at random, example by example; p is the fraction of permutations with a difference as large as the observed one. It
  makes no other assumption, works for any metric, and is the one to report.
- *Paired bootstrap*: examples are resampled with replacement, and the difference is computed on each resample. The
  interval is the middle 95 % of these; p is the fraction at or below 0, consistent with the interval.
- *Two proportions* (paper, footnote in section 4.1): the one-tailed z test with pooled variance. The paper does not
  state the metric. It is available for the metrics that are proportions: ``exact_match`` (of examples),
  ``micro_precision`` (of predicted labels) and ``micro_recall`` (of true labels). It ignores that both models saw the
  same examples and that labels of one example are dependent, so it can err in both directions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from setaug.examples import Columns, LabelSets, as_sets, checked_columns
from setaug.metrics.indicators import check_same_length, index_labels, indicator_matrix
from setaug.metrics.sets import MacroOver, check_macro
from setaug.registry import check_choice

Metric: TypeAlias = Literal[
    "micro_f1", "macro_f1", "samples_f1", "jaccard", "exact_match", "micro_precision", "micro_recall"
]
"""The metrics that can be compared; each is a field of `SetScores`."""

_Floats: TypeAlias = NDArray[np.float64]
_BLOCK = 1 << 22  # numbers per array; larger is not faster
_TINY = 1e-12  # differences that are equal up to rounding count as equal
_DIVISORS = {"exact_match": None, "micro_precision": 1, "micro_recall": 2}
"""The metrics that are proportions, with the row of the counts that divides; None for the number of examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapTest:
    """The result of a paired bootstrap."""

    difference: float
    low: float
    """The lower end of the 95 % interval of the difference."""
    high: float
    """The upper end of the interval."""
    p_one_sided: float
    p_two_sided: float
    n_rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """The result of a paired permutation test."""

    difference: float
    p_one_sided: float
    p_two_sided: float
    n_rounds: int
    is_exact: bool
    """Whether all permutations were enumerated, not sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionTest:
    """The result of a one-tailed test of two proportions."""

    first: float
    second: float
    z: float
    p_one_sided: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference between two models, and its tests."""

    metric: Metric
    macro_over: MacroOver | None
    """Which labels a macro score is averaged over."""
    n_examples: int
    first: float
    second: float
    difference: float
    bootstrap: BootstrapTest
    permutation: PermutationTest
    proportions: ProportionTest | None
    """None if the metric is not a proportion."""

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        bootstrap, p = self.bootstrap, self.permutation.p_two_sided
        interval = f"95 % interval {bootstrap.low:+.4f} to {bootstrap.high:+.4f}, two-sided p = {p:.2g}"
        if abs(self.difference) < _TINY:
            return f"The two are equal in {self.metric}."
        better = "second" if self.difference > 0 else "first"
        if p < 0.05:
            return f"The {better} is better by {abs(self.difference):.4f} {self.metric}, more than chance ({interval})."
        return f"The {better} is ahead by {abs(self.difference):.4f} {self.metric}, which may be chance ({interval})."


def compare_sets(
    gold: LabelSets,
    first: LabelSets,
    second: LabelSets,
    *,
    columns: Columns | None = None,
    metric: Metric = "samples_f1",
    macro_over: MacroOver = "gold",
    vocabulary: Iterable[str] | None = None,
    n_rounds: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare the sets that two models predict for the same examples, by all tests that apply.

    Parameters
    ----------
    gold, first, second
        Label sets, indicator matrices, or anything that has labels (examples, predictions, rows, data frames), in the
        same order.
    columns
        The label column of the rows of `gold`, and the names of labels that are numbers or columns of a matrix.

    Examples
    --------
    >>> gold = [["joy"], ["fear", "anger"], ["love"], ["joy", "love"]] * 5
    >>> first = [["joy"], ["fear"], ["joy"], ["joy"]] * 5
    >>> result = compare_sets(gold, first, gold)
    >>> round(result.difference, 3), result.permutation.p_two_sided < 0.001
    (0.417, True)

    """
    columns = checked_columns(columns)
    truths = list(as_sets(gold, columns))
    guesses = [list(as_sets(sets, Columns(names=columns.names))) for sets in (first, second)]
    scores = PairedScores.of(truths, *guesses, metric=metric, macro_over=macro_over, vocabulary=vocabulary)
    one, two = scores.observed()
    return Comparison(
        metric=metric,
        macro_over=macro_over if metric == "macro_f1" else None,
        n_examples=len(truths),
        first=one,
        second=two,
        difference=two - one,
        bootstrap=scores.bootstrap(n_rounds, seed=seed),
        permutation=scores.permutation(n_rounds, seed=seed),
        proportions=scores.proportions() if metric in _DIVISORS else None,
    )


def compare_proportions(first_hits: int, first_total: int, second_hits: int, second_total: int) -> ProportionTest:
    """Test whether the second of two proportions is larger: z test with pooled variance, one-tailed.

    Examples
    --------
    >>> test = compare_proportions(40, 100, 60, 100)
    >>> round(test.z, 3), round(test.p_one_sided, 4)
    (2.828, 0.0023)

    """
    for hits, total in ((first_hits, first_total), (second_hits, second_total)):
        if not 0 <= hits <= total or not total:
            raise ValueError(f"a proportion must be 0 to n of n, with n at least 1; got {hits} of {total}.")
    first, second = first_hits / first_total, second_hits / second_total
    pooled = (first_hits + second_hits) / (first_total + second_total)
    deviation = sqrt(pooled * (1 - pooled) * (1 / first_total + 1 / second_total))
    z = (second - first) / deviation if deviation else 0.0
    return ProportionTest(first=first, second=second, z=z, p_one_sided=erfc(z / sqrt(2)) / 2)


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Counts per example for two models, whose sums over examples determine a metric; the tests resample them."""

    first: _Floats | csr_array
    """A row per count, a column per example."""
    second: _Floats | csr_array
    score: Callable[[_Floats, int], _Floats]
    """Takes sums (a row per count, a column per round) and the number of examples in them."""
    divisor: int | None = None

    @classmethod
    def of(
        cls,
        gold: Sequence[Collection[str]],
        first: Sequence[Collection[str]],
        second: Sequence[Collection[str]],
        *,
        metric: Metric = "samples_f1",
        macro_over: MacroOver = "gold",
        vocabulary: Iterable[str] | None = None,
    ) -> "PairedScores":
        """Count the labels of two models' sets; parameters as in `score_sets`."""
        check_choice("metric", metric, get_args(Metric))
        check_same_length(gold, first)
        check_same_length(gold, second)
        check_macro(macro_over, vocabulary)
        columns = index_labels(gold, first, second)
        truth = indicator_matrix(gold, columns)
        guesses = [indicator_matrix(sets, columns) for sets in (first, second)]
        if metric != "macro_f1":
            a, b = (_example_counts(truth, guess, metric) for guess in guesses)
            return cls(a, b, _SCORES[metric], _DIVISORS.get(metric))
        wanted = None if macro_over != "vocabulary" else frozenset(vocabulary or ())
        if wanted is not None:  # other labels of the vocabulary occur in no set, and only add to the divisor
            inside = np.array([number for label, number in columns.items() if label in wanted], np.int64)
            truth, guesses = truth[:, inside], [guess[:, inside] for guess in guesses]
        a, b = (_label_counts(truth, guess) for guess in guesses)
        return cls(a, b, _macro_score(truth.shape[1], macro_over, None if wanted is None else len(wanted)))

    @property
    def n_examples(self) -> int:
        """The number of examples."""
        return int(self.first.shape[1])

    def observed(self) -> tuple[float, float]:
        """Return the scores of both models on all examples."""
        everyone = np.ones((self.n_examples, 1))
        first, second = (self.score(counts @ everyone, self.n_examples) for counts in (self.first, self.second))
        return float(first[0]), float(second[0])

    def bootstrap(self, n_rounds: int = 10_000, *, seed: int = 0) -> BootstrapTest:
        """Resample examples with replacement.

        The macro score of a resample covers the labels in *its* true (or true and predicted) sets.
        """
        rng = _generator(seed)
        n = self.n_examples
        found = []
        for size in self._blocks(n_rounds):
            # The count of each example per round; rounds are drawn one after the other, whatever the block size.
            draws = rng.integers(n, size=(size, n)) * size + np.arange(size)[:, None]
            times = np.bincount(draws.ravel(), minlength=n * size).reshape(n, size).astype(np.float64)
            found.append(self.score(self.second @ times, n) - self.score(self.first @ times, n))
        differences = np.concatenate(found)
        first, second = self.observed()
        low, high = np.quantile(differences, [0.025, 0.975])
        not_above = (1 + int(np.count_nonzero(differences <= _TINY))) / (n_rounds + 1)
        not_below = (1 + int(np.count_nonzero(differences >= -_TINY))) / (n_rounds + 1)
        return BootstrapTest(
            difference=second - first,
            low=float(low),
            high=float(high),
            p_one_sided=not_above,
            p_two_sided=min(1.0, 2 * min(not_above, not_below)),
            n_rounds=n_rounds,
        )

    def permutation(self, n_rounds: int = 10_000, *, seed: int = 0) -> PermutationTest:
        """Swap the two models' sets at random, example by example.

        If there are at most `n_rounds` permutations, each is evaluated once and p is exact. Otherwise the observed
        difference counts as one of the rounds, p = (k + 1) / (n_rounds + 1), so that p is never 0.
        """
        rng = _generator(seed)
        n = self.n_examples
        everyone = np.ones((n, 1))
        totals = self.first @ everyone, self.second @ everyone
        change = self.second - self.first
        differing = np.flatnonzero(abs(change).sum(axis=0))
        change = change[:, differing]
        is_exact = len(differing) < 63 and 2 ** len(differing) <= n_rounds
        found, done = [], 0
        for size in self._blocks(2 ** len(differing) if is_exact else n_rounds):
            if is_exact:
                numbers = np.arange(done, done + size)
                exchanged = (numbers >> np.arange(len(differing))[:, None] & 1).astype(np.float64)
            else:
                exchanged = np.ascontiguousarray((rng.random((size, len(differing))) < 0.5).T, dtype=np.float64)
            moved = change @ exchanged
            found.append(self.score(totals[1] - moved, n) - self.score(totals[0] + moved, n))
            done += size
        differences = np.concatenate(found)
        first, second = self.observed()
        difference = second - first
        one_sided = int(np.count_nonzero(differences >= difference - _TINY))
        two_sided = int(np.count_nonzero(abs(differences) >= abs(difference) - _TINY))
        extra = 0 if is_exact else 1  # the identity is one of the permutations, or counts as the observed round
        return PermutationTest(
            difference=difference,
            p_one_sided=(one_sided + extra) / (done + extra),
            p_two_sided=(two_sided + extra) / (done + extra),
            n_rounds=done,
            is_exact=is_exact,
        )

    def proportions(self) -> ProportionTest | None:
        """Test the two proportions that the metric must be; None if one of them divides by zero."""
        numbers = []
        for sums in (self.first.sum(axis=1), self.second.sum(axis=1)):
            numbers += [int(sums[0]), self.n_examples if self.divisor is None else int(sums[self.divisor])]
        return compare_proportions(*numbers) if numbers[1] and numbers[3] else None

    def _blocks(self, n_rounds: int) -> Iterator[int]:
        """Split rounds into blocks, to bound memory."""
        if n_rounds < 1:
            raise ValueError(f"n_rounds must be at least 1, got {n_rounds}.")
        most = max(1, _BLOCK // max(self.first.shape))
        for start in range(0, n_rounds, most):
            yield min(most, n_rounds - start)


def _example_counts(truth: csr_array, guess: csr_array, metric: str) -> _Floats:
    """Return right, predicted and true labels of each example or, for means over examples, its score."""
    right: _Floats = guess.multiply(truth).sum(axis=1, dtype=np.float64)
    predicted = np.diff(guess.indptr).astype(np.float64)
    true = np.diff(truth.indptr).astype(np.float64)
    if metric.startswith("micro"):
        return np.stack([right, predicted, true])
    is_exact: NDArray[np.bool_] = (right == predicted) & (right == true)
    if metric == "exact_match":
        return is_exact.astype(np.float64)[None]
    above, below = (2 * right, predicted + true) if metric == "samples_f1" else (right, predicted + true - right)
    return np.where(is_exact, 1.0, above / np.maximum(below, 1))[None]


def _label_counts(truth: csr_array, guess: csr_array) -> csr_array:
    """Return, per label, the examples in which it is right, then in which it is predicted, then in which it is true."""
    parts = [guess.multiply(truth), guess, truth]
    return hstack(parts, format="csr", dtype=np.float64).T.tocsr()


def _ratio(above: _Floats, below: _Floats | np.float64) -> _Floats:
    """Divide; if the divisor is 0, so is the dividend, and the score is 0."""
    return above / np.maximum(below, 1)


_SCORES: dict[str, Callable[[_Floats, int], _Floats]] = {
    "micro_f1": lambda sums, n: _ratio(2 * sums[0], sums[1] + sums[2]),
    "micro_precision": lambda sums, n: _ratio(sums[0], sums[1]),
    "micro_recall": lambda sums, n: _ratio(sums[0], sums[2]),
    "samples_f1": lambda sums, n: sums[0] / n,
    "jaccard": lambda sums, n: sums[0] / n,
    "exact_match": lambda sums, n: sums[0] / n,
}


def _macro_score(n_labels: int, macro_over: MacroOver, n_wanted: int | None) -> Callable[[_Floats, int], _Floats]:
    def score(sums: _Floats, n: int) -> _Floats:
        right, predicted, true = sums[:n_labels], sums[n_labels : 2 * n_labels], sums[2 * n_labels :]
        f1 = _ratio(2 * right, predicted + true)
        if n_wanted is not None:
            return _ratio(f1.sum(axis=0), np.float64(n_wanted))
        counted = true > 0 if macro_over == "gold" else predicted + true > 0
        return _ratio(np.where(counted, f1, 0.0).sum(axis=0), counted.sum(axis=0, dtype=np.float64))

    return score


def _generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}.")
    return np.random.default_rng(seed)
