"""Writing with any model: labels that a tokenizer spells in its own way, and models with little room."""

import sys
from copy import deepcopy

import pytest
import torch

from setaug import SetCodec
from setaug.errors import MissingExtraError, ModelError
from setaug.models.neural.batches import evaluating
from setaug.models.neural.layouts import Causal, EncoderDecoder, make_layout
from setaug.models.neural.pretrained import add_adapters, load_for_generation
from setaug.models.neural.writer import Writer
from setaug.settings import Decoding
from tests.tiny import LABELS, make_model, make_tokenizer


def make_writer(kind, tokens, labels=LABELS, codec=None):
    lengths = {"max_source_length": 20, "max_target_length": 40}
    layout = make_layout(make_model(kind), make_tokenizer(tokens), around_text=("", ""), **lengths)
    return Writer(layout=layout, codec=codec or SetCodec(), labels=labels, largest=5, max_label_tokens=8)


def test_labels_are_found_by_what_the_tokenizer_makes_of_them():
    writer = make_writer("bart", "wordpiece", ["New York", "c++", "event"])
    tokens = writer.tokenizer("3 | New York | c++ | event | volleyball")["input_ids"]
    read = writer.read(tokens)
    assert read.labels == ("New York", "c++", "event", "volleyball")
    assert read.unknown == ("volleyball",)


@pytest.mark.parametrize(("kind", "layout"), [("bart", EncoderDecoder), ("gpt2", Causal)])
def test_what_a_model_has_no_room_for_is_read_as_far_as_it_goes(kind, layout, monkeypatch):
    writer = make_writer(kind, "bytes")
    monkeypatch.setattr(layout, "room", lambda self, n_tokens, prompt_length: 8)
    written = writer.write(["a match"], Decoding(size_is=5))[0][0]
    assert written.size == 5
    assert len(written.labels) < 5


def test_a_model_stays_within_the_places_it_knows():
    def room(kind, n_tokens):
        return make_writer(kind, "bytes").layout.room(n_tokens, prompt_length=20)

    assert room("bart", 5000) == 1022
    assert room("bart", 50) == room("gpt2", 50) == 50
    assert room("t5", 5000) == 5000
    assert room("gpt2", 5000) == 1004


@pytest.mark.parametrize(
    ("kind", "tokens"), [("t5", "unigram"), ("bart", "bytes"), ("gpt2", "bytes"), ("llama", "words")]
)
def test_many_sets_per_text_come_in_the_order_of_the_texts(kind, tokens):
    writer = make_writer(kind, tokens)
    texts = ["a match in New York", "x", "the zoo has an apple", "event"]
    together = writer.write(texts, Decoding(), n_each=1)
    assert together == [writer.write([text], Decoding(), n_each=1)[0] for text in texts]
    drawn = writer.write(texts, Decoding(name="random", batch_size=6), n_each=3)
    assert [len(ones) for ones in drawn] == [3] * 4
    sizes = writer.sizes(texts, Decoding(min_size=1))
    assert all(list(one) == [1, 2, 3, 4, 5] and sum(one.values()) == pytest.approx(1) for one in sizes)


def test_the_mode_of_a_model_is_left_as_it_was():
    writer = make_writer("t5", "unigram")
    writer.model.train()
    with pytest.raises(ValueError, match="too few for a set of 99"):
        writer.write(["x"], Decoding(size_is=99))
    with pytest.raises(RuntimeError, match="on purpose"), evaluating(writer.model):
        raise RuntimeError("on purpose")
    assert writer.model.training
    writer.model.eval()


def test_a_model_that_names_no_start_is_refused(tmp_path):
    model = deepcopy(make_model("t5"))
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    model.save_pretrained(tmp_path)
    make_tokenizer("unigram").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="defines no decoder_start_token_id, which is required for generation"):
        load_for_generation(str(tmp_path))


def test_without_peft_the_pip_line_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'setaug\[train\]'"):
        add_adapters(torch.nn.Linear(2, 2), 1)
