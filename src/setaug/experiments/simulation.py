"""One cell of the simulation study: make data up, train on it from nothing, measure (appendix G)."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from setaug.augmenter import SetAugmenter
from setaug.examples import Example
from setaug.experiments.cells import Cell, Result
from setaug.experiments.ideal import ideal_scores
from setaug.likelihood import SetLikelihood
from setaug.metrics import score_sets
from setaug.models import targets
from setaug.models.generator import SetGenerator
from setaug.models.settings import TrainingSettings
from setaug.simulation import PROCESSES, paired_log2_probability, shuffled

SHUFFLES = (0, 25, 50, 75, 100)
"""Per cent of a test set's labels that are shuffled."""
N_SCORED = 100
"""So many test sets have their likelihood summed up over all orders."""
PROPOSED = ("topological", "uniform")
SAMPLES = (1, 4, 16)
"""How many orders a bound is made of."""
IDEAL = "ideal"
"""The model that knows the process, and need not be trained."""
DECODINGS = ("greedy", "beam", "random", "top-k", "nucleus")


def run_cell(cell: Cell) -> Result:
    """Train on made-up data, and measure what the process is there to show."""
    if cell["model"] == IDEAL:
        return _ideal(cell)
    data = dict(cell["data"])
    n_train, n_test = data.pop("n_train"), data.pop("n_test")
    process = PROCESSES[cell["process"]]
    examples = list(process(n_train + n_test, seed=cell["seed"], with_input=True, **data))
    train, test = examples[:n_train], examples[n_train:]
    model = SetGenerator(
        cell["model"],
        augmenter=SetAugmenter(separator=" ", random_state=cell["seed"], **cell["orders"]),
        training=TrainingSettings(seed=cell["seed"], **cell["training"]),
    ).fit(train)
    if cell["process"] == "blocks":
        return {"perplexity": _shuffled_perplexities(model, test, cell["seed"])}
    likelihood = {} if cell["process"] != "partners" else {"likelihood": _likelihood(model, test, cell)}
    return {
        **likelihood,
        "train_perplexity": perplexity(model, train[:n_test], trained_orders(model, train[:n_test])),
        "decodings": {
            ("constrained " if constrained else "") + name: _decoded(model, test, name, constrained=constrained)
            for constrained in (False, True)
            for name in DECODINGS
        },
    }


def _ideal(cell: Cell) -> Result:
    data = dict(cell["data"])
    shares, n_test, n_train = data.pop("shares"), data.pop("n_test"), data.pop("n_train")
    process = PROCESSES[cell["process"]](n_train + n_test, seed=cell["seed"], with_input=True, **data)
    inputs = [example.fields["x"] for example in islice(process, n_train, n_train + N_SCORED)]
    return ideal_scores(inputs, n_blocks=data["n_blocks"], shares=shares)


def perplexity(model: SetGenerator, examples: Sequence[Example], orders: Sequence[Sequence[Sequence[str]]]) -> float:
    """Give the perplexity of orders, per label; the end of a set counts as one."""
    scores = model.score_orders(examples, orders)
    n_written = sum(len(order) + 1 for each in orders for order in each)
    return float(2 ** (-sum(map(sum, scores)) / n_written))


def trained_orders(model: SetGenerator, examples: Sequence[Example]) -> list[list[tuple[str, ...]]]:
    """Give the orders that the model was trained on, of its first training examples."""
    read = model.augmenter.codec.decode
    return [[read(text).labels for text in each] for each in targets.orders(model.augmenter, examples)]


def _shuffled_perplexities(model: SetGenerator, test: Sequence[Example], seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {
        str(share): perplexity(model, test, [[shuffled(example.labels, share / 100, rng)] for example in test])
        for share in SHUFFLES
    }


def _likelihood(model: SetGenerator, test: Sequence[Example], cell: Cell) -> Result:
    """Measure what test sets cost in bits: by the process itself, by the model, and by the bounds of proposals."""
    chosen = test[:N_SCORED]
    n_blocks = cell["data"]["n_blocks"]
    truth = [paired_log2_probability(one.labels, one.fields["x"], n_blocks=n_blocks) for one in chosen]
    found = model.log_likelihoods(chosen, proposals=PROPOSED, samples=SAMPLES[0], seed=cell["seed"])
    bounds = {name: {str(SAMPLES[0]): _mean_bits(found, name, "bound")} for name in PROPOSED}
    for samples in SAMPLES[1:]:
        more = model.log_likelihoods(chosen, proposals=PROPOSED, samples=samples, max_exact=0, seed=cell["seed"])
        for name in PROPOSED:
            bounds[name][str(samples)] = _mean_bits(more, name, "bound")
    return {
        "truth": -sum(truth) / len(truth),
        "exact": _mean_bits(found, PROPOSED[0], "exact"),
        "allowed": {name: _mean_bits(found, name, "allowed") for name in PROPOSED},
        "bound": bounds,
    }


def _mean_bits(found: Sequence[dict[str, SetLikelihood]], proposal: str, name: str) -> float:
    values: list[float] = [getattr(one[proposal], name) for one in found]
    return -sum(values) / len(values)


def _decoded(model: SetGenerator, test: Sequence[Example], name: str, *, constrained: bool) -> dict[str, float]:
    found = model.predict(test, name=name, constrained=constrained)
    scores = score_sets([one.labels for one in found], [example.labels for example in test])
    right = [len(one.labels) == len(example.labels) for one, example in zip(found, test, strict=True)]
    return {
        "jaccard": scores.jaccard,
        "right_size": sum(right) / len(right),
        "size": scores.mean_predicted_size,
        "repeated": sum(len(one.repeated or ()) for one in found) / len(found),
    }
