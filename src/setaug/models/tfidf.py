"""A simple baseline: linear classifiers on TF-IDF features. It needs only scikit-learn.

The words are weighted by TF-IDF, and each label has a classifier of its own. Logistic regression and linear SVMs of
several strengths are tried; the dev data decides between them, and on the way to choose a set from probabilities.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC

from setaug.decoding.choice import Rule
from setaug.decoding.mixture import LabelProbabilities, fit_logistic
from setaug.decoding.scored import check_scored, ways_of
from setaug.errors import DataError, ModelError, SetAugError
from setaug.estimator import LabelScorer
from setaug.examples import Columns, Data, LabelSets, check_labels, checked_columns, make_examples
from setaug.metrics.indicators import hits_of, index_labels
from setaug.models.label_words import LabelWords
from setaug.models.words import WORDS, split_words
from setaug.registry import check_choice
from setaug.settings import Progress, check_whole
from setaug.vocabulary import warn_of_joined

Scores = NDArray[np.float64]

CLASSIFIERS: dict[str, Callable[[float], Any]] = {
    "svm": lambda c: LinearSVC(C=c, random_state=0),
    "logistic": lambda c: LogisticRegression(C=c, solver="liblinear", dual=True, max_iter=1000, random_state=0),
}
CANDIDATES = (("svm", 0.3), ("svm", 1.0), ("svm", 3.0), ("logistic", 3.0), ("logistic", 10.0))
"""Classifiers to try, each with its C; a higher C regularizes less."""
_FEW = 200
"""Of fewer training texts, words that occur in one of them count, too."""
_ENOUGH = 1000
"""So many dev examples decide alone, without the cross-validation."""
_SURE = 10.0
"""Score for labels on every example; negated for labels on none."""
_SHRINKAGE = 1.0
"""How strongly the calibration is pulled to the identity: enough to bound it on a handful of texts."""
_SLOPES, _WEIGHTS, _SHIFTS = (0.1, 100.0), (0.0, 100.0), (-20.0, 20.0)
"""Bounds of the slope of scores, of the weight of the labels' words, which never lower a score, and of the shift."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The result of a classifier on data that it was not trained on, with its best rule."""

    classifier: str
    c: float
    f1: float
    rule: Rule


@dataclass(frozen=True)
class _Calibration:
    """The log-odds of labels: a linear function of their scores and of their words in the text."""

    slope: float = 1.0
    shift: float = 0.0
    name_weight: float = 0.0

    def __post_init__(self) -> None:
        if not np.isfinite(astuple(self)).all() or self.name_weight < 0:
            raise ValueError(f"a calibration has the numbers {astuple(self)!r}")

    @classmethod
    def fit(cls, scores: Scores, named: Scores | None, hits: NDArray[np.bool_], *, where: Any) -> Self:
        """Return the calibration with the highest likelihood, by the cells `where` something can be learnt."""
        cells, is_hit = [one[where].ravel() for one in (scores, named) if one is not None], hits[where].ravel()
        if is_hit.all() or not is_hit.any():
            return cls()
        bounds = [_SLOPES, _WEIGHTS, _SHIFTS] if len(cells) > 1 else [_SLOPES, _SHIFTS]
        slope, *weights, shift = fit_logistic(cells, is_hit, _SHRINKAGE, bounds)
        return cls(slope, shift, sum(weights))

    def __call__(self, scores: Scores, named: Scores | None) -> Scores:
        """Return the probabilities of labels."""
        log_odds = self.slope * scores + self.shift
        if named is not None:
            log_odds += self.name_weight * named
        found: Scores = expit(np.where(scores == _SURE, _SURE, log_odds))  # no data calibrates a label of all texts
        return found


