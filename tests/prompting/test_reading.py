"""Answers of any length and kind are read in one pass, and as they were when they were read one character at a time."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setaug.codec import SetCodec
from setaug.prompting import AnswerReader
from setaug.prompting.reading import MAX_ANSWER
from setaug.vocabulary import LabelIndex
from tests.prompting import plain
from tests.strategies import any_text, separators

INDEX = LabelIndex(["joy", "love", "New York", "a", "3"])
codecs = st.builds(SetCodec, separator=separators, with_size=st.booleans())
pieces = st.sampled_from(
    [
        *(
            "joy",
            "Love",
            "new york",
            "a",
            "3",
            "12345678901",
            "mirth",
            "Labels:",
            "- ",
            "1. ",
            "```",
            "<think>",
            "</think>",
        ),
        *("|", " | ", ",", "\n", "\r\n", " ", "\u2028", "\\", "\\|", "\\n", "\\u0041", "\\ud800", "\\u12", "\\s"),
    ]
)
answers = st.lists(pieces, max_size=20).map("".join) | any_text


@given(codecs, answers)
@example(SetCodec(), "a | b\\")
@example(SetCodec(), "a | b\\ ")
@example(SetCodec(separator="\n"), "\\\n\n\\")
def test_texts_are_decoded_as_one_character_at_a_time(codec: SetCodec, text: str) -> None:
    assert codec.decode(text) == plain.decode(codec, text)


@given(answers, st.booleans(), st.sampled_from(["keep", "drop"]), st.booleans())
@example("<think>a<think></think>joy<think>love", True, "keep", True)
def test_answers_are_read_as_before(text: str, size: bool, unknown: str, is_closed: bool) -> None:
    reader = AnswerReader(codec=SetCodec(with_size=size), index=INDEX if is_closed else None, unknown=unknown)
    assert reader.read(text) == plain.read(reader, text)


@pytest.fixture
def patience() -> Iterator[None]:
    """End what would go on for hours; what is read in one pass takes a second or two."""

    def stop(*_: object) -> None:
        raise TimeoutError("reading an answer takes more than one pass")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("part", ["x", "|", "\\", "<think>", "a</think", "a\n", "a,", " ", "9", "Labels:", "```\n"])
def test_an_answer_of_megabytes_is_read(part: str, patience: None) -> None:
    reader = AnswerReader(codec=SetCodec(), index=INDEX)
    reading = reader.read(part * (3_000_000 // len(part)))
    assert len(reading.prediction.labels) <= 1


def test_thoughts_do_not_count_and_the_rest_is_cut() -> None:
    reader = AnswerReader(codec=SetCodec(with_size=False))
    assert reader.read("hm " * MAX_ANSWER + "</think>joy | love").prediction.labels == ("joy", "love")
    assert reader.read("joy | " + " " * MAX_ANSWER + "| love").prediction.labels == ("joy",)


def test_a_label_of_megabytes_is_written(patience: None) -> None:
    label = "a |" * 500_000
    assert SetCodec().decode(SetCodec().encode([label])).labels == (label,)
