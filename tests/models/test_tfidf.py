"""The plain baseline: what it chooses, what it predicts, and that odd data does not trouble it."""

import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from setaug import Example, TfidfClassifier
from setaug.decoding.choice import Rule
from setaug.errors import DataError
from setaug.metrics import score_sets
from setaug.models.tfidf import CANDIDATES, _fold
from setaug.settings import WAYS
from tests.conftest import DEV, EXAMPLES
from tests.strategies import any_label, any_text

GOLD = [example.labels for example in DEV]
ONE = (("svm", 1.0),)
MANY = (DEV * 1000)[:1000]
"""Enough dev examples to decide alone."""


@pytest.fixture(scope="module")
def model():
    return TfidfClassifier().fit(EXAMPLES, dev=DEV)


def f1(found, gold=GOLD):
    return score_sets(gold, [one.labels for one in found]).samples_f1


def test_labels_of_single_texts_do_not_spoil_the_calibration():
    rare = [replace(example, labels=(*example.labels, f"only here {at}")) for at, example in enumerate(EXAMPLES)]
    plain, found = (TfidfClassifier(candidates=ONE).fit(examples) for examples in (EXAMPLES, rare))
    assert found.calibration_.slope == pytest.approx(plain.calibration_.slope, rel=0.5)


def test_equal_texts_are_in_one_fold():
    texts = [example.text for example in EXAMPLES[:30]] * 3
    folds = _fold(texts, 3)
    assert sorted(at for _, out in folds for at in out) == list(range(90))
    for seen, out in folds:
        assert not {texts[at] for at in seen} & {texts[at] for at in out}


# --- what is chosen ---------------------------------------------------------------------------------------------------


def test_the_best_candidate_is_chosen(model):
    assert [(trial.classifier, trial.c) for trial in model.trials_] == list(CANDIDATES)
    assert model.trial_.f1 == max(trial.f1 for trial in model.trials_)
    for trial in model.trials_:
        alone = TfidfClassifier(candidates=[(trial.classifier, trial.c)]).fit(EXAMPLES, dev=DEV)
        assert alone.trial_.f1 == pytest.approx(trial.f1)


@pytest.mark.parametrize("way", WAYS)
def test_a_way_that_is_named_is_kept_to(way):
    model = TfidfClassifier(choose=way, candidates=ONE).fit(EXAMPLES, dev=MANY)
    assert model.rule_.way == way
    assert model.predict(DEV) == model.predict(DEV, choose=way) == model.predict(DEV, choose="best")
    assert model.trial_.f1 == pytest.approx(model.score(MANY))


def test_many_dev_examples_decide_alone():
    model = TfidfClassifier().fit(EXAMPLES, dev=MANY)
    hits = np.array([[label in one.labels for label in model.labels_] for one in MANY])
    sizes = np.array([len(one.labels) for one in MANY])
    rule, reached = Rule.fit(model.predict_proba(MANY), None, hits, sizes, least=1, largest=model.largest_)
    assert (rule.way, rule.k, reached) == (model.rule_.way, model.rule_.k, pytest.approx(model.trial_.f1))
    # An SVM's scores are not probabilities; what is made of them is right on average.
    assert model.predict_proba(MANY).mean() == pytest.approx(hits.mean(), rel=0.05)


def test_few_dev_examples_decide_together_with_the_cross_validation():
    alone = TfidfClassifier(candidates=ONE).fit(EXAMPLES)
    wrong = Example(EXAMPLES[0].text, ["never seen"])
    model = TfidfClassifier(candidates=ONE).fit(EXAMPLES, dev=[wrong])
    n = len(EXAMPLES)
    assert model.trial_.f1 == pytest.approx(alone.trial_.f1 * n / (n + 1), abs=0.01)
    assert model.rule_.way == alone.rule_.way


def test_without_dev_data_the_training_data_chooses():
    model = TfidfClassifier().fit(EXAMPLES)
    assert 0 < model.trial_.f1 < model.score(EXAMPLES)
    assert len(model.trials_) == len(CANDIDATES)


