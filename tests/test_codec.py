import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setaug import SetCodec
from setaug.codec import DecodedSet
from tests.strategies import any_label, any_text, label_lists, separators

codecs = st.builds(SetCodec, separator=separators, with_size=st.booleans())
SIZED = SetCodec()
UNSIZED = SetCodec(with_size=False)


@pytest.mark.parametrize(
    ("codec", "labels", "text"),
    [
        (SIZED, [], "0"),
        (SIZED, ["joy"], "1 | joy"),
        (SIZED, ["volleyball", "match", "event"], "3 | volleyball | match | event"),
        (SIZED, ["a|b"], r"1 | a\|b"),
        (SIZED, ["a || b", "|"], r"2 | a \|\| b | \|"),
        (SIZED, ["1984"], r"1 | \1984"),
        (SIZED, ["1984 a", "-3", "3.5", "٣"], "4 | 1984 a | -3 | 3.5 | ٣"),
        (SIZED, ["\\", "a\\nb"], r"2 | \\ | a\\nb"),
        (SIZED, ["two\nlines", "carriage\rreturn"], r"2 | two\nlines | carriage\rreturn"),
        (SIZED, [" a", "b ", "\tc", "a\tb"], "4 | \\sa | b\\s | \\tc | a\tb"),
        (SIZED, ["\xa0a\u2003", "a\xa0b"], "2 | \\u00a0a\\u2003 | a\xa0b"),
        (SIZED, ["日本", "🎉"], "2 | 日本 | 🎉"),
        (UNSIZED, [], ""),
        (UNSIZED, ["joy"], "joy"),
        (UNSIZED, ["3", "a"], "3 | a"),
        (SetCodec(separator=", "), ["a, b", "c"], r"2, a\, b, c"),
        (SetCodec(separator="\n"), ["a b", "c"], "2\na b\nc"),
        (SetCodec(separator="\n"), ["a\nb"], "1\na\\nb"),
        (SetCodec(separator=" ", with_size=False), ["a b", "c"], r"a\sb c"),
        (SetCodec(separator="::"), ["a:b", "a::b", "a:"], r"3::a:b::a\::b::a\:"),
        (SetCodec(separator="<sep>", with_size=False), ["a<sep>b", "<s", "s<e"], r"a\<sep>b<sep>\<s<sep>s<e"),
        (SetCodec(separator="\u2003", with_size=False), ["a\u2003b", "c"], "a\\u2003b\u2003c"),
    ],
)
def test_labels_are_written_and_read(codec, labels, text):
    assert codec.encode(labels) == text
    assert codec.decode(text) == DecodedSet(tuple(labels), len(labels) if codec.with_size else None)


@given(codecs, label_lists)
@example(SetCodec(separator="- -"), ["x -", "- x", "-", "--"])
@example(SetCodec(separator="-a-"), ["-a", "a-", "-a-a-", "-"])
@example(SetCodec(separator="\n\n"), ["\n", "a\n\n\nb", "\n\na"][1:])
@example(SetCodec(separator="]"), ["]", "a]b", "^", "[]"])
@example(SetCodec(separator="^"), ["^", "a^", "]"])
@example(SetCodec(separator="_"), ["_", "u_0041", "n_"])
def test_whatever_is_written_is_read_back(codec, labels):
    decoded = codec.decode(codec.encode(labels))
    assert decoded == DecodedSet(tuple(labels), len(labels) if codec.with_size else None)
    assert decoded.agrees is codec.with_size


@given(codecs, label_lists)
def test_a_label_is_written_the_same_wherever_it_stands(codec, labels):
    parts = [codec.encode_label(label) for label in labels]
    front = [str(len(labels))] if codec.with_size else []
    assert codec.encode(labels) == codec.separator.join([*front, *parts])
    for label, part in zip(labels, parts, strict=True):
        assert codec.decode(codec.separator.join([part, "x"])).labels == tuple(dict.fromkeys([label, "x"]))
        assert codec.decode(codec.separator.join(["x", part])).labels == tuple(dict.fromkeys(["x", label]))


