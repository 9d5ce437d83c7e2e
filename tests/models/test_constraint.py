import json
from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken

from setaug import SetCodec
from setaug.models.neural.constraint import SetConstraint
from tests.tiny import JSON_CORPUS, KINDS, LABELS, make_model, make_tokenizer

LOSSLESS = ("bytes", "unigram")
SEARCHES = {
    "greedy": {},
    "beams": {"num_beams": 3, "num_return_sequences": 3},
    "wide beams": {"num_beams": 8, "num_return_sequences": 2, "length_penalty": 0.0, "early_stopping": True},
    "sampling": {"do_sample": True, "num_return_sequences": 4, "temperature": 1.5, "top_k": 7, "top_p": 0.9},
    "sampled beams": {"do_sample": True, "num_beams": 3, "num_return_sequences": 3},
}
TEXTS = ["a volleyball match in New York", "event", "the zoo has an apple , a match and 日本 words"]


def generate(model, tokenizer, constraint, texts=TEXTS, **options):
    """Give the tokens that are written behind what stands before."""
    encoded = tokenizer(texts, return_tensors="pt", padding=True)
    torch.manual_seed(0)
    rows = model.generate(
        input_ids=encoded["input_ids"],
        attention_mask=encoded["attention_mask"],
        logits_processor=[constraint],
        **{"do_sample": False, "max_new_tokens": constraint.max_new_tokens, **options},
    )
    start = 1 if model.config.is_encoder_decoder else encoded["input_ids"].shape[1]
    return rows[:, start:].tolist()


def to_text(tokenizer, row):
    return tokenizer.decode(row, skip_special_tokens=True)


def check_sets(constraint, tokenizer, rows, *, is_lossless):
    """Check that all rows are sets, by the constraint and, where nothing is lost, by their texts."""
    assert rows
    found = []
    for row in rows:
        read = constraint.read(row)
        assert read is not None, to_text(tokenizer, row)
        labels, size = read
        assert len(set(labels)) == len(labels)
        assert len(labels) in constraint.sizes.allowed
        assert size == (len(labels) if constraint.codec.with_size else None)
        assert constraint.labels is None or set(labels) <= set(constraint.labels)
        if is_lossless:
            decoded = constraint.codec.decode(to_text(tokenizer, row))
            assert (decoded.labels, decoded.size, decoded.repeated, decoded.malformed) == (labels, size, (), ())
        found.append(labels)
    return found


# --- known labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    ("model", "kind"), [("t5", "unigram"), ("t5", "wordpiece"), ("bart", "bytes"), ("bart", "words")]
)
def test_an_encoder_decoder_writes_only_sets(model, kind, search, size):
    model, tokenizer = make_model(model), make_tokenizer(kind)
    constraint = SetConstraint.for_model(model, tokenizer, LABELS, codec=SetCodec(with_size=size), sizes=range(7))
    rows = generate(model, tokenizer, constraint, **SEARCHES[search])
    check_sets(constraint, tokenizer, rows, is_lossless=kind in LOSSLESS)


