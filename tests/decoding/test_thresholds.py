"""The best threshold and the best k, against trying all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.decoding.choice import tune_k, tune_threshold
from setaug.metrics import score_sets


@st.composite
def scored(draw):
    n, n_labels = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    levels = st.integers(-3, 3).map(float)  # few, so that many are equal
    scores = np.array(draw(st.lists(levels, min_size=n * n_labels, max_size=n * n_labels))).reshape(n, n_labels)
    hits = np.array(draw(st.lists(st.booleans(), min_size=n * n_labels, max_size=n * n_labels))).reshape(n, n_labels)
    unseen = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    return scores, hits, unseen


def by_hand(taken, hits, unseen):
    """Score by the package's own metric."""
    names = [[str(at) for at in np.flatnonzero(row)] for row in hits]
    gold = [[*row, *(f"unseen {i}" for i in range(n))] for row, n in zip(names, unseen, strict=True)]
    return score_sets(gold, [[str(at) for at in row] for row in taken]).samples_f1


def above(scores, level, at_least_one):
    ranked = np.argsort(-scores, axis=1, kind="stable")
    counts = np.maximum((scores >= level).sum(axis=1), int(at_least_one))
    return [row[:n] for row, n in zip(ranked, counts, strict=True)]


@given(scored(), st.booleans())
def test_no_threshold_is_better(case, at_least_one):
    scores, hits, unseen = case
    level, f1 = tune_threshold(scores, hits, hits.sum(axis=1) + unseen, at_least_one=at_least_one)
    assert by_hand(above(scores, level, at_least_one), hits, unseen) == pytest.approx(f1)
    for other in (*np.unique(scores), 9.0):
        assert by_hand(above(scores, other, at_least_one), hits, unseen) <= f1 + 1e-9


@given(scored(), st.integers(1, 6))
def test_no_k_is_better(case, largest):
    scores, hits, unseen = case
    k, f1 = tune_k(scores, hits, hits.sum(axis=1) + unseen, largest=largest)
    ranked = np.argsort(-scores, axis=1, kind="stable")
    by_k = {n: by_hand(ranked[:, :n], hits, unseen) for n in range(1, min(largest, scores.shape[1]) + 1)}
    assert by_k[k] == pytest.approx(f1) == pytest.approx(max(by_k.values()))