@given(st.booleans(), label_lists, st.text(" \t", max_size=3), st.text(" \t\n", max_size=3))
def test_white_space_around_a_separator_does_not_matter(size, labels, before, behind):
    codec = SetCodec(with_size=size)
    text = codec.encode(labels)
    loose = SetCodec(separator=f"{before}|{behind}", with_size=size)
    assert loose.decode(text) == codec.decode(text) == codec.decode(before + loose.encode(labels) + behind)


@given(codecs, any_label)
def test_a_written_label_holds_no_line_break(codec, label):
    assert not {"\n", "\r"} & set(codec.encode_label(label))


@given(codecs, any_text)
@example(SIZED, "9" * 5000)
@example(SIZED, "9" * 5000 + " | a")
@example(SIZED, "²")
@example(SIZED, "\\")
@example(SIZED, "\\u")
@example(SIZED, "\\ud800\\udfff")
@example(SIZED, "a | \\")
@example(SIZED, "\ud800 | \udfff")
@example(SIZED, "|" * 1000)
def test_reading_never_raises_and_accounts_for_every_part(codec, text):
    decoded = codec.decode(text)
    assert len(set(decoded.labels)) == len(decoded.labels)
    assert set(decoded.repeated) <= set(decoded.labels)
    assert all(label.strip() for label in decoded.labels)
    assert decoded.size is None or (codec.with_size and decoded.size >= 0)
    assert decoded.agrees is (decoded.size == len(decoded.labels))
    if "\\" not in text:  # then nothing is both a label and malformed
        n_parts = len(text.split(codec.form.mark)) if text.strip() else 0
        n_read = len(decoded.labels) + len(decoded.repeated) + len(decoded.malformed) + (decoded.size is not None)
        assert n_read == n_parts or not text.strip()


@given(codecs, any_text)
def test_what_was_read_can_be_written_again(codec, text):
    labels = codec.decode(text).labels
    assert codec.decode(codec.encode(labels)).labels == labels


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", DecodedSet(())),
        ("   ", DecodedSet(())),
        ("0", DecodedSet((), 0)),
        (" 2 | a|b ", DecodedSet(("a", "b"), 2)),
        ("2", DecodedSet((), 2)),
        ("007 | a", DecodedSet(("a",), 7)),
        ("a | b", DecodedSet(("a", "b"))),
        ("3 | a | b | a", DecodedSet(("a", "b"), 3, ("a",))),
        ("a | a | a", DecodedSet(("a",), None, ("a", "a"))),
        ("2 | a | 5", DecodedSet(("a", "5"), 2)),
        ("2 | | a", DecodedSet(("a",), 2, (), ("",))),
        ("| a |", DecodedSet(("a",), None, (), ("", ""))),
        ("|", DecodedSet((), None, (), ("", ""))),
        ("1 |", DecodedSet((), 1, (), ("",))),
        ("-1 | a", DecodedSet(("-1", "a"))),
        ("2.0 | a", DecodedSet(("2.0", "a"))),
        ("² | a", DecodedSet(("²", "a"))),
        ("999999999 | a", DecodedSet(("a",), 999_999_999)),
        ("1000000000 | a", DecodedSet(("a",), None, (), ("1000000000",))),
        (r"1 | a\|b", DecodedSet(("a|b",), 1)),
        (r"\3 | a", DecodedSet(("3", "a"))),
        (r"1 | a" + "\\", DecodedSet(("a\\",), 1, (), ("a\\",))),
        (r"1 | \u12", DecodedSet((r"\u12",), 1, (), (r"\u12",))),
        (r"1 | \ud800", DecodedSet((r"\ud800",), 1, (), (r"\ud800",))),
        (r"1 | \u0041b", DecodedSet(("Ab",), 1)),
        (r"1 | \q", DecodedSet(("q",), 1)),
        (r"1 | \s", DecodedSet((), 1, (), (r"\s",))),
        (r"1 | \n\t", DecodedSet((), 1, (), (r"\n\t",))),
    ],
)
def test_a_text_is_read_for_what_it_says(text, expected):
    assert SIZED.decode(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3 | a", DecodedSet(("3", "a"))), (r"\3", DecodedSet(("3",))), ("9" * 20, DecodedSet(("9" * 20,)))],
)
def test_a_number_is_a_label_where_no_sizes_are_written(text, expected):
    assert UNSIZED.decode(text) == expected