@pytest.mark.parametrize("size", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_a_causal_model_writes_only_sets_behind_prompts_of_different_lengths(model, search, size):
    model, tokenizer = make_model(model), make_tokenizer("bytes", "left")
    constraint = SetConstraint.for_model(model, tokenizer, LABELS, codec=SetCodec(with_size=size), sizes=range(7))
    for texts in (TEXTS, TEXTS, TEXTS[:1]):
        rows = generate(model, tokenizer, constraint, texts, **SEARCHES[search])
        check_sets(constraint, tokenizer, rows, is_lossless=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [True, False])
def test_a_size_can_be_forced(kind, size):
    model, tokenizer = make_model("bart"), make_tokenizer(kind)
    for n_labels in (0, 3, np.int64(6)):
        codec = SetCodec(with_size=size)
        constraint = SetConstraint.for_model(model, tokenizer, LABELS, codec=codec, sizes=n_labels)
        rows = generate(model, tokenizer, constraint, num_beams=2)
        assert {len(labels) for labels in check_sets(constraint, tokenizer, rows, is_lossless=False)} == {n_labels}


def test_sizes_are_bounded_by_the_number_of_labels():
    tokenizer = make_tokenizer("bytes")
    assert SetConstraint(tokenizer, ["event", "match"]).sizes.allowed == {0, 1, 2}
    assert SetConstraint(tokenizer, ["event", "match"], sizes=range(1, 9)).sizes.allowed == {1, 2}
    assert SetConstraint(tokenizer, map(str, range(50))).sizes.allowed == set(range(21))
    assert SetConstraint(tokenizer).sizes.allowed == set(range(21))


@pytest.mark.parametrize("model", ["t5", "bart"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_labels_fit_into_the_limit(model, kind):
    model, tokenizer = make_model(model), make_tokenizer(kind)
    for codec in (SetCodec(), SetCodec(with_size=False)):
        constraint = SetConstraint.for_model(model, tokenizer, LABELS, codec=codec)
        n_labels = len(constraint.labels)
        constraint = SetConstraint.for_model(model, tokenizer, LABELS, codec=codec, sizes=n_labels)
        rows = generate(model, tokenizer, constraint, TEXTS[:1])
        (labels,) = check_sets(constraint, tokenizer, rows, is_lossless=False)
        assert set(labels) == set(constraint.labels)


def test_a_label_that_is_longer_at_the_start_fits_into_the_limit():
    tokenizer = make_tokenizer("bytes")
    codec = SetCodec(with_size=False)
    for label in LABELS:
        constraint = SetConstraint(tokenizer, [label], codec=codec, sizes=1)
        assert constraint.max_new_tokens > len(tokenizer(codec.encode_label(label))["input_ids"])


@pytest.mark.parametrize("kind", KINDS)
def test_any_order_of_the_labels_can_be_read(kind):
    tokenizer = make_tokenizer(kind)
    sized, unsized = (SetConstraint(tokenizer, LABELS, codec=SetCodec(with_size=size)) for size in (True, False))
    for constraint in (sized, unsized):
        for labels in (constraint.labels[:4], constraint.labels[::-3], []):
            tokens = tokenizer(constraint.codec.encode(labels), add_special_tokens=False)["input_ids"]
            size = len(labels) if constraint.codec.with_size else None
            for ids in ([*tokens, 2], [*tokens, 2, 1, 1], torch.tensor([*tokens, 2])):
                assert constraint.read(ids) == (tuple(labels), size)
            assert constraint.read(tokens) is None, "it was cut off"
    assert sized.read(tokenizer("2 | event | event", add_special_tokens=False)["input_ids"]) is None


def test_labels_that_are_written_alike_have_one_that_stands_for_all():
    model, tokenizer = make_model("t5"), make_tokenizer("wordpiece")
    constraint = SetConstraint.for_model(model, tokenizer, ["Match", "event", "match", "EVENT", "York", "match"])
    assert constraint.labels == ["Match", "event", "York"]
    assert constraint.twins == {"match": "Match", "EVENT": "event"}
    assert constraint.sizes.most == 3
    check_sets(constraint, tokenizer, generate(model, tokenizer, constraint, **SEARCHES["sampling"]), is_lossless=False)


def test_more_beams_than_sets_give_each_set_first():
    model, tokenizer = make_model("t5"), make_tokenizer("bytes")
    constraint = SetConstraint.for_model(model, tokenizer, ["event", "match"], sizes=2)
    rows = generate(model, tokenizer, constraint, TEXTS[:1], num_beams=5, num_return_sequences=5)
    read = [constraint.read(row) for row in rows]
    assert {labels for labels, _ in read[:2]} == {("event", "match"), ("match", "event")}


# --- any labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("search", ["greedy", "beams", "sampling"])
@pytest.mark.parametrize("kind", KINDS)
def test_sets_of_any_labels_have_none_twice(kind, search, size):
    model, tokenizer = make_model("bart"), make_tokenizer(kind)
    options = {"codec": SetCodec(with_size=size), "sizes": range(5), "max_label_tokens": 4}
    constraint = SetConstraint.for_model(model, tokenizer, **options)
    rows = generate(model, tokenizer, constraint, **SEARCHES[search], max_new_tokens=80)
    check_sets(constraint, tokenizer, rows, is_lossless=True)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(random=st.randoms(use_true_random=False), size=st.booleans())
def test_a_walk_over_allowed_tokens_reads_as_its_text(kind, random, size):
    tokenizer = make_tokenizer(kind)
    constraint = SetConstraint(tokenizer, codec=SetCodec(with_size=size), sizes=range(4), max_label_tokens=3, start=0)
    row = []
    while tokenizer.eos_token_id not in row and len(row) < 100:
        scores = constraint(torch.tensor([row], dtype=torch.long), torch.zeros(1, len(tokenizer)))
        allowed = torch.isfinite(scores[0]).nonzero().flatten().tolist()
        row.append(2 if 2 in allowed and random.random() < 0.3 else random.choice(allowed))
    if row[-1] == tokenizer.eos_token_id:
        check_sets(constraint, tokenizer, [row], is_lossless=True)


@pytest.mark.parametrize("kind", LOSSLESS)
def test_any_label_without_the_mark_can_be_written(kind):
    tokenizer = make_tokenizer(kind)
    labels = tuple(label for label in LABELS if "|" not in label)[:20]
    for size in (True, False):
        constraint = SetConstraint(tokenizer, codec=SetCodec(with_size=size))
        tokens = tokenizer(constraint.codec.encode(labels), add_special_tokens=False)["input_ids"]
        if tokenizer.unk_token_id not in tokens:
            assert constraint.read([*tokens, 2]) == (labels, len(labels) if size else None)


def test_no_special_token_stands_in_a_label():
    tokenizer = make_tokenizer("unigram", "left")
    added = tokenizer.add_tokens([AddedToken("<extra>", special=True), AddedToken("plain")])
    assert added == 2
    constraint = SetConstraint(tokenizer, sizes=1, codec=SetCodec(with_size=False))
    extra, plain = tokenizer.convert_tokens_to_ids(["<extra>", "plain"])
    masked = constraint(torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, len(tokenizer) + 5))
    assert torch.isfinite(masked[0, plain])
    refused = [*tokenizer.all_special_ids, extra, *range(len(tokenizer), len(tokenizer) + 5)]
    assert torch.isneginf(masked[0, refused]).all()


def test_a_part_of_a_word_behind_the_separator_counts_as_the_word():
    tokenizer = make_tokenizer("wordpiece")
    constraint = SetConstraint(tokenizer, sizes=2)
    size, mark, word, part = tokenizer.convert_tokens_to_ids(["2", "|", "x", "##x"])
    assert tokenizer.decode([size, mark, word, mark, part]) == "2 | x |x"
    assert constraint.read([size, mark, word, mark, part, 2]) is None


# --- what can go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "options", "error", "message"),
    [
        ([], {}, ValueError, "labels must not be empty; None allows any label"),
        ("event", {}, TypeError, "got the string 'event'"),
        (["event"], {"sizes": 2}, ValueError, "only 1 labels, too few for a set of 2"),
        (["event"], {"sizes": -1}, ValueError, r"integers of at least 0, got \[-1\]"),
        (["event"], {"sizes": []}, ValueError, r"integers of at least 0, got \[\]"),
        (["event"], {"sizes": [0.5]}, TypeError, "float"),
        (["event"], {"sizes": "3"}, TypeError, "str"),
        (["event"], {"sizes": 1.0}, TypeError, "float"),
        (["a", "b</s>c"], {}, ValueError, "'b</s>c' contains the end-of-sequence token"),
        (None, {"codec": SetCodec(separator="\n")}, ValueError, "must not be white space"),
        (None, {"codec": SetCodec(separator=" • ")}, ValueError, "byte by byte"),
    ],
)
def test_what_cannot_be_is_refused(labels, options, error, message):
    with pytest.raises(error, match=message):
        SetConstraint(make_tokenizer("bytes"), labels, **options)


def test_sizes_that_are_written_alike_are_refused():
    tokenizer = make_tokenizer("words")
    with pytest.raises(ValueError, match="different sizes to the same tokens"):
        SetConstraint(tokenizer, sizes=[1, 77, 78])
    assert SetConstraint(tokenizer, sizes=[1, 77, 78], codec=SetCodec(with_size=False)).sizes.most == 78


def test_a_tokenizer_without_an_end_needs_one():
    class Endless:
        eos_token_id = None

    with pytest.raises(ValueError, match="pass one as end="):
        SetConstraint(Endless(), ["event"])


def test_a_token_that_is_forced_in_front_has_to_be_known():
    model, tokenizer = make_model("bart"), make_tokenizer("bytes")
    for labels in (LABELS, None):
        with pytest.raises(ValueError, match=r"no token is left to start with.*for_model"):
            generate(model, tokenizer, SetConstraint(tokenizer, labels))
        named = SetConstraint(tokenizer, labels, prefix=[0], sizes=2, max_label_tokens=3)
        assert [row[0] for row in generate(model, tokenizer, named)] == [0, 0, 0]


@pytest.mark.parametrize("search", ["greedy", "beams", "sampling"])
@pytest.mark.parametrize("model", ["bart", "gpt2"])
@pytest.mark.parametrize(
    "options",
    [
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 3},
        {"min_new_tokens": 30},
        {"repetition_penalty": 5.0},
        {"no_repeat_ngram_size": 2, "min_new_tokens": 30, "repetition_penalty": 2.0},
        {"suppress_tokens": make_tokenizer("bytes")(" |")["input_ids"]},
        {"renormalize_logits": True},
    ],
    ids=str,
)
def test_other_settings_of_a_generation_do_not_break_sets(model, options, search):
    tokenizer = make_tokenizer("bytes", "left")
    model = make_model(model)
    constraint = SetConstraint.for_model(model, tokenizer, LABELS, sizes=range(2, 5))
    rows = generate(model, tokenizer, constraint, **SEARCHES[search], **options)
    check_sets(constraint, tokenizer, rows, is_lossless=True)


