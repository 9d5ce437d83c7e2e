"""Keyphrase scores, against numbers worked out by hand and against a plain twin."""

import sys
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from setaug.errors import MissingExtraError
from setaug.metrics import score_keyphrases

TEXT = "Sorting networks. We sort numbers in real-time with parallel, distributed machines."


def test_present_and_absent_phrases_are_scored_apart() -> None:
    predicted = ["sorted network", "numbers", "parallel distributed machine", "hash table", "real time"]
    gold = ["sorting networks", "real time", "machines", "hash tables", "complexity"]
    scores = score_keyphrases([gold], [predicted], [TEXT])
    # Present: predicted "sort network", "number", "real time" (2 right), of 3 true ones.
    assert scores.present.n_predicted == 3
    assert scores.present.n_gold == 3
    assert scores.present.precision_at_m == scores.present.recall_at_m == pytest.approx(2 / 3)
    assert scores.present.f1_at_m == pytest.approx(2 / 3)
    assert scores.present.precision_at_5 == pytest.approx(2 / 5)
    assert scores.present.f1_at_5 == pytest.approx(2 * (2 / 5) * (2 / 3) / (2 / 5 + 2 / 3))
    # Absent: a comma stands between "parallel" and "distributed"; the hash table is right, of 2 true ones.
    assert scores.absent.n_predicted == 2
    assert (scores.absent.precision_at_m, scores.absent.recall_at_m, scores.absent.f1_at_m) == (0.5, 0.5, 0.5)


def test_phrases_with_the_same_stems_count_once() -> None:
    scores = score_keyphrases([["machine", "machines"]], [["Machine", "machines", "MACHINES"]], [TEXT])
    assert (scores.present.n_predicted, scores.present.n_gold, scores.present.f1_at_m) == (1, 1, 1.0)


def test_only_the_first_five_count_at_5_and_their_order_matters() -> None:
    wrong = ["we", "sort", "with", "in", "distributed"]
    first = score_keyphrases([["numbers"]], [["numbers", *wrong]], [TEXT]).present
    last = score_keyphrases([["numbers"]], [[*wrong, "numbers"]], [TEXT]).present
    assert (first.precision_at_5, first.recall_at_5) == (0.2, 1.0)
    assert (last.precision_at_5, last.recall_at_5, last.f1_at_5) == (0.0, 0.0, 0.0)
    assert first.f1_at_m == last.f1_at_m > 0


def test_five_places_are_counted_among_phrases_of_the_same_kind() -> None:
    absent = [f"unheard {i}" for i in range(6)]
    assert score_keyphrases([["numbers"]], [[*absent, "numbers"]], [TEXT]).present.precision_at_5 == 0.2


def test_a_phrase_must_match_whole_words() -> None:
    scores = score_keyphrases([["networks"], ["number"]], [["net"], ["machines sorting"]], [TEXT, TEXT])
    assert (scores.present.n_predicted, scores.absent.n_predicted) == (0, 2)


def test_documents_without_true_phrases_count_as_zero_or_not_at_all() -> None:
    predicted, gold = [["numbers"], ["numbers"]], [["numbers"], ["complexity"]]
    over_all = score_keyphrases(gold, predicted, [TEXT, TEXT])
    assert over_all.average == "one2set"
    assert (over_all.present.n_documents, over_all.present.precision_at_m, over_all.present.f1_at_m) == (2, 0.5, 0.5)
    some = score_keyphrases(gold, predicted, [TEXT, TEXT], average="documents")
    assert (some.present.n_documents, some.present.precision_at_m, some.present.f1_at_m) == (1, 1.0, 1.0)
    assert (some.absent.n_documents, some.absent.f1_at_m) == (1, 0.0)
    none = score_keyphrases([[]], [["numbers"]], [TEXT], average="documents")
    assert (none.present.n_documents, none.present.f1_at_5) == (0, 0.0)


WORDS = ["graph", "graphs", "colour", "colouring", "tree", "the", "of", "large"]
phrases = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=8)
documents = st.lists(
    st.tuples(phrases, phrases, st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)), min_size=1, max_size=5
)


def plain_twin(data: list[tuple[list[str], list[str], str]], is_present: bool, top: int | None) -> list[float]:
    """Score as One2Set's published code does: precision and recall per document, means over all, F1 of the means."""
    stem = PorterStemmer().stem

    def pick(candidates: list[str], source: list[str]) -> list[list[str]]:
        kept: list[list[str]] = []
        for words in ([stem(word) for word in phrase.split()] for phrase in candidates):
            starts = range(len(source) - len(words) + 1)
            if any(source[i : i + len(words)] == words for i in starts) == is_present and words not in kept:
                kept.append(words)
        return kept

    precisions, recalls = [], []
    for predicted, gold, text in data:
        source = [stem(word) for word in text.split()]
        guesses, truths = pick(predicted, source), pick(gold, source)
        right = sum(words in truths for words in guesses[:top])
        precisions.append(right / (top or len(guesses)) if guesses else 0.0)
        recalls.append(right / len(truths) if truths else 0.0)
    p, r = mean(precisions), mean(recalls)
    return [p, r, 2 * p * r / (p + r) if p + r else 0.0]


@given(documents)
def test_scores_are_those_of_a_plain_twin(data: list[tuple[list[str], list[str], str]]) -> None:
    predicted, gold, texts = map(list, zip(*data, strict=True))
    scores = score_keyphrases(gold, predicted, texts)
    for kind, is_present in ((scores.present, True), (scores.absent, False)):
        at_5 = [kind.precision_at_5, kind.recall_at_5, kind.f1_at_5]
        at_m = [kind.precision_at_m, kind.recall_at_m, kind.f1_at_m]
        assert at_5 == pytest.approx(plain_twin(data, is_present, 5))
        assert at_m == pytest.approx(plain_twin(data, is_present, None))


def test_a_phrase_of_signs_alone_is_compared_as_it_is() -> None:
    scores = score_keyphrases([["→", "⇒"]], [["→"]], ["no sign"])
    assert (scores.absent.precision_at_m, scores.absent.recall_at_m) == (1.0, 0.5)


def test_other_scripts_have_words_too() -> None:
    scores = score_keyphrases([["ölpreis"]], [["Ölpreis", "граф"]], ["Der Ölpreis und граф."])
    assert (scores.present.n_predicted, scores.present.recall_at_m) == (2, 1.0)


def test_without_nltk_the_pip_line_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    with pytest.raises(MissingExtraError, match=r"Keyphrase metrics needs .* pip install 'setaug\[keyphrases\]'"):
        score_keyphrases([["a"]], [["a"]], ["a"])


def test_bad_calls_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="average must be one of one2set, documents, got 'mean'"):
        score_keyphrases([["a"]], [["a"]], ["a"], average="mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="same length, got 1 and 2"):
        score_keyphrases([["a"]], [["a"]], ["a", "b"])
    with pytest.raises(TypeError, match="keyphrases must be a list of strings, got the string 'a'"):
        score_keyphrases([["a"]], ["a"], ["a"])
