"""Keyphrase scores: F1@5 and F1@M of the phrases that are in the text (present), and of those that are not (absent).

As in the keyphrase literature (Meng et al. 2017, "Deep keyphrase generation"; Yuan et al. 2020, "One size does not fit
all"; Ye et al. 2021, "One2Set"):

- Phrases and texts are lowercased, tokenized, and stemmed with Porter's stemmer. A phrase is present if its stems are
  contiguous in the text's stems. Of phrases with the same stems, the first is kept.
- @M takes all predicted phrases. @5 takes the first five, and precision always divides by five. The order of the
  predicted labels matters here.
- A document without predicted phrases of a kind has precision 0.

Published code averages in two ways, with different results: see `score_keyphrases`.

Published code reads tokenized text. The tokenizer here is close to that of Meng et al., for any script: letters and
digits (and ``# & + *``) make words, each of ``_ < > , ( ) . '`` is a token, anything else (hyphens, slashes) separates.
One2Set's code also drops predictions with a comma or a full stop; here they stay.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Any, Literal, TypeAlias, get_args

from setaug.errors import MissingExtraError
from setaug.metrics.indicators import check_same_length
from setaug.registry import check_choice

KeyphraseAverage: TypeAlias = Literal["one2set", "documents"]
"""How the scores of documents are averaged."""

_TOKEN = re.compile(r"(?:[^\W_]|[#&+*])+|[_<>,().']")
_Stems: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseScores:
    """Scores of the present or of the absent keyphrases."""

    n_documents: int
    """The number of documents averaged over."""
    n_gold: int
    """The number of true phrases."""
    n_predicted: int
    precision_at_5: float
    recall_at_5: float
    f1_at_5: float
    precision_at_m: float
    recall_at_m: float
    f1_at_m: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyphraseScores:
    """Keyphrase scores, and how they are averaged."""

    average: KeyphraseAverage
    present: PhraseScores
    absent: PhraseScores


def score_keyphrases(
    gold: Sequence[Iterable[str]],
    predicted: Sequence[Sequence[str]],
    texts: Sequence[str],
    *,
    average: KeyphraseAverage = "one2set",
) -> KeyphraseScores:
    """Score predicted keyphrases, the best first, separately for present and absent ones.

    Parameters
    ----------
    average
        ``one2set``: average precision and recall over *all* documents, with 0 for a document without a true phrase of
        the kind, and take F1 of the two averages, as in One2Set's code (jiacheng-ye/kg_one2set,
        evaluate_prediction.py, from kenchan0226/keyphrase-generation-rl), the source of the numbers that the paper
        compares with. ``documents``: average the F1 of the documents that have a true phrase of the kind, as in
        memray/OpenNMT-kpg-release ("non-empty items"). These scores are higher.

    Examples
    --------
    >>> text = "Sorting networks sort numbers in parallel."
    >>> predicted = [["sorting network", "hashing"]]
    >>> scores = score_keyphrases([["Sorting networks", "parallel algorithm"]], predicted, [text])
    >>> scores.present.f1_at_m, round(scores.present.f1_at_5, 3), scores.absent.f1_at_m
    (1.0, 0.333, 0.0)

    """
    check_choice("average", average, get_args(KeyphraseAverage))
    check_same_length(gold, predicted)
    check_same_length(gold, texts)
    stem = _stemmer()
    kinds: dict[bool, list[tuple[list[_Stems], list[_Stems]]]] = {True: [], False: []}
    for truths, phrases, text in zip(gold, predicted, texts, strict=True):
        source = f" {' '.join(_stems(text, stem))} "
        both = [_different(each, stem) for each in (truths, phrases)]
        for is_present, documents in kinds.items():
            true, guess = ([phrase for phrase in each if _is_in(phrase, source) == is_present] for each in both)
            documents.append((true, guess))
    return KeyphraseScores(average=average, present=_score(kinds[True], average), absent=_score(kinds[False], average))


def find_present(phrases: Iterable[Iterable[str]], texts: Iterable[str]) -> Iterator[list[bool]]:
    """Yield, for each document, which of its phrases are present: contiguous stems in its text.

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
    """Return whether stems are contiguous in a text of stems."""
    return f" {' '.join(phrase)} " in source


def _score(documents: list[tuple[list[_Stems], list[_Stems]]], average: KeyphraseAverage) -> PhraseScores:
    counted = documents if average == "one2set" else [(gold, guess) for gold, guess in documents if gold]
    at_5 = _average([_match(gold, guess[:5], 5) for gold, guess in counted], average, "5")
    at_m = _average([_match(gold, guess, len(guess)) for gold, guess in counted], average, "m")
    return PhraseScores(
        n_documents=len(counted),
        n_gold=sum(len(gold) for gold, _ in counted),
        n_predicted=sum(len(guess) for _, guess in counted),
        **at_5,
        **at_m,
    )


def _match(gold: list[_Stems], guess: list[_Stems], n_predicted: int) -> tuple[float, float]:
    n_right = len(set(guess) & set(gold))
    return n_right / n_predicted if n_predicted else 0.0, n_right / len(gold) if gold else 0.0


def _average(scores: list[tuple[float, float]], average: KeyphraseAverage, top: str) -> dict[str, Any]:
    precision, recall = (fmean(each) for each in zip(*scores, strict=True)) if scores else (0.0, 0.0)
    f1 = _f1(precision, recall)
    if average == "documents" and scores:
        f1 = fmean(_f1(p, r) for p, r in scores)
    return {f"precision_at_{top}": precision, f"recall_at_{top}": recall, f"f1_at_{top}": f1}


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
