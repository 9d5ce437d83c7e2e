"""The words of labels in texts: what they add, what they need, and what the classifier gains."""

import json
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug import Example, TfidfClassifier
from setaug.errors import ModelError
from setaug.models.label_words import LabelWords
from tests.conftest import DEV, EXAMPLES
from tests.strategies import any_label, any_text

ONE = (("svm", 1.0),)
TEXTS = ["Cocoa prices rose in trading.", "Oil, crude and cooking!", "Nothing of it."]


def strengths(label, *texts):
    return LabelWords.fit([label], TEXTS)(texts)[:, 0]


def test_a_label_counts_by_its_mean_word_and_by_how_early_that_comes():
    idf = log(4 / 2)
    found = strengths("crude oil", "oil", "crude oil", "so much oil", "gas", "")
    assert found == pytest.approx(
        [2 * idf / 2, (2 + 1 + 1 / (1 + 1 / 50)) * idf / 2, (1 + 1 / (1 + 2 / 50)) * idf / 2, 0, 0]
    )
    assert strengths("gold", "gold")[0] == pytest.approx(2 * log(4 / 1))  # no training text has it


def test_words_of_all_texts_mean_nothing():
    assert LabelWords.fit(["the news"], ["the end", "the start"])(["the news"])[0, 0] == pytest.approx(
        (1 + 1 / (1 + 1 / 50)) * log(3) / 2
    )


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("trade", "TRADING was slow"),
        ("policy", "their policies"),
        ("real_estate", "real estate"),
        ("realEstate", "Real ESTATES"),
        ("realEstate", "of realEstate"),
        ("real_estate", "tagged real_estate"),
        ("JavaScript", "in javascript"),
        ("javascript", "about JavaScript"),
        ("C_x", "C_x"),
        ("/art/café", "a cafe with art"),
        ("渡し船", "渡し船に乗る"),
    ],
)
def test_a_label_is_found_in_another_form(label, text):
    assert strengths(label, text)[0] > 0 == strengths(label, "Nothing of it, or of anything else.")[0]


@pytest.mark.parametrize("label", ["gold", "class", "as", "C#", "care"])
def test_other_words_are_not_taken_for_it(label):
    assert not strengths(label, "golf clasp asked :# a car").any()


@given(st.lists(any_label, min_size=1, max_size=4, unique=True), st.lists(any_text, max_size=4))
def test_whatever_the_labels_and_texts_strengths_are_finite_and_come_back(labels, texts):
    words = LabelWords.fit(labels, texts)
    found = words(texts)
    assert found.shape == (len(texts), len(labels))
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert np.array_equal(LabelWords.from_dict(words.to_dict(), labels)(texts), found)


def named(n, start=0):
    """Return texts that name their labels among other words; each label is in few of them."""
    signs = [f"{first}{second}{third}" for first in "bdfgklmn" for second in "aiou" for third in "lmnr"]
    examples = []
    for at in range(start, start + n):
        labels = tuple(dict.fromkeys((signs[at % len(signs)], signs[(at * 7 + 3) % len(signs)])))
        others = " ".join(f"filler{(at * step) % 97}" for step in range(1, 60, 3))
        examples.append(Example(f"Note: {others} {' '.join(labels)}.", labels))
    return examples


def test_labels_that_texts_name_are_found_though_they_are_rare(tmp_path):
    train, test = named(90), named(60, start=1000)
    plain, found = (TfidfClassifier(candidates=ONE, label_words=asked).fit(train) for asked in (False, True))
    assert plain.label_words_ is None
    assert plain.calibration_.name_weight == 0 < found.calibration_.name_weight
    assert found.score(test) > plain.score(test) + 0.1
    found.save(tmp_path / "model")
    loaded = TfidfClassifier.load(tmp_path / "model")
    assert loaded.predict(test) == found.predict(test)


def test_where_the_names_say_nothing_they_do_not_count():
    known = sorted({one for each in (*EXAMPLES, *DEV) for one in each.labels})
    other = {label: f"code {at}" for at, label in enumerate(known)}
    train, test = (
        [Example(one.text, tuple(other[label] for label in one.labels)) for one in data] for data in (EXAMPLES, DEV)
    )
    plain, found = (TfidfClassifier(candidates=ONE, label_words=asked).fit(train) for asked in (False, True))
    assert found.predict_proba(test) == pytest.approx(plain.predict_proba(test), abs=0.02)


def test_a_file_whose_words_do_not_fit_its_labels_is_refused(tmp_path, monkeypatch):
    model = TfidfClassifier(candidates=ONE).fit(named(60))
    for words, message in ({}, "has no frequency"), ({word: float("nan") for word in model.label_words_.idf}, "finite"):
        monkeypatch.setattr(LabelWords, "to_dict", lambda self, words=words: words)
        model.save(tmp_path / "model")
        with pytest.raises(ModelError, match=message):
            TfidfClassifier.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": None}, "splits texts into words in another way than this version; train it again"),
        ({"label_words": []}, "the frequencies of words must be an object"),
        ({"calibration": [1.0, 0.0, float("nan")]}, "a calibration has the numbers"),
        ({"calibration": [1.0, 0.0, -1.0]}, "a calibration has the numbers"),
    ],
)
def test_files_of_other_versions_and_damaged_ones_are_refused(changes, message, tmp_path, monkeypatch):
    model = TfidfClassifier(candidates=ONE).fit(EXAMPLES)
    dumps = json.dumps
    monkeypatch.setattr(json, "dumps", lambda kept: dumps({**kept, **changes}))
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match=message):
        TfidfClassifier.load(tmp_path / "model")


def test_labels_that_texts_name_for_sure_are_not_capped():
    """Scores of 40 and more have been cut off at 14 on the way to probabilities, which made strong ones alike."""
    model = TfidfClassifier(candidates=(("logistic", 3.0),)).fit(named(200))
    found = model.predict_proba(named(60, start=1000))
    cells = found > 0.5
    assert cells.any()
    assert len(np.unique(found[cells].round(9))) > 0.5 * cells.sum()
