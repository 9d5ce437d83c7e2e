"""What stored outputs show beyond their scores."""

from setaug import Example
from setaug.datasets import Dataset
from setaug.experiments.reproduction.outputs import score_outputs
from setaug.predictions import Prediction

DATA = Dataset(
    name="types",
    train=[Example("a", ["person", "artist"]), Example("b", ["person"]), Example("c", ["event"])],
    dev=[],
    test=[],
    labels=("artist", "event", "person"),
)


def predictions(*sets: tuple[str, ...]) -> list[Prediction]:
    return [Prediction(labels=labels) for labels in sets]


def test_the_commonest_label_is_counted_in_front_and_anywhere() -> None:
    found = score_outputs(predictions(("person", "artist"), ("artist", "person"), ("event",), ()), DATA)
    assert (found["commonest_first"], found["commonest"], found["ill_formed"]) == (0.25, 0.5, 0.0)


def test_labels_that_the_data_set_does_not_have_are_ill_formed() -> None:
    found = score_outputs(predictions(("personformer", "artist"), ("person",)), DATA)
    assert found["ill_formed"] == 0.5


def test_without_a_list_of_labels_none_is_ill_formed() -> None:
    unlisted = Dataset(name="phrases", train=DATA.train, dev=[], test=[], labels=None)
    assert score_outputs(predictions(("anything",)), unlisted)["ill_formed"] is None