@pytest.mark.parametrize("start", [0, None])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_scores_keep_their_type_and_those_of_allowed_tokens(dtype, start):
    tokenizer = make_tokenizer("bytes")
    constraint = SetConstraint(tokenizer, ["event", "match"], start=start, codec=SetCodec(with_size=False))
    scores = torch.randn(2, len(tokenizer) + 3).to(dtype)
    before = scores.clone()
    masked = constraint(torch.zeros(2, 0, dtype=torch.long), scores)
    assert masked.dtype == dtype
    assert torch.equal(scores, before)
    allowed = torch.isfinite(masked)
    assert torch.equal(masked[allowed], scores[allowed])
    starts = {tokenizer(label)["input_ids"][0] for label in ("event", "match")}
    assert {*allowed[0].nonzero().flatten().tolist()} == {2, *starts}


def test_where_all_that_is_allowed_was_forbidden_it_is_allowed_again():
    tokenizer = make_tokenizer("bytes")
    constraint = SetConstraint(tokenizer, ["event", "match"], sizes=1, start=0)
    (size,) = tokenizer("1")["input_ids"]
    (mark,) = tokenizer(" |")["input_ids"]
    scores = torch.full((2, len(tokenizer)), 7.0)
    scores[0, mark] = -torch.inf
    masked = constraint(torch.tensor([[size], [size]]), scores)
    assert masked[:, mark].tolist() == [0, 7]
    assert torch.isfinite(masked).sum() == 2


