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
_ENDING = re.compile(r"(?:(?<=\w{4})(?:ing|ed|ie|e|y)(?:(?<!s)s)?|(?<=\w{3})(?<!s)s)$")
"""Endings of English words, so that "trades" is in a text that says "trading", but "care" not in one about cars."""
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
"""Where the words of ``realEstate`` and ``real_estate`` meet."""


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
        labels, stems = tuple(labels), _Stems()
        wanted = _words_of(labels)
        counts: Counter[str] = Counter()
        n_texts = 0
        for n_texts, text in enumerate(texts, 1):  # noqa: B007
            counts.update(wanted.intersection(stem for word in _split(text) for stem in stems[word]))
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
                for stem in stems[word]:
                    if (column := self._places.get(stem)) is not None:
                        first.setdefault(column, place)
            columns.extend(first)
            values.extend(1 + 1 / (1 + place / _EARLY) for place in first.values())
            starts.append(len(columns))
        found = csr_array((np.array(values, np.float64), columns, starts), shape=(len(texts), len(self._places)))
        strengths = [(found @ weights).toarray() for weights in self._weights if weights.nnz]
        return np.maximum.reduce(strengths) if strengths else np.zeros((len(texts), len(self.labels)))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: at for at, word in enumerate(self.idf)}

    @cached_property
    def _weights(self) -> list[csr_array]:
        """What each word (rows) adds to each label (columns), for each of the label's forms."""
        parts, whole = zip(*map(_forms, self.labels), strict=True) if self.labels else ((), ())
        return [self._weigh(forms) for forms in (parts, whole)]

    def _weigh(self, forms: Iterable[Sequence[str]]) -> csr_array:
        cells = [
            (self._places[word], at, self.idf[word] / len(words)) for at, words in enumerate(forms) for word in words
        ]
        rows, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
        return csr_array((np.array(values, np.float64), (rows, columns)), shape=(len(self._places), len(self.labels)))

    def to_dict(self) -> dict[str, float]:
        """Return the words' frequencies as JSON."""
        return dict(self.idf)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], labels: Iterable[str]) -> "LabelWords":
        """Read it back, for these labels."""
        if not isinstance(saved, dict):
            raise TypeError("the frequencies of words must be an object")
        labels, idf = tuple(labels), {str(word): float(value) for word, value in saved.items()}
        if missing := _words_of(labels) - idf.keys():
            raise ValueError(f"the word {min(missing)!r} of a label has no frequency")
        if not all(map(isfinite, idf.values())):
            raise ValueError("the frequencies of words must be finite numbers")
        return cls(labels, idf)


class _Stems(dict[str, tuple[str, ...]]):
    """The stems of a word and, if it is several words joined, of those; each made once."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        parts = _JOINT.split(word)
        self[word] = tuple(dict.fromkeys(_stem(one) for one in ([word, *parts] if len(parts) > 1 else [word]) if one))
        return self[word]


def _split(text: str) -> list[str]:
    return split_words(strip_accents_unicode(text))


def _stem(word: str) -> str:
    return _ENDING.sub("", word.lower())


def _forms(label: str) -> tuple[list[str], list[str]]:
    """Return the stems of a label's words, each once; and, if some are joined in it, those of the words as they stand.

    So texts that say "Java script" and texts that say "javascript" both have the label ``JavaScript``.
    """
    whole = [word for word in _split(label) if any(map(str.isalnum, word))]
    parts = [part for word in whole for part in _JOINT.split(word) if part]
    forms = [list(dict.fromkeys(map(_stem, words))) for words in (parts, whole)]
    return forms[0], forms[1] if forms[1] != forms[0] else []


def _words_of(labels: Iterable[str]) -> set[str]:
    return {word for label in labels for form in _forms(label) for word in form}
