"""Texts are split into words, in scripts with spaces and without."""

from dataclasses import replace

import pytest

from setaug import TfidfClassifier
from setaug.models.words import split_words
from tests.conftest import DEV, EXAMPLES

ONE = (("svm", 1.0),)


@pytest.mark.parametrize("first", ["\u4e00", "\u30a1", "\u0e01"], ids=["Chinese", "Japanese", "Thai"])
def test_scripts_without_spaces_have_words_too(first):
    # The same texts, with two characters of the script for each word, and no spaces.
    words = dict.fromkeys(word for one in (*EXAMPLES, *DEV) for word in one.text.lower().split())
    signs = {word: "".join(chr(ord(first) + digit) for digit in divmod(at, 40)) for at, word in enumerate(words)}

    def unspaced(examples):
        return [replace(one, text="".join(signs[word] for word in one.text.lower().split())) for one in examples]

    model = TfidfClassifier(candidates=ONE).fit(unspaced(EXAMPLES))
    assert model.score(unspaced(DEV)) > 0.9 * TfidfClassifier(candidates=ONE).fit(EXAMPLES).score(DEV)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी में।", ["हिन्दी", "में", "।"]),
        ("東京タワー2号", ["東", "京", "タ", "ワ", "ー", "東京", "京タ", "タワ", "ワー", "2", "号"]),
        ("בית־ספר", ["בית", "־", "ספר"]),
        ("ကာ။", ["က", "ာ", "ကာ", "။"]),
        ("a_b don't :)", ["a_b", "don", "'", "t", ":", ")"]),
        ("", []),
    ],
)
def test_texts_are_split_into_words(text, words):
    assert split_words(text) == words
