"""Where prompts and targets stand: exact tokens of both kinds of models, chat templates, cut texts, padding."""

from copy import deepcopy

import pytest
from tokenizers import processors

from setaug import Example, SetAugmenter
from setaug.errors import ModelError
from setaug.metrics import score_sets
from setaug.models import SetGenerator, TrainingSettings, make_model
from setaug.models.neural.batches import IGNORED
from setaug.models.neural.layouts import make_layout
from setaug.models.neural.scratch import scratch_generator, train_tokenizer
from setaug.sample import sample_examples
from tests.conftest import DEV, EXAMPLES
from tests.tiny import make_model as make_torch_model
from tests.tiny import make_tokenizer

CHAT = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }} : {{ message['content'] }}"
    "{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}assistant : {% endif %}"
)
ITEMS = [{"input_ids": [5, 1, 6], "targets": [[7, 2]]}, {"input_ids": [4], "targets": [[3, 2], [8, 9, 2]]}]
AROUND = ("words : ", " ; a match")


def layout_of(kind, tokenizer=None, around_text=("", ""), **lengths):
    model = deepcopy(make_torch_model(kind))
    lengths = {"max_source_length": 20, "max_target_length": 20, **lengths}
    return make_layout(model, tokenizer, around_text=around_text, **lengths)


def chatting(tokenizer):
    tokenizer = deepcopy(tokenizer)
    tokenizer.chat_template = CHAT
    return tokenizer


def with_start(tokenizer, *, also_end=False):
    """Let a tokenizer put its start in front of each text, and perhaps its end behind."""
    tokenizer = deepcopy(tokenizer)
    special = [("<s>", tokenizer.bos_token_id), ("</s>", tokenizer.eos_token_id)]
    single = "<s> $A </s>" if also_end else "<s> $A"
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=special)
    return tokenizer


def as_lists(batch):
    return {name: values.tolist() for name, values in batch.items()}


# --- batches ----------------------------------------------------------------------------------------------------------


def test_an_encoder_decoder_has_a_row_per_example_and_one_per_target():
    assert as_lists(layout_of("bart").repeat(ITEMS)) == {
        "input_ids": [[5, 1, 6], [4, 1, 1]],
        "attention_mask": [[1, 1, 1], [1, 0, 0]],
        "n_targets": [1, 2],
        "lengths": [2, 2, 3],
        "decoder_input_ids": [[2, 7, 2], [2, 3, 2], [2, 8, 9]],
        "labels": [[7, 2, IGNORED], [3, 2, IGNORED], [8, 9, 2]],
    }


def test_a_causal_model_has_a_row_per_target_and_learns_nothing_of_the_prompt():
    x = IGNORED
    assert as_lists(layout_of("llama").repeat(ITEMS)) == {
        "input_ids": [[5, 1, 6, 7, 2], [4, 3, 2, 1, 1], [4, 8, 9, 2, 1]],
        "attention_mask": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]],
        "n_targets": [1, 2],
        "lengths": [2, 2, 3],
        "labels": [[x, x, x, 7, 2], [x, 3, 2, x, x], [x, 8, 9, 2, x]],
    }


def test_prompts_of_a_causal_model_are_padded_in_front():
    layout = layout_of("llama")
    inputs = layout.inputs([[5, 1, 6], [4]])
    assert as_lists(inputs) == {"input_ids": [[5, 1, 6], [1, 1, 4]], "attention_mask": [[1, 1, 1], [0, 0, 1]]}
    assert layout.start(inputs) == 3
    assert layout_of("bart").start(inputs) == 1


# --- prompts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bytes", "unigram", "wordpiece", "words"])
def test_without_a_chat_template_a_line_break_ends_the_prompt(kind):
    tokenizer = make_tokenizer(kind)
    prompts, n_cut = layout_of("llama", tokenizer, AROUND, max_source_length=200).read(["a match", ""])
    wanted = ["words : a match ; a match\n", "words :  ; a match\n"]
    assert prompts == tokenizer(wanted, add_special_tokens=False)["input_ids"]
    assert n_cut == 0
    assert layout_of("llama", tokenizer).read([]) == ([], 0)


@pytest.mark.parametrize("also_end", [False, True])
def test_the_start_stands_in_front_and_no_end_in_the_middle(also_end):
    tokenizer = with_start(make_tokenizer("bytes"), also_end=also_end)
    assert tokenizer("x")["input_ids"][0] == 0
    (prompt,), _ = layout_of("gpt2", tokenizer).read(["a match"])
    assert prompt == [0, *make_tokenizer("bytes")("a match\n")["input_ids"]]


def test_a_text_that_the_tokenizer_makes_nothing_of_is_a_prompt_all_the_same():
    layout = layout_of("gpt2", make_tokenizer("words"))
    assert layout.read([""]) == ([[0]], 0)
    layout.tokenizer.bos_token, start = None, layout.tokenizer.bos_token
    try:
        assert layout.read([""]) == ([[2]], 0)
    finally:
        layout.tokenizer.bos_token = start


