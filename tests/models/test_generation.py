"""Writing with any encoder-decoder: labels that a tokenizer spells in its own way, and models with little room."""

import sys
from copy import deepcopy

import pytest
import torch

from setaug import MissingExtraError, SetCodec
from setaug.decoding.settings import Decoding
from setaug.errors import ModelError
from setaug.models.adapters import add_adapters
from setaug.models.generation import Writer
from setaug.models.pretrained import load_encoder_decoder
from tests.tiny import LABELS, make_model, make_tokenizer


def make_writer(kind, tokens, labels=LABELS, codec=None):
    return Writer(
        model=make_model(kind),
        tokenizer=make_tokenizer(tokens),
        codec=codec or SetCodec(),
        labels=labels,
        largest=5,
        max_source_length=20,
        max_target_length=40,
        max_label_tokens=8,
    )


def test_labels_are_found_by_what_the_tokenizer_makes_of_them():
    writer = make_writer("bart", "wordpiece", ["New York", "c++", "event"])
    tokens = writer.tokenizer("3 | New York | c++ | event | volleyball")["input_ids"]
    read = writer._read_text(tokens)
    assert read.labels == ("New York", "c++", "event", "volleyball")
    assert read.unknown == ("volleyball",)


def test_what_a_model_has_no_room_for_is_read_as_far_as_it_goes(monkeypatch):
    writer = make_writer("bart", "bytes")
    monkeypatch.setattr(Writer, "_room", lambda self, limit: 8)
    written = writer.write(["a match"], Decoding(size_is=5))[0][0]
    assert written.size == 5
    assert len(written.labels) < 5


def test_a_model_stays_within_the_places_it_knows():
    assert make_writer("bart", "bytes")._room(5000) == 1022
    assert make_writer("bart", "bytes")._room(50) == 50
    assert make_writer("t5", "unigram")._room(5000) == 5000


@pytest.mark.parametrize(("kind", "tokens"), [("t5", "unigram"), ("bart", "bytes")])
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
    with pytest.raises(RuntimeError, match="on purpose"), writer._generating(0):
        raise RuntimeError("on purpose")
    assert writer.model.training
    writer.model.eval()


def test_a_model_that_names_no_start_is_refused(tmp_path):
    model = deepcopy(make_model("t5"))
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    model.save_pretrained(tmp_path)
    make_tokenizer("unigram").save_pretrained(tmp_path)
    with pytest.raises(
        ModelError, match="names no decoder_start_token_id, without which it cannot be trained to write"
    ):
        load_encoder_decoder(str(tmp_path))


def test_without_peft_the_pip_line_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'setaug\[train\]'"):
        add_adapters(torch.nn.Linear(2, 2), 1)