class TfidfClassifier(LabelScorer):
    """Score each label by a linear classifier on TF-IDF features, and choose sets from the probabilities.

    The mean F1 of the sets chooses among `candidates`, each with its best `Rule`: in cross-validation on the training
    data, together with the dev data if there are any. Fewer than 1,000 dev examples alone are too few: tuned on 30 to
    150 of them, F1 was up to 2 points lower. Where no training set is empty, no predicted one is. Nothing is random.

    Labels have names: where a text has the words of a label, the score of the label is raised (see `LabelWords`), by a
    weight that all labels share and that the same data decide. So rare labels are found of which training shows little.

    Probabilities come from a logistic function of the scores, one for all labels, fitted to the same data; they are
    right on the whole, not for each label.

    Parameters
    ----------
    ngrams
        Maximum length of word n-grams.
    min_df
        Minimum number of training texts with a feature, 1 if that leaves none; by default 2, and 1 for fewer than 200
        texts.
    label_words
        Whether the words of labels count that stand in a text.
    candidates
        Pairs of a classifier (``svm``, ``logistic``) and its C.
    choose
        How to choose a set: a name of `setaug.settings.CHOICES` other than ``written``. ``best`` is the way with the
        highest mean F1.
    folds
        Number of folds of the cross-validation.

    Attributes
    ----------
    trial_, trials_
        What was chosen, and all that was tried.
    rule_, calibration_
        How a set is chosen from the probabilities, and how these are made from scores and from the words of labels: by
        a ``slope``, a ``shift`` and a ``name_weight``.
    label_words_
        How strongly a text has the words of each label; None if they do not count.

    Examples
    --------
    >>> texts = ["The ferry was late.", "A tennis match.", "Late again, the ferry!", "She won the match."]
    >>> model = TfidfClassifier().fit(texts, [["traffic"], ["sports"], ["traffic"], ["sports"]])
    >>> model.predict(["Is the ferry late?"])[0].labels
    ('traffic',)

    """

    def __init__(
        self,
        *,
        ngrams: int = 1,
        min_df: int | None = None,
        label_words: bool = True,
        candidates: Sequence[tuple[str, float]] = CANDIDATES,
        choose: str = "best",
        folds: int = 3,
    ) -> None:
        self.ngrams = ngrams
        self.min_df = min_df
        self.label_words = label_words
        self.candidates = candidates
        self.choose = choose
        self.folds = folds

    def fit(
        self,
        data: Data | Iterable[str],
        labels: LabelSets | None = None,
        *,
        columns: Columns | None = None,
        dev: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        data, labels
            Examples, rows (a Hugging Face data set) or a table (a data frame); or texts, and their label sets or
            indicator matrix.
        columns
            The names of the text and label columns of rows, and of labels that are numbers. They are kept for `predict`
            and all other methods.
        dev
            Examples, or a tuple of texts and label sets, that help to decide what to use; nothing is trained on them.
        progress
            Called with the stage, the number of items done, and their total.

        """
        self._check()
        self.columns_ = checked_columns(columns)
        examples = make_examples(data, labels, self.columns_)
        given = make_examples(dev, None, self.columns_) if dev is not None else []
        if not examples:
            raise DataError("the training data is empty.")
        if dev is not None and not given:
            raise DataError("the dev data is empty.")
        places = index_labels(example.labels for example in examples)
        if not places:
            raise DataError("no training example has a label.")
        self.labels_ = list(places)
        warn_of_joined(self.labels_)
        self.largest_ = max(len(example.labels) for example in examples)
        self.least_ = min(1, *(len(example.labels) for example in examples))
        texts = [example.text for example in examples]
        min_df = self.min_df or (1 if len(texts) < _FEW else 2)
        self.vectorizer_ = _fit_vectorizer(texts, self.ngrams, min_df)
        features, (gold, _) = self.vectorizer_.transform(texts), hits_of(examples, places)
        unseen = self.vectorizer_.transform([example.text for example in given]) if given else None
        validates = len(given) < _ENOUGH
        folds = _fold(texts, self.folds) if validates else []
        tuning = [*examples, *given] if validates else given
        hits, sizes = hits_of(tuning, places)
        self.label_words_ = LabelWords.fit(self.labels_, texts) if self.label_words else None
        named = self._named([example.text for example in tuning])

        self.trials_: list[Trial] = []
        for done, (name, c) in enumerate(self.candidates, 1):
            weights = _fit_labels(name, c, features, gold) if unseen is not None else None
            parts = [_out_of_fold(name, c, features, gold, folds)] if validates else []
            if weights is not None:
                parts.append(_score(unseen, weights))
            scores = np.concatenate(parts)
            is_learnt = np.abs(scores) != _SURE  # of others, such as labels in one fold only, nothing is to be learnt
            options: Any = {"least": self.least_, "largest": self.largest_, "ways": ways_of(self.choose)}
            calibration = _Calibration.fit(scores, named, hits, where=is_learnt if is_learnt.any() else ...)
            rule, f1 = Rule.fit(calibration(scores, named), None, hits, sizes, **options)
            self.trials_.append(Trial(classifier=name, c=c, f1=f1, rule=rule))
            best = max(self.trials_, key=lambda trial: trial.f1)
            if best is self.trials_[-1]:
                self.trial_, self.rule_, self.calibration_, kept = best, rule, calibration, weights
            if progress is not None:
                progress("fitting", done, len(self.candidates))
        self.coef_, self.intercept_ = kept or _fit_labels(self.trial_.classifier, self.trial_.c, features, gold)
        return self

    def _check(self) -> None:
        for name, least in {"ngrams": 1, "folds": 2}.items():
            check_whole(name, getattr(self, name), at_least=least)
        check_whole("min_df", self.min_df, at_least=1, optional=True)
        check_scored(self.choose)
        if not self.candidates:
            raise ValueError("candidates must name a classifier and its C, got none.")
        for name, c in self.candidates:
            check_choice("a candidate", name, CLASSIFIERS)
            if not 0 < c < float("inf"):
                raise ValueError(f"the C of a candidate must be above 0, got {c!r}.")

    def _find(self, texts: Sequence[str], progress: Progress | None) -> LabelProbabilities:
        if not texts:
            return LabelProbabilities(np.empty((0, len(self.labels_))))
        scores = _score(self.vectorizer_.transform(texts), (self.coef_, self.intercept_))
        if progress is not None:
            progress("scoring", len(texts), len(texts))
        return LabelProbabilities(self.calibration_(scores, self._named(texts)))

    def _named(self, texts: Sequence[str]) -> Scores | None:
        """Return how strongly each text has the words of each label, if they count."""
        return None if self.label_words_ is None else self.label_words_(texts)

    def save(self, path: str | Path) -> None:
        """Write everything that is needed to predict into one file of safetensors, without pickle."""
        from safetensors.numpy import save_file

        self._check_fitted()
        names = self.vectorizer_.get_feature_names_out().tolist()
        kept = {"params": self.get_params(), "columns": self.columns_.to_dict(), "labels": self.labels_, "terms": names}
        kept |= {"rule": self.rule_.to_dict(), "calibration": list(astuple(self.calibration_))}
        kept |= {"words": WORDS, "label_words": self.label_words_ and self.label_words_.to_dict()}
        tensors = {"coef": self.coef_, "intercept": self.intercept_, "idf": self.vectorizer_.idf_}
        save_file(
            {name: np.ascontiguousarray(value) for name, value in tensors.items()},
            path,
            metadata={"kind": "tf-idf", "model": json.dumps(kept)},
        )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy") as stream:
                metadata = stream.metadata() or {}
                if metadata.get("kind") != "tf-idf":
                    raise ValueError("it holds no TF-IDF classifier")
                kept = json.loads(metadata["model"])
                tensors = {name: stream.get_tensor(name) for name in ("coef", "intercept", "idf")}
            model = cls(**kept["params"])
            model.columns_ = Columns(**kept["columns"])
            model.labels_ = list(check_labels(kept["labels"], "labels"))
            model.rule_ = Rule.from_dict(kept["rule"])
            model.least_, model.largest_ = model.rule_.least, int(model.rule_.largest or len(model.labels_))
            model.calibration_ = _Calibration(*map(float, kept["calibration"]))
            if kept.get("words") != WORDS:
                raise ValueError("it splits texts into words in another way than this version; train it again")
            words = kept.get("label_words")
            model.label_words_ = None if words is None else LabelWords.from_dict(words, model.labels_)
            terms = check_labels(kept["terms"], "terms")
            model.vectorizer_ = _make_vectorizer(model.ngrams, vocabulary={term: at for at, term in enumerate(terms)})
            model.vectorizer_.idf_ = tensors["idf"]
            model.coef_, model.intercept_ = tensors["coef"], tensors["intercept"]
            shapes = model.coef_.shape, model.intercept_.shape, tensors["idf"].shape
            if shapes != ((len(model.labels_), len(terms)), (len(model.labels_),), (len(terms),)):
                raise ValueError(f"its arrays have the shapes {shapes}")
        except FileNotFoundError:
            raise ModelError(f"there is no file {path}.") from None
        except (OSError, ValueError, KeyError, TypeError, SafetensorError, SetAugError) as error:
            raise ModelError(f"{path} is not a valid setaug model ({type(error).__name__}: {error}).") from None
        return model


Weights = tuple[NDArray[np.float32], Scores]
"""A row of weights for each label, and the intercepts."""


def _fit_vectorizer(texts: Sequence[str], ngrams: int, min_df: int) -> Any:
    for least in dict.fromkeys((min(min_df, len(texts)), 1)):
        try:
            return _make_vectorizer(ngrams, min_df=least).fit(texts)
        except ValueError:  # no feature is left
            continue
    return _make_vectorizer(ngrams, vocabulary=["\0"]).fit(texts)  # no word is equal to that


def _make_vectorizer(ngrams: int, **options: Any) -> Any:
    split: Any = {"tokenizer": split_words, "token_pattern": None}
    return TfidfVectorizer(ngram_range=(1, ngrams), sublinear_tf=True, strip_accents="unicode", **split, **options)


def _fit_labels(name: str, c: float, features: Any, gold: NDArray[np.bool_]) -> Weights:
    coef = np.zeros((gold.shape[1], features.shape[1]), np.float32)
    intercept = np.where(gold.all(axis=0), _SURE, -_SURE)
    model = CLASSIFIERS[name](c)
    with warnings.catch_warnings():
        # Where a label needs more steps than allowed, the weights are good enough to be judged on the dev data.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for at in np.flatnonzero(gold.any(axis=0) & ~gold.all(axis=0)):
            model.fit(features, gold[:, at])
            coef[at], intercept[at] = model.coef_[0], model.intercept_[0]
    return coef, intercept


def _score(features: Any, weights: Weights) -> Scores:
    coef, intercept = weights
    found: Scores = features @ coef.T + intercept
    return found


Fold = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The rows to train on, and those to score."""


def _fold(texts: Sequence[str], folds: int) -> list[Fold]:
    """Split examples for cross-validation, equal texts together; a single text is scored in-sample."""
    places = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    groups = np.array([places[text] for text in texts])
    if len(places) == 1:
        return [(np.arange(len(texts)), np.arange(len(texts)))]
    splits = KFold(min(folds, len(places)), shuffle=True, random_state=0).split(np.arange(len(places)))
    return [(np.flatnonzero(~np.isin(groups, out)), np.flatnonzero(np.isin(groups, out))) for _, out in splits]


def _out_of_fold(name: str, c: float, features: Any, gold: NDArray[np.bool_], folds: Sequence[Fold]) -> Scores:
    """Return out-of-fold scores."""
    scores = np.empty(gold.shape)
    for seen, held_out in folds:
        scores[held_out] = _score(features[held_out], _fit_labels(name, c, features[seen], gold[seen]))
    return scores
