import gzip
import pickle
from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import inf, log2

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.errors import FileError
from setaug.orders import LabelStatistics, SetBatch, Thresholds, pair_counts
from tests.strategies import ALPHABET, any_label, corpora

ODD_LABELS = [
    "a|b",
    'say "no"',
    "it's",
    "two\nlines",
    "tab\t",
    " spaces ",
    "Ünï©ødé 日本 🎉",
    "\\",
    "3",
    "\u2028",
    "-0",
]


def count(sets) -> LabelStatistics:
    return LabelStatistics().update(sets)


def counters(sets) -> tuple[Counter, Counter]:
    """Count labels and pairs the plain way."""
    ones, twos = Counter(), Counter()
    for labels in sets:
        ones.update(set(labels))
        twos.update(frozenset(pair) for pair in combinations(set(labels), 2))
    return ones, twos


def assert_counts(counted: LabelStatistics, sets) -> None:
    ones, twos = counters(sets)
    assert counted.n_sets == len(sets)
    assert {label: counted.count(label) for label in counted.labels} == ones
    low, high, n_both = (part.tolist() for part in counted.pairs)
    names = counted.labels
    found = {frozenset((names[i], names[j])): n for i, j, n in zip(low, high, n_both, strict=True)}
    assert found == twos
    assert len(found) == len(low)
    for a, b in combinations(names, 2):
        assert counted.pair_count(a, b) == counted.pair_count(b, a) == twos[frozenset((a, b))]


@given(corpora)
def test_counts_are_those_of_a_counter(sets):
    assert_counts(count(sets), sets)


@given(st.lists(st.lists(st.sampled_from(ALPHABET), max_size=8), max_size=20))
def test_a_label_that_stands_twice_in_a_set_counts_once(sets):
    assert_counts(count(sets), sets)


@given(st.lists(corpora, max_size=5))
def test_counting_in_pieces_is_counting_at_once(pieces):
    counted = LabelStatistics()
    for piece in pieces:
        assert counted.update(iter(piece)) is counted
        assert repr(counted)  # looking at it between updates changes nothing
    assert counted == count([labels for piece in pieces for labels in piece])


@given(corpora)
def test_noted_pairs_are_added_up_again_and_again(sets):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_counts, "_MAX_PENDING", 3)
        counted = LabelStatistics()
        for labels in sets:
            counted.update([labels])
    assert_counts(counted, sets)


def test_more_sets_than_one_chunk_are_all_counted():
    counted = count([["a", "b"], ["a"]][i % 2] for i in range(150_001))
    assert (counted.n_sets, counted.count("a"), counted.pair_count("a", "b")) == (150_001, 150_001, 75_001)


def test_sets_of_ids_are_counted_as_their_labels_are():
    counted = LabelStatistics()
    counted.ids.update(a=0, b=1, c=2)
    counted.add(SetBatch.of([[2, 0], [1], []]))
    counted.add(SetBatch.of([]))
    assert counted == count([["c", "a"], ["b"], []])


@given(st.lists(corpora, min_size=2, max_size=4), st.randoms())
def test_shards_merged_in_any_way_are_the_whole(shards, random):
    whole = count([labels for shard in shards for labels in shard])
    parts = [count(shard) for shard in shards]
    while len(parts) > 1:
        random.shuffle(parts)
        parts.append(parts.pop().merge(parts.pop()))
    assert parts[0] == whole


@given(corpora, corpora, corpora)
def test_merging_is_associative_and_commutative(one, two, three):
    a, b, c = count(one), count(two), count(three)
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


@given(corpora)
def test_merging_with_nothing_changes_nothing(sets):
    counted = count(sets)
    assert counted.merge(LabelStatistics()) == counted == LabelStatistics().merge(counted)


