"""The words of a text, in scripts with spaces between words and without."""

import re
from itertools import pairwise

WORDS = 1
"""The version of `split_words`: a model only knows the words of the version that it was trained with."""
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff"
)
"""Vowel signs and accents, which ``\\w`` leaves out; with them the words of Hindi or Tamil stay whole."""
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17db-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Characters of scripts that do not put spaces between words; the last line is Chinese and Japanese."""
_WORD = re.compile(rf"[\w{_MARKS}{_UNSPACED}]+|[^\w\s]")
"""Punctuation counts as words: question marks and emoji are informative about emotions."""
_RUN = re.compile(f"([{_UNSPACED}]+)")


def split_words(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, each character and each two adjacent ones.

    Examples
    --------
    >>> split_words("Late again?")
    ['Late', 'again', '?']
    >>> split_words("渡し船 is late")
    ['渡', 'し', '船', '渡し', 'し船', 'is', 'late']

    """
    words: list[str] = _WORD.findall(text)
    if not _RUN.search(text):
        return words
    parts = [part for word in words for part in _RUN.split(word) if part]
    runs = ([*part, *map("".join, pairwise(part))] if _RUN.match(part) else [part] for part in parts)
    return [word for run in runs for word in run]
