"""The model that writes sets: data in, predictions out, a folder and back."""

import json
import math
from copy import copy, deepcopy
from dataclasses import replace

import pytest
import torch
from sklearn.base import clone
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from setaug import Example, SetAugmenter
from setaug.errors import DataError, ModelError
from setaug.metrics import evaluate, score_sets
from setaug.models import SetGenerator, TrainingSettings
from setaug.predictions import Prediction
from setaug.settings import DECODINGS, WAYS, Decoding
from tests.conftest import DEV, EXAMPLES

TEXTS = [example.text for example in DEV]
SHORT = TrainingSettings(epochs=1, batch_size=4)


def weights(model):
    return torch.cat([values.flatten() for values in model.model_.state_dict().values()])


# --- data -------------------------------------------------------------------------------------------------------------


def test_examples_rows_and_texts_with_label_sets_train_the_same_model():
    examples = [Example(one.text, sorted(one.labels)) for one in EXAMPLES[:12]]
    rows = ({"text": one.text, "labels": list(one.labels)} for one in examples)
    texts, label_sets = [one.text for one in examples], [set(one.labels) for one in examples]
    models = [
        SetGenerator(training=SHORT).fit(examples),
        SetGenerator(training=SHORT).fit(rows),
        SetGenerator(training=SHORT).fit(texts, label_sets),
    ]
    assert torch.equal(weights(models[0]), weights(models[1]))
    assert torch.equal(weights(models[0]), weights(models[2]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a", "b"], [["x"]]), ValueError, "texts and label sets must have the same length, got 2 and 1"),
        ((["a"], ["xyz"]), DataError, '"labels" must be a list of strings, got "xyz"'),
        ((["a"], [[None]]), DataError, '"labels" must be a list of strings, but contains null'),
        ((["a"],), TypeError, 'expected examples or rows \\(mappings\\), got "a"'),
        (([],), DataError, "the training data is empty"),
        (([Example("a", ()), Example("b", ())],), DataError, "no training example has a label"),
        (([{"text": "a", "labels": []}, {"text": "b"}],), DataError, 'line 2 of the data: field "labels" is missing'),
    ],
)
def test_data_that_is_none_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        SetGenerator(training=SHORT).fit(*arguments)


def test_empty_dev_data_is_refused():
    with pytest.raises(DataError, match="the dev data is empty"):
        SetGenerator(training=SHORT).fit(EXAMPLES[:4], dev=[])


def test_labels_longer_than_a_target_are_left_out_and_all_of_them_are_an_error():
    long = Example("long", ["".join(chr(0x4E00 + 7 * at) for at in range(40))])
    model = SetGenerator(training=replace(SHORT, max_target_length=60)).fit([*EXAMPLES[:4], long])
    assert model.record_["left_out_targets_too_long"] == 1
    assert long.labels[0] in model.labels_
    with pytest.raises(DataError, match="all targets need more than max_target_length = 2 tokens"):
        SetGenerator(training=replace(SHORT, max_target_length=2)).fit(EXAMPLES[:4])


def test_sets_without_labels_are_trained_on_too():
    model = SetGenerator(training=SHORT).fit([*EXAMPLES[:4], Example("nothing", ())])
    assert model.record_["n_pairs_per_epoch"] == 15


def test_texts_examples_and_rows_are_predicted_alike(writer):
    wanted = writer.predict(TEXTS)
    assert [one.labels for one in wanted] == [one.labels for one in writer.predict(iter(DEV))]
    rows = [{"text": text, "id": f"row {at}"} for at, text in enumerate(TEXTS)]
    from_rows = writer.predict(rows)
    assert [(one.labels, one.id) for one in from_rows] == [(one.labels, f"row {at}") for at, one in enumerate(wanted)]
    assert [one.id for one in writer.predict(DEV)] == [one.id for one in DEV]
    assert writer.predict([]) == []
    with pytest.raises(TypeError, match="expected texts, got the string 'one text'"):
        writer.predict("one text")
    with pytest.raises(DataError, match='line 2 of the data: field "text" is missing'):
        writer.predict([{"text": "a"}, {"body": "b"}])


def test_batches_do_not_change_what_is_written(writer):
    assert writer.predict(TEXTS, batch_size=1) == writer.predict(TEXTS)


def test_the_score_is_the_mean_f1(generator):
    wanted = score_sets([one.labels for one in DEV], [one.labels for one in generator.predict(DEV)]).samples_f1
    assert generator.score(DEV) == wanted == generator.score(TEXTS, [set(one.labels) for one in DEV])


