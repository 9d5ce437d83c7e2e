"""Probabilities of all labels, and sets that are chosen from them, alone and with a companion."""

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from setaug.augmenter import SetAugmenter
from setaug.decoding.mixture import probabilities_of
from setaug.errors import DataError, ModelError
from setaug.examples import Example
from setaug.models import SetGenerator, SetSearch, TrainingSettings, load_model, make_model
from setaug.models.companion import fit_companion
from setaug.models.held_out import hold_out
from setaug.models.neural.writer import DRAWS
from setaug.models.tfidf import TfidfClassifier
from setaug.sample import sample_examples
from setaug.settings import WAYS, Decoding
from tests.conftest import DEV, EXAMPLES

TEXTS = [example.text for example in DEV[:6]]
SHORT = TrainingSettings(epochs=1, seed=1)


@pytest.fixture(scope="module")
def chooser():
    """A model as it is by default: dev data choose."""
    return SetGenerator("tiny", training=SHORT).fit(EXAMPLES, dev=DEV, progress=False)


def shares_of_samples(model, n):
    written = model.network_.write(TEXTS, Decoding(name="random"), n_each=n)
    shares = [[sum(label in one.labels for one in ones) / n for label in model.labels_] for ones in written]
    sizes = [
        [sum(len(one.labels) == size for one in ones) / n for size in range(model.largest_ + 1)] for ones in written
    ]
    return np.array(shares), np.array(sizes)


def test_probabilities_are_what_many_samples_converge_to(writer):
    found = writer.network_.probabilities(TEXTS, Decoding(), n_each=256)
    shares, sizes = shares_of_samples(writer, 1500)
    assert np.abs(found.labels - shares).max() < 0.06
    assert np.abs(found.sizes - sizes).max() < 0.06
    assert found.sizes.sum(axis=1) == pytest.approx(1, abs=1e-4)
    assert found.labels.sum(axis=1) == pytest.approx(
        (found.sizes * np.arange(found.sizes.shape[1])).sum(axis=1), abs=0.1
    )


@pytest.mark.parametrize("form", [{"with_size": False}, {"written_as": "json"}])
def test_other_forms_have_probabilities_too(form):
    model = SetGenerator(augmenter=SetAugmenter(**form), training=SHORT).fit(EXAMPLES[:24], progress=False)
    found = model.network_.probabilities(TEXTS, Decoding(), n_each=256)
    shares, sizes = shares_of_samples(model, 1000)
    assert np.abs(found.labels - shares).max() < 0.08
    assert np.abs(found.sizes - sizes).max() < 0.08


def test_few_draws_are_closer_to_the_probabilities_than_their_own_shares(generator):
    exact = generator.network_.probabilities(TEXTS, Decoding(), n_each=512).labels
    few = generator.network_.probabilities(TEXTS, Decoding(), n_each=8).labels
    shares, _ = shares_of_samples(generator, 8)
    assert np.abs(few - exact).mean() < np.abs(shares - exact).mean()


def test_probabilities_do_not_depend_on_the_other_texts(chooser):
    together, alone = chooser.predict_proba(TEXTS), np.concatenate([chooser.predict_proba([text]) for text in TEXTS])
    assert together == pytest.approx(alone, abs=1e-4)


def test_dev_data_choose_and_a_folder_keeps_what_they_chose(chooser, tmp_path):
    chosen = chooser.record_["chosen"]
    assert chosen["n_dev"] == len(DEV)
    assert chooser.companion_ is not None, chosen  # a model of one epoch knows nothing
    assert chosen["f1"] > chosen["f1_alone"]["decoder"]
    assert sum(chooser.mixture_.weights) == pytest.approx(1)
    found = chooser.predict(DEV)
    chooser.save_pretrained(tmp_path / "run")
    assert load_model(tmp_path / "run").predict(DEV) == found
    assert not [path for path in (tmp_path / "run").iterdir() if path.suffix in (".pkl", ".pickle", ".bin", ".joblib")]
    # vLLM loads all files of this kind as the model's weights
    assert [path.name for path in (tmp_path / "run").glob("*.safetensors")] == ["model.safetensors"]
    for one in found:
        assert set(one.labels) <= set(chooser.labels_)
        assert len(one.labels) >= 1
        assert (one.repeated, one.unknown, one.malformed, one.size) == ((), (), (), None)
        ranked = [one.probabilities[label] for label in one.labels]
        assert ranked == sorted(ranked, reverse=True)
    written = chooser.predict(DEV, choose="written")
    assert all(one.generation and one.probabilities is None for one in written)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sizes", [{"size_is": 2}, {"min_size": 3}, {"max_size": 1}])
