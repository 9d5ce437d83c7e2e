"""The method on the paper's own data, where that is at hand."""

import json
import os
from pathlib import Path

import pytest

from setaug import Example, SetAugmenter
from setaug.orders import LabelStatistics, OrderGraph, Thresholds

DATA = Path(os.environ.get("SETAUG_DATA", "../shared/data"))
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the dataset data is not there: no folder {DATA}"),
]


def ufet() -> list[Example]:
    rows = [json.loads(line) for line in (DATA / "ufet" / "train.json").read_text().splitlines()]
    return [Example(row["mention_span"], row["y_str"]) for row in rows]


def go_emotions(at_least: int) -> list[list[str]]:
    names = (DATA / "goemotions" / "labels.txt").read_text().split()
    rows = [line.split("\t") for line in (DATA / "goemotions" / "train.tsv").read_text().splitlines()]
    sets = [[names[int(number)] for number in row[1].split(",")] for row in rows]
    return [labels for labels in sets if len(labels) >= at_least]


def test_entity_types_go_from_specific_to_general_as_in_the_papers_figure() -> None:
    examples = ufet()
    assert (len(examples), sum(not example.labels for example in examples)) == (1998, 29)
    augmenter = SetAugmenter(n_orders=2).fit(examples)
    graph = augmenter.graph(["event", "match", "game"])
    assert {(edge.before, edge.after) for edge in graph.edges} == {("match", "event"), ("game", "event")}
    pairs = list(augmenter.augment(examples))
    assert len(pairs) == 3 * 1998
    for at, example in enumerate(examples):
        allows = augmenter.graph(example.labels).allows
        drawn = [augmenter.codec.decode(pair.completion).labels for pair in pairs[3 * at + 1 : 3 * at + 3]]
        assert drawn[0] == drawn[1] == () or all(map(allows, drawn))


def test_emotions_go_from_specific_to_general() -> None:
    sets = go_emotions(3)
    assert len(sets) == 561
    statistics = LabelStatistics().update(sets)
    found = {(edge.before, edge.after) for edge in OrderGraph.of_space(statistics).edges}
    assert ("grief", "sadness") in found
    # The paper's figure has remorse and fear before sadness; it is 2.67 times as frequent, so not at a ratio of 3.
    looser = {(edge.before, edge.after) for edge in OrderGraph.of_space(statistics, Thresholds(min_ratio=2)).edges}
    assert {("remorse", "sadness"), ("fear", "sadness")} <= looser - found


def test_keyphrases_of_many_sizes_are_ordered() -> None:
    lines = (DATA / "kp20k_labels" / "train10k_trg.txt").read_text().splitlines()
    examples = [Example(line, [label.strip() for label in line.split(";") if label.strip()]) for line in lines]
    augmenter = SetAugmenter(n_orders=1).fit(examples)
    large = sorted(examples, key=lambda example: -len(example.labels))[:25]
    for example, pair in zip(large, list(augmenter.augment(large))[1::2], strict=True):
        assert augmenter.graph(example.labels).allows(augmenter.codec.decode(pair.completion).labels)
