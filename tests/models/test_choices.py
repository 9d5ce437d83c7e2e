"""One rule for all models: each takes every way of choosing, keeps sizes that are asked for, and keeps its rule."""

import json

import pytest

from setaug import SetClassifier, SetGenerator, SetSearch, TfidfClassifier, TrainingSettings, load_model
from setaug.errors import ModelError
from setaug.models.ensemble import SetEnsemble
from setaug.settings import WAYS, Decoding
from tests.conftest import DEV, EXAMPLES

TEXTS = [example.text for example in DEV]
SHORT = TrainingSettings(epochs=1)
KINDS = ("tf-idf", "classifier", "set-search", "generator", "ensemble")


@pytest.fixture(scope="module")
def models():
    """One of each kind, fitted with dev data."""
    fitted = {
        "tf-idf": TfidfClassifier(candidates=[("svm", 1.0)]).fit(EXAMPLES, dev=DEV),
        "classifier": SetClassifier("tiny", training=SHORT).fit(EXAMPLES, dev=DEV, progress=False),
        "set-search": SetSearch("tiny", training=SHORT).fit(EXAMPLES, dev=DEV, progress=False),
        "generator": SetGenerator("tiny", training=SHORT, companion=False).fit(EXAMPLES, dev=DEV, progress=False),
    }
    return fitted | {"ensemble": SetEnsemble([fitted["tf-idf"], fitted["classifier"]]).fit(DEV)}


@pytest.fixture(params=KINDS)
def model(request, models):
    return models[request.param]


def rule_of(model):
    return model.mixture_.rule if hasattr(model, "mixture_") else model.rule_


@pytest.mark.parametrize("way", WAYS)
def test_every_way_is_taken(model, way):
    found = model.predict(TEXTS, choose=way)
    probabilities = model.predict_proba(TEXTS)
    for one, row in zip(found, probabilities, strict=True):
        shares = dict(zip(model.classes_, row, strict=True))
        ranked = [shares[label] for label in one.labels]
        assert ranked == sorted(ranked, reverse=True)
        assert 1 <= len(set(one.labels)) == len(one.labels) <= 4
    if rule_of(model).way == way:
        assert found == model.predict(TEXTS)


def test_threshold_and_k_are_those_of_the_rule_or_of_the_call(model):
    rule, labels = rule_of(model), len(model.classes_)
    largest = rule.largest or model.largest_
    assert {len(one.labels) for one in model.predict(TEXTS, choose="top-k")} == {rule.k}
    assert {len(one.labels) for one in model.predict(TEXTS, choose="top-k", k=7)} == {7}
    assert {len(one.labels) for one in model.predict(TEXTS, choose="top-k", k=1000)} == {labels}
    tuned = (model.predict_proba(TEXTS) >= rule.threshold).sum(axis=1).clip(1, largest).tolist()
    assert [len(one.labels) for one in model.predict(TEXTS, choose="threshold")] == tuned
    assert {len(one.labels) for one in model.predict(TEXTS, choose="threshold", threshold=1.0)} == {1}
    assert {len(one.labels) for one in model.predict(TEXTS, choose="threshold", threshold=0.0)} == {largest}
    assert [len(one.labels) for one in model.predict(DEV, choose="oracle-k")] == [len(one.labels) for one in DEV]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sizes", [{"size_is": 6}, {"size_is": 0}, {"min_size": 5}, {"max_size": 1}])
def test_sizes_that_are_asked_for_are_kept(model, way, sizes):
    allowed = Decoding(**sizes).sizes(4)
    assert all(len(one.labels) in allowed for one in model.predict(TEXTS, choose=way, **sizes))


def test_the_rule_is_kept_with_the_model(model, tmp_path):
    if isinstance(model, TfidfClassifier):
        model.save(tmp_path / "model.safetensors")
        again = TfidfClassifier.load(tmp_path / "model.safetensors")
    else:
        (model.save if isinstance(model, SetEnsemble) else model.save_pretrained)(tmp_path / "run")
        again = load_model(tmp_path / "run")
    assert rule_of(again) == rule_of(model)
    assert again.predict(TEXTS) == model.predict(TEXTS)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"choose": "vote"}, ValueError, r"^choose must be one of best, .*, oracle-k, got 'vote'\.$"),
        ({"k": 3}, ValueError, r"^k is for choose='top-k', and choose is 'best'\.$"),
        ({"choose": "oracle-k", "k": 3}, ValueError, r"^k is for choose='top-k', and choose is 'oracle-k'\.$"),
        ({"choose": "top-k", "k": 0}, ValueError, r"^k must be an integer of at least 1, got 0\.$"),
        ({"choose": "top-k", "k": 2.0}, ValueError, r"^k must be an integer of at least 1, got 2\.0\.$"),
        ({"choose": "top-k", "k": True}, ValueError, r"^k must be an integer of at least 1, got True\.$"),
        ({"threshold": 0.3}, ValueError, r"^threshold is for choose='threshold', and choose is 'best'\.$"),
        ({"choose": "threshold", "threshold": 2.0}, ValueError, r"^threshold must be from 0 to 1, got 2\.0\.$"),
        ({"choose": "size", "size_is": -1}, ValueError, r"^size_is must be an integer of at least 0, got -1\.$"),
        ({"choose": "size", "size_is": 999}, (ValueError, ModelError), r"too few for a set of 999\.$"),
        ({"rule": "top-k"}, TypeError, r"takes no rule\.$"),
    ],
)
def test_bad_values_get_one_clear_sentence(model, changes, error, message):
    with pytest.raises(error, match=message):
        model.predict(TEXTS, **changes)


def test_a_damaged_rule_is_refused(models, tmp_path):
    for kind in ("classifier", "ensemble"):
        (models[kind].save if kind == "ensemble" else models[kind].save_pretrained)(tmp_path / kind)
        path = tmp_path / kind / "setaug.json"
        for name, value in {"way": "vote", "k": 0, "threshold": "high", "size_ratios": [-1.0], "largest": 0}.items():
            card = json.loads(path.read_text())
            whole = json.dumps(card)
            (card["mixture"] if kind == "ensemble" else card)["rule"][name] = value
            path.write_text(json.dumps(card))
            with pytest.raises(ModelError, match=r"is not a valid setaug model \(ValueError: .* must be"):
                load_model(tmp_path / kind)
            path.write_text(whole)