def test_progress_is_told(writer):
    told = []
    writer.predict(TEXTS, batch_size=5, progress=lambda *now: told.append(now))
    assert told == [("writing", 5, 12), ("writing", 10, 12), ("writing", 12, 12)]


# --- sets by construction ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECODINGS)
def test_with_the_constraint_on_each_output_is_a_set(writer, name):
    found = writer.predict(TEXTS, name=name, n_beams=3, top_k=10, top_p=0.9, temperature=2)
    sizes = evaluate(DEV, found, vocabulary=writer.labels_).sizes
    assert (sizes.repeated, sizes.unknown, sizes.malformed, sizes.agreement_distinct) == (0, 0, 0, 1)
    assert sizes.n_stated == len(DEV)
    assert all(len(one.labels) <= writer.largest_ for one in found)
    assert [writer.augmenter.codec.decode(one.generation).labels for one in found] == [one.labels for one in found]


def test_another_way_to_decode_gives_something_else(generator):
    ways = [generator.predict(TEXTS, name=name) for name in ("greedy", "beam", "random")]
    assert ways[0] != ways[1] != ways[2] != ways[0]


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"size_is": 3}, {3}),
        ({"size_is": 0}, {0}),
        ({"min_size": 3}, {3, 4, 5}),
        ({"max_size": 1}, {0, 1}),
        ({"min_size": 7}, {7}),
        ({"min_size": 2, "max_size": 3, "name": "random"}, {2, 3}),
    ],
)
def test_sizes_can_be_asked_for(writer, changes, allowed):
    found = writer.predict(TEXTS, **changes)
    assert {len(one.labels) for one in found} <= allowed
    assert all(one.size == len(set(one.labels)) for one in found)


def test_what_cannot_be_asked_for_is_refused(generator):
    with pytest.raises(ValueError, match="there are only 41 labels, too few for a set of 99"):
        generator.predict(TEXTS, size_is=99)
    with pytest.raises(TypeError, match="a model that writes sets takes no rule, wish"):
        generator.predict(TEXTS, rule="top-k", wish=1)
    with pytest.raises(ValueError, match="calibration requires samples"):
        generator.calibrate(DEV)
    with pytest.raises(DataError, match="the calibration data is empty"):
        generator.calibrate([], samples=2)


def test_without_the_constraint_flaws_are_told():
    untrained = SetGenerator(training=replace(SHORT, learning_rate=1e-9)).fit(EXAMPLES[:16])
    found = untrained.predict(TEXTS, constrained=False, name="random", temperature=2.0)
    assert any(one.unknown for one in found)
    known = set(untrained.labels_)
    for one in found:
        read = untrained.augmenter.codec.decode(one.generation)
        assert (one.labels, one.size, one.repeated, one.malformed) == (
            read.labels,
            read.size,
            read.repeated,
            read.malformed,
        )
        assert set(one.unknown) == set(one.labels) - known


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3 | place | event | place", {"labels": ("place", "event"), "size": 3, "repeated": ("place",)}),
        ("2 | nowhere | event", {"labels": ("nowhere", "event"), "size": 2, "unknown": ("nowhere",)}),
        ("place | | event", {"labels": ("place", "event"), "malformed": ("",)}),
        ("", {"labels": ()}),
    ],
)
def test_free_text_is_read_with_its_flaws(generator, text, wanted):
    tokens = generator.tokenizer_(text)["input_ids"]
    read = generator.network_.read(tokens)
    flaws = {"size": None, "repeated": (), "unknown": (), "malformed": ()}
    assert {name: getattr(read, name) for name in ("labels", *flaws)} == {**flaws, **wanted}


