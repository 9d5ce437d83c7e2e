"""What a call asks of a model with label probabilities, and the sets that it gets: the same for every model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.decoding.choice import Floats, Rule
from setaug.decoding.mixture import LabelProbabilities, Mixture
from setaug.errors import DataError
from setaug.examples import Columns, make_examples, make_texts
from setaug.predictions import Prediction
from setaug.progress import counting_from
from setaug.registry import check_choice
from setaug.settings import CHOICES, WAYS, Decoding, Progress
from setaug.tables import as_rows

ASKED = ("choose", "threshold", "k", "size_is", "min_size", "max_size")
"""The fields of `Decoding` that say which set is chosen from probabilities."""
Find = Callable[[Sequence[str], Progress | None], LabelProbabilities]
"""Returns the probabilities of texts."""
_SHOWN = 100
"""Labels of a prediction with a probability, beside those of its set."""
_WINDOW = 512
"""Texts whose probabilities are in memory at a time."""


def check_scored(choose: str) -> None:
    """Raise a `ValueError` unless a model that scores labels, and writes none, can choose sets in this way."""
    check_choice("choose", choose, [name for name in CHOICES if name != "written"])


def ways_of(choose: str) -> tuple[str, ...]:
    """Return the ways that dev data choose among: the one that is named, or all."""
    return (choose,) if choose in WAYS else tuple(WAYS)


def changed(decoding: Decoding, changes: Mapping[str, Any], *, of: str, names: Iterable[str] = ASKED) -> Decoding:
    """Return settings with the changes of one call; `names` are those that can be changed of such a model.

    Examples
    --------
    >>> changed(Decoding(choose="top-k", k=3), {"choose": "size"}, of="a classifier").k is None
    True

    """
    if unknown := changes.keys() - set(names):
        shown = ["decoding name" if one == "name" else one for one in sorted(unknown)]
        raise TypeError(f"{of} takes no {', '.join(shown)}.")
    found = replace(decoding, **{**({"k": None} if "choose" in changes else {}), **changes})
    if changes.get("threshold") is not None and found.choose != "threshold":
        raise ValueError(f"threshold is for choose='threshold', and choose is {found.choose!r}.")
    return found


def true_sizes(choose: str, items: Any, columns: Columns | None = None) -> list[int] | None:
    """Return the sizes of the true sets for ``oracle-k``, and None for any other choice."""
    if choose != "oracle-k":
        return None
    if any(isinstance(item, str) for item in items):
        raise DataError("oracle-k needs the true sets: give examples, not texts.")
    return [len(example.labels) for example in make_examples(items, None, columns)]


def make_prediction(
    row: Floats,
    labels: Sequence[str],
    columns: NDArray[np.int64],
    key: str | int | None = None,
    *,
    sizes: Floats | None = None,
) -> Prediction:
    """Return a prediction of the labels of some columns, with their probabilities and others that are not negligible.

    Examples
    --------
    >>> make_prediction(np.array([0.2, 0.1, 0.7]), ["joy", "fear", "love"], np.array([2, 0])).labels
    ('love', 'joy')

    """
    ranked = [at for at in np.argsort(-row, kind="stable")[:_SHOWN].tolist() if row[at] >= 0.001]
    kept = sorted({*ranked, *columns.tolist()}, key=lambda at: (-row[at], at))
    return Prediction(
        labels=tuple(labels[at] for at in columns),
        probabilities={labels[at]: round(float(row[at]), 6) for at in kept},
        sizes=None if sizes is None else {at: round(float(p), 6) for at, p in enumerate(sizes) if p >= 0.001},
        id=key,
    )


def predict_scored(
    find: Find,
    data: Any,
    asked: Decoding,
    *,
    rule: Rule,
    labels: Sequence[str],
    columns: Columns,
    progress: Progress | None = None,
) -> list[Prediction]:
    """Return the set that is chosen for each text (or example, or row).

    Parameters
    ----------
    find
        Returns the probabilities of texts, with a column for each of the labels.
    asked
        What is asked for; `rule` decides what is not.

    """
    items = data if isinstance(data, str) else list(as_rows(data))
    texts, keys = make_texts(items, columns)
    true = true_sizes(asked.choose, items, columns)
    predictions = []
    for start in range(0, len(texts), _WINDOW):
        rows = slice(start, start + _WINDOW)
        found = find(texts[rows], progress if progress is None or not start else counting_from(start, progress))
        chosen = rule.choose_asked(asked, found.labels, found.sizes, true=None if true is None else true[rows])
        for at, picked in enumerate(chosen):
            sizes = None if found.sizes is None else found.sizes[at]
            predictions.append(make_prediction(found.labels[at], labels, picked, keys[start + at], sizes=sizes))
    return predictions


def predict_mixed(
    find: Find, data: Any, asked: Decoding, *, mixture: Mixture | None, least: int, largest: int, **options: Any
) -> list[Prediction]:
    """Return the sets of `predict_scored` for a model that can also write sets; these have no flaws of a text.

    Parameters
    ----------
    mixture
        What dev data chose; its rule decides what is not asked for.
    least, largest
        The size of the smallest (at most 1) and of the largest training set.

    """
    rule = replace(Rule(least=least) if mixture is None else mixture.rule, largest=largest)
    found = predict_scored(find, data, asked, rule=rule, **options)
    return [replace(one, repeated=(), unknown=(), malformed=()) for one in found]
