"""A TF-IDF classifier that complements a generative model: fitted in seconds or minutes, with different errors."""

from collections.abc import Sequence

from setaug.examples import Example
from setaug.models.tfidf import TfidfClassifier
from setaug.models.words import split_words
from setaug.vocabulary import unwarned

_OVERHEAD = 20_000
"""What fitting one label costs whatever the texts, in words."""
_CHEAP = 60_000_000
"""Up to this number of words times labels, all candidates are tried (a minute or two)."""
_ONE = (("svm", 1.0),)
"""The only candidate for larger data."""
_MAX_COST = 5 * _CHEAP
"""Above this number there is no companion: fitting it would take too long."""


def fit_companion(
    examples: Sequence[Example], dev: Sequence[Example], *, at_any_cost: bool = False
) -> TfidfClassifier | None:
    """Fit and return a companion; None if the data is too large, unless it is wanted at any cost."""
    n_labels = len({label for example in examples for label in example.labels})
    cost = n_labels * (sum(len(split_words(example.text)) for example in examples) + _OVERHEAD)
    if not n_labels or (cost > _MAX_COST and not at_any_cost):
        return None
    model = TfidfClassifier() if cost <= _CHEAP else TfidfClassifier(candidates=_ONE)
    with unwarned():
        return model.fit(examples, dev=dev or None)
