"""Ensembles of models, weighted on dev data; the same for prediction files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from setaug.decoding.choice import Rule
from setaug.decoding.mixture import LabelProbabilities, Mixture, probabilities_of
from setaug.decoding.scored import make_prediction, ways_of
from setaug.errors import DataError, FileError, MissingExtraError, ModelError
from setaug.estimator import LabelScorer
from setaug.examples import Columns, Data, Example, LabelSets, check_labels, checked_columns, make_examples
from setaug.metrics import match
from setaug.metrics.indicators import hits_of
from setaug.models.model_card import MODEL_CARD, make_ensemble_card
from setaug.models.model_folder import MEMBER, read_card, save_folder, saved_columns
from setaug.models.tfidf import TfidfClassifier
from setaug.predictions import Prediction
from setaug.registry import check_choice
from setaug.settings import WAYS, Decoding, Progress

_TFIDF = "tf-idf"


class SetEnsemble(LabelScorer):
    """Fitted models that predict together: a weighted mean of their calibrated label probabilities.

    Parameters
    ----------
    models
        Fitted models with ``predict_proba`` and ``classes_``.

    Attributes
    ----------
    labels_
        The labels that any of the models knows.
    mixture_
        The weights, calibrations and the rule that dev data chose.

    Examples
    --------
    >>> from setaug.models.tfidf import TfidfClassifier
    >>> from setaug.sample import sample_examples
    >>> examples = list(sample_examples(90))
    >>> parts = [TfidfClassifier(ngrams=n).fit(examples[:60]) for n in (1, 2)]
    >>> ensemble = SetEnsemble(parts).fit(examples[60:])
    >>> len(ensemble.mixture_.weights), len(ensemble.predict(["It rained."])[0].labels) >= 1
    (2, True)

    """

    kind: ClassVar[str] = "ensemble"

    def __init__(self, models: Sequence[Any] = ()) -> None:
        self.models = models

    def fit(
        self, data: Data | Iterable[str], labels: LabelSets | None = None, *, columns: Columns | None = None
    ) -> Self:
        """Tune the weights and the rule for choosing sets on dev data that none of the models was trained on."""
        if not self.models:
            raise ValueError("models must contain at least one fitted model.")
        self.columns_ = checked_columns(columns)
        examples = make_examples(data, labels, self.columns_)
        if not examples:
            raise DataError("the dev data is empty.")
        self.labels_ = list(dict.fromkeys(label for model in self.models for label in model.classes_.tolist()))
        largest = max(getattr(model, "largest_", 0) for model in self.models)
        least = min(getattr(model, "least_", 1) for model in self.models)
        members = self._members([one.text for one in examples])
        self.mixture_, self.f1_ = fit_mixture(members, examples, self.labels_, least=least, largest=largest)
        return self

    def _members(self, texts: Sequence[str]) -> list[LabelProbabilities]:
        return [probabilities_of(model, texts, self.labels_) for model in self.models]

    @property
    def rule_(self) -> Rule:  # type: ignore[override]
        """The rule of the mixture."""
        return self.mixture_.rule

    def _find(self, texts: Sequence[str], progress: Progress | None) -> LabelProbabilities:
        found = self.mixture_.combine(self._members(texts))
        if progress is not None:
            progress("scoring", len(texts), len(texts))
        return found

    def save(self, folder: str | Path) -> None:
        """Write a model folder with those of the members, without pickle; `load` and `load_model` read it back."""
        self._check_fitted()
        for model in self.models:
            if not isinstance(model, TfidfClassifier) and not hasattr(model, "save_pretrained"):
                raise ModelError(f"an ensemble with a {type(model).__name__} cannot be saved.")
        card = {
            "kind": self.kind,
            "members": [_TFIDF if isinstance(model, TfidfClassifier) else model.kind for model in self.models],
            "labels": self.labels_,
            "columns": self.columns_.to_dict(),
            "mixture": self.mixture_.to_dict(),
            "f1": self.f1_,
        }

        def fill(beside: Path) -> None:
            for number, model in enumerate(self.models, 1):
                if isinstance(model, TfidfClassifier):
                    model.save(beside / f"{MEMBER}{number}.safetensors")
                else:
                    model.save_pretrained(beside / f"{MEMBER}{number}")
            (beside / MODEL_CARD).write_text(make_ensemble_card(card), encoding="utf-8")

        save_folder(folder, card, fill)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a folder that `save` wrote."""
        return cls.from_card(folder, read_card(folder))

    @classmethod
    def from_card(cls, folder: str | Path, card: dict[str, Any]) -> Self:
        """Read a folder whose ``setaug.json`` has been read."""
        if card["kind"] != cls.kind:
            raise ModelError(f"{folder} holds a model of the kind {card['kind']!r}, not {cls.kind!r}.")
        try:
            labels = list(check_labels(card["labels"], "labels"))
            mixture = Mixture.from_dict(card["mixture"], n_labels=len(labels))
            f1, kinds = float(card["f1"]), list(card["members"])
            if len(kinds) != len(mixture.weights):
                raise ValueError("it mixes other models than it holds")
            models = [_load_member(Path(folder), number, kind) for number, kind in enumerate(kinds, 1)]
            if not {label for model in models for label in model.classes_.tolist()} <= set(labels):
                raise ValueError("its members know other labels")
        except (ModelError, FileError, MissingExtraError):
            raise
        except Exception as error:  # whatever the values of somebody else's folder lead to
            raise ModelError(f"{folder} is not a valid setaug model ({type(error).__name__}: {error}).") from None
        found = cls(models)
        found.mixture_, found.labels_, found.f1_, found.columns_ = mixture, labels, f1, saved_columns(card)
        return found