def test_with_a_chat_template_the_exact_tokens_are_those_of_a_chat(tmp_path):
    """The whole way: a model folder with a template, the training data, a batch, a trained model and back."""
    tokenizer = chatting(train_tokenizer([one.text for one in EXAMPLES]))
    tokenizer.save_pretrained(tmp_path / "chat")
    scratch_generator("mini-causal", tokenizer, max_length=100, seed=0).save_pretrained(tmp_path / "chat")
    augmenter = SetAugmenter(n_orders=1, template="Labels? {text}")
    batches = []

    class Noting(SetGenerator):
        def _learn(self, examples, dev, train):
            def noting(model, data, *, loss, **options):
                def noted(model, batch):
                    batches.append({name: values.clone() for name, values in batch.items()})
                    return loss(model, batch)

                return train(model, data, loss=noted, **options)

            return super()._learn(examples, dev, noting)

    settings = TrainingSettings(epochs=1, batch_size=1)
    example = Example("Snow fell.", ["place", "event"])
    model = Noting(str(tmp_path / "chat"), augmenter=augmenter, training=settings).fit([example])
    (batch,) = batches
    message = {"role": "user", "content": "Labels? Snow fell."}
    prompt = tokenizer.apply_chat_template([message], add_generation_prompt=True)["input_ids"]
    assert tokenizer.decode(prompt).startswith("<s>")
    end = tokenizer.eos_token_id
    texts = model.write_targets([example], 0)[0]
    one, other = ([*ids, end] for ids in tokenizer(texts, add_special_tokens=False)["input_ids"])
    hidden = [IGNORED] * len(prompt)
    assert batch["input_ids"].tolist() == [[*prompt, *one, prompt[-1], *other]]
    assert batch["labels"].tolist() == [[*hidden, *one, IGNORED, *other]]
    rows = model.network_.layout.repeat([{"input_ids": prompt, "targets": [one, other]}])
    assert rows["input_ids"].tolist() == [prompt + one, prompt + other]
    assert rows["labels"].tolist() == [hidden + one, hidden + other]
    model.save_pretrained(tmp_path / "trained")
    again = SetGenerator.from_pretrained(tmp_path / "trained")
    assert again.tokenizer_.chat_template == CHAT
    assert again.predict(DEV) == model.predict(DEV)


@pytest.mark.parametrize("has_chat", [False, True])
@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize("kind", ["bytes", "unigram"])
def test_a_long_text_is_cut_off_and_the_end_of_the_prompt_stays(kind, is_fast, has_chat, monkeypatch):
    tokenizer = chatting(make_tokenizer(kind)) if has_chat else make_tokenizer(kind)
    monkeypatch.setattr(type(tokenizer), "is_fast", is_fast)
    layout = layout_of("llama", tokenizer, AROUND, max_source_length=6)
    long, short = "the zoo has a volleyball event " * 9, "the zoo"
    (one, other), n_cut = layout.read([long, short])
    assert n_cut == 1
    kept = tokenizer.decode(tokenizer(long, add_special_tokens=False)["input_ids"][:6]).strip()
    texts = [" ".join(tokenizer.decode(ids).split()) for ids in (one, other)]
    assert f"words : {kept} ; a match" in texts[0]
    assert texts[1] == texts[0].replace(kept, short)
    assert texts[0].endswith("assistant :" if has_chat else "; a match")


def test_prompt_and_target_stay_within_the_places_of_a_model():
    tokenizer = make_tokenizer("bytes")
    layout = layout_of("gpt2", tokenizer, AROUND, max_source_length=200, max_target_length=30)
    layout.model.config.n_positions = 64
    (prompt,), n_cut = layout.read(["event " * 50])
    assert n_cut == 1
    assert 64 - 30 - 8 <= len(prompt) + 2 <= 64 - 30
    assert layout.room(500, len(prompt)) == 64 - len(prompt)
    tight = layout_of("gpt2", tokenizer, AROUND, max_target_length=60)
    tight.model.config.n_positions = 64
    with pytest.raises(
        ModelError, match="maximum length of 64 tokens is too short for the prompt and max_target_length = 60"
    ):
        tight.read(["event"])


# --- the whole way ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_an_untrained_model_writes_sets_and_a_batch_writes_what_each_does_alone(kind, tmp_path):
    make_torch_model(kind).save_pretrained(tmp_path)
    with_start(make_tokenizer("bytes"), also_end=True).save_pretrained(tmp_path)
    model = SetGenerator(str(tmp_path), training=TrainingSettings(epochs=1, learning_rate=1e-12)).fit(EXAMPLES[:8])
    texts = ["a match", "the zoo has a volleyball event", "", "x " * 30]
    for name in ("greedy", "beam"):
        found = model.predict(texts, name=name, choose="written")
        assert found == [model.predict([text], name=name, choose="written")[0] for text in texts]
        assert all(one.size == len(set(one.labels)) and set(one.labels) <= set(model.labels_) for one in found)


def test_set_search_and_adapters_work_with_a_causal_model(tmp_path):
    settings = TrainingSettings(epochs=1, lora_rank=2)
    model = make_model("set-search", "mini-causal", training=settings).fit(EXAMPLES[:8], folder=tmp_path)
    assert not any("lora" in name for name in model.model_.state_dict())
    found = model.predict(DEV[:3], choose="written")
    assert all(len(set(one.labels)) == model.largest_ for one in found)
    assert type(model).from_pretrained(tmp_path).predict(DEV[:3], choose="written") == found


def test_a_causal_model_learns_sets():
    train, dev = list(sample_examples(160)), list(sample_examples(30, seed=1))
    model = SetGenerator("tiny-causal", training=TrainingSettings(epochs=4)).fit(train)
    commonest = [model.labels_[:2]] * len(dev)
    chance = score_sets([one.labels for one in dev], commonest).samples_f1
    assert model.score(dev) > chance + 0.2
