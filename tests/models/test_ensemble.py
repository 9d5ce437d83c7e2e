"""Several models as one, and files of predictions."""

import json
import os
import shutil
from pathlib import Path

import pytest

from setaug import load_model, write_examples
from setaug.cli import main
from setaug.errors import DataError, ModelError
from setaug.metrics import score_sets
from setaug.models.ensemble import SetEnsemble, combine_predictions
from setaug.models.predict_files import folder_state
from setaug.models.tfidf import TfidfClassifier
from setaug.predictions import Prediction, read_predictions, write_predictions
from setaug.sample import sample_examples
from setaug.settings import WAYS

EXAMPLES = list(sample_examples(160))
TRAIN, DEV, TEST = EXAMPLES[:80], EXAMPLES[80:120], EXAMPLES[120:]


@pytest.fixture(scope="module")
def models():
    return [TfidfClassifier(min_df=min_df).fit(TRAIN) for min_df in (1, 20)]


def f1(examples, predictions):
    return score_sets([one.labels for one in examples], [one.labels for one in predictions]).samples_f1


def test_an_ensemble_is_not_worse_on_dev_data_than_its_parts(models):
    ensemble = SetEnsemble(models).fit(DEV)
    alone = [f1(DEV, SetEnsemble([model]).fit(DEV).predict(DEV, choose="expected-f1")) for model in models]
    assert ensemble.f1_ >= max(alone) - 1e-9
    assert sum(ensemble.mixture_.weights) == pytest.approx(1)
    assert f1(DEV, ensemble.predict(DEV)) == pytest.approx(ensemble.f1_)
    assert ensemble.predict_proba(TEST).shape == (len(TEST), len(ensemble.classes_))
    assert all(len(one.labels) == ensemble.mixture_.rule.k for one in ensemble.predict(TEST, choose="top-k"))


def test_bad_ensembles_are_refused(models):
    with pytest.raises(ValueError, match="models must contain at least one fitted model"):
        SetEnsemble([]).fit(DEV)
    with pytest.raises(DataError, match="the dev data is empty"):
        SetEnsemble(models).fit([])
    with pytest.raises(ValueError, match=r"choose must be one of best, expected-f1, .* got 'oracle-k'"):
        combine_predictions([models[0].predict(TEST)] * 2, choose="oracle-k")
    with pytest.raises(TypeError, match="a model that scores labels takes no wish"):
        SetEnsemble(models).fit(DEV).predict(TEST, wish=1)


def test_an_ensemble_is_saved_without_pickle_and_served_like_any_model(models, tmp_path, capsys):
    ensemble = SetEnsemble(models).fit(DEV)
    folder = tmp_path / "both"
    ensemble.save(folder)
    again = SetEnsemble.load(folder)
    assert again.predict(TEST) == ensemble.predict(TEST) == load_model(folder).predict(TEST)
    assert (again.mixture_, again.labels_, again.f1_) == (ensemble.mixture_, ensemble.labels_, ensemble.f1_)
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "setaug.json",
        "member-1.safetensors",
        "member-2.safetensors",
    }
    ensemble.save(folder)  # once more over it
    write_examples(tmp_path / "test.jsonl", TEST)
    options = ["--choose", "top-k", "--k", "2", "-o", str(tmp_path / "out.jsonl"), "-q"]
    assert main(["predict", str(folder), str(tmp_path / "test.jsonl"), *options]) == 0
    found = [one.labels for one in read_predictions(tmp_path / "out.jsonl")]
    assert found == [one.labels for one in ensemble.predict(TEST, choose="top-k", k=2)]


def test_an_ensemble_of_model_folders_is_saved_with_them(models, classifier, tmp_path):
    ensemble = SetEnsemble([models[0], classifier]).fit(DEV)
    ensemble.save(tmp_path)
    again = load_model(tmp_path)
    assert again.predict(TEST) == ensemble.predict(TEST)
    assert json.loads((tmp_path / "setaug.json").read_text())["members"] == ["tf-idf", "classifier"]
    assert load_model(tmp_path / "member-2").predict(TEST) == classifier.predict(TEST)
    before = folder_state(tmp_path)
    os.utime(tmp_path / "member-2" / "model.safetensors", ns=(1, 1))
    assert folder_state(tmp_path) != before
    ensemble.save(tmp_path)  # over the folders of members
    assert folder_state(tmp_path) != before
    for damage, message in (
        ({"members": ["tf-idf"]}, "it mixes other models than it holds"),
        ({"members": ["tf-idf", "generator"]}, "its member 2 is no 'generator'"),
        ({"members": ["tf-idf", "../other"]}, "its member 2 is no '../other'"),
        ({"labels": ["a"]}, "there must be a shift for each of 1 labels"),
        ({"labels": [f"other {at}" for at in range(len(ensemble.labels_))]}, "its members know other labels"),
        ({"mixture": {}}, "KeyError"),
    ):
        card = json.loads((tmp_path / "setaug.json").read_text())
        (tmp_path / "bad").mkdir(exist_ok=True)
        shutil.copytree(tmp_path / "member-2", tmp_path / "bad" / "member-2", dirs_exist_ok=True)
        shutil.copy(tmp_path / "member-1.safetensors", tmp_path / "bad")
        (tmp_path / "bad" / "setaug.json").write_text(json.dumps(card | damage))
        with pytest.raises(ModelError, match="is not a valid setaug model") as caught:
            load_model(tmp_path / "bad")
        assert message in str(caught.value)
    with pytest.raises(ModelError, match="holds a model of the kind 'classifier', not 'ensemble'"):
        SetEnsemble.load(tmp_path / "member-2")