def test_every_way_keeps_the_sizes_that_are_asked_for(chooser, way, sizes):
    allowed = Decoding(**sizes).sizes(chooser.largest_)
    assert all(len(one.labels) in allowed for one in chooser.predict(TEXTS, choose=way, **sizes))


def test_as_many_labels_as_the_true_set_has(chooser):
    found = chooser.predict(DEV, choose="oracle-k")
    assert [len(one.labels) for one in found] == [len(example.labels) for example in DEV]


def test_what_has_no_probabilities_is_refused_or_written(chooser):
    with pytest.raises(ValueError, match=r"choose='expected-f1' needs probabilities of all labels"):
        chooser.predict(TEXTS, choose="expected-f1", constrained=False)
    with pytest.raises(ValueError, match="these settings give no label probabilities"):
        chooser.predict_proba(TEXTS, name="beam")
    assert all(one.generation for one in chooser.predict(TEXTS, constrained=False))


def test_without_a_companion_the_model_is_alone():
    model = SetGenerator("tiny", training=SHORT, companion=False).fit(EXAMPLES[:40], dev=DEV, progress=False)
    assert model.companion_ is model.network_.head is None
    assert model.mixture_.weights == (1.0,)
    assert model.record_["chosen"]["members"] == ["decoder"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda card: card["mixture"].update(weights=[1.0]),
        lambda card: card["mixture"].update(weights=["a", "b"]),
        lambda card: card["mixture"]["rule"].update(way="vote"),
        lambda card: card.update(members=["decoder"]),
    ],
)
def test_a_damaged_mixture_is_refused(chooser, tmp_path, damage):
    chooser.save_pretrained(tmp_path / "run")
    path = tmp_path / "run" / "setaug.json"
    card = json.loads(path.read_text())
    damage(card)
    path.write_text(json.dumps(card))
    with pytest.raises(ModelError, match="not a valid setaug model"):
        load_model(tmp_path / "run")


def test_a_companion_comes_back_from_its_file(tmp_path):
    model = fit_companion(EXAMPLES, DEV)
    model.save(tmp_path / "companion.tfidf")
    again = TfidfClassifier.load(tmp_path / "companion.tfidf")
    assert again.predict(DEV) == model.predict(DEV)
    assert again.get_params() == {**model.get_params(), "candidates": [list(one) for one in model.candidates]}
    known = ["nowhere", *model.labels_[:3]]
    found = probabilities_of(again, TEXTS, known).labels
    assert (found[:, 0] == 0).all()
    assert np.array_equal(found[:, 1:], model.predict_proba(TEXTS)[:, :3])