def test_a_generation_is_known_to_be_new_by_rows_that_do_not_go_on():
    tokenizer = make_tokenizer("bytes")
    constraint = SetConstraint(tokenizer, ["event", "match"], sizes=1)
    (size,) = tokenizer("1")["input_ids"]
    (mark,) = tokenizer(" |")["input_ids"]

    def allowed(*rows):
        masked = constraint(torch.tensor(rows), torch.zeros(len(rows), len(tokenizer)))
        return [torch.isfinite(row).nonzero().flatten().tolist() for row in masked]

    assert allowed([9, 8], [7, 6]) == [[size], [size]]
    assert allowed([9, 8, size], [7, 6, size]) == [[mark], [mark]]
    assert allowed([9, 8, size], [7, 6, size]) == [[size], [size]], "the same length as before"
    assert allowed([9, 8], [7, 6]) == [[size], [size]], "the same prompts again"
    assert allowed([9, 8, size], [7, 6, size]) == [[mark], [mark]]
    assert allowed([9, 8, size, mark, 5]) == [[size]], "a longer prompt that begins alike"
    assert allowed([9, 8, size, mark, 5, size]) == [[mark]]
    assert allowed([9, 8, size, mark, 5, 4]) == [[size]], "a prompt of the length of the next step"


def test_rows_may_change_places_and_go_on_from_the_same_row():
    tokenizer = make_tokenizer("bytes")
    codec = SetCodec(with_size=False)
    constraint = SetConstraint(tokenizer, ["1", "3", "5"], codec=codec, sizes=2)
    one, three, five = (tokenizer(text)["input_ids"][0] for text in "135")

    def call(rows):
        return constraint(torch.tensor(rows), torch.zeros(len(rows), len(tokenizer)))

    call([[9]] * 3)
    call([[9, one], [9, three], [9, five]])
    (mark,) = tokenizer(" |")["input_ids"]
    call([[9, five, mark], [9, five, mark], [9, one, mark]])
    assert constraint._states.keys() == {(five, mark), (one, mark)}
    assert call([[9, five, mark, 0]] * 3)[:, 2].isfinite().all(), "a beam without hope ends"


