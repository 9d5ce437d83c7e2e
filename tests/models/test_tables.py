"""Every model takes data frames and columns, row by row, in every method."""

from typing import Any

import pandas as pd
import pytest

from setaug import Example, TfidfClassifier
from setaug.sample import sample_examples

EXAMPLES = list(sample_examples(12, seed=1))
COLUMNS = {"text": [one.text for one in EXAMPLES], "labels": [list(one.labels) for one in EXAMPLES]}
PLAIN = [Example(one.text, one.labels) for one in EXAMPLES]


@pytest.fixture(params=["generator", "causal", "classifier", "search", "tfidf"])
def model(request: pytest.FixtureRequest) -> Any:
    if request.param == "tfidf":
        return TfidfClassifier().fit(COLUMNS, dev=(COLUMNS["text"], COLUMNS["labels"]))
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("table", [pd.DataFrame(COLUMNS), COLUMNS], ids=["frame", "columns"])
def test_a_table_is_predicted_row_by_row(model: Any, table: Any) -> None:
    assert model.predict(table) == model.predict(PLAIN)
    assert model.predict(pd.DataFrame(COLUMNS)["text"]) == model.predict(COLUMNS["text"])
    assert model.score(table) == model.score(PLAIN)


def test_probabilities_of_a_table_have_a_row_each(classifier: Any, generator: Any) -> None:
    assert classifier.predict_proba(pd.DataFrame(COLUMNS)).shape == (12, len(classifier.classes_))
    assert generator.predict_proba(COLUMNS, samples=2).shape == (12, len(generator.classes_))


def test_the_true_sizes_of_a_table_are_read(classifier: Any) -> None:
    sizes = [len(found.labels) for found in classifier.predict(pd.DataFrame(COLUMNS), rule="oracle-k")]
    assert sizes == [len(one.labels) for one in EXAMPLES]
