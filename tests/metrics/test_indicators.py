"""Label sets as sparse matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.metrics import index_labels, indicator_matrix
from tests.strategies import label_lists


@given(st.lists(label_lists, max_size=8))
def test_a_matrix_holds_exactly_the_sets(sets: list[list[str]]) -> None:
    columns = index_labels(sets)
    matrix = indicator_matrix(sets, columns)
    names = list(columns)
    assert matrix.shape == (len(sets), len(set().union(*sets)))
    assert [{names[column] for column in np.flatnonzero(row)} for row in matrix.toarray()] == [set(s) for s in sets]
    assert matrix.has_canonical_format


def test_a_label_that_comes_twice_counts_once() -> None:
    matrix = indicator_matrix([["b", "a", "b"]], {"a": 0, "b": 1, "c": 2})
    assert matrix.toarray().tolist() == [[1, 1, 0]]


def test_a_label_without_a_column_and_a_string_for_a_set_are_refused() -> None:
    with pytest.raises(ValueError, match="the label 'c' has no column"):
        indicator_matrix([["a", "c"]], {"a": 0})
    with pytest.raises(TypeError, match="got the string 'joy'"):
        index_labels(["joy"])
    with pytest.raises(TypeError, match="got the string 'a'"):
        indicator_matrix(["a"], {"a": 0})
