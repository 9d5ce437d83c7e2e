"""The baselines: score each label by itself, or write one label at a time; and what their predictions hold."""

import json

import numpy as np
import pytest
import torch
from sklearn.base import clone

from setaug import Example
from setaug.decoding.choice import Rule
from setaug.decoding.mixture import MIN_TUNING, SHRINKAGE, LabelProbabilities, LogisticCalibration
from setaug.errors import DataError
from setaug.metrics import score_sets
from setaug.models import SetClassifier, SetSearch, TrainingSettings
from setaug.models.neural.classifier import Scorer
from setaug.sample import sample_examples
from tests.conftest import DEV, EXAMPLES

TEXTS = [example.text for example in DEV]
GOLD = [example.labels for example in DEV]
SHORT = TrainingSettings(epochs=1)


def f1(found, gold=DEV):
    return score_sets([one.labels for one in gold], [one.labels for one in found]).samples_f1


# --- score each label -------------------------------------------------------------------------------------------------


def test_probabilities_are_the_models_whatever_the_batches(classifier):
    found = classifier.predict_proba(TEXTS)
    assert found.shape == (12, len(classifier.labels_))
    assert ((found > 0) & (found < 1)).all()
    for text, row in zip(TEXTS[:3], found, strict=False):
        inputs = classifier.tokenizer_(text, return_tensors="pt")
        with torch.inference_mode():
            logits = classifier.model_(input_ids=inputs["input_ids"]).logits
        own = torch.sigmoid(logits)[0].numpy()
        np.testing.assert_allclose(row, classifier.calibration_(own), rtol=1e-4)
    for one, row in zip(classifier.predict(DEV), found, strict=True):
        assert all(
            row[classifier.labels_.index(name)] == pytest.approx(p, abs=1e-5) for name, p in one.probabilities.items()
        )


def test_a_call_can_score_fewer_texts_at_once(classifier, monkeypatch):
    expected, sizes = [one.labels for one in classifier.predict(TEXTS)], []
    score = Scorer.probabilities

    def recorded(self, texts, batch_size, progress):
        sizes.append(batch_size)
        return score(self, texts, batch_size, progress)

    monkeypatch.setattr(Scorer, "probabilities", recorded)
    assert [one.labels for one in classifier.predict(TEXTS, batch_size=2)] == expected
    assert sizes == [2]
    assert classifier.batch_size == 32


def test_the_rule_is_chosen_on_the_dev_data(classifier):
    own = classifier.network_.probabilities(TEXTS, 32, None)
    hits = np.array([[label in gold for label in classifier.labels_] for gold in GOLD])
    assert classifier.calibration_ == LogisticCalibration.fit(own, hits, shrinkage=SHRINKAGE)
    sizes = np.array(list(map(len, GOLD)))
    assert len(DEV) < MIN_TUNING  # so few do not compare ways
    options = {"least": 1, "largest": max(len(one.labels) for one in EXAMPLES), "ways": ["expected-f1"]}
    rule, reached = Rule.fit(classifier.calibration_(own), None, hits, sizes, **options)
    assert (rule.way, rule.k) == (classifier.rule_.way, classifier.rule_.k)
    assert rule.size_ratios == pytest.approx(classifier.rule_.size_ratios)
    assert reached == pytest.approx(f1(classifier.predict(DEV))) == pytest.approx(classifier.record_["chosen"]["f1"])
    assert classifier.record_["best_f1"] == pytest.approx(reached)


def test_the_ways_take_what_they_say(classifier):
    ranked = [
        [classifier.labels_[at] for at in np.argsort(-row, kind="stable")] for row in classifier.predict_proba(DEV)
    ]
    for way, sizes in {"top-k": [classifier.rule_.k] * 12, "oracle-k": list(map(len, GOLD))}.items():
        found = classifier.predict(DEV, choose=way)
        assert [list(one.labels) for one in found] == [row[:size] for row, size in zip(ranked, sizes, strict=True)]
    assert [one.id for one in classifier.predict(DEV)] == [one.id for one in DEV]
    assert classifier.predict([]) == []
    assert classifier.predict([{"text": TEXTS[0]}])[0].labels == classifier.predict(TEXTS[:1])[0].labels