def test_an_output_may_start_behind_embeddings_alone():
    model, tokenizer = make_model("gpt2"), make_tokenizer("bytes")
    constraint = SetConstraint.for_model(model, tokenizer, LABELS, sizes=range(4))
    for _ in range(2):
        rows = model.generate(
            inputs_embeds=torch.randn(2, 5, 16),
            attention_mask=torch.ones(2, 5, dtype=torch.long),
            logits_processor=[constraint],
            max_new_tokens=constraint.max_new_tokens,
        )
        check_sets(constraint, tokenizer, rows.tolist(), is_lossless=True)


def test_a_model_with_several_ends_ends_as_its_tokenizer_does():
    class Settings:
        eos_token_id = (7, 2)
        forced_bos_token_id = None

    class Model:
        generation_config = Settings()

        class config:  # noqa: N801
            is_encoder_decoder = False

    tokenizer = make_tokenizer("bytes")
    for ends, end in (([7, 2], 2), ([7, 8], 7), (7, 7), (None, 2)):
        Settings.eos_token_id = ends
        assert SetConstraint.for_model(Model(), tokenizer, ["event"]).end == end
    assert SetConstraint.for_model(Model(), tokenizer, ["event"], end=9).end == 9


# --- sets as JSON -----------------------------------------------------------------------------------------------------

JSON_LABELS = ["event", "event match", 'a"b', "back\\slash", "two\nlines", "c++", "日本", " padded ", "3"]


def json_codec(size):
    return SetCodec(with_size=size, written_as="json")


def allowed_behind(constraint, row, n_tokens):
    scores = constraint(torch.tensor([row], dtype=torch.long), torch.zeros(1, n_tokens))
    return set(torch.isfinite(scores[0]).nonzero().flatten().tolist())