@pytest.mark.parametrize(
    ("text", "agrees"), [("2 | a | b", True), ("2 | a | a", False), ("a", False), ("0", True), ("", False)]
)
def test_a_size_agrees_with_the_number_of_different_labels(text, agrees):
    assert SIZED.decode(text).agrees is agrees


@pytest.mark.parametrize("separator", ["a", " and ", "3", "²", "\\", " \\ ", "|\\"])
def test_separators_that_would_be_taken_for_a_label_are_refused(separator):
    with pytest.raises(ValueError, match="separator must not start with a letter or a digit") as caught:
        SetCodec(separator=separator)
    assert repr(separator) in str(caught.value)


def test_a_separator_must_be_some_text():
    with pytest.raises(ValueError, match=r"separator must not be empty\."):
        SetCodec(separator="")
    with pytest.raises(TypeError, match=r"separator must be a string, got 3\."):
        SetCodec(separator=3)


@pytest.mark.parametrize("label", ["", " ", "\n\t", "\xa0"])
def test_blank_labels_cannot_be_written(label):
    for codec in (SIZED, UNSIZED, SetCodec(separator=" ")):
        with pytest.raises(ValueError, match="a label must not be empty or blank, got"):
            codec.encode(["a", label])


def test_labels_are_written_in_the_order_given():
    assert SIZED.encode(iter(["b", "a"])) == "2 | b | a"


def test_a_string_is_no_order():
    with pytest.raises(TypeError, match="expected labels, got the string 'joy'"):
        SetCodec().encode("joy")


@pytest.mark.parametrize("separator", [" ", "\n"])
@pytest.mark.parametrize("text", ["2{}a{}b", " 2{}a{}b", "2{}a{}b ", "\n2{}a{}b\n"])
def test_white_space_around_a_text_is_no_separator(separator: str, text: str) -> None:
    read = SetCodec(separator=separator).decode(text.format(separator, separator))
    assert read == DecodedSet(("a", "b"), 2)
    assert SetCodec(separator=separator).decode(" ") == DecodedSet(())


# --- JSON -------------------------------------------------------------------------------------------------------------

JSON, JSON_UNSIZED = (SetCodec(written_as="json", with_size=size) for size in (True, False))
json_codecs = st.sampled_from([JSON, JSON_UNSIZED])


@given(json_codecs, label_lists)
@example(JSON, ['"', "\\", '\\"', "a\x00b", "\x7f", "a\u2028b", "[", '", "', "\ufeff", "😀"])
def test_a_set_as_json_is_what_json_writes_and_reads(codec, labels):
    text = codec.encode(labels)
    whole = {"size": len(labels), "labels": labels} if codec.with_size else labels
    assert text == json.dumps(whole, ensure_ascii=False)
    assert codec.decode(text) == DecodedSet(tuple(labels), len(labels) if codec.with_size else None)


