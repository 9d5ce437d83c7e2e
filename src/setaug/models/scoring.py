"""The likelihood of sets under a model that writes them: each order as text, scored by the model."""

from collections.abc import Iterator, Sequence
from math import log

from setaug.errors import DataError
from setaug.examples import Example, Skipped, shown
from setaug.likelihood import Order, Score
from setaug.models.generation import Writer


def make_score(writer: Writer, batch_size: int) -> Score:
    """Make what scores the orders of examples, in bits."""

    def score(examples: Sequence[Example], orders: Sequence[Sequence[Order]]) -> list[list[float]]:
        texts = [[writer.codec.encode(order) for order in each] for each in orders]
        found = writer.score([example.text for example in examples], texts, batch_size=batch_size)
        return [[value / log(2) for value in values] for values in found]

    return score


def scorable(writer: Writer, examples: Sequence[Example], skipped: Skipped | None) -> Iterator[Example]:
    """Give the examples whose sets can be scored; raise at the first that cannot, or count it."""
    for example in examples:
        obstacle = writer.obstacle(example.text, example.labels)
        if obstacle is None:
            yield example
            continue
        error = DataError(f"the set {shown(example.labels)} cannot be scored: {obstacle}")
        if skipped is None:
            raise error
        skipped.add(error)
