"""Every model takes data frames and columns, row by row, in every method."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from setaug import Columns, Example, SetGenerator, TfidfClassifier, TrainingSettings, load_model
from setaug.errors import DataError, ModelError
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
    sizes = [len(found.labels) for found in classifier.predict(pd.DataFrame(COLUMNS), choose="oracle-k")]
    assert sizes == [len(one.labels) for one in EXAMPLES]


def test_the_names_of_columns_are_kept_in_a_model_folder(tmp_path: Path) -> None:
    own = Columns(text="body", labels="tags", delimiter="|")
    table = pd.DataFrame({"body": COLUMNS["text"], "tags": COLUMNS["labels"]})
    dev = table.assign(body=table["body"] + " Again.")
    model = SetGenerator(training=TrainingSettings(epochs=1)).fit(table, columns=own, dev=dev)
    model.save_pretrained(tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.columns_ == own
    assert loaded.predict(table) == loaded.predict(COLUMNS["text"])
    assert loaded.score(table) == model.score(PLAIN)
    with pytest.raises(DataError, match='field "body" is missing; the row has "text", "labels"'):
        loaded.predict(COLUMNS)
    assert len(loaded.calibrate(COLUMNS["text"], COLUMNS["labels"], samples=2).predict(table, samples=2)) == 12


@pytest.mark.parametrize("columns", [3, {"text": 3}, {"text": ""}, {"who": "x"}, {"names": "ab"}])
def test_columns_that_nobody_wrote_are_refused(generator: Any, tmp_path: Path, columns: Any) -> None:
    generator.save_pretrained(tmp_path)
    card = json.loads((tmp_path / "setaug.json").read_text())
    (tmp_path / "setaug.json").write_text(json.dumps({**card, "columns": columns}))
    with pytest.raises(ModelError, match=r"setaug\.json is not a valid setaug file: its columns are"):
        load_model(tmp_path)
    (tmp_path / "setaug.json").write_text(json.dumps({key: card[key] for key in card if key != "columns"}))
    assert load_model(tmp_path).columns_ == Columns()  # a folder of an earlier version
