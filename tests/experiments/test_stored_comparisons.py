"""Which differences between stored rows are more than chance; docs/paper.md says so in words."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from setaug.datasets import load_dataset
from setaug.experiments.cells import CELLS
from setaug.experiments.reproduction.comparison import Difference, compare_rows
from setaug.experiments.reproduction.training_cells import predictions_path
from setaug.predictions import read_predictions
from tests.experiments.fixed_sets import DATA

RESULTS = Path(__file__).parents[2] / "results"
EMOTIONS, TYPES, TOPICS = "go-emotions[min3]", "ufet[min2,train400]", "reuters[min2,train300]"
CHANCE = 0.05

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no stored results"),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the benchmark data is not there: no folder {DATA}"),
]


class Written(NamedTuple):
    """A row of the paper's tables."""

    method: str
    size: bool


SEQ2SEQ, SIZED_SEQ2SEQ = Written("seq2seq", False), Written("seq2seq", True)
RANDOM, SIZED_RANDOM = Written("random", False), Written("random", True)
SETAUG, SIZED_SETAUG = Written("setaug", False), Written("setaug", True)
SIZED_FREQUENCY, SIZED_REVERSED = Written("frequency", True), Written("reversed", True)


def outputs(data: str, row: Written, decoding: str, constrained: bool) -> dict[int, list[tuple[str, ...]]]:
    """Return the stored sets of a row, by seed."""
    found = {}
    for line in (RESULTS / CELLS).read_text().splitlines():
        cell = json.loads(line)["cell"]
        way = cell.get("decoding", {})
        if (
            (cell["data"], cell["method"]) == (data, row.method)
            and cell["augmenter"]["size"] == row.size
            and (cell["augmenter"]["min_pmi"], cell["augmenter"]["min_ratio"]) == (1, 3)
            and "curve" not in cell
            and (way.get("name"), way.get("constrained"), way.get("samples")) == (decoding, constrained, 0)
        ):
            found[cell["seed"]] = [one.labels for one in read_predictions(predictions_path(RESULTS, cell))]
    return found


@cache
def true_sets(data: str) -> list[tuple[str, ...]]:
    return [example.labels for example in load_dataset(data, DATA).test]


def difference(
    data: str, before: Written, after: Written, decoding: str = "greedy", *, constrained: bool = False
) -> Difference:
    """Compare two rows, for the seeds that both have, in the score of the data set."""
    first, second = (outputs(data, row, decoding, constrained) for row in (before, after))
    seeds = sorted(first.keys() & second.keys())
    assert seeds
    rows = [[row[seed] for seed in seeds] for row in (first, second)]
    return compare_rows(*rows, true_sets(data), score="samples_f1" if data == TYPES else "macro_f1")


@pytest.mark.parametrize(
    ("before", "after", "points"),
    [
        (SEQ2SEQ, SIZED_SETAUG, 3.7),
        (SIZED_SEQ2SEQ, SIZED_SETAUG, 5.1),
        (SIZED_SEQ2SEQ, SIZED_RANDOM, 5.1),
        (SIZED_SETAUG, SIZED_FREQUENCY, 5.3),
        (SIZED_SETAUG, SIZED_REVERSED, 3.3),
        (SIZED_RANDOM, SIZED_REVERSED, 3.3),
    ],
)
def test_on_entity_types_these_orders_gain_more_than_chance(before: Written, after: Written, points: float) -> None:
    found = difference(TYPES, before, after)
    assert 100 * found.points == pytest.approx(points, abs=0.06)
    assert found.p_paired < 0.001


def test_on_entity_types_the_constraint_turns_the_gain_of_frequent_first_orders() -> None:
    found = difference(TYPES, SIZED_SETAUG, SIZED_FREQUENCY, constrained=True)
    assert 100 * found.points == pytest.approx(-0.75, abs=0.01)
    assert found.p_paired < CHANCE


@pytest.mark.parametrize("data", [EMOTIONS, TYPES, TOPICS])
def test_with_the_constraint_reversed_orders_are_below_within_chance(data: str) -> None:
    found = difference(data, SIZED_SETAUG, SIZED_REVERSED, constrained=True)
    assert found.points < 0
    assert found.p_paired > CHANCE


def test_on_entity_types_the_size_costs_more_than_chance() -> None:
    for before, after in ((SETAUG, SIZED_SETAUG), (SEQ2SEQ, SIZED_SEQ2SEQ)):
        found = difference(TYPES, before, after)
        assert found.points < 0
        assert found.p_paired < CHANCE


@pytest.mark.parametrize(
    ("data", "before", "after"),
    [
        (TYPES, SIZED_RANDOM, SIZED_SETAUG),
        *((EMOTIONS, *pair) for pair in ((SETAUG, SIZED_SETAUG), (RANDOM, SIZED_RANDOM))),
        *((TOPICS, *pair) for pair in ((SETAUG, SIZED_SETAUG), (RANDOM, SIZED_RANDOM))),
        *(
            (data, *pair)
            for data in (EMOTIONS, TOPICS)
            for pair in (
                (SEQ2SEQ, SIZED_SETAUG),
                (SEQ2SEQ, RANDOM),
                (SEQ2SEQ, SIZED_SEQ2SEQ),
                (SIZED_SEQ2SEQ, SIZED_RANDOM),
                (SIZED_SEQ2SEQ, SIZED_SETAUG),
                (SIZED_RANDOM, SIZED_SETAUG),
                (SIZED_SETAUG, SIZED_FREQUENCY),
                (SIZED_SETAUG, SIZED_REVERSED),
                (SIZED_RANDOM, SIZED_REVERSED),
            )
        ),
    ],
)
def test_these_differences_are_within_chance(data: str, before: Written, after: Written) -> None:
    assert difference(data, before, after).p_paired > CHANCE


@pytest.mark.parametrize("decoding", ["greedy", "beam", "random", "top-k", "nucleus"])
def test_no_way_of_decoding_tells_setaug_from_other_orders_on_emotions(decoding: str) -> None:
    for other in (SEQ2SEQ, SIZED_RANDOM):
        assert difference(EMOTIONS, other, SIZED_SETAUG, decoding).p_paired > CHANCE


@pytest.mark.parametrize(
    ("data", "generated", "within_one", "distinct", "repeated"),
    [
        ("go-emotions[min2,train600,test400]", 100, 100, 93.5, 6.5),
        ("ufet[min2,train400,test400]", 65.5, 98.0, 19.8, 80.0),
        ("reuters[min2,train300,test400]", 99.0, 99.5, 97.2, 2.5),
    ],
)
def test_the_stated_size_counts_what_is_generated_not_the_distinct_labels(
    data: str, generated: float, within_one: float, distinct: float, repeated: float
) -> None:
    (found,) = (
        line["result"]["sizes"]
        for line in map(json.loads, (RESULTS / "120-tokens" / CELLS).read_text().splitlines())
        if (line["cell"]["data"], line["cell"]["method"], line["cell"].get("seed")) == (data, "setaug", 15143)
        and line["cell"]["decoding"].get("constrained") is False
    )
    names = ("agreement_generated", "agreement_generated_within_one", "agreement_distinct", "repeated")
    assert [100 * found[name] for name in names] == pytest.approx(
        [generated, within_one, distinct, repeated], abs=0.051
    )