@pytest.mark.parametrize("k", [1, 3, 20, 50])
def test_k_can_be_given_for_one_call(classifier, k):
    everything = classifier.predict(DEV, choose="top-k", k=len(classifier.labels_))
    found = classifier.predict(DEV, choose="top-k", k=k)
    assert [one.labels for one in found] == [one.labels[:k] for one in everything]
    assert {len(one.labels) for one in found} == {min(k, len(classifier.labels_))}
    assert classifier.predict(DEV, choose="top-k") == classifier.predict(DEV, choose="top-k", k=classifier.rule_.k)


def test_predicting_needs_a_fit_first():
    with pytest.raises(AttributeError, match="this SetClassifier is not fitted yet"):
        SetClassifier().predict(TEXTS)


def test_what_does_not_fit_a_classifier_is_refused(classifier):
    with pytest.raises(DataError, match="oracle-k needs the true sets"):
        classifier.predict(TEXTS, choose="oracle-k")
    with pytest.raises(TypeError, match="expected texts, got the string 'one text'"):
        classifier.predict("one text")


def test_without_dev_data_a_half_and_the_mean_size_count():
    model = SetClassifier(training=SHORT, choose="top-k").fit(EXAMPLES[:10])
    assert model.rule_.threshold == 0.5
    assert model.rule_.k == round(sum(len(one.labels) for one in EXAMPLES[:10]) / 10)
    assert {len(one.labels) for one in model.predict(TEXTS)} == {model.rule_.k}
    assert model.calibration_ == LogisticCalibration()
    assert SetClassifier(training=SHORT).fit(EXAMPLES[:10]).rule_.way == "expected-f1"


def test_a_classifier_comes_back_from_its_folder(classifier, classifier_folder, tmp_path):
    classifier.save_pretrained(tmp_path)
    again = SetClassifier.from_pretrained(tmp_path)
    assert again.predict(DEV) == classifier.predict(DEV)
    assert (again.rule_, again.calibration_, again.labels_) == (
        classifier.rule_,
        classifier.calibration_,
        classifier.labels_,
    )
    assert {path.suffix for path in classifier_folder.iterdir()} == {".json", ".jsonl", ".md", ".safetensors"}
    assert again.score(DEV) == pytest.approx(f1(again.predict(DEV)))


def test_an_end_token_in_a_text_is_left_out(classifier):
    end = classifier.tokenizer_.eos_token
    (plain, spelt), n_cut = classifier.network_.read(["was 20 now 10", f"was {end}20{end} now 10"])
    assert (spelt.count(classifier.tokenizer_.eos_token_id), spelt[-1], n_cut) == (1, plain[-1], 0)
    texts = [f"was <s>20{end} now 10", *TEXTS]
    assert len(classifier.predict(texts)) == len(texts)
    examples = [Example(texts[0], ["match"]), *EXAMPLES[:9]]
    SetClassifier("mini", training=TrainingSettings(epochs=1)).fit(examples, progress=False)


def test_training_makes_the_loss_smaller(classifier_folder):
    losses = [json.loads(line).get("loss") for line in (classifier_folder / "metrics.jsonl").read_text().splitlines()]
    losses = [loss for loss in losses if loss is not None]
    assert losses[-1] < losses[0]


def test_set_search_without_dev_data_chooses_sizes_by_probabilities(search):
    found = search.predict(DEV)
    assert found == search.predict(DEV, choose="expected-f1")
    assert {len(one.labels) for one in found} != {search.largest_}
    assert all(one.probabilities for one in found)


# --- write one label at a time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("constrained", [True, False])
def test_the_beam_is_as_wide_as_the_largest_set_and_labels_are_different(search, constrained, monkeypatch):
    asked = []
    generate = type(search.model_).generate

    def noting(self, *args, **options):
        asked.append((options["num_beams"], options["num_return_sequences"], len(options["input_ids"])))
        return generate(self, *args, **options)

    monkeypatch.setattr(type(search.model_), "generate", noting)
    found = search.predict(DEV, constrained=constrained, batch_size=20, choose="written")
    largest = max(len(example.labels) for example in EXAMPLES)
    assert largest == 4
    assert asked == [(4, 4, 5), (4, 4, 5), (4, 4, 2)]
    known = set(search.labels_)
    for one in found:
        assert len(set(one.labels)) == len(one.labels)
        assert len(one.labels) + len(one.repeated) + len(one.malformed) <= largest or not constrained
        assert set(one.unknown) == set(one.labels) - known
        if constrained:
            assert len(one.labels) == largest
            assert one.repeated == one.unknown == one.malformed == ()
    assert [one.id for one in found] == [one.id for one in DEV]


