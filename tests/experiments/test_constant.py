"""The most frequent labels, whatever the text."""

import pytest

from setaug import Example
from setaug.experiments.constant import MostFrequent
from setaug.experiments.experiment import read_experiment
from setaug.experiments.runs import Setup
from setaug.metrics import score_sets
from tests.benchmarks.test_data import DATA

TRAIN = [Example("", labels) for labels in (["a", "b"], ["a"], ["a", "c"], ["b", "d"])]


def test_ties_go_by_name_and_k_by_dev() -> None:
    model = MostFrequent().fit(TRAIN, dev=[Example("", ["a", "b", "c"], 7)])
    assert (model.labels_, model.k_) == (["a", "b", "c", "d"], 3)
    (found,) = model.predict([Example("x", ["d"], 7)])
    assert (found.labels, found.id) == (("a", "b", "c"), 7)
    assert model.predict(TRAIN[:1], k=1)[0].labels == ("a",)


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"the benchmark data is not there: no folder {DATA}")
@pytest.mark.parametrize("k", [5, 20])
def test_on_go_emotions_the_paper_s_classifier_does_no_better(k: int) -> None:
    """To the last digit: its values are those of labels that do not depend on the text."""
    benchmark = Setup(data_dir=str(DATA)).load("go-emotions[min3]")
    found = MostFrequent().fit(benchmark.train, dev=benchmark.dev).predict(benchmark.test, k=k)
    scores = score_sets([one.labels for one in found], [example.labels for example in benchmark.test])
    paper = read_experiment("multilabel-k").paper[benchmark.name][f"encoder, best {k}"]
    assert {name: round(100 * getattr(scores, name), 1) for name in paper} == paper