def _load_member(folder: Path, number: int, kind: str) -> Any:
    from setaug.models.methods import KINDS, load_model

    place = folder / f"{MEMBER}{number}"
    if kind == _TFIDF:
        return TfidfClassifier.load(place.with_name(f"{place.name}.safetensors"))
    if kind not in KINDS or kind == SetEnsemble.kind or read_card(place)["kind"] != kind:
        raise ValueError(f"its member {number} is no {kind!r}")
    return load_model(place)


def fit_mixture(
    members: Sequence[LabelProbabilities],
    examples: Sequence[Example],
    labels: Sequence[str],
    *,
    least: int = 1,
    largest: int = 0,
    ways: Sequence[str] = tuple(WAYS),
) -> tuple[Mixture, float]:
    """Return the best mixture on examples, and its mean F1; their sizes and those asked for are possible."""
    hits, n_true = hits_of(examples, labels)
    most = max(largest, int(n_true.max())) or None
    return Mixture.fit(members, hits, n_true, least=min(least, int(n_true.min())), largest=most, ways=ways)


def combine_predictions(
    files: Sequence[Sequence[Prediction]],
    *,
    dev: Sequence[Example] = (),
    dev_files: Sequence[Sequence[Prediction]] = (),
    choose: str = "best",
) -> tuple[list[Prediction], Mixture, float | None]:
    """Combine the predictions of several models for the same texts; return them, the mixture and its F1 on dev data.

    Parameters
    ----------
    files
        The predictions of each model, with probabilities; matched by id, or by position.
    dev, dev_files
        Examples, and the predictions of each model for them, in the same order of models. Without them all models
        count alike and nothing is calibrated.
    choose
        ``best``, or one of `setaug.settings.WAYS`.

    """
    check_choice("choose", choose, ("best", *WAYS))
    if len(files) < 2:
        raise ValueError(f"predictions of at least two models are required, got {len(files)}.")
    if len(dev_files) not in (0, len(files)) or bool(dev) != bool(dev_files):
        raise ValueError(f"dev predictions are required for each of the {len(files)} models, got {len(dev_files)}.")
    keys = [one.id for one in files[0]]
    stand_ins = [Example("", (), id=key) for key in keys]
    aligned = [match(stand_ins, part) for part in files]
    dev_aligned = [match(dev, part) for part in dev_files]
    named = {label for part in (*aligned, *dev_aligned) for one in part for label in one.probabilities or ()}
    labels = sorted(named)
    if not labels:
        raise DataError("the predictions have no probabilities.")
    members = [_table(part, labels, number) for number, part in enumerate(aligned, 1)]
    f1, least = None, min([1, *(len(one.labels) for part in aligned for one in part)])
    if dev:
        known = [_table(part, labels, n) for n, part in enumerate(dev_aligned, 1)]
        mixture, f1 = fit_mixture(known, dev, labels, least=least, ways=ways_of(choose))
    else:
        mixture = Mixture.equal(len(files), least=least)
    found, asked = mixture.combine(members), Decoding(choose=choose)
    chosen = zip(found.labels, mixture.rule.choose_asked(asked, found.labels, found.sizes), keys, strict=True)
    return [make_prediction(row, labels, columns, key) for row, columns, key in chosen], mixture, f1


def _table(predictions: Sequence[Prediction], labels: Sequence[str], number: int) -> LabelProbabilities:
    """Return the probabilities of predictions as arrays."""
    places = {label: at for at, label in enumerate(labels)}
    found = np.zeros((len(predictions), len(labels)))
    for row, one in zip(found, predictions, strict=True):
        if one.probabilities is None:
            raise DataError(f"a prediction of model {number} has no probabilities.")
        for label, share in one.probabilities.items():
            row[places[label]] = share
    if not predictions or any(not one.sizes for one in predictions):
        return LabelProbabilities(found)
    sizes = np.zeros((len(predictions), max(max(one.sizes or ()) for one in predictions) + 1))
    for row, one in zip(sizes, predictions, strict=True):
        for size, share in (one.sizes or {}).items():
            row[size] = share
    return LabelProbabilities(found, sizes)
