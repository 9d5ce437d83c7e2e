"""Rankings, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import coverage_error, label_ranking_average_precision_score, ndcg_score

from setaug.metrics import evaluate, score_rankings
from setaug.predictions import Prediction

LABELS = list("abcdef")
truths = st.lists(st.sets(st.sampled_from(LABELS), min_size=1), min_size=1, max_size=5)


@given(truths, st.randoms(use_true_random=False))
def test_scores_are_those_of_scikit_learn(gold, random):
    rows = [random.sample(range(1, 100), len(LABELS)) for _ in gold]
    found = [{label: value / 100 for label, value in zip(LABELS, row, strict=True)} for row in rows]
    scores = score_rankings(gold, found)
    hits, values = np.array([[label in truth for label in LABELS] for truth in gold], int), np.array(rows)
    assert scores.average_precision == pytest.approx(label_ranking_average_precision_score(hits, values))
    assert scores.coverage == pytest.approx(coverage_error(hits, values))
    for k in (1, 3, 5):
        assert scores.ndcg_at[k] == pytest.approx(ndcg_score(hits, values, k=k))
        best = np.argsort(-values, axis=1)[:, :k]
        assert scores.precision_at[k] == pytest.approx(np.take_along_axis(hits, best, axis=1).mean())


def test_labels_without_a_probability_come_last():
    scores = score_rankings([{"a", "z"}, set()], [{"b": 0.5, "a": 0.4}, {"a": 1.0}])
    assert (scores.n_examples, scores.coverage, scores.average_precision) == (1, 3.0, 0.25)
    assert scores.precision_at == {1: 0.0, 3: pytest.approx(1 / 3), 5: 0.2, 10: 0.1}
    assert score_rankings([set()], [{"a": 1.0}]) is None


def test_predictions_with_probabilities_are_scored_as_rankings():
    predictions = [Prediction(labels=("a",), probabilities={"a": 0.9, "b": 0.2})]
    result = evaluate([{"a", "b"}], predictions)
    assert result.to_dict()["rankings"]["precision_at"] == {"1": 1.0, "3": pytest.approx(2 / 3), "5": 0.4, "10": 0.2}
    assert "average precision" in result.table()
    assert evaluate([{"a"}], [{"a"}]).rankings is None
    assert evaluate([{"a"}, {"b"}], [*predictions, Prediction(labels=("b",))]).rankings is None