def test_nothing_is_random(model):
    again = clone(model).fit([one.text for one in EXAMPLES], [one.labels for one in EXAMPLES], dev=DEV)
    assert again.trials_ == model.trials_
    assert again.predict(DEV) == model.predict(DEV)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("svm", LinearSVC(C=1.0, random_state=0)),
        ("logistic", LogisticRegression(C=1.0, solver="liblinear", dual=True, max_iter=1000, random_state=0)),
    ],
)
def test_each_label_is_scored_by_scikit_learn(name, oracle):
    model = TfidfClassifier(candidates=[(name, 1.0)]).fit(EXAMPLES, dev=DEV)
    features = model.vectorizer_.transform([one.text for one in EXAMPLES])
    found = model.predict_proba(DEV)
    for at, label in enumerate(model.labels_):
        oracle.fit(features, [label in one.labels for one in EXAMPLES])
        scores = oracle.decision_function(model.vectorizer_.transform([one.text for one in DEV]))
        by_hand = 1 / (1 + np.exp(-(model.calibration_.slope * scores + model.calibration_.shift)))
        np.testing.assert_allclose(found[:, at], by_hand, atol=1e-4)


# --- what is predicted ------------------------------------------------------------------------------------------------


def test_predictions_hold_what_they_are_based_on(model):
    for one, row, example in zip(model.predict(DEV), model.predict_proba(DEV), DEV, strict=True):
        assert one.id == example.id
        assert list(one.probabilities.values()) == sorted(one.probabilities.values(), reverse=True)
        assert list(one.labels) == list(one.probabilities)[: len(one.labels)]
        assert all(
            row[model.labels_.index(label)] == pytest.approx(p, abs=1e-6) for label, p in one.probabilities.items()
        )
    assert model.predict([]) == []
    assert model.predict([{"text": DEV[0].text, "id": 3}])[0].id == 3
    assert model.predict([DEV[0].text])[0].labels == model.predict(DEV)[0].labels


def test_the_rules_take_what_they_say(model):
    everything = [one.labels for one in model.predict(DEV, choose="top-k", k=1000)]
    assert {len(labels) for labels in everything} == {len(model.labels_)}
    for way, sizes in {"top-k": [model.rule_.k] * len(DEV), "oracle-k": list(map(len, GOLD))}.items():
        found = model.predict(DEV, choose=way)
        assert [one.labels for one in found] == [row[:n] for row, n in zip(everything, sizes, strict=True)]
    for one, row in zip(model.predict(DEV, choose="threshold"), model.predict_proba(DEV), strict=True):
        assert len(one.labels) == min(max(1, (row >= model.rule_.threshold).sum()), model.largest_)


def test_progress_is_told():
    told = []
    model = TfidfClassifier().fit(EXAMPLES, dev=DEV, progress=lambda *step: told.append(step))
    model.predict(DEV, progress=lambda *step: told.append(step))
    n = len(CANDIDATES)
    assert told == [*(("fitting", done, n) for done in range(1, n + 1)), ("scoring", len(DEV), len(DEV))]


def test_a_set_is_empty_only_where_a_training_set_was():
    texts = ["good", "good", "bad", "bad", "what", "what"]
    sets = [["joy"], ["joy"], ["anger"], ["anger"], [], []]
    dev = [Example(text, labels) for text, labels in zip(texts, sets, strict=True)]
    with_empty = TfidfClassifier(choose="threshold").fit(texts, sets, dev=dev)
    assert [one.labels for one in with_empty.predict(texts[::2])] == [("joy",), ("anger",), ()]
    assert with_empty.score(texts, sets) == 1
    without = TfidfClassifier(choose="threshold").fit(texts[:4], sets[:4], dev=dev)
    assert all(one.labels for one in without.predict(texts))


def test_labels_that_all_or_one_or_no_training_examples_have():
    examples = [Example(one.text, (*one.labels, "all")) for one in EXAMPLES]
    examples[0] = Example(examples[0].text, (*examples[0].labels, "once"))
    dev = [Example(one.text, (*one.labels, "all", "never")) for one in DEV]
    for fitted in (TfidfClassifier().fit(examples, dev=dev), TfidfClassifier().fit(examples)):
        found = fitted.predict(dev)
        assert all(one.labels[0] == "all" for one in found)
        assert not any("never" in one.labels for one in found)
        assert "once" in fitted.labels_
    assert TfidfClassifier().fit(examples, dev=dev).trial_.f1 < 1


