"""A TF-IDF classifier that complements a generative model: fitted in seconds, with different errors."""

from collections.abc import Sequence

import numpy as np

from setaug.decoding.mixture import LabelProbabilities
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


def companion_probabilities(
    companion: TfidfClassifier, texts: Sequence[str], labels: Sequence[str]
) -> LabelProbabilities:
    """Return the probability of each label (columns); 0 for labels unknown to the companion."""
    places = {label: at for at, label in enumerate(labels)}
    known = [(at, places[label]) for at, label in enumerate(companion.labels_) if label in places]
    found = np.zeros((len(texts), len(labels)))
    if known:
        theirs, ours = np.array(known).T
        found[:, ours] = companion.predict_proba(texts)[:, theirs]
    return LabelProbabilities(found)