def test_merging_leaves_its_parts_as_they_are():
    a, b = count([["a", "b"]]), count([["b", "c"]])
    merged = a.merge(b).update([["a", "d"]])
    assert (a, b) == (count([["a", "b"]]), count([["b", "c"]]))
    assert merged == count([["a", "b"], ["b", "c"], ["a", "d"]])


def test_statistics_differ_where_any_count_does():
    counted = count([["a", "b"]])
    assert counted != count([["a", "b"], []])
    assert counted != count([["a"], ["b"]])
    assert counted != count([["a", "c"]])
    assert counted != "a"


def test_statistics_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(LabelStatistics())


def test_pmi_and_ratio_have_the_values_of_the_paper():
    counted = count([["a", "b"]] * 2 + [["b"]] * 4 + [[]] * 10)
    assert counted.pmi("a", "b") == counted.pmi("b", "a") == log2(Fraction(2, 16) / (Fraction(2, 16) * Fraction(6, 16)))
    assert counted.ratio("b", "a") == 3
    assert counted.ratio("a", "b") == Fraction(1, 3)
    assert isinstance(counted.ratio("b", "a"), Fraction)


def test_labels_never_seen_count_nothing():
    counted = count([["a", "b"], ["c"]])
    assert counted.count("x") == counted.pair_count("x", "a") == counted.pair_count("a", "x") == 0
    assert counted.pmi("a", "x") == counted.pmi("a", "c") == -inf
    assert counted.ratio("x", "a") == 0
    assert not counted.precedes("x", "a", Thresholds(min_ratio=1))
    assert not counted.precedes("a", "x", Thresholds(min_ratio=1))
    with pytest.raises(ValueError, match=r"the label 'x' does not occur\."):
        counted.ratio("a", "x")


def test_statistics_of_nothing_have_no_edges():
    assert len(LabelStatistics().edges(Thresholds()).keys) == 0
    assert repr(count([[], []])) == "LabelStatistics(n_sets=2, n_labels=0, n_pairs=0)"


def test_ids_are_places_among_the_labels():
    counted = count([["b", "a"], ["c"]])
    assert counted.labels == ["b", "a", "c"]
    assert counted.ids == {"b": 0, "a": 1, "c": 2}
    assert counted.counts.tolist() == [1, 1, 1]


def test_a_string_is_no_set_of_labels():
    with pytest.raises(TypeError, match=r"expected sets of labels, got the string 'joy'\."):
        LabelStatistics().update([["joy"], "joy"])
    with pytest.raises(TypeError, match=r"expected sets of labels, got the string 'j'\."):
        LabelStatistics().update("joy")


def test_an_update_that_fails_leaves_statistics_that_can_be_used():
    counted = count([["a"]])
    with pytest.raises(TypeError):
        counted.update([["b", "c"], "oops"])
    assert [counted.count(label) for label in counted.labels] == counted.counts.tolist()
    assert counted.merge(count([["c"]])).count("c") in (1, 2)


@pytest.mark.parametrize("name", ["s.json", "s.json.gz", "s.json.zst"])
@pytest.mark.parametrize("sets", [[], [[]], [ODD_LABELS, ODD_LABELS[:4], ["3"]], [["a"]]])
def test_saved_statistics_come_back(tmp_path, name, sets):
    counted = count(sets)
    counted.save(tmp_path / name)
    loaded = LabelStatistics.load(str(tmp_path / name))
    assert loaded == counted
    assert_counts(loaded, sets)
    assert loaded.update([["new", "a"]]) == counted.update([["new", "a"]])


@given(st.lists(st.lists(any_label, max_size=4), max_size=6))
def test_saved_statistics_come_back_whatever_the_labels(tmp_path_factory, sets):
    path = tmp_path_factory.getbasetemp() / "any.json"
    counted = count(sets)
    counted.save(path)
    assert LabelStatistics.load(path) == counted


