"""Which label was written where which other one was missing, against counting by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.metrics import confusions, count_confusions

SETS = st.lists(st.sampled_from("abcdef"), max_size=4)


@given(st.lists(st.tuples(SETS, SETS), min_size=1, max_size=20))
def test_pairs_are_counted_as_by_hand(rows: list[tuple[list[str], list[str]]]) -> None:
    wanted = Counter(
        (missing, written)
        for guess, truth in rows
        for missing in {*truth} - {*guess}
        for written in {*guess} - {*truth}
    )
    found = count_confusions([truth for _, truth in rows], [guess for guess, _ in rows])
    listed = found.most_frequent(1000)
    assert {(missing, written): n for missing, written, n in listed} == wanted
    assert [n for _, _, n in listed] == sorted(wanted.values(), reverse=True)
    assert found.most_frequent(2) == listed[:2]
    assert not found.is_cut


def test_more_than_127_examples_are_counted() -> None:
    assert count_confusions([["b"]] * 1000, [["a"]] * 1000).most_frequent(5) == [("b", "a", 1000)]


def test_rare_labels_are_left_out_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confusions, "_MOST", 1)
    found = count_confusions([["a"], ["a", "b"], ["b"]], [["x"], ["x"], ["y"]])
    assert found.most_frequent(5) == [("a", "x", 2)]
    assert found.is_cut
