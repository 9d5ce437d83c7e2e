"""The most frequent labels, whatever the text."""

from setaug import Example
from setaug.experiments.reproduction.training_cells import MostFrequent

TRAIN = [Example("", labels) for labels in (["a", "b"], ["a"], ["a", "c"], ["b", "d"])]


def test_ties_go_by_name_and_k_by_dev() -> None:
    model = MostFrequent().fit(TRAIN, dev=[Example("", ["a", "b", "c"], 7)])
    assert (model.labels_, model.k_) == (["a", "b", "c", "d"], 3)
    (found,) = model.predict([Example("x", ["d"], 7)])
    assert (found.labels, found.id) == (("a", "b", "c"), 7)
    assert model.predict(TRAIN[:1], k=1)[0].labels == ("a",)