@pytest.mark.parametrize("name", ["s.json", "s.json.gz", "s.json.zst"])
def test_equal_counts_give_equal_bytes(tmp_path, name):
    sets = [ODD_LABELS, ["b", "a"], [], ["c", "a", "b"], ["a"]]
    in_pieces = LabelStatistics()
    for labels in reversed(sets):
        in_pieces.update([labels[::-1]])
    ways = [count(sets), in_pieces, count(sets[3:]).merge(count(sets[:3]))]
    written = set()
    for way in ways:
        way.save(tmp_path / name)
        written.add((tmp_path / name).read_bytes())
    assert len(written) == 1


def test_saved_statistics_are_json(tmp_path):
    count([["b", "a"], ["b"]]).save(tmp_path / "s.json")
    assert orjson.loads((tmp_path / "s.json").read_bytes()) == {
        "setaug": "label-statistics/1",
        "n_sets": 2,
        "labels": ["a", "b"],
        "counts": [1, 2],
        "pairs": [[0], [1]],
        "pair_counts": [1],
    }


SAVED = {
    "setaug": "label-statistics/1",
    "n_sets": 3,
    "labels": ["a", "b"],
    "counts": [1, 2],
    "pairs": [[0], [1]],
    "pair_counts": [1],
}


def broken(**changes) -> bytes:
    return orjson.dumps({**SAVED, **changes})


def test_the_table_of_broken_files_starts_from_a_whole_one(tmp_path):
    (tmp_path / "s.json").write_bytes(broken())
    assert LabelStatistics.load(tmp_path / "s.json") == count([["a", "b"], ["b"], []])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"3",
        b"no json",
        b"\xff\xfe",
        broken()[:-5],
        broken(setaug="label-statistics/2"),
        broken(n_sets=None),
        broken(n_sets="many"),
        broken(labels=None),
        broken(labels=[["a"], ["b"]]),
        broken(counts="x"),
        broken(counts=[1, "x"]),
        broken(pairs=[[0]]),
        broken(pairs=[["x"], [1]]),
        broken(pair_counts=None),
        broken(n_sets=-1),
        broken(labels="ab"),
        broken(labels=[1, 2]),
        broken(labels=["a"]),
        broken(labels=["a", "a"]),
        broken(counts=[1]),
        broken(counts=[-1, 2]),
        broken(counts=[1.5, 2]),
        broken(counts=[1 << 63, 2]),
        broken(pairs=[[-1], [1]]),
        broken(pairs=[[0], [7]]),
        broken(pairs=[[1], [0]]),
        broken(pairs=[[0, 0], [1, 1]], pair_counts=[1, 1]),
        broken(pair_counts=[]),
        broken(pair_counts=[1, 1]),
    ],
)
def test_broken_files_are_reported_by_name(tmp_path, content):
    path = tmp_path / "s.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"s\.json does not contain valid label statistics"):
        LabelStatistics.load(path)


@pytest.mark.parametrize("name", ["s.json.gz", "s.json.zst"])
@pytest.mark.parametrize("damage", ["cut", "shifted", "not compressed"])
def test_damaged_archives_are_reported_by_name(tmp_path, name, damage):
    path = tmp_path / name
    count([ODD_LABELS]).save(path)
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[: len(whole) // 2], "shifted": b"?" + whole, "not compressed": broken()}[damage])
    with pytest.raises(FileError, match=name):
        LabelStatistics.load(path)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none\.json: No such file"):
        LabelStatistics.load(tmp_path / "none.json")


def test_pickles_are_not_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return (exit, ("a pickle was run",))

    for name, pack in (("s.json", bytes), ("s.json.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(pickle.dumps(Trap())))
        with pytest.raises(FileError):
            LabelStatistics.load(tmp_path / name)


def test_sets_of_ids_lie_one_behind_the_other():
    batch = SetBatch.of([[3, 1], [], [2]])
    assert (len(batch), batch.starts.tolist(), batch.ids.tolist()) == (3, [0, 2, 2, 3], [3, 1, 2])
    assert len(SetBatch.of([])) == 0
