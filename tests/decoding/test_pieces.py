import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug import SetCodec
from setaug.decoding.pieces import SetPieces
from tests.tiny import KINDS, LABELS, make_tokenizer

LOSSLESS = ("bytes", "unigram")
orders = st.lists(st.sampled_from(LABELS), unique=True, max_size=6)


def cut(tokenizer, text):
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def join(pieces, order):
    """Write an order piece by piece."""
    if pieces.codec.size:
        return sum(pieces.later_labels(order), pieces.sizes([len(order)])[0])
    return sum(pieces.later_labels(order[1:]), sum(pieces.first_labels(order[:1]), ()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [True, False])
@given(order=orders)
def test_pieces_make_up_the_whole_text(kind, size, order):
    tokenizer = make_tokenizer(kind)
    codec = SetCodec(size=size)
    assert join(SetPieces(tokenizer, codec), order) == cut(tokenizer, codec.encode(order))


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("separator", [" | ", ", ", ",", ";", " - ", "::", "\n", "--", " ; "])
@given(order=orders, size=st.booleans())
def test_pieces_read_as_the_whole_text_whatever_the_separator(kind, separator, order, size):
    tokenizer = make_tokenizer(kind)
    codec = SetCodec(separator=separator, size=size)
    if tokenizer.unk_token_id in cut(tokenizer, codec.encode(order)):
        return
    read = codec.decode(tokenizer.decode(join(SetPieces(tokenizer, codec), order)))
    assert (read.labels, read.malformed) == (tuple(order), ())


@pytest.mark.parametrize(
    ("kind", "spaces", "mark"),
    [("bytes", [], ["Ġ|"]), ("unigram", ["▁"], ["|"]), ("wordpiece", [], ["|"]), ("words", [], ["|"])],
)
def test_the_separator_is_cut_into_spaces_and_its_mark(kind, spaces, mark):
    tokenizer = make_tokenizer(kind)
    found = SetPieces(tokenizer, SetCodec()).separator()
    assert [tokenizer.convert_ids_to_tokens(list(tokens)) for tokens in found] == [spaces, mark]


@pytest.mark.parametrize(("kind", "separator"), [("wordpiece", "::"), ("words", ","), ("words", "?"), ("unigram", "~")])
def test_a_separator_that_is_not_kept_is_refused(kind, separator):
    with pytest.raises(ValueError, match="choose another separator"):
        SetPieces(make_tokenizer(kind), SetCodec(separator=separator)).separator()


@pytest.mark.parametrize("size", [True, False])
def test_a_label_that_is_not_written_is_refused(size):
    pieces = SetPieces(make_tokenizer("wordpiece"), SetCodec(size=size))
    for cut_labels in (pieces.first_labels, pieces.later_labels):
        with pytest.raises(ValueError, match=r"nothing for the label '\\x00'"):
            cut_labels(["event", "\x00"])


def test_what_stands_before_decides_how_the_output_begins():
    tokenizer = make_tokenizer("bytes")
    pieces = SetPieces(tokenizer, SetCodec(size=False), before="labels :")
    whole = cut(tokenizer, "labels : event")
    assert cut(tokenizer, "labels :") + cut(tokenizer, " event") == whole
    assert pieces.first_labels(["event"]) == [cut(tokenizer, "event")]
    metaspace = make_tokenizer("unigram")
    (alone,) = SetPieces(metaspace, SetCodec()).sizes([3])
    (behind,) = SetPieces(metaspace, SetCodec(), before="event-").sizes([3])
    assert "".join(metaspace.convert_ids_to_tokens(list(alone))) == "▁3"
    assert "".join(metaspace.convert_ids_to_tokens(list(behind))) == "3"


def test_where_what_stands_before_does_not_stay_a_part_is_cut_alone():
    tokenizer = make_tokenizer("bytes")
    assert cut(tokenizer, "volley") != cut(tokenizer, "volleyball")[:1]
    pieces = SetPieces(tokenizer, SetCodec(size=False), before="volley")
    assert pieces.first_labels(["ball"]) == [cut(tokenizer, "ball")]
    assert pieces.sizes([]) == []