# --- probabilities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choose", WAYS)
def test_samples_give_probabilities(writer, choose):
    asked = {"threshold": 0.3} if choose == "threshold" else {"k": 2} if choose == "top-k" else {}
    found = writer.predict(TEXTS, samples=9, choose=choose, **asked)
    for one in found:
        assert all(0 < share <= 1 for share in one.probabilities.values())
        assert sum(one.sizes.values()) == pytest.approx(1)
        assert set(one.labels) <= one.probabilities.keys() <= set(writer.labels_)
        assert one.unknown == ()
        ranked = [one.probabilities[label] for label in one.labels]
        assert ranked == sorted(ranked, reverse=True)
        if choose == "threshold":
            likely = {label for label, share in one.probabilities.items() if share >= 0.3}
            assert set(one.labels) <= likely
            assert len(one.labels) == min(len(likely), writer.largest_)
        if choose == "top-k":
            assert len(one.labels) == min(2, len(one.probabilities))
        assert Prediction.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def next_logits(generator, text, written):
    """Give the model's scores for what comes behind what was written for a text."""
    model, tokenizer = generator.model_, generator.tokenizer_
    with torch.inference_mode():
        if not model.config.is_encoder_decoder:
            prompt = tokenizer(f"{text}\n", add_special_tokens=False)["input_ids"]
            return model(input_ids=torch.tensor([prompt + written])).logits[0, -1]
        ids = torch.tensor([[model.config.decoder_start_token_id, *written]])
        return model(input_ids=torch.tensor([tokenizer(text)["input_ids"]]), decoder_input_ids=ids).logits[0, -1]


def test_the_sizes_are_the_models_own_distribution(writer):
    """By hand: the probability of the size's tokens and the one behind them, one text and one size at a time."""
    generator, tokenizer = writer, writer.tokenizer_
    found = generator.predict(TEXTS[:3], samples=1)
    for text, one in zip(TEXTS[:3], found, strict=True):
        chances = {}
        for size in range(generator.largest_ + 1):
            whole = tokenizer(generator.augmenter.codec.encode(generator.labels_[:size]))["input_ids"]
            opening = whole[: len(tokenizer(str(size))["input_ids"])]  # its last token is the one that ends the size
            chance = 1.0
            for at, token in enumerate(opening):
                logits = next_logits(generator, text, opening[:at])
                chance *= torch.softmax(logits.double(), dim=-1)[token].item()
            chances[size] = chance
        total = math.fsum(chances.values())
        assert one.sizes == pytest.approx({size: chance / total for size, chance in chances.items()}, rel=1e-4)


def test_without_sizes_or_constraint_the_drawn_sizes_count():
    model = SetGenerator(augmenter=SetAugmenter(with_size=False), training=SHORT).fit(EXAMPLES[:12])
    for one in (*model.predict(TEXTS[:3], samples=4), *model.predict(TEXTS[:3], samples=4, constrained=False)):
        assert sum(one.sizes.values()) == pytest.approx(1)
        assert all((share * 4).is_integer() for share in one.sizes.values())
    assert all(one.size is None for one in model.predict(TEXTS[:3]))


