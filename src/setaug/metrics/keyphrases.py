"""Keyphrase scores: F1@5 and F1@M of the phrases that are in the text (present), and of those that are not (absent).

As in the keyphrase literature (Meng et al. 2017, "Deep keyphrase generation"; Yuan et al. 2020, "One size does not fit
all"; Ye et al. 2021, "One2Set"):

- Phrases and texts are put in lower case, split into tokens, and stemmed with Porter's stemmer. A phrase is present
  where its stems follow one another in the text's stems. Of phrases with the same stems the first is kept.
- @M takes all predicted phrases. @5 takes the first five; where there are fewer, wrong ones are imagined to fill up, so
  that precision divides by five. The order of the predicted labels matters here.
- A document with no predicted phrase of a kind has precision 0.

On averaging, published code differs, and so do numbers: see `score_keyphrases`.

Published code reads text that is split into tokens already. Here the rules are close to those of Meng et al., for any
script: letters and digits (and ``# & + *``) make words, the marks ``_ < > , ( ) . '`` are tokens of their own, anything
else (hyphens, slashes) only separates. One2Set's code also drops predictions that hold a comma or a full stop; here
they stay.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from setaug.errors import MissingExtraError
from setaug.metrics.indicators import check_same_length

KeyphraseAverage: TypeAlias = Literal["one2set", "documents"]
"""How scores of documents become one score."""

_TOKEN = re.compile(r"(?:[^\W_]|[#&+*])+|[_<>,().']")
_Stems: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseScores:
    """Hold the scores for the present or for the absent keyphrases."""

    n_documents: int
    """How many documents are averaged over."""
    n_gold: int
    """How many true phrases there are."""
    n_predicted: int
    precision_at_5: float
    recall_at_5: float
    f1_at_5: float
    precision_at_m: float
    recall_at_m: float
    f1_at_m: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyphraseScores:
    """Hold keyphrase scores, and how they are averaged."""

    average: KeyphraseAverage
    present: PhraseScores
    absent: PhraseScores


def score_keyphrases(
    predicted: Sequence[Sequence[str]],
    gold: Sequence[Iterable[str]],
    texts: Sequence[str],
    *,
    average: KeyphraseAverage = "one2set",
) -> KeyphraseScores:
    """Score predicted keyphrases, the best first, against the true ones, apart for present and absent ones.

    Parameters
    ----------
    average
        ``one2set``: average precision and recall over *all* documents, where a document without a true phrase of the
        kind has 0 in both, and take F1 of the two averages. So does the code of One2Set (jiacheng-ye/kg_one2set,
        evaluate_prediction.py, which is that of kenchan0226/keyphrase-generation-rl), from which the numbers come
        that the paper compares with. ``documents``: average the F1 of the documents that have a true phrase of the
        kind, as memray/OpenNMT-kpg-release scores a document and "non-empty items" are averaged. These are higher.

    Examples
    --------
    >>> text = "Sorting networks sort numbers in parallel."
    >>> predicted = [["sorting network", "hashing"]]
    >>> scores = score_keyphrases(predicted, [["Sorting networks", "parallel algorithm"]], [text])
    >>> scores.present.f1_at_m, round(scores.present.f1_at_5, 3), scores.absent.f1_at_m
    (1.0, 0.333, 0.0)

    """
    if average not in get_args(KeyphraseAverage):
        raise ValueError(f"average must be one of {', '.join(get_args(KeyphraseAverage))}; got {average!r}.")
    check_same_length(predicted, gold)
    check_same_length(texts, gold)
    stem = _stemmer()
    kinds: dict[bool, list[tuple[list[_Stems], list[_Stems]]]] = {True: [], False: []}
    for phrases, truths, text in zip(predicted, gold, texts, strict=True):
        source = f" {' '.join(_stems(text, stem))} "
        guesses = _different(phrases, stem)
        golds = _different(truths, stem)
        for is_present, documents in kinds.items():
            documents.append(
                (
                    [phrase for phrase in guesses if _is_in(phrase, source) == is_present],
                    [phrase for phrase in golds if _is_in(phrase, source) == is_present],
                )
            )
    return KeyphraseScores(average=average, present=_score(kinds[True], average), absent=_score(kinds[False], average))


def find_present(phrases: Iterable[Iterable[str]], texts: Iterable[str]) -> Iterator[list[bool]]:
    """Tell, for each document, which of its phrases are in its text: whose stems follow one another there.

    Examples
    --------
    >>> list(find_present([["sorting network", "parallel algorithm"]], ["We sort networks by sorting networks."]))
    [[True, False]]

    """
    stem = _stemmer()
    for listed, text in zip(phrases, texts, strict=True):
        source = f" {' '.join(_stems(text, stem))} "
        yield [_is_in(_stems(phrase, stem), source) for phrase in listed]


def _stemmer() -> Callable[[str], str]:
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError:
        raise MissingExtraError("Keyphrase metrics", "keyphrases") from None
    stem: Callable[[str], str] = lru_cache(maxsize=1 << 16)(PorterStemmer().stem)
    return stem


def _stems(text: str, stem: Callable[[str], str]) -> _Stems:
    lower = text.lower()
    return tuple(stem(token) for token in _TOKEN.findall(lower) or lower.split())


def _different(phrases: Iterable[str], stem: Callable[[str], str]) -> list[_Stems]:
    if isinstance(phrases, str):
        raise TypeError(f"keyphrases must be a list of strings, got the string {phrases!r}.")
    return list(dict.fromkeys(_stems(phrase, stem) for phrase in phrases))


def _is_in(phrase: _Stems, source: str) -> bool:
    """Tell whether stems follow one another in a text; stems hold no space."""
    return f" {' '.join(phrase)} " in source


def _score(documents: list[tuple[list[_Stems], list[_Stems]]], average: KeyphraseAverage) -> PhraseScores:
    counted = documents if average == "one2set" else [(guess, gold) for guess, gold in documents if gold]
    at_5 = _average([_match(guess[:5], gold, 5) for guess, gold in counted], average)
    at_m = _average([_match(guess, gold, len(guess)) for guess, gold in counted], average)
    return PhraseScores(
        n_documents=len(counted),
        n_gold=sum(len(gold) for _, gold in counted),
        n_predicted=sum(len(guess) for guess, _ in counted),
        precision_at_5=at_5[0],
        recall_at_5=at_5[1],
        f1_at_5=at_5[2],
        precision_at_m=at_m[0],
        recall_at_m=at_m[1],
        f1_at_m=at_m[2],
    )


def _match(guess: list[_Stems], gold: list[_Stems], n_predicted: int) -> tuple[float, float]:
    n_right = len(set(guess) & set(gold))
    return n_right / n_predicted if n_predicted else 0.0, n_right / len(gold) if gold else 0.0


def _average(scores: list[tuple[float, float]], average: KeyphraseAverage) -> tuple[float, float, float]:
    if not scores:
        return 0.0, 0.0, 0.0
    precision = sum(p for p, _ in scores) / len(scores)
    recall = sum(r for _, r in scores) / len(scores)
    if average == "one2set":
        return precision, recall, _f1(precision, recall)
    return precision, recall, sum(_f1(p, r) for p, r in scores) / len(scores)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
