"""The words of labels in texts: a text about cocoa often says "cocoa".

A linear classifier has to learn each label's words from its examples, and of a rare label there are few. But labels
have names, and how much it means that a text has the words of a label can be learned from all labels together.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import strip_accents_unicode

from setaug.models.words import split_words

_EARLY = 50
"""A word that comes first counts twice, and after so many words still one and a half times."""
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|ie|e|y)?(?:(?<!s)s)?$")
"""Endings of English words, so that "trades" is in a text that says "trading"."""
_JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
"""Where the words of labels such as ``realEstate`` and ``real_estate`` meet."""


@dataclass(frozen=True)
class LabelWords:
    """How strongly texts have the words of labels.

    The strength of a label in a text is the mean over the label's words of what each word adds: nothing if the text
    does not have it, else its inverse document frequency in the training texts, up to twice that if it comes early.

    Parameters
    ----------
    labels
        The labels.
    idf
        The logarithm of the inverse document frequency of each word of the labels.

    Examples
    --------
    >>> words = LabelWords.fit(["cocoa", "crude oil"], ["Oil prices rose.", "Prices of cocoa fell.", "Prices fell."])
    >>> words(["Cocoa traders met.", "They met."]).round(1).tolist()
    [[1.4, 0.0], [0.0, 0.0]]

    """

    labels: tuple[str, ...]
    idf: Mapping[str, float]

    @classmethod
    def fit(cls, labels: Iterable[str], texts: Iterable[str]) -> "LabelWords":
        """Count the words of the labels in the training texts."""
        labels = tuple(labels)
        wanted = {word for label in labels for word in _words_of(label)}
        counts: Counter[str] = Counter()
        n_texts, stems = 0, _Stems()
        for n_texts, text in enumerate(texts, 1):  # noqa: B007
            counts.update(wanted.intersection(map(stems.__getitem__, _split(text))))
        return cls(labels, {word: log((1 + n_texts) / (1 + counts[word])) for word in sorted(wanted)})

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the strength of each label (columns) in each text (rows)."""
        starts: list[int] = [0]
        columns: list[int] = []
        values: list[float] = []
        stems = _Stems()
        for text in texts:
            first: dict[int, int] = {}
            for place, word in enumerate(_split(text)):
                if (column := self._places.get(stems[word])) is not None:
                    first.setdefault(column, place)
            columns.extend(first)
            values.extend(1 + 1 / (1 + place / _EARLY) for place in first.values())
            starts.append(len(columns))
        found = csr_array((np.array(values, np.float64), columns, starts), shape=(len(texts), len(self._places)))
        strengths: NDArray[np.float64] = (found @ self._weights).toarray()
        return strengths

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: at for at, word in enumerate(self.idf)}

    @cached_property
    def _weights(self) -> csr_array:
        """What each word (rows) adds to each label (columns)."""
        cells = [
            (self._places[word], at, self.idf[word] / len(words))
            for at, words in enumerate(map(_words_of, self.labels))
            for word in words
        ]
        rows, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
        return csr_array((np.array(values, np.float64), (rows, columns)), shape=(len(self._places), len(self.labels)))

    def to_dict(self) -> dict[str, float]:
        """Return the words' frequencies as JSON."""
        return dict(self.idf)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], labels: Iterable[str]) -> "LabelWords":
        """Read it back, for these labels."""
        labels, idf = tuple(labels), {str(word): float(value) for word, value in saved.items()}
        if missing := {word for label in labels for word in _words_of(label)} - idf.keys():
            raise ValueError(f"the word {min(missing)!r} of a label has no frequency")
        if not all(map(isfinite, idf.values())):
            raise ValueError("the frequencies of words must be finite numbers")
        return cls(labels, idf)


class _Stems(dict[str, str]):
    """The stems of words, each made once."""

    def __missing__(self, word: str) -> str:
        stem = self[word] = _ENDING.sub("", word)
        return stem


def _split(text: str) -> list[str]:
    return split_words(strip_accents_unicode(text.lower()))


def _words_of(label: str) -> list[str]:
    """Return the stems of a label's words, each once."""
    words = _split(_JOINED.sub(" ", label))
    return list(dict.fromkeys(_ENDING.sub("", word) for word in words if word[0].isalnum()))