@pytest.mark.parametrize("content", [b"", b"no safetensors", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_damaged_companion_is_refused(tmp_path, content):
    (tmp_path / "companion.tfidf").write_bytes(content)
    with pytest.raises(ModelError, match="not a valid setaug model"):
        TfidfClassifier.load(tmp_path / "companion.tfidf")
    with pytest.raises(ModelError, match="there is no file"):
        TfidfClassifier.load(tmp_path / "nothing")


def test_large_data_has_a_companion_without_a_choice_or_none(monkeypatch):
    assert len(fit_companion(EXAMPLES, DEV).trials_) > 1
    monkeypatch.setattr("setaug.models.companion._CHEAP", 10)
    assert len(fit_companion(EXAMPLES, DEV).trials_) == 1
    monkeypatch.setattr("setaug.models.companion._MAX_COST", 10)
    assert fit_companion(EXAMPLES, DEV) is None
    model = SetGenerator("tiny", training=TrainingSettings(epochs=1)).fit(EXAMPLES[:20], dev=DEV[:10])
    assert model.record_["too_large_for_companion"]


def test_a_model_is_tuned_again_with_or_without_its_parts(chooser, tmp_path):
    alone = copy(chooser).tune(DEV, members=["decoder"])
    assert len(alone.mixture_.weights) == 1
    assert alone.record_["chosen"].keys() >= {"f1", "f1_alone"}
    assert alone.predict_proba(TEXTS) != pytest.approx(chooser.predict_proba(TEXTS))
    alone.save_pretrained(tmp_path / "alone")
    assert load_model(tmp_path / "alone").predict(DEV) == alone.predict(DEV)
    plain = copy(chooser).tune(DEV, calibrate=False)
    assert [(one.slope, one.shift) for one in plain.mixture_.calibrations] == [(1.0, 0.0)] * len(plain.mixture_.weights)
    again = copy(alone).tune([example.text for example in DEV], [example.labels for example in DEV])
    assert again.mixture_.weights == pytest.approx(chooser.mixture_.weights)
    assert again.mixture_.rule.way == chooser.mixture_.rule.way
    assert len(chooser.mixture_.weights) == len(chooser.members_) > 1  # the copies left it as it was


def test_what_cannot_be_tuned_is_refused(chooser):
    with pytest.raises(DataError, match="the data to tune with is empty"):
        chooser.tune([])
    free = SetGenerator("tiny", vocabulary="open", training=SHORT).fit(EXAMPLES[:24], progress=False)
    with pytest.raises(ValueError, match="closed vocabulary"):
        free.tune(DEV)


def test_without_dev_data_sets_may_be_empty_if_those_in_training_are(tmp_path):
    mostly_empty = [
        replace(example, labels=example.labels if at % 5 == 0 else ()) for at, example in enumerate(EXAMPLES)
    ]
    model = SetGenerator("tiny", training=replace(SHORT, held_out=0.0)).fit(mostly_empty)
    assert model.mixture_.rule.least == 0
    model.save_pretrained(tmp_path / "run")
    for found in (model, load_model(tmp_path / "run")):
        assert any(not one.labels for one in found.predict(TEXTS))
    assert model.tune(EXAMPLES[:20]).mixture_.rule.least == 0


def test_without_dev_data_all_members_have_equal_weights(tmp_path):
    model = SetGenerator("tiny", training=replace(SHORT, label_head=True)).fit(EXAMPLES[:40], folder=tmp_path)
    assert (model.mixture_.weights, model.mixture_.rule.way) == ((1 / 3, 1 / 3, 1 / 3), "expected-f1")
    own = model.network_.probabilities(TEXTS, model.decoding, n_each=DRAWS).labels
    head = model.network_.head_probabilities(TEXTS, 32).labels
    theirs = probabilities_of(model.companion_, TEXTS, list(model.classes_)).labels
    assert np.allclose(model.predict_proba(TEXTS), (own + head + theirs) / 3, atol=1e-6)
    found = model.predict(TEXTS)
    assert all(one.probabilities and one.labels for one in found)
    assert load_model(tmp_path).predict(TEXTS) == found
    assert "chosen" not in model.record_


@pytest.mark.parametrize(
    "options",
    [{"training": replace(SHORT, recipe="paper")}, {"decoding": Decoding(choose="written")}, {"vocabulary": "open"}],
)
def test_the_papers_recipe_written_sets_and_open_vocabularies_need_no_probabilities(options):
    model = SetGenerator("tiny", **{"training": SHORT, **options}).fit(EXAMPLES[:40])
    assert model.mixture_ is model.companion_ is None
    assert model.predict(TEXTS) == model.predict(TEXTS, choose="written")


def test_a_companion_that_is_asked_for_is_fitted_however_large_the_data_is(monkeypatch):
    monkeypatch.setattr("setaug.models.companion._MAX_COST", 0)
    fitted = {}
    for asked in (None, True):
        model = SetGenerator("tiny", training=SHORT, companion=asked).fit(EXAMPLES[:40])
        fitted[asked] = model.companion_ is not None, model.record_["too_large_for_companion"]
    assert fitted == {None: (False, True), True: (True, False)}


def test_a_companion_that_is_asked_for_is_fitted_with_the_papers_recipe_too():
    training = replace(SHORT, recipe="paper", learning_rate=1e-3)
    fitted = [SetGenerator("tiny", training=training, companion=asked).fit(EXAMPLES[:40]) for asked in (None, True)]
    assert [model.companion_ is not None for model in fitted] == [False, True]


def test_a_companion_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="a companion needs known labels, so vocabulary cannot be open"):
        SetGenerator("tiny", vocabulary="open", companion=True).fit(EXAMPLES)
    with pytest.raises(ValueError, match="the method set-search has no companion"):
        make_model("set-search", "tiny", companion=True)


@pytest.mark.parametrize("kind", [SetGenerator, SetSearch])
def test_a_label_that_only_the_dev_data_has_is_known(kind, tmp_path):
    dev = [*DEV[:20], Example("Something new.", ["brand new", *DEV[0].labels])]
    training = replace(SHORT, label_head=True if kind is SetGenerator else None)
    model = kind("tiny", training=training).fit(EXAMPLES[:40], dev=dev, folder=tmp_path)
    at = model.classes_.tolist().index("brand new")
    assert (model.predict_proba(TEXTS)[:, at] > 0).all()
    assert model.record_["dev_labels_unseen_in_training"] == sum(model._are_new(model.classes_.tolist())) >= 1
    given = kind("tiny", training=SHORT, vocabulary=["brand new"]).fit(EXAMPLES[:40], dev=dev)
    assert not given._are_new(["brand new"]).any()
    loaded = load_model(tmp_path)
    assert loaded.labels_ == model.labels_
    assert loaded.predict_proba(TEXTS) == pytest.approx(model.predict_proba(TEXTS), abs=1e-6)
    if kind is SetGenerator:  # the others do not know it, and do not count for it
        assert "brand new" not in model.companion_.labels_ + model.network_.head.labels
        members = [model._of_member(name, TEXTS, model.decoding) for name in model.members_]
        alone = replace(model.mixture_, weights=(1.0, 0.0, 0.0)).combine(members)
        assert model.predict_proba(TEXTS)[:, at] == pytest.approx(alone.labels[:, at])


@pytest.mark.parametrize("kind", [SetGenerator, SetSearch])
def test_a_set_that_is_left_out_does_not_set_the_largest_size(kind, tmp_path):
    long = "".join(chr(0x4E00 + 7 * at) for at in range(300))  # each label of set search is a target of its own
    giant = Example("one text", [*(f"label {n}" for n in range(400)), long])
    model = kind("tiny", training=SHORT).fit([*EXAMPLES[:40], giant], dev=DEV, folder=tmp_path)
    most = max(len(example.labels) for example in EXAMPLES[:40])
    assert model.record_["left_out_targets_too_long"] == 1
    loaded = load_model(tmp_path)
    assert model.largest_ == model.network_.largest == loaded.largest_ == loaded.network_.largest == most
    assert loaded.predict(TEXTS) == model.predict(TEXTS)
    if kind is SetSearch:
        assert 1 <= model.mean_size_ <= most


def test_the_companion_learns_from_what_was_held_out_once_sets_are_tuned():
    examples = list(sample_examples(110, seed=5))
    model = SetGenerator("tiny", training=SHORT).fit(examples, progress=False)
    assert model.is_held_out_
    kept, held = hold_out(examples, fraction=0.1, seed=SHORT.seed)
    assert model.dev_ == held != []
    again = fit_companion([*kept, *model.dev_], ())
    assert np.array_equal(model.companion_.predict_proba(TEXTS), again.predict_proba(TEXTS))
    given = SetGenerator("tiny", training=SHORT).fit(kept, dev=model.dev_, progress=False)
    assert not given.is_held_out_
    assert not np.array_equal(given.companion_.predict_proba(TEXTS), again.predict_proba(TEXTS))


@pytest.mark.parametrize("kind", [SetGenerator, SetSearch])
def test_dev_texts_that_are_training_texts_are_warned_of_and_counted(kind):
    dev = [replace(example, text=example.text + " Again.") for example in DEV[:9]]
    some = kind("tiny", training=SHORT).fit(EXAMPLES[:40], dev=[*dev, *EXAMPLES[:8]], progress=False)
    assert some.record_["dev_texts_in_training"] == 8  # fewer than half may be a coincidence
    with pytest.warns(UserWarning, match="9 of 18 texts of the dev data are also in the training data"):
        model = kind("tiny", training=SHORT).fit(EXAMPLES[:40], dev=[*dev, *EXAMPLES[:9]], progress=False)
    assert model.record_["dev_texts_in_training"] == 9


def test_shares_of_samples_are_label_probabilities_too(chooser):
    found = chooser.label_probabilities(TEXTS, samples=4)
    assert found.sizes is None
    assert np.array_equal(found.labels, chooser.predict_proba(TEXTS, samples=4))
    assert set(np.unique(found.labels * 4)) <= {0, 1, 2, 3, 4}


def test_a_way_that_is_asked_for_at_first_is_tuned_too():
    model = SetGenerator("tiny", training=SHORT, decoding=Decoding(choose="top-k")).fit(EXAMPLES[:40], dev=DEV)
    assert model.mixture_.rule.way == "top-k"
    assert {len(one.labels) for one in model.predict(TEXTS)} == {model.mixture_.rule.k}


def test_every_predicted_label_has_a_probability(chooser):
    n = len(chooser.labels_)
    for one in (*chooser.predict(TEXTS, size_is=n), *(some.keep_top(1) for some in chooser.predict(TEXTS, size_is=n))):
        assert set(one.labels) == set(one.probabilities)


def test_a_model_that_was_not_fitted_has_no_probabilities():
    with pytest.raises(NotFittedError):
        SetGenerator("tiny").label_probabilities(TEXTS)


def test_a_label_that_no_set_can_hold_is_refused_before_training(tmp_path):
    examples = [Example(f"text {at}", [("</s>", "b", "c")[at % 3]]) for at in range(30)]
    with pytest.raises(ValueError, match="the label '</s>' contains the end-of-sequence token"):
        SetGenerator("tiny", training=SHORT).fit(examples, folder=tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
