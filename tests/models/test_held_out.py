"""Dev data that is held out of the training data where none is given."""

import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setaug import Example
from setaug.models import SetClassifier, SetSearch, TrainingSettings
from setaug.models.held_out import MAX_HELD_OUT, hold_out, sample_dev
from setaug.sample import sample_examples
from setaug.settings import MIN_EXAMPLES


@settings(max_examples=40)
@given(st.integers(0, 9), st.sampled_from([0.1, 0.3]), st.integers(1, 60))
def test_each_example_is_on_one_side_and_each_label_and_text_stays_where_it_is_needed(seed, fraction, n_texts):
    examples = [
        Example(f"text {at % (n_texts * 3)}", [f"label {at % n_texts}", f"rare {at // 7}"]) for at in range(120)
    ]
    train, dev = hold_out(examples, fraction=fraction, seed=seed)
    assert Counter(map(id, train + dev)) == Counter(map(id, examples))
    assert len(dev) <= round(120 * fraction)
    assert not {one.text for one in train} & {one.text for one in dev}
    known = {label for one in train for label in one.labels}
    assert all(known.issuperset(one.labels) for one in dev)


@pytest.mark.parametrize(("make", "at_most"), [(SetClassifier, "MAX_TUNING_SCORED"), (SetSearch, "MAX_TUNING")])
def test_much_dev_data_is_sampled_to_tune_with(make, at_most, monkeypatch):
    monkeypatch.setattr(sys.modules[make.__module__], at_most, 20)
    examples = list(sample_examples(100))
    model = make("mini", training=TrainingSettings(epochs=1)).fit(examples[:50], dev=examples[50:])
    assert (model.record_["n_dev"], model.record_["chosen"]["n_dev"]) == (50, 20)


def test_of_many_dev_examples_the_same_are_drawn_each_time_and_few_are_taken_as_they_are():
    examples = list(sample_examples(60))
    assert sample_dev(examples, at_most=60) == examples
    drawn = sample_dev(examples, at_most=20)
    assert drawn == sample_dev(examples, at_most=20) != examples[:20]
    assert len({one.text for one in drawn}) == 20


def test_a_tenth_is_held_out_the_same_by_each_seed():
    examples = list(sample_examples(300))
    first, again, other = (hold_out(examples, fraction=0.1, seed=seed)[1] for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 30
    assert first == [one for one in examples if one in first]


def test_few_examples_are_all_trained_on_and_of_many_not_too_many_are_held_out():
    parts = {n: TrainingSettings().part_held_out(n) for n in (MIN_EXAMPLES - 1, MIN_EXAMPLES)}
    assert parts == {MIN_EXAMPLES - 1: 0.0, MIN_EXAMPLES: 0.1}
    many = [Example(f"text {at}", ["a"]) for at in range(20 * MAX_HELD_OUT)]
    assert len(hold_out(many, fraction=0.1, seed=0)[1]) == MAX_HELD_OUT
    assert hold_out(many, fraction=0.0, seed=0) == (many, [])


def test_of_few_examples_some_are_held_out_if_that_is_asked_for():
    settings = TrainingSettings(epochs=1, held_out=0.5)
    model = SetClassifier("mini", training=settings).fit(list(sample_examples(30)))
    assert 10 <= len(model.dev_) == 30 - model.record_["n_examples"] <= 15


def test_a_model_trains_on_the_rest_and_is_scored_on_what_was_held_out():
    examples = list(sample_examples(120))
    model = SetClassifier("mini", training=TrainingSettings(epochs=1)).fit(examples)
    train, dev = hold_out(examples, fraction=0.1, seed=model.training.seed)
    assert model.dev_ == dev
    assert (model.record_["n_examples"], model.record_["n_dev"]) == (len(train), len(dev)) == (108, 12)
    assert model.record_["best_f1"] is not None
    whole = SetClassifier("mini", training=TrainingSettings(epochs=1, held_out=0.0)).fit(examples)
    assert (whole.dev_, whole.record_["n_examples"], whole.record_["best_f1"]) == ([], 120, None)


@pytest.mark.parametrize("fraction", [1.0, -0.1, float("nan")])
def test_a_fraction_that_leaves_nothing_is_refused(fraction):
    with pytest.raises(ValueError, match="held_out must be at least 0 and below 1"):
        TrainingSettings(held_out=fraction)
