"""One trial of the simulation study: make data up, train on it from nothing, measure (appendix G)."""

from collections.abc import Sequence
from itertools import islice
from math import inf, log2

import numpy as np

from setaug.augmenter import SetAugmenter
from setaug.examples import Example
from setaug.experiments.cells import Cell, Result
from setaug.experiments.ideal import chance_of_start, ideal_scores, topological_share
from setaug.likelihood import SetLikelihood
from setaug.metrics import score_sets
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
N_IDEAL = 300
"""For at most so many test inputs the perfect model is worked out."""
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
    decodings = {
        ("constrained " if constrained else "") + name: _decoded(model, test, name, constrained=constrained)
        for constrained in (False, True)
        for name in DECODINGS
    }
    if cell["process"] == "sizes":
        return {"decodings": decodings}
    orders = _trained_orders(model, train[:n_test])
    return {
        "decodings": decodings,
        "train_perplexity": perplexity(model, train[:n_test], orders),
        "train_floor": _perfect_perplexity(train[:n_test], orders, cell),
        "likelihood": _likelihood(model, test, cell),
    }


def _ideal(cell: Cell) -> Result:
    data = dict(cell["data"])
    shares, n_test, n_train = data.pop("shares"), data.pop("n_test"), data.pop("n_train")
    process = PROCESSES[cell["process"]](n_train + n_test, seed=cell["seed"], with_input=True, **data)
    inputs = [example.fields["x"] for example in islice(process, n_train, n_train + N_IDEAL)]
    return ideal_scores(inputs, n_blocks=data["n_blocks"], shares=shares)


def perplexity(model: SetGenerator, examples: Sequence[Example], orders: Sequence[Sequence[Sequence[str]]]) -> float:
    """Give the perplexity of orders, per label, for a model without sizes; the end of a set counts as a label."""
    return _per_label([bits for each in model.score_orders(examples, orders) for bits in each], orders)


def _per_label(log2_probabilities: Sequence[float], orders: Sequence[Sequence[Sequence[str]]]) -> float:
    n_written = sum(len(order) + 1 for each in orders for order in each)
    return float(2 ** (-sum(log2_probabilities) / n_written))


def _trained_orders(model: SetGenerator, examples: Sequence[Example]) -> list[list[tuple[str, ...]]]:
    """Give the orders that the model was trained on, of its first training examples."""
    read = model.augmenter.codec.decode
    return [[read(text).labels for text in each] for each in model.write_targets(examples, 0)]


def _perfect_perplexity(examples: Sequence[Example], orders: Sequence[Sequence[Sequence[str]]], cell: Cell) -> float:
    """Give the perplexity that these orders have for a model that knows the process and how orders are chosen."""
    is_topological, n_orders = cell["orders"]["ordering"] == "topological", cell["orders"]["n_orders"]
    has_given = "objective" not in cell["training"]
    share = (topological_share(n_orders) if has_given else 1.0) if is_topological else 0.0
    bits = []
    for example, each in zip(examples, orders, strict=True):
        of_set = paired_log2_probability(example.labels, example.fields["x"], n_blocks=cell["data"]["n_blocks"])
        labels = frozenset(example.labels)
        for order in each:  # data too small to show an edge may have an order that a perfect model never writes
            chance = chance_of_start(labels, order, share)
            bits.append(of_set + log2(chance) if chance else -inf)
    return _per_label(bits, orders)


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