def test_sampling_repeats_and_leaves_the_global_generator_alone(writer):
    writer.model_.train()
    state = torch.get_rng_state()
    one = writer.predict(TEXTS, samples=4, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert writer.predict(TEXTS, samples=4, seed=3) == one
    assert writer.predict(TEXTS, samples=4, seed=4) != one
    assert writer.model_.training
    writer.model_.eval()


def test_calibrated_probabilities_come_back_from_a_folder(writer, tmp_path):
    raw = writer.predict(DEV, samples=8)
    writer.calibrate(DEV, samples=8)
    try:
        found = writer.predict(DEV, samples=8)
        for before, after in zip(raw, found, strict=True):
            wanted = writer.calibration_(before.probabilities)
            assert after.probabilities == wanted
        writer.save_pretrained(tmp_path / "calibrated")
        again = SetGenerator.from_pretrained(tmp_path / "calibrated")
        assert again.predict(DEV, samples=8) == found
        assert writer.calibrate(DEV, samples=8).predict(DEV, samples=8) == found
    finally:
        writer.calibration_ = None


@pytest.mark.parametrize("choose", ["best", "written"])
def test_a_model_that_diverged_is_named(writer, choose):
    damaged = copy(writer)
    damaged.network_ = deepcopy(writer.network_)
    with torch.no_grad():
        next(damaged.network_.model.parameters()).fill_(torch.nan)
    with pytest.raises(ModelError, match="outputs are not numbers"):
        damaged.predict(TEXTS, choose=choose)


# --- vocabularies -----------------------------------------------------------------------------------------------------


def test_in_an_open_vocabulary_new_labels_can_be_written():
    model = SetGenerator(vocabulary="open", training=replace(SHORT, learning_rate=1e-9)).fit(EXAMPLES[:16])
    assert model.labels_ is None
    found = model.predict(TEXTS, name="random", min_size=1, temperature=2.0)
    assert any(set(one.labels) - set(model.statistics_.labels) for one in found)
    assert all(one.size == len(set(one.labels)) and not one.repeated for one in found)
    assert model.predict(TEXTS[:2], samples=2)[0].unknown is None


def test_an_open_vocabulary_is_written_with_the_constraint_and_without():
    model = SetGenerator(vocabulary="open", training=TrainingSettings(epochs=8, seed=1)).fit(EXAMPLES)
    for constrained in (False, True):
        found = model.predict(TEXTS, constrained=constrained)
        assert any(one.labels for one in found)
        assert all(one.unknown == () for one in found)
    assert all(one.size == len(one.labels) for one in found)
    assert {len(one.labels) for one in model.predict(TEXTS, size_is=2)} == {2}


def test_further_labels_can_be_named():
    model = SetGenerator(vocabulary=["brand new", "place"], training=SHORT).fit(EXAMPLES[:12])
    assert model.labels_[-1] == "brand new"
    assert len(set(model.labels_)) == len(model.labels_) == len(model.statistics_.labels) + 1
    found = model.predict(TEXTS[:1], size_is=len(model.labels_))
    assert set(found[0].labels) == set(model.labels_)
    with pytest.raises(DataError, match='"vocabulary" contains an empty or blank label'):
        SetGenerator(vocabulary=[" "], training=SHORT).fit(EXAMPLES[:4])


def test_labels_of_all_kinds_are_written_and_read():
    labels = ["a|b", "1984", " padded ", "back\\slash", "two\nlines", "日本", "🎉", "x", "xx"]
    examples = [Example(f"text {at}", [label, "x"]) for at, label in enumerate(labels)]
    model = SetGenerator(training=SHORT).fit(examples)
    assert set(model.predict(["text 1"], size_is=len(labels))[0].labels) == set(labels)


# --- a folder ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["generator", "causal"])
def test_a_folder_gives_the_same_model_back(kind, request, tmp_path):
    generator, generator_folder = request.getfixturevalue(kind), request.getfixturevalue(f"{kind}_folder")
    generator.save_pretrained(tmp_path / "copy")
    again = SetGenerator.from_pretrained(tmp_path / "copy")
    assert again.predict(DEV) == generator.predict(DEV)
    assert again.record_ == generator.record_
    assert again.statistics_ == generator.statistics_
    assert again._settings() == generator._settings()
    assert again.augmenter_.graph(DEV[0].labels) == generator.augmenter_.graph(DEV[0].labels)
    again.save_pretrained(tmp_path / "copy")  # over itself
    assert (tmp_path / "copy" / "setaug.json").read_bytes() == (generator_folder / "setaug.json").read_bytes()


@pytest.mark.parametrize(("kind", "auto"), [("generator", AutoModelForSeq2SeqLM), ("causal", AutoModelForCausalLM)])
def test_the_folder_is_one_of_transformers_without_pickles(kind, auto, request):
    generator, generator_folder = request.getfixturevalue(kind), request.getfixturevalue(f"{kind}_folder")
    model = auto.from_pretrained(generator_folder)
    tokenizer = AutoTokenizer.from_pretrained(generator_folder)
    ids = torch.tensor(generator.network_.layout.read(TEXTS[:1])[0])
    written = model.generate(input_ids=ids, max_new_tokens=256, do_sample=False)[0]
    free = generator.predict(TEXTS[:1], constrained=False)[0].generation
    assert tokenizer.decode(written[ids.shape[1] if kind == "causal" else 0 :], skip_special_tokens=True) == free
    assert {path.suffix for path in generator_folder.iterdir()} == {".json", ".jsonl", ".md", ".safetensors"}
    assert not [path for path in generator_folder.iterdir() if path.read_bytes()[:2] in (b"\x80\x02", b"PK")]


def test_a_trained_model_can_be_trained_on(generator_folder, generator):
    model = SetGenerator(str(generator_folder), training=replace(SHORT, learning_rate=1e-12)).fit(EXAMPLES[:8])
    assert torch.allclose(weights(model), weights(generator), atol=1e-5)
    assert clone(model).model == str(generator_folder)


def test_a_decoding_of_its_own_is_kept(tmp_path):
    model = SetGenerator(training=SHORT, decoding=Decoding(name="beam", n_beams=2, max_size=2)).fit(EXAMPLES[:8])
    model.save_pretrained(tmp_path)
    again = SetGenerator.from_pretrained(tmp_path)
    assert again.decoding == model.decoding
    assert again.predict(TEXTS[:4]) == model.predict(TEXTS[:4])