@pytest.mark.parametrize("texts", [["same"] * 4, [""] * 4, ["", " ", "\n", "\t"], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("sets", [["a"] * 4, ["a", "b", "a", "b"], ["ab", "", "b", "ab"]])
@pytest.mark.parametrize("has_dev", [True, False])
def test_texts_that_say_nothing(texts, sets, has_dev):
    examples = [Example(text, tuple(labels)) for text, labels in zip(texts, sets, strict=True)]
    model = TfidfClassifier().fit(examples, dev=examples if has_dev else None)
    assert 0 <= model.score(examples) <= 1
    assert np.isfinite(model.predict_proba(["unheard of", ""])).all()


examples_of_all_kinds = st.lists(
    st.builds(
        Example,
        any_text | st.sampled_from(["a b", "b c", "a c d"]),
        st.lists(any_label | st.sampled_from("xyz"), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40)
@given(examples_of_all_kinds, st.none() | examples_of_all_kinds, st.sampled_from(["svm", "logistic"]))
def test_whatever_the_data_sets_of_known_labels_come_out(examples, dev, name):
    model = TfidfClassifier(candidates=[(name, 1.0)], ngrams=2)
    if not any(one.labels for one in examples):
        with pytest.raises(DataError, match="no training example has a label"):
            model.fit(examples, dev=dev)
        return
    model.fit(examples, dev=dev)
    known = {label for one in examples for label in one.labels}
    for found in model.predict(dev or examples):
        assert len(set(found.labels)) == len(found.labels)
        assert known.issuperset(found.labels)
        assert all(0 <= share <= 1 for share in found.probabilities.values())
        assert found.labels or not all(one.labels for one in examples)
    assert 0 <= model.trial_.f1 <= 1


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ngrams": 0}, "ngrams must be an integer of at least 1, got 0"),
        ({"min_df": 0.5}, "min_df must be an integer of at least 1, got 0.5"),
        ({"folds": 1}, "folds must be an integer of at least 2, got 1"),
        ({"choose": "written"}, "choose must be one of best, expected-f1, .*, oracle-k, got 'written'"),
        ({"candidates": ()}, "candidates must name a classifier and its C, got none"),
        ({"candidates": [("forest", 1)]}, "a candidate must be one of svm, logistic, got 'forest'"),
        ({"candidates": [("svm", 0)]}, "the C of a candidate must be above 0, got 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        TfidfClassifier(**parameters).fit(EXAMPLES)


def test_data_that_makes_no_sense_is_refused(model):
    for data, dev, message in (([], None, "training data is empty"), (EXAMPLES, [], "dev data is empty")):
        with pytest.raises(DataError, match=message):
            TfidfClassifier().fit(data, dev=dev)
    with pytest.raises(ValueError, match="texts and label sets must have the same length, got 2 and 1"):
        TfidfClassifier().fit(["a", "b"], [["x"]])
    with pytest.raises(TypeError, match="expected texts, got the string 'one text'"):
        model.predict("one text")
    with pytest.raises(DataError, match="oracle-k needs the true sets"):
        model.predict(["a text"], choose="oracle-k")
    with pytest.raises(AttributeError, match="this TfidfClassifier is not fitted yet"):
        TfidfClassifier().predict(DEV)


def test_it_does_not_need_torch():
    code = "import sys\nimport setaug.models.tfidf\nsys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_label_of_all_texts_is_sure_also_where_words_tell_little():
    rng = random.Random(0)
    texts = [" ".join(rng.choices("abcdefgh", k=6)) + f" {at % 7}x" for at in range(120)]
    sets = [["always", *(["sometimes"] if rng.random() < 0.1 else [])] for _ in texts]
    model = TfidfClassifier().fit(texts, sets)
    at = model.labels_.index("always")
    assert (model.predict_proba(texts)[:, at] > 0.99).all()