@pytest.mark.parametrize("size", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("kind", LOSSLESS)
@settings(max_examples=15)
@given(
    labels=st.lists(st.sampled_from(JSON_LABELS), unique=True, min_size=1, max_size=3),
    sizes=st.sets(st.integers(0, 3), min_size=1),
)
def test_the_tokens_of_json_are_exactly_those_of_the_texts_there_are(kind, size, labels, sizes):
    """All orders of all sets are written by the json module and cut into tokens as whole texts."""
    sizes = {n for n in sizes if n <= len(labels)} or {len(labels)}
    tokenizer = make_tokenizer(kind, corpus=JSON_CORPUS)
    constraint = SetConstraint(tokenizer, labels, codec=json_codec(size), sizes=sizes, start=0)
    assert constraint.twins == {}
    following = defaultdict(set)
    for n in sizes:
        for order in permutations(labels, n):
            whole = {"size": n, "labels": order} if size else order
            tokens = tokenizer(json.dumps(whole, ensure_ascii=False), add_special_tokens=False)["input_ids"]
            assert constraint.read([*tokens, 2]) == (order, n if size else None)
            for at, token in enumerate([*tokens, 2]):
                following[tuple(tokens[:at])].add(token)
    for row, tokens in following.items():
        assert allowed_behind(constraint, row, len(tokenizer)) == tokens


@pytest.mark.parametrize("size", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("search", ["greedy", "beams", "sampling"])
@pytest.mark.parametrize("labels", [LABELS, None], ids=["closed", "open"])
@pytest.mark.parametrize("kind", LOSSLESS)
def test_models_write_only_sets_as_json(kind, labels, search, size):
    model, tokenizer = make_model("bart"), make_tokenizer(kind, corpus=JSON_CORPUS)
    options = {"codec": json_codec(size), "sizes": range(5), "max_label_tokens": 4}
    constraint = SetConstraint.for_model(model, tokenizer, labels, **options)
    limit = {} if labels else {"max_new_tokens": 120}
    rows = generate(model, tokenizer, constraint, **SEARCHES[search], **limit)
    for found, row in zip(check_sets(constraint, tokenizer, rows, is_lossless=True), rows, strict=True):
        read = json.loads(to_text(tokenizer, row))
        assert tuple(read["labels"] if size else read) == found


def could_be_json(raw):
    """Whether text behind a quote can go on to be one string and nothing else, by trying ends."""
    ends = [
        "",
        "n",
        "u0041",
        "0041",
        "041",
        "41",
        "1",
        "\\ude00",
        "ude00",
        "de00",
        "e00",
        "00",
        "0\\ude00",
        "3d\\ude00",
    ]
    for end in [*ends, "d83d\\ude00", "83d\\ude00"]:
        try:
            read = json.loads(f'["{raw}{end}"]')
        except ValueError:
            continue
        if len(read) == 1 and not any(0xD800 <= ord(char) < 0xE000 for char in read[0]):
            return True
    return False


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("raw", ["", "a", "\\", "a\\\\", "\\u", "\\u0", "\\ud", "\\ud83d", "\\ud83d\\", "\\ud83d\\u"])
def test_tokens_within_a_label_are_those_that_json_could_go_on_with(kind, raw):
    tokenizer = make_tokenizer(kind, corpus=JSON_CORPUS)
    constraint = SetConstraint(tokenizer, codec=json_codec(False), sizes=range(3), start=0)
    start = tokenizer('["x', add_special_tokens=False)["input_ids"]
    row = [*start, *(token for char in raw for token in tokenizer.convert_tokens_to_ids([char]))]
    assert tokenizer.decode(row) == '["x' + raw
    allowed = allowed_behind(constraint, row, len(tokenizer))
    special = set(tokenizer.all_special_ids)
    ends = {tokenizer(f'["x{end}', add_special_tokens=False)["input_ids"][len(start)] for end in ('"]', '", "a')}
    for token in set(range(len(tokenizer))) - special:
        text = tokenizer.decode([*row, token]).removeprefix(tokenizer.decode(start))
        is_end = token in ends and could_be_json(raw) and constraint.codec.form.unfinished(raw) == ""
        assert (token in allowed) == (could_be_json(text) or is_end), (raw, text)
    assert not special & allowed


@pytest.mark.parametrize("kind", LOSSLESS)
@settings(max_examples=25)
@given(random=st.randoms(use_true_random=False), size=st.booleans())
def test_a_walk_over_allowed_tokens_is_json(kind, random, size):
    tokenizer = make_tokenizer(kind, corpus=JSON_CORPUS)
    constraint = SetConstraint(tokenizer, codec=json_codec(size), sizes=range(4), max_label_tokens=3, start=0)
    tricky = [token for token in range(len(tokenizer)) if {"\\", '"', "u"} & {*tokenizer.decode([token])}]
    row = []
    while tokenizer.eos_token_id not in row and len(row) < 100:
        allowed = sorted(allowed_behind(constraint, row, len(tokenizer)))
        chosen = [token for token in tricky if token in allowed]
        row.append(random.choice(chosen if chosen and random.random() < 0.5 else allowed))
    if row[-1] == tokenizer.eos_token_id:
        (labels,) = check_sets(constraint, tokenizer, [row], is_lossless=True)
        read = json.loads(to_text(tokenizer, row))
        assert tuple(read["labels"] if size else read) == labels


def test_any_label_can_be_written_in_an_open_vocabulary_of_json():
    tokenizer = make_tokenizer("bytes", corpus=JSON_CORPUS)
    labels = ("event", 'say "no" now', "back\\slash", "two\nlines", "a|b", "日本", " padded x")
    for size in (True, False):
        constraint = SetConstraint(tokenizer, codec=json_codec(size))
        tokens = tokenizer(constraint.codec.encode(labels), add_special_tokens=False)["input_ids"]
        assert tokenizer.unk_token_id not in tokens
        assert constraint.read([*tokens, 2]) == (labels, len(labels) if size else None)


def test_a_constraint_is_made_from_a_json_schema():
    model, tokenizer = make_model("bart"), make_tokenizer("bytes", corpus=JSON_CORPUS)
    schema = {"type": "array", "items": {"enum": LABELS}, "minItems": 2, "maxItems": 3, "uniqueItems": True}
    constraint = SetConstraint.from_json_schema(tokenizer, schema, model=model)
    assert constraint.sizes.allowed == {2, 3}
    rows = generate(model, tokenizer, constraint, **SEARCHES["sampling"])
    check_sets(constraint, tokenizer, rows, is_lossless=True)
    for row in rows:
        labels = json.loads(to_text(tokenizer, row))
        assert len(labels) in (2, 3)
        assert len(set(labels) & set(LABELS)) == len(labels)
    for schema, most in (({"items": {"type": "string"}}, 20), ({"items": {"enum": LABELS * 2}, "minItems": 1}, 20)):
        made = SetConstraint.from_json_schema(tokenizer, {"type": "array", "uniqueItems": True, **schema})
        assert (made.sizes.most, made.codec.written_as) == (most, "json")
    sized = SetConstraint.from_json_schema(tokenizer, {"type": "array", "uniqueItems": True, "items": {"enum": ["x"]}},
                                           codec=SetCodec())  # fmt: skip
    assert sized.codec == SetCodec()
