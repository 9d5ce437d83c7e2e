"""The decoding loop: what ``generate`` writes, with fewer passes, and samples that depend on the text alone."""

from collections import Counter

import pytest
import torch
from scipy.stats import chi2

from setaug import SetCodec
from setaug.models.neural import writer as writer_module
from setaug.models.neural.batches import on_device
from setaug.models.neural.generation import can_generate, generate_sets
from setaug.settings import Decoding
from tests.models.test_writer import make_writer
from tests.tiny import LABELS, make_model

TEXTS = ["a match in New York", "x", "the zoo has an apple", "event", "I match it with state of the art words"]
KINDS = [("t5", "unigram"), ("bart", "bytes"), ("gpt2", "bytes"), ("llama", "words")]


@pytest.mark.parametrize(("kind", "tokens"), KINDS)
@pytest.mark.parametrize("labels", [LABELS, None], ids=["closed", "open"])
@pytest.mark.parametrize("with_size", [True, False], ids=["size", "no-size"])
def test_greedy_sets_are_those_of_generate(kind, tokens, labels, with_size, monkeypatch):
    if kind == "llama":
        labels = [label for label in LABELS if label.isalpha() and label.isascii()] if labels else None
    made = make_writer(kind, tokens, labels, SetCodec(with_size=with_size))
    assert can_generate(made.model, Decoding().options())
    # generate would force the end on the last place, where a constrained set ends anyway.
    monkeypatch.setattr(made.model.generation_config, "forced_eos_token_id", None)
    for decoding in (Decoding(min_size=1), Decoding(size_is=4), Decoding(max_size=3)):
        ours = made.write(TEXTS, decoding)
        with monkeypatch.context() as patch:
            patch.setattr(writer_module, "can_generate", lambda *_: False)
            assert ours == made.write(TEXTS, decoding)


@pytest.mark.parametrize(("kind", "tokens"), KINDS[:3])
def test_samples_depend_on_seed_and_text_not_on_the_batch(kind, tokens):
    made = make_writer(kind, tokens)
    hot = {"name": "random", "temperature": 20.0}  # random weights may be nearly certain of a set at less
    drawn = made.write(TEXTS, Decoding(**hot, batch_size=64), n_each=6)
    apart = [made.write([text], Decoding(**hot, batch_size=3), n_each=6)[0] for text in reversed(TEXTS)]
    assert drawn == apart[::-1]
    assert drawn != made.write(TEXTS, Decoding(**hot, seed=1), n_each=6)
    assert [ones[:2] for ones in drawn] == made.write(TEXTS, Decoding(**hot), n_each=2)
    assert all(len({one.labels for one in ones}) > 1 for ones in drawn)


@pytest.mark.parametrize(
    "options", [{"name": "random", "temperature": 4.0}, {"name": "top-k", "top_k": 2, "temperature": 4.0}]
)
def test_samples_follow_the_distribution_of_generate(options, monkeypatch):
    made = make_writer("t5", "unigram", ["match", "event", "x"])
    decoding = Decoding(**options, min_size=1, max_size=2, batch_size=2000)
    ours = Counter(one.labels for one in made.write(["x"], decoding, n_each=2000)[0])
    monkeypatch.setattr(writer_module, "can_generate", lambda *_: False)
    theirs = Counter(one.labels for one in made.write(["x"], decoding, n_each=2000)[0])
    common = [labels for labels in theirs if theirs[labels] + ours[labels] >= 20]
    # Two samples of the same size: under equality, each half of a pair of counts is binomial.
    both = [(ours[labels], theirs[labels]) for labels in common]
    statistic = sum((one - two) ** 2 / (one + two) for one, two in both)
    assert len(common) >= 2
    assert chi2.sf(statistic, len(both) - 1) > 1e-4


def test_a_text_is_encoded_once_and_ended_sets_leave_the_batch():
    made = make_writer("t5", "unigram", ["match", "event", "x"])
    read, rows = [], []
    encoder, decoder = made.model.get_encoder(), made.model.get_decoder()
    hooks = [
        encoder.register_forward_hook(lambda module, args, output: read.append(len(output.last_hidden_state))),
        decoder.register_forward_hook(lambda module, args, output: rows.append(len(output.last_hidden_state))),
    ]
    try:
        # Hot, so that sets of all sizes are drawn, however the tokenizer was trained.
        drawn = made.write(TEXTS, Decoding(name="random", temperature=100.0, batch_size=80), n_each=16)
    finally:
        for hook in hooks:
            hook.remove()
    assert read == [len(TEXTS)]
    assert rows[0] == len(TEXTS)  # the first token is drawn from the same scores for all sets of a text
    distinct = sum(len({one.generation for one in ones}) for ones in drawn)
    assert max(rows) <= distinct < 16 * len(TEXTS)
    assert rows[-1] < max(rows)


@pytest.mark.parametrize(("kind", "tokens"), KINDS)
def test_the_model_stays_as_it_was(kind, tokens):
    made = make_writer(kind, tokens, ["match", "event", "x"])
    head, before = made.model.get_output_embeddings(), dict(made.model.named_buffers())
    width = head.weight.shape
    made.write(TEXTS, Decoding())
    assert made.model.get_output_embeddings() is head
    assert head.weight.shape == width
    assert all(torch.equal(values, before[name]) for name, values in made.model.named_buffers())


def test_settings_that_change_scores_are_left_to_generate(monkeypatch):
    model = make_model("bart")
    assert can_generate(model, Decoding().options())
    assert not can_generate(model, Decoding(name="beam").options())
    assert not can_generate(model, {**Decoding(name="random").options(), "min_p": 0.1})
    monkeypatch.setattr(model.generation_config, "no_repeat_ngram_size", 3)
    assert not can_generate(model, Decoding().options())


def test_a_set_is_cut_off_where_the_room_ends():
    made = make_writer("gpt2", "bytes")
    prompts, _ = made.layout.read(TEXTS)
    batch = on_device(made.layout.inputs(prompts), made.model.device)
    constraint = made.constraint(range(5, 6))
    with torch.inference_mode():
        limits = {"n_each": 1, "max_new_tokens": 7, "seed": 0}
        written = generate_sets(made.model, batch, constraint, Decoding().options(), **limits)
    assert [len(tokens) for (tokens,) in written] == [7] * len(TEXTS)
