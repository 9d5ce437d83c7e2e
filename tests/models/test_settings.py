"""How to train: what makes no sense, and what the method's name stands for."""

from argparse import Namespace

import pytest
import torch
from sklearn.base import clone

from setaug import Decoding, SetAugmenter, SetCodec
from setaug.cli import main
from setaug.cli import train as command
from setaug.models import METHODS, SEEDS, SetClassifier, SetGenerator, SetSearch, TrainingSettings, make_model
from setaug.models.neural.scratch import scratch_classifier, scratch_generator, train_tokenizer


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be an integer of at least 1, got 0"),
        ({"epochs": 1.5}, "epochs must be an integer of at least 1, got 1.5"),
        ({"batch_size": -1}, "batch_size must be"),
        ({"accumulate": True}, "accumulate must be"),
        ({"max_source_length": 0}, "max_source_length must be"),
        ({"max_target_length": 2.5}, "max_target_length must be"),
        ({"lora_rank": 0}, "lora_rank must be"),
        ({"patience": -1}, "patience must be"),
        ({"checkpoint_every": 0}, "checkpoint_every must be"),
        ({"learning_rate": 0}, "learning_rate must be above 0 and at most 1, got 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be"),
        ({"learning_rate": float("inf")}, "learning_rate must be"),
        ({"warmup": 1}, "warmup must be at least 0 and below 1, got 1"),
        ({"precision": "int8"}, "precision must be one of float32, bfloat16, float16, got 'int8'"),
        ({"seed": -1}, r"seed must be an integer below 2\*\*32, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**changes)


# --- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "kind", "ordering", "one_order", "size"),
    [
        ("setaug", SetGenerator, "topological", False, True),
        ("seq2seq", SetGenerator, "random", True, False),
        ("random", SetGenerator, "random", False, True),
        ("frequency", SetGenerator, "frequency", False, True),
        ("reversed", SetGenerator, "reversed", False, True),
    ],
)
def test_a_method_is_a_model_and_its_orders(method, kind, ordering, one_order, size):
    model = make_model(method, "tiny", augmenter=SetAugmenter(n_orders=4))
    assert type(model) is kind
    assert (model.augmenter.ordering, model.one_order, model.augmenter.with_size) == (ordering, one_order, size)
    assert model.augmenter.n_orders == 4
    model._check()


def test_set_search_takes_no_more_than_it_uses():
    augmenter = SetAugmenter(separator="; ", template="x {text}", n_orders=4)
    decoding = Decoding(constrained=False, batch_size=5)
    model = make_model("set-search", "tiny", augmenter=augmenter, decoding=decoding, vocabulary="open")
    assert type(model) is SetSearch
    assert not isinstance(model, SetGenerator)
    assert (model.codec, model.template) == (SetCodec(separator="; ", with_size=False), "x {text}")
    assert (model.vocabulary, model.constrained, model.batch_size) == ("open", False, 5)
    model._check()
    for name in ("augmenter", "one_order", "decoding", "calibrate", "log_likelihood", "score_orders"):
        assert not hasattr(model, name)
    for wrong in ({"codec": SetCodec()}, {"template": "no text"}, {"vocabulary": "half"}, {"batch_size": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}|sizes"):
            SetSearch(**wrong).fit([{"text": "a", "labels": ["x"]}])


def test_sizes_can_be_switched_where_there_are_any():
    assert not make_model("setaug", "tiny", size=False).augmenter.with_size
    assert make_model("seq2seq", "tiny", size=True).augmenter.with_size
    for method in ("classifier", "set-search"):
        make_model(method, "tiny", size=False)
        with pytest.raises(ValueError, match=f"the method {method} does not write sizes"):
            make_model(method, "tiny", size=True)
    assert make_model("classifier", "tiny", augmenter=SetAugmenter(template="x {text}")).template == "x {text}"


def test_what_does_not_fit_a_method_is_refused():
    with pytest.raises(ValueError, match=r"method must be one of setaug, .*, got 'magic'"):
        make_model("magic", "tiny")
    with pytest.raises(ValueError, match="vocabulary must be closed"):
        make_model("classifier", "tiny", vocabulary="open")
    fresh, adapters = TrainingSettings(fresh_orders=True), TrainingSettings(lora_rank=2)
    for model in (
        make_model("seq2seq", "tiny", training=fresh),
        make_model("set-search", "tiny", training=fresh),
        make_model("classifier", "tiny", training=fresh),
        make_model("classifier", "tiny", training=adapters),
        SetClassifier(choose="written"),
        SetClassifier(template="no text"),
        SetGenerator(vocabulary="half"),
    ):
        with pytest.raises(ValueError, match=r"fresh|adapters|sizes|choose|template|vocabulary"):
            model.fit([{"text": "a", "labels": ["x"]}])
    with pytest.raises(ValueError, match="patience requires dev data"):
        SetGenerator(training=TrainingSettings(patience=1)).fit([{"text": "a", "labels": ["x"]}])


def test_the_command_line_names_the_same_methods_and_seeds(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = "".join(capsys.readouterr().out.split())
    assert "{" + ",".join(METHODS) + "}" in shown
    assert ",".join(map(str, SEEDS)) in shown
    assert command._seeds(Namespace(seed=None, seeds=[])) == SEEDS


@pytest.mark.parametrize(
    "model",
    [
        SetGenerator("some/model", one_order=True, vocabulary=["a"], training=TrainingSettings(epochs=9)),
        SetClassifier(choose="top-k", batch_size=4),
        SetSearch(codec=SetCodec(separator=";", with_size=False), vocabulary=["a"], constrained=False),
    ],
    ids=lambda model: model.kind,
)
def test_models_can_be_cloned_and_shown_like_any_estimator(model):
    twin = clone(model)
    assert repr(twin) == repr(model)
    assert twin.get_params().keys() == model.get_params().keys()
    assert twin._settings() == model._settings()
    assert twin.set_params(model="other").model == "other"
    with pytest.raises(AttributeError, match=f"this {type(model).__name__} is not fitted yet; call fit"):
        model.save_pretrained("nowhere")
    with pytest.raises(AttributeError, match="is not fitted yet"):
        model.predict(["a"])


# --- tiny -------------------------------------------------------------------------------------------------------------


def test_the_tokenizer_writes_any_text():
    tokenizer = train_tokenizer(["one two", "one two"])
    for text in ("one two three", "日本 🎉 |", "naïve\n"):
        assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == " " + text
    assert tokenizer("one")["input_ids"][-1] == tokenizer.eos_token_id


def test_weights_depend_on_the_seed_and_leave_the_global_generator_alone():
    tokenizer = train_tokenizer(["one two"])
    state = torch.get_rng_state()
    one, two, other = (scratch_generator("tiny", tokenizer, max_length=600, seed=seed) for seed in (1, 1, 2))
    scores = scratch_classifier("tiny", tokenizer, ["a", "b"], max_length=10, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.lm_head.weight, other.lm_head.weight)
    assert one.config.max_position_embeddings == 600
    assert scores.config.id2label == {0: "a", 1: "b"}
    assert scores.config.problem_type == "multi_label_classification"