def test_set_search_finds_the_labels_with_the_highest_probability(search):
    """By hand: the probability of each known label, written by itself."""
    prompt = search.tokenizer_(TEXTS[0], return_tensors="pt")["input_ids"]
    scores = {}
    for label in search.labels_:
        target = torch.tensor(search.network_.layout.targets([[label]])[0])
        with torch.inference_mode():
            loss = search.model_(input_ids=prompt, labels=target).loss
        scores[label] = -loss.item()  # the mean over its tokens, as a beam search ranks
    best = max(scores, key=scores.get)
    assert best in search.predict(TEXTS[:1])[0].labels


def test_what_does_not_fit_set_search_is_refused(search):
    for name, value in {"samples": 2, "name": "random", "rule": "top-k"}.items():
        shown = "decoding name" if name == "name" else name
        with pytest.raises(TypeError, match=f"set search takes no {shown}"):
            search.predict(TEXTS, **{name: value})


def test_set_search_has_label_probabilities():
    """A label is written with the probability that the set has it, divided by the mean size."""
    dev = list(sample_examples(100, seed=1))
    model = SetSearch("tiny", training=SHORT).fit(EXAMPLES, dev=dev)
    mean_size = sum(len(one.labels) for one in EXAMPLES) / len(EXAMPLES)
    raw = model._probabilities(TEXTS, model._decoding(), None).labels
    assert raw.sum(axis=1) == pytest.approx(np.full(len(TEXTS), mean_size), rel=1e-3)
    assert model.predict_proba(TEXTS) == pytest.approx(model.mixture_.combine([LabelProbabilities(raw)]).labels)
    assert f1(model.predict(dev), dev) == pytest.approx(model.record_["chosen"]["f1"])
    found = model.predict(dev)
    assert all(one.probabilities and one.labels for one in found)
    assert model.predict(dev, choose="written") == model._search(dev, model._decoding(), None)
    assert f1(found, dev) > f1(model.predict(dev, choose="written"), dev)
    assert all(one.probabilities is None for one in model.predict(dev, constrained=False))
    with pytest.raises(ValueError, match="choose='size' needs probabilities of all labels: a closed vocabulary"):
        model.predict(dev, choose="size", constrained=False)


def test_set_search_needs_no_augmenter():
    model = SetSearch("tiny", training=SHORT).fit(EXAMPLES[:6])
    assert all(one.size is None for one in model.predict(TEXTS[:2]))
    assert clone(model).fit(EXAMPLES[:6]).predict(TEXTS[:2]) == model.predict(TEXTS[:2])


def test_set_search_learns_which_sets_are_empty(tmp_path):
    def mostly_empty(examples):
        return [one if at % 3 == 0 else Example(f"Note {at}: nothing.", ()) for at, one in enumerate(examples)]

    train, test = mostly_empty(EXAMPLES), mostly_empty(DEV)
    model = SetSearch("tiny", training=TrainingSettings(epochs=12)).fit(train, folder=tmp_path)
    labelled = [one for one in train if one.labels]
    n_labels = sum(len(one.labels) for one in labelled)
    assert model.record_["n_pairs_per_epoch"] == n_labels + len(train) - len(labelled)
    assert model.mean_size_ == n_labels / len(labelled)
    for choose in ("best", "written"):
        found = model.predict(test, choose=choose)
        assert sum(bool(one.labels) == bool(true.labels) for one, true in zip(found, test, strict=True)) > 0.9 * len(
            test
        )
        assert SetSearch.from_pretrained(tmp_path).predict(test, choose=choose) == found


def test_set_search_comes_back_from_its_folder(search, tmp_path):
    search.save_pretrained(tmp_path)
    assert SetSearch.from_pretrained(tmp_path).predict(DEV) == search.predict(DEV)
