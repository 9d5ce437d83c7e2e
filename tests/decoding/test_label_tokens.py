import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug import SetCodec
from setaug.decoding.label_tokens import LabelTokens
from tests.tiny import JSON_CORPUS, KINDS, LABELS, make_tokenizer

LOSSLESS = ("bytes", "unigram")
orders = st.lists(st.sampled_from(LABELS), unique=True, max_size=6)


def cut(tokenizer, text):
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def join(tokens, order):
    """Write an order piece by piece."""
    form = tokens.form
    written = tokens.sizes([len(order)])[0] if form.with_size else ()
    if not order:
        return written + tokens.empty()
    for at, label in enumerate(order):
        is_first = at == 0 and (form.first != form.before or not form.with_size)
        write = tokens.first_labels if is_first else tokens.later_labels
        written += write([label], are_last=at == len(order) - 1)[0]
    return written


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [True, False])
@given(order=orders)
def test_tokens_make_up_the_whole_text(kind, size, order):
    tokenizer = make_tokenizer(kind)
    codec = SetCodec(with_size=size)
    assert join(LabelTokens(tokenizer, codec.form), order) == cut(tokenizer, codec.encode(order))


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("size", [True, False])
@given(order=orders)
def test_tokens_make_up_the_whole_text_of_json(kind, size, order):
    tokenizer = make_tokenizer(kind, corpus=JSON_CORPUS)
    codec = SetCodec(with_size=size, written_as="json")
    assert join(LabelTokens(tokenizer, codec.form), order) == cut(tokenizer, codec.encode(order))


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("separator", [" | ", ", ", ",", ";", " - ", "::", "\n", "--", " ; "])
@given(order=orders, size=st.booleans())
def test_tokens_read_as_the_whole_text_whatever_the_separator(kind, separator, order, size):
    tokenizer = make_tokenizer(kind)
    codec = SetCodec(separator=separator, with_size=size)
    if tokenizer.unk_token_id in cut(tokenizer, codec.encode(order)):
        return
    read = codec.decode(tokenizer.decode(join(LabelTokens(tokenizer, codec.form), order)))
    assert (read.labels, read.malformed) == (tuple(order), ())


@pytest.mark.parametrize(
    ("kind", "spaces", "mark"),
    [("bytes", [], ["Ġ|"]), ("unigram", ["▁"], ["|"]), ("wordpiece", [], ["|"]), ("words", [], ["|"])],
)
def test_the_separator_is_cut_into_spaces_and_its_mark(kind, spaces, mark):
    tokenizer = make_tokenizer(kind)
    found = LabelTokens(tokenizer, SetCodec().form).between()
    assert [tokenizer.convert_ids_to_tokens(list(tokens)) for tokens in found] == [spaces, mark]


@pytest.mark.parametrize(("kind", "separator"), [("wordpiece", "::"), ("words", ","), ("words", "?"), ("unigram", "~")])
def test_a_separator_that_is_not_kept_is_refused(kind, separator):
    with pytest.raises(ValueError, match="choose another separator"):
        LabelTokens(make_tokenizer(kind), SetCodec(separator=separator).form).between()


@pytest.mark.parametrize("size", [True, False])
def test_a_label_that_is_not_written_is_refused(size):
    tokens = LabelTokens(make_tokenizer("wordpiece"), SetCodec(with_size=size).form)
    for cut_labels in (tokens.first_labels, tokens.later_labels):
        with pytest.raises(ValueError, match=r"no tokens for the label '\\x00'"):
            cut_labels(["event", "\x00"])


def test_what_stands_before_decides_how_the_output_begins():
    tokenizer = make_tokenizer("bytes")
    tokens = LabelTokens(tokenizer, SetCodec(with_size=False).form, before="labels :")
    whole = cut(tokenizer, "labels : event")
    assert cut(tokenizer, "labels :") + cut(tokenizer, " event") == whole
    assert tokens.first_labels(["event"]) == [cut(tokenizer, "event")]
    metaspace = make_tokenizer("unigram")
    (alone,) = LabelTokens(metaspace, SetCodec().form).sizes([3])
    (behind,) = LabelTokens(metaspace, SetCodec().form, before="event-").sizes([3])
    assert "".join(metaspace.convert_ids_to_tokens(list(alone))) == "▁3"
    assert "".join(metaspace.convert_ids_to_tokens(list(behind))) == "3"


def test_where_what_stands_before_does_not_stay_a_part_is_cut_alone():
    tokenizer = make_tokenizer("bytes")
    assert cut(tokenizer, "volley") != cut(tokenizer, "volleyball")[:1]
    tokens = LabelTokens(tokenizer, SetCodec(with_size=False).form, before="volley")
    assert tokens.first_labels(["ball"]) == [cut(tokenizer, "ball")]
    assert tokens.sizes([]) == []
