"""A TF-IDF classifier that complements a generative model: fitted in seconds, with different errors."""

from collections.abc import Sequence

from setaug.examples import Example
from setaug.models.tfidf import TfidfClassifier
from setaug.vocabulary import unwarned_of_joined

_MAX_FITS = 2_000_000
"""Above this number of examples times labels there is no companion: fitting it would take too long."""


def fit_companion(examples: Sequence[Example], dev: Sequence[Example]) -> TfidfClassifier | None:
    """Fit and return a companion; None if the data is too large."""
    n_labels = len({label for example in examples for label in example.labels})
    if not n_labels or n_labels * len(examples) > _MAX_FITS:
        return None
    with unwarned_of_joined():
        return TfidfClassifier().fit(examples, dev=dev)
