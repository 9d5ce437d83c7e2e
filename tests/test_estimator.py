"""scikit-learn's contract, which every model follows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import ParameterGrid

from setaug import (
    Decoding,
    PromptedSetModel,
    SetAugmenter,
    SetClassifier,
    SetGenerator,
    SetSearch,
    TfidfClassifier,
    TrainingSettings,
)
from tests.conftest import DEV, EXAMPLES

SHORT = TrainingSettings(epochs=1)
AUGMENTER = SetAugmenter(n_orders=1, with_size=False)
MODELS = {
    "generator": lambda: SetGenerator(augmenter=AUGMENTER, training=SHORT),
    "search": lambda: SetSearch(training=SHORT),
    "classifier": lambda: SetClassifier(training=SHORT),
    "prompted": lambda: PromptedSetModel("any", augmenter=AUGMENTER),
    "tfidf": lambda: TfidfClassifier(ngrams=2),
}
NESTED = [
    *((name, "training__epochs", 9) for name in ("generator", "search", "classifier")),
    *((name, "augmenter__n_orders", 4) for name in ("generator", "prompted")),
    ("generator", "decoding__samples", 16),
    ("search", "codec__separator", "; "),
    ("prompted", "endpoint__concurrency", 2),
]


@pytest.mark.parametrize(("name", "key", "value"), NESTED)
def test_fields_of_a_parameter_are_parameters_too(name, key, value):
    model = MODELS[name]()
    part, _, field = key.partition("__")
    given = getattr(model, part)
    before = model.get_params()
    assert before[key] != value
    assert model.set_params(**{key: value}) is model
    assert getattr(getattr(model, part), field) == value
    assert getattr(given, field) == before[key]  # what was passed in has not changed
    after = model.get_params()
    assert {one for one in after if after[one] != before[one]} <= {part, key}
    assert after[key] == value


@pytest.mark.parametrize("name", MODELS)
def test_a_clone_has_the_same_parameters_and_parts_of_its_own(name):
    model = MODELS[name]()
    twin = clone(model)
    mine, theirs = model.get_params(), twin.get_params()
    assert mine.keys() == theirs.keys()
    assert repr(mine) == repr(theirs)
    if "augmenter" in mine:
        assert twin.set_params(augmenter__n_orders=7).augmenter is not model.augmenter
        assert model.augmenter.n_orders == AUGMENTER.n_orders == 1


@pytest.mark.parametrize("name", MODELS)
def test_an_unknown_parameter_is_refused_and_nothing_is_set(name):
    model = MODELS[name]()
    before = model.get_params()
    for key in ("no_such", "no_such__epochs", "training__no_such", "augmenter__no_such", "model__x", "ngrams__x"):
        with pytest.raises(ValueError, match=r"parameter must be one of .*got "):
            model.set_params(**{next(iter(model.get_params(deep=False))): "new", key: 1})
        assert model.get_params() == before


def test_a_part_and_its_field_can_be_set_together():
    model = SetGenerator().set_params(training=TrainingSettings(epochs=5, seed=3), training__epochs=7)
    assert (model.training.epochs, model.training.seed) == (7, 3)


def test_values_that_make_no_sense_are_refused():
    model = SetGenerator(training=SHORT)
    with pytest.raises(ValueError, match="epochs must be an integer of at least 1, got 0"):
        model.set_params(training__epochs=0)
    assert model.training is SHORT


def test_a_grid_sets_nested_parameters():
    grid = ParameterGrid({"training__epochs": [1, 2], "decoding__samples": [0, 8]})
    models = [clone(SetGenerator()).set_params(**values) for values in grid]
    assert {(one.training.epochs, one.decoding.samples) for one in models} == {(1, 0), (1, 8), (2, 0), (2, 8)}


@pytest.mark.parametrize("name", ["generator", "prompted"])
def test_fit_does_not_change_the_augmenter_that_it_was_given(name):
    before = dict(vars(AUGMENTER))
    model = MODELS[name]().fit(EXAMPLES[:6])
    assert model.augmenter is AUGMENTER
    assert vars(AUGMENTER) == before
    assert not hasattr(AUGMENTER, "statistics_")
    assert model.augmenter_.statistics_ == model.statistics_
    assert not hasattr(clone(model).augmenter, "statistics_")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_not_fitted_says_so_as_scikit_learn_does(name):
    with pytest.raises(NotFittedError, match="is not fitted yet; call fit"):
        MODELS[name]().predict(["a"])
    assert not hasattr(MODELS[name](), "classes_")


def test_classifiers_have_classes_and_probabilities(classifier):
    for model in (classifier, TfidfClassifier().fit(EXAMPLES)):
        found = model.predict_proba(DEV)
        assert list(model.classes_) == model.labels_
        assert found.shape == (len(DEV), len(model.classes_))
        assert ((found >= 0) & (found <= 1)).all()
        gold = np.array([[label in one.labels for label in model.classes_] for one in DEV])
        assert average_precision_score(gold, found, average="micro") > gold.mean()


def test_a_generator_has_probabilities_also_from_samples(generator):
    whole = generator.predict_proba(DEV)
    assert whole.shape == (len(DEV), len(generator.classes_))
    assert ((whole >= 0) & (whole <= 1)).all()
    found = generator.predict_proba(DEV, samples=8)
    predictions = generator.predict(DEV, samples=8)
    for row, prediction in zip(found, predictions, strict=True):
        named = {label: value for label, value in zip(generator.classes_, row, strict=True) if value}
        assert named == {label: value for label, value in prediction.probabilities.items() if value}
    assert clone(generator).set_params(decoding=Decoding(samples=8)).decoding.samples == 8


def test_an_open_vocabulary_has_no_classes():
    model = PromptedSetModel("any", vocabulary="open").fit(EXAMPLES)
    with pytest.raises(AttributeError, match="an open vocabulary has no classes_"):
        model.predict_proba(DEV, samples=2)