def test_an_ensemble_with_a_model_that_has_no_folder_is_not_saved(models, tmp_path):
    ensemble = SetEnsemble([SetEnsemble(models).fit(DEV), models[0]]).fit(DEV)
    with pytest.raises(ModelError, match="an ensemble with a SetEnsemble cannot be saved"):
        ensemble.save(tmp_path / "both")
    assert not (tmp_path / "both").exists()


def test_files_are_combined_as_models_are(models):
    files = [model.predict(TEST) for model in models]
    dev_files = [model.predict(DEV) for model in models]
    found, mixture, reached = combine_predictions(files, dev=DEV, dev_files=dev_files)
    assert reached >= max(f1(DEV, part) for part in dev_files) - 0.05
    assert [one.id for one in found] == [example.id for example in TEST]
    shuffled, _, _ = combine_predictions([files[0], files[1][::-1]], dev=DEV, dev_files=dev_files)
    assert shuffled == found  # matched by id
    assert mixture.weights == pytest.approx(combine_predictions(files, dev=DEV, dev_files=dev_files)[1].weights)


def test_the_f1_on_dev_data_is_that_of_the_way_that_is_asked_for(models):
    files = [model.predict(DEV) for model in models]
    for choose in WAYS:
        found, mixture, reached = combine_predictions(files, dev=DEV, dev_files=files, choose=choose)
        assert mixture.rule.way == choose
        assert reached == pytest.approx(f1(DEV, found))


def test_without_dev_data_all_count_alike():
    one = [Prediction(labels=("a",), probabilities={"a": 0.9, "b": 0.1}, sizes={1: 1.0})]
    two = [Prediction(labels=("b",), probabilities={"a": 0.1, "b": 0.7})]
    (found,), mixture, reached = combine_predictions([one, two])
    assert mixture.weights == (0.5, 0.5)
    assert reached is None
    assert found.probabilities == {"a": 0.5, "b": 0.4}
    assert found.labels == ("a", "b")  # one of both is right: 2/3 for sure, against 1 in three of five cases
    ((found,), _, _) = combine_predictions([one, two], choose="size")
    assert found.labels == ("a",)


def test_bad_files_are_refused():
    whole, bare = [Prediction(labels=("a",), probabilities={"a": 1.0})], [Prediction(labels=("a",))]
    for files, message in (([whole, bare], "model 2 has no prob"), ([bare, bare], "the predictions have no prob")):
        with pytest.raises(DataError, match=message):
            combine_predictions(files)
    with pytest.raises(ValueError, match="at least two models"):
        combine_predictions([whole])
    with pytest.raises(ValueError, match="dev predictions are required for each"):
        combine_predictions([whole, whole], dev=DEV, dev_files=[whole])
    with pytest.raises(DataError, match="2 predictions for 1 examples"):
        combine_predictions([whole, whole * 2])


def test_the_command_combines_files(
    models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, model in zip(("one", "two"), models, strict=True):
        write_predictions(f"{name}.jsonl", iter(model.predict(TEST)))
        write_predictions(f"{name}-dev.jsonl", iter(model.predict(DEV)))
    rows = [{"id": one.id, "text": one.text, "labels": one.labels} for one in DEV]
    Path("dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dev = ["--dev", "dev.jsonl", "--dev-predictions", "one-dev.jsonl", "two-dev.jsonl"]
    assert main(["combine", "one.jsonl", "two.jsonl", *dev, "-o", "both.jsonl"]) == 0
    assert "mean F1 on the dev data" in capsys.readouterr().err
    assert len(list(read_predictions("both.jsonl"))) == len(TEST)
    assert main(["combine", "one.jsonl", "two.jsonl", "-o", "equal.jsonl", "--choose", "size"]) == 0
    for bad, message in (
        (["one.jsonl", "-o", "new.jsonl"], "at least two models"),
        (["one.jsonl", "two.jsonl", "--dev", "dev.jsonl", "-o", "new.jsonl"], "must be given together"),
        (["one.jsonl", "dev.jsonl", "-o", "new.jsonl"], "which no example has"),
        (["one.jsonl", "two.jsonl", "-o", "one.jsonl"], "would replace the input"),
    ):
        assert main(["combine", *bad]) == 2
        assert message in capsys.readouterr().err
        assert not Path("new.jsonl").exists()


def test_sets_that_are_empty_in_all_files_stay_empty():
    rows = [Prediction(labels=(), probabilities={}), Prediction(labels=("joy",), probabilities={"joy": 0.9})]
    found, mixture, _ = combine_predictions([rows, rows])
    assert [one.labels for one in found] == [(), ("joy",)]
    assert mixture.rule.least == 0


def test_no_texts_give_no_sets(models):
    dev_files = [model.predict(DEV) for model in models]
    found, _, f1 = combine_predictions([[], []], dev=DEV, dev_files=dev_files)
    assert found == []
    assert f1 is not None
