"""The files that declare the paper's tables."""

from typing import get_args

import pytest

from setaug.datasets import DATASETS, parse_name
from setaug.experiments.reproduction.comparison import TESTED
from setaug.experiments.reproduction.experiment import EXPERIMENTS, PICTURES, PLAIN, QUOTED, Row, read_experiment
from setaug.experiments.reproduction.results import TITLES
from setaug.metrics.significance import Metric
from setaug.models.methods import METHODS

TABLE_2 = {
    "set search": (7.4, 26.3, 7.5),
    "seq2seq": (23.4, 44.6, 15.6),
    "setaug + size": (30.0, 53.5, 26.7),
}
"""Rows of the paper's Table 2: GoEmotions, open entity typing, Reuters."""


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_files_hold_together(name: str) -> None:
    experiment = read_experiment(name)
    names = [row.name for row in experiment.rows]
    assert len(set(names)) == len(names)
    assert all(str(parse_name(data)) == data for data in experiment.data)
    assert set(experiment.columns) <= TITLES.keys()
    assert {experiment.score, experiment.second_score} <= {None, *TITLES}
    assert experiment.relative_to is None or experiment.relative_to in names
    assert {row.against for row in experiment.rows} <= {None, *names}
    assert set(experiment.gain.values()) <= set(names)
    assert experiment.picture in (None, *PICTURES)
    assert {parse_name(data).entry.kind.vocabulary for data in experiment.data} == {experiment.vocabulary}
    assert {row.method for row in experiment.rows} <= {*METHODS, *PLAIN, QUOTED}
    extra = [row.role == "extra" for row in experiment.rows]
    assert extra == sorted(extra)  # what is not in the paper comes last
    for data, rows in experiment.paper.items():
        assert data in experiment.data
        assert set(rows) <= set(names)
        for scores in rows.values():
            assert scores.keys() <= set(experiment.columns)
            assert all(0 <= value <= 100 for value in scores.values())


@pytest.mark.parametrize("row", TABLE_2)
def test_detailed_values_round_to_those_of_table_2(row: str) -> None:
    paper = read_experiment("main").paper
    data = ("go-emotions[min3]", "ufet[min2]", "reuters[min2]")
    assert [paper[one][row][parse_name(one).entry.score] for one in data] == pytest.approx(TABLE_2[row], abs=0.051)


def test_values_that_the_paper_copied_wrongly_are_left_out() -> None:
    paper = read_experiment("main").paper["go-emotions[min3]"]
    for row in ("set search", "seq2seq", "random", "setaug", "seq2seq + size", "random + size", "setaug + size"):
        assert not paper[row].keys() & {"micro_f1", "jaccard"}


def test_rows_with_lists_become_one_row_each() -> None:
    rows = {row.name: row for row in read_experiment("multilabel-k").rows}
    assert rows["encoder, best 20"].decoding == {"rule": "top-k", "k": 20}
    assert rows["encoder-decoder, k by dev"].decoding == {}
    assert [row.n_orders for row in read_experiment("permutations").rows] == [*range(2, 11)] * 2 + [2, 5, 10]
    rows = {row.name: row for row in read_experiment("thresholds").rows}
    assert rows["setaug + size, PMI above 0.5, ratio above 2"].orders == {"min_pmi": 0.5, "min_ratio": 2.0}
    rows = {row.name: row for row in read_experiment("permutations").rows}
    assert rows["setaug + size, n = 7"].against == "random + size, n = 7"


def test_the_scores_that_are_tested_can_be() -> None:
    assert set(TESTED) <= set(get_args(Metric))
    assert {entry.score for entry in DATASETS.values()} <= set(TESTED)


def test_there_is_no_other_experiment() -> None:
    with pytest.raises(ValueError, match=r"experiment must be one of defaults, main, .*, got 'mian'"):
        read_experiment("mian")


@pytest.mark.parametrize("wrong", [{"role": "winner"}, {"model": "decoder"}, {"without": "luck"}])
def test_rows_that_make_no_sense_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="the row a has an unknown role, model or part"):
        Row(name="a", method="setaug", **wrong)  # type: ignore[arg-type]
