"""Label sets as sparse indicator matrices: a row per example, a column per label."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setaug.examples import Example


def index_labels(*groups: Iterable[Collection[str]]) -> dict[str, int]:
    """Return a column for each label of several groups of label sets, in order of first occurrence.

    Examples
    --------
    >>> index_labels([["joy"], ["fear", "joy"]], [["love"]])
    {'joy': 0, 'fear': 1, 'love': 2}

    """
    columns: dict[str, int] = {}
    for sets in groups:
        for labels in sets:
            for label in _checked(labels):
                columns.setdefault(label, len(columns))
    return columns


def indicator_matrix(sets: Sequence[Collection[str]], columns: Mapping[str, int]) -> csr_array:
    """Return the indicator matrix of label sets, with columns from `index_labels`; repeated labels count once.

    Examples
    --------
    >>> indicator_matrix([["joy"], [], ["fear", "joy"]], {"joy": 0, "fear": 1}).toarray()
    array([[1, 0],
           [0, 0],
           [1, 1]], dtype=int8)

    """
    ends = np.zeros(len(sets) + 1, np.int64)
    numbers: list[int] = []
    for row, labels in enumerate(sets, 1):
        try:
            numbers += sorted({columns[label] for label in _checked(labels)})
        except KeyError as error:
            raise ValueError(f"the label {error.args[0]!r} has no column.") from None
        ends[row] = len(numbers)
    ones = np.ones(len(numbers), np.int8)
    return csr_array((ones, np.array(numbers, np.int64), ends), shape=(len(sets), len(columns)))


def hits_of(examples: Sequence[Example], labels: Iterable[str]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which of the labels (columns) each example has, and the size of each set, other labels included.

    Examples
    --------
    >>> hits_of([Example("", ["fear", "joy"]), Example("", [])], ["joy", "love"])
    (array([[ True, False],
           [False, False]]), array([2, 0]))

    """
    places = {label: at for at, label in enumerate(labels)}
    known = [[label for label in example.labels if label in places] for example in examples]
    hits = indicator_matrix(known, places).toarray().astype(np.bool_)
    return hits, np.array([len(example.labels) for example in examples], np.int64)


def _checked(labels: Collection[str]) -> Collection[str]:
    if isinstance(labels, str):
        raise TypeError(f"a label set must be a collection of strings, got the string {labels!r}.")
    return labels


def check_same_length(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Raise a `ValueError` if there are no true sets, or if the numbers of sets differ."""
    if len(gold) != len(predicted):
        raise ValueError(f"gold and predicted must have the same length, got {len(gold):,} and {len(predicted):,}.")
    if not gold:
        raise ValueError("no examples to score.")