@given(json_codecs, label_lists, st.booleans(), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_is_read_however_it_is_laid_out(codec, labels, is_ascii, indent, is_reversed):
    whole = {"size": len(labels), "labels": labels} if codec.with_size else labels
    if is_reversed and codec.with_size:
        whole = dict(reversed(whole.items()))
    text = json.dumps(whole, ensure_ascii=is_ascii, indent=indent)
    assert codec.decode(text) == DecodedSet(tuple(labels), len(labels) if codec.with_size else None)


json_like = st.lists(
    st.sampled_from(
        ['"', '"a"', '"b"', "[", "]", "{", "}", ",", ":", '"size":', '"labels":', "3", " ", "\n", "null", "\\"]
    )
    | any_text
).map("".join)


@given(json_codecs, json_like)
@example(JSON, '{"size": ' + "9" * 5000)
@example(JSON, '"' * 1000 + "\\")
def test_reading_broken_json_never_raises_and_agrees_with_json(codec, text):
    read = codec.decode(text)
    assert len(set(read.labels)) == len(read.labels)
    assert set(read.repeated) <= set(read.labels)
    assert all(label.strip() for label in read.labels)
    assert read.size is None or codec.with_size
    assert codec.decode(codec.encode(read.labels)).labels == read.labels
    if is_set_of_strings(text):
        strings = json.loads(text)
        blank = [string for string in strings if not string.strip()]
        assert read.labels == tuple(dict.fromkeys(string for string in strings if string.strip()))
        assert len(read.malformed) == len(blank)


def is_set_of_strings(text):
    try:
        strings = json.loads(text)
    except ValueError:
        return False
    return isinstance(strings, list) and all(isinstance(one, str) and is_unicode(one) for one in strings)


def is_unicode(text):
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", DecodedSet(())),
        ("[]", DecodedSet(())),
        ('{"size": 0, "labels": []}', DecodedSet((), 0)),
        ('{"size": 2, "labels": ["a", "b"]}', DecodedSet(("a", "b"), 2)),
        ('["a", "b"]', DecodedSet(("a", "b"))),
        ('"size": 2, "labels": ["a", "b"]', DecodedSet(("a", "b"), 2)),  # T5 has no token for a brace
        ('["a", "b', DecodedSet(("a",), None, (), ('"b', "["))),
        ('["a"', DecodedSet(("a",), None, (), ("[",))),
        ('["a", "a"]', DecodedSet(("a",), None, ("a",))),
        ('["a",]', DecodedSet(("a",), None, (), ("",))),
        ('[,"a"]', DecodedSet(("a",), None, (), ("",))),
        ('["a", 3, null]', DecodedSet(("a",), None, (), ("3", "null"))),
        ('["", " "]', DecodedSet((), None, (), ('""', '" "'))),
        ('["a" "b"]', DecodedSet(("a", "b"))),
        ('[["a"]]', DecodedSet(("a",), None, (), ("[", "]"))),
        ("a, b", DecodedSet((), None, (), ("a", "b"))),
        ('["a"] because of "b"', DecodedSet(("a",), None, (), ("because of", '"b"'))),
        (r'["a\qb"]', DecodedSet((r"a\qb",), None, (), (r'"a\qb"',))),
        (r'["\ud83d\ude00", "\ud800"]', DecodedSet(("😀", r"\ud800"), None, (), (r'"\ud800"',))),
        ('{"size": -1, "labels": ["a"]}', DecodedSet(("a",), None, (), ("-1",))),
        ('{"size": "2", "labels": ["a"]}', DecodedSet(("a",), None, (), ('"2"',))),
        ('{"size": 1000000000, "labels": ["a"]}', DecodedSet(("a",), None, (), ("1000000000",))),
    ],
)
def test_broken_json_is_read_for_what_it_says(text, expected):
    assert JSON.decode(text) == expected


def test_a_form_without_a_separator_takes_none():
    with pytest.raises(ValueError, match=r"written_as='json' does not support a separator, got ', '\."):
        SetCodec(written_as="json", separator=", ")
    with pytest.raises(ValueError, match="written_as must be one of separated, json, got 'yaml'"):
        SetCodec(written_as="yaml")


@pytest.mark.parametrize("label", ["", " ", "\n\t", "\xa0"])
def test_blank_labels_cannot_be_written_as_json(label):
    with pytest.raises(ValueError, match="a label must not be empty or blank, got"):
        JSON.encode(["a", label])


ENDS = [
    "",
    "n",
    "u0041",
    "0041",
    "041",
    "41",
    "1",
    "00",
    "\\ude00",
    "ude00",
    "de00",
    "e00",
    "d\\ude00",
    "3d\\ude00",
    "83d\\ude00",
]


@given(
    st.text(st.sampled_from('\\u0dDcC8eEnx"\n é'), max_size=9)
    | st.from_regex(r"\A(a?\\u?[dD]?[0-9a-fA-F]{0,3}\\?u?)*\Z")
)
def test_the_start_of_a_json_string_is_one_that_json_could_go_on_with(raw):
    def can_be(end):
        text = f'["{raw}{end}"]'
        return is_set_of_strings(text) and len(json.loads(text)) == 1

    assert (JSON.form.unfinished(raw) is not None) == any(map(can_be, ENDS))
    assert (JSON.form.unfinished(raw) == "") == can_be("")
