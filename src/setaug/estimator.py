"""The base classes of models: scikit-learn's estimator contract, with frozen dataclasses as parameters."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setaug.decoding.choice import Rule
from setaug.decoding.mixture import LabelProbabilities
from setaug.decoding.scored import changed, check_scored, predict_scored
from setaug.examples import Columns, Data, LabelSets, make_examples, make_texts
from setaug.metrics import score_sets
from setaug.predictions import Prediction
from setaug.registry import check_choice
from setaug.settings import Decoding, Progress

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class SetEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """A model that predicts sets; its parameters may be dataclasses.

    The fields of such a parameter are nested parameters: ``training__epochs`` is the field ``epochs`` of ``training``.
    `set_params` replaces a dataclass by a modified copy and never mutates the object that was passed in.
    """

    columns_: Columns = Columns()
    """The names of the text and label columns that the model was fitted with; it reads other tables with them, too."""

    @abstractmethod
    def predict(self, data: Iterable[str] | Data, *args: Any, **changes: Any) -> list[Prediction]:
        """Predict the set of each text."""

    def score(self, data: Data | Iterable[str], labels: LabelSets | None = None) -> float:
        """Return the mean F1 of the predicted sets."""
        examples = make_examples(data, labels, self.columns_)
        found = [one.labels for one in self.predict(examples)]
        return score_sets([example.labels for example in examples], found).samples_f1

    @property
    def classes_(self) -> NDArray[np.object_]:
        """The known labels, in the order of the columns of ``predict_proba``."""
        self._check_fitted()
        if self.labels_ is None:
            raise AttributeError("an open vocabulary has no classes_.")
        return np.array(self.labels_, dtype=object)

    def _check_fitted(self) -> None:
        if not hasattr(self, "labels_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(examples) first.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with `deep`, also dataclass fields, as ``parameter__field``."""
        params: dict[str, Any] = super().get_params(deep=False)
        nested = {
            f"{name}__{field.name}": getattr(value, field.name)
            for name, value in params.items()
            if deep and has_fields(value)
            for field in fields(value)
        }
        return {**params, **nested}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, nested ones as ``parameter__field``; an unknown name changes nothing."""
        valid = self.get_params(deep=False)
        changes: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, has_field, field = key.partition("__")
            check_choice("parameter", name, valid)
            if has_field:
                nested.setdefault(name, {})[field] = value
            else:
                changes[name] = value
        for name, values in nested.items():
            part = changes.get(name, valid[name])
            names = [field.name for field in fields(part)] if has_fields(part) else []
            for field in values:
                check_choice("parameter", f"{name}__{field}", [f"{name}__{one}" for one in names])
            changes[name] = replace(part, **values)
        for name, value in changes.items():
            setattr(self, name, value)
        return self


class LabelScorer(SetEstimator):
    """A model that only has probabilities of labels: sets are chosen from them, none is written."""

    choose: str = "best"
    """How to choose a set, unless a call asks for something else."""
    rule_: Rule
    """How a set is chosen from the probabilities."""

    @abstractmethod
    def _find(self, texts: Sequence[str], progress: Progress | None) -> LabelProbabilities:
        """Return the probability of each label."""

    def predict_proba(self, data: Iterable[str] | Data, *, progress: Progress | None = None) -> NDArray[np.float64]:
        """Return the probability of each label (columns, as in ``classes_``) for each text (rows)."""
        self._check_fitted()
        texts, _ = make_texts(data, self.columns_)
        return np.asarray(self._find(texts, progress).labels, np.float64)

    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text.

        Parameters
        ----------
        changes
            What is asked for in this call: ``choose``, with a ``threshold`` or a ``k``; ``size_is``, ``min_size`` and
            ``max_size``. For ``choose="oracle-k"`` the data must be examples with their labels.

        """
        self._check_fitted()
        asked = changed(Decoding(choose=self.choose), changes, of="a model that scores labels")
        check_scored(asked.choose)
        options: Any = {"rule": self.rule_, "labels": self.labels_, "columns": self.columns_}
        return predict_scored(self._find, data, asked, **options, progress=progress)


def has_fields(value: object) -> "TypeGuard[DataclassInstance]":
    """Return whether a value is an instance of a dataclass."""
    return is_dataclass(value) and not isinstance(value, type)
