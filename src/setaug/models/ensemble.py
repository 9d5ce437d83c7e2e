"""Ensembles of models, weighted on dev data; the same for prediction files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from setaug.decoding.choice import Rule, make_prediction
from setaug.decoding.mixture import LabelProbabilities, LogisticCalibration, Mixture
from setaug.errors import DataError
from setaug.estimator import SetEstimator
from setaug.examples import Columns, Data, Example, LabelSets, make_examples, make_texts
from setaug.metrics import match
from setaug.models.companion import hits_of
from setaug.predictions import Prediction


class SetEnsemble(SetEstimator):
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

    def __init__(self, models: Sequence[Any] = ()) -> None:
        self.models = models

    def fit(
        self, data: Data | Iterable[str], labels: LabelSets | None = None, *, columns: Columns | None = None
    ) -> Self:
        """Tune the weights and the rule for choosing sets on dev data that none of the models was trained on."""
        if not self.models:
            raise ValueError("models must contain at least one fitted model.")
        self.columns_ = columns or Columns()
        examples = make_examples(data, labels, self.columns_)
        if not examples:
            raise DataError("the dev data is empty.")
        self.labels_ = list(dict.fromkeys(label for model in self.models for label in model.classes_.tolist()))
        self.mixture_, self.f1_ = fit_mixture(self._members([one.text for one in examples]), examples, self.labels_)
        return self

    def _members(self, texts: Sequence[str]) -> list[LabelProbabilities]:
        return [_aligned(model, texts, self.labels_) for model in self.models]

    def predict_proba(self, data: Iterable[str] | Data) -> NDArray[np.float64]:
        """Return the probability of each label (columns, as in ``classes_``) for each text (rows)."""
        self._check_fitted()
        texts, _ = make_texts(data, self.columns_)
        return np.asarray(self.mixture_.combine(self._members(texts)).labels, np.float64)

    def predict(self, data: Iterable[str] | Data, *args: Any, **changes: Any) -> list[Prediction]:
        """Predict the set of each text; ``choose`` overrides the rule."""
        self._check_fitted()
        choose = changes.pop("choose", "best")
        changes.pop("progress", None)
        if args or changes:
            raise TypeError(f"an ensemble does not accept {', '.join(changes) or args}.")
        texts, ids = make_texts(data, self.columns_)
        rule = _rule(self.mixture_, choose)
        return _predict(self.mixture_.combine(self._members(texts)), rule, self.labels_, ids)


def _aligned(model: Any, texts: Sequence[str], labels: Sequence[str]) -> LabelProbabilities:
    """Return the probabilities of a model, with these columns."""
    own = model.label_probabilities(texts) if hasattr(model, "label_probabilities") else None
    shares = model.predict_proba(texts) if own is None else own.labels
    places = {label: at for at, label in enumerate(labels)}
    found = np.zeros((len(texts), len(labels)))
    found[:, [places[label] for label in model.classes_.tolist()]] = shares
    return LabelProbabilities(found, None if own is None else own.sizes)


def fit_mixture(
    members: Sequence[LabelProbabilities], examples: Sequence[Example], labels: Sequence[str]
) -> tuple[Mixture, float]:
    """Return the best mixture on examples, and its mean F1."""
    hits, n_true = hits_of(examples, labels)
    return Mixture.fit(members, hits, n_true, least=min(1, int(n_true.min())), largest=int(n_true.max()) or None)


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
    if len(files) < 2:
        raise ValueError(f"predictions of at least two models are required, got {len(files)}.")
    if len(dev_files) not in (0, len(files)) or bool(dev) != bool(dev_files):
        raise ValueError(f"dev predictions are required for each of the {len(files)} models, got {len(dev_files)}.")
    keys = [one.id for one in files[0]]
    stand_ins = [Example("", (), id=key) for key in keys]
    aligned = [match(stand_ins, part) for part in files]
    judged = [match(dev, part) for part in dev_files]
    named = {label for part in (*aligned, *judged) for one in part for label in one.probabilities or ()}
    labels = sorted(named)
    if not labels:
        raise DataError("the predictions have no probabilities.")
    members = [_table(part, labels, number) for number, part in enumerate(aligned, 1)]
    f1 = None
    if dev:
        mixture, f1 = fit_mixture([_table(part, labels, n) for n, part in enumerate(judged, 1)], dev, labels)
    else:
        equal = (1 / len(files),) * len(files)
        mixture = Mixture(weights=equal, calibrations=(LogisticCalibration(),) * len(files), rule=Rule())
    return _predict(mixture.combine(members), _rule(mixture, choose), labels, keys), mixture, f1


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


def _rule(mixture: Mixture, choose: str) -> Rule:
    return mixture.rule if choose == "best" else replace(mixture.rule, way=choose)


def _predict(found: LabelProbabilities, rule: Rule, labels: Sequence[str], ids: Sequence[Any]) -> list[Prediction]:
    chosen = rule.choose(found.labels, found.sizes)
    return [
        make_prediction(row, labels, columns, key) for row, columns, key in zip(found.labels, chosen, ids, strict=True)
    ]
