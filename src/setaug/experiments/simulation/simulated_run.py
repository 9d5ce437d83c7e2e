"""One run of the simulation study: synthesize data, train a model on it from scratch, measure (appendix G)."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from math import exp, inf, log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from setaug.analysis.likelihood import SetLikelihood
from setaug.examples import Example
from setaug.experiments.cells import Cell, Result
from setaug.experiments.simulation.design import (
    DECODINGS,
    PERFECT,
    PROPOSALS,
    SAMPLES,
    SHUFFLES,
    TENTHS,
    topological_share,
)
from setaug.experiments.simulation.perfect_model import perfect_scores, prefix_probability
from setaug.experiments.simulation.processes import PROCESSES, paired_log2_probability, shuffled
from setaug.experiments.stored_settings import augmenter_from_cell, paper_settings
from setaug.metrics import score_sets
from setaug.models.model_folder import METRICS
from setaug.models.neural.generator import SetGenerator
from setaug.settings import Decoding

N_SCORED = 100
"""Test sets whose likelihood is summed over all orders."""
N_PERFECT = 300
"""Maximum number of test inputs for the perfect model."""

Orders = Sequence[Sequence[Sequence[str]]]
"""The orders of each example."""


def simulate(cells: Sequence[Cell]) -> Iterator[Result]:
    """Run cells one after the other."""
    return map(run_cell, cells)


def run_cell(cell: Cell) -> Result:
    """Train on synthetic data, and measure what the process is designed to show."""
    data, process = dict(cell["data"]), cell["process"]
    n_train, n_test, shares = data.pop("n_train"), data.pop("n_test"), data.pop("shares", ())
    stream = PROCESSES[process](n_train + n_test, seed=cell["seed"], with_input=True, **data)
    if cell["model"] == PERFECT:
        inputs = [example.fields["x"] for example in islice(stream, n_train, n_train + N_PERFECT)]
        return perfect_scores(inputs, n_blocks=data["n_blocks"], shares=shares)
    train, test = list(islice(stream, n_train)), list(stream)
    model = SetGenerator(
        cell["model"],
        augmenter=augmenter_from_cell({"separator": " ", "random_state": cell["seed"], **cell["orders"]}),
        training=paper_settings(seed=cell["seed"], **cell["training"]),
        decoding=Decoding(choose="written"),
    )
    with TemporaryDirectory() as folder:
        model.fit(train, folder=folder, progress=False)
        losses = _losses(Path(folder) / METRICS)
    if process == "blocks":
        return {"perplexity": _shuffled_perplexities(model, test, cell["seed"])}
    decodings = {
        ("constrained " if constrained else "") + name: _decoded(model, test, name, constrained=constrained)
        for constrained in (False, True)
        for name in DECODINGS
    }
    if process == "sizes":
        return {"decodings": decodings}
    orders = _trained_orders(model, train[:n_test])
    result = {
        "decodings": decodings,
        "train_perplexity": perplexity(model, train[:n_test], orders),
        "curve": {str(tenth): perplexity for tenth, perplexity in zip(TENTHS, _curve(losses), strict=True)},
        "likelihood": _likelihood(model, test, cell),
    }
    if data.get("block_size", 2) == 2:
        result["train_floor"] = _perfect_perplexity(train[:n_test], orders, cell)
    return result


def _losses(path: Path) -> list[tuple[int, float]]:
    """Return the logged training losses, in nats per token, with the number of updates."""
    lines = map(json.loads, path.read_text().splitlines())
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


def _curve(losses: Sequence[tuple[int, float]]) -> list[float]:
    """Return the perplexity per token in each tenth of the training; a loss is the mean since the one before."""
    last = losses[-1][0]
    sums = [[0.0, 0.0] for _ in TENTHS]
    before = 0
    for step, loss in losses:
        for update in range(before, step):
            tenth = sums[update * len(TENTHS) // last]
            tenth[0] += loss
            tenth[1] += 1
        before = step
    return [exp(total / n) if n else inf for total, n in sums]


def perplexity(model: SetGenerator, examples: Sequence[Example], orders: Orders) -> float:
    """Return the perplexity per label of orders, for a model without sizes; the end of a set counts as a label."""
    return _per_label([bits for each in model.score_orders(examples, orders) for bits in each], orders)


def _per_label(log2_probabilities: Sequence[float], orders: Orders) -> float:
    n_written = sum(len(order) + 1 for each in orders for order in each)
    return float(2 ** (-sum(log2_probabilities) / n_written))


def _trained_orders(model: SetGenerator, examples: Sequence[Example]) -> list[list[tuple[str, ...]]]:
    """Return the orders that the model was trained on, for its first training examples."""
    read = model.augmenter_.codec.decode
    return [[read(text).labels for text in each] for each in model.write_targets(examples, 0)]


def _perfect_perplexity(examples: Sequence[Example], orders: Orders, cell: Cell) -> float:
    """Return the perplexity of orders for a model that knows the process and the distribution of orders."""
    is_topological, n_orders = cell["orders"]["ordering"] == "topological", cell["orders"]["n_orders"]
    has_given = "objective" not in cell["training"]
    share = (topological_share(n_orders) if has_given else 1.0) if is_topological else 0.0
    bits = []
    for example, each in zip(examples, orders, strict=True):
        of_set = paired_log2_probability(example.labels, example.fields["x"], n_blocks=cell["data"]["n_blocks"])
        for order in each:  # small data may miss an edge, and have an order that a perfect model never writes
            probability = prefix_probability(frozenset(example.labels), order, share)
            bits.append(of_set + log2(probability) if probability else -inf)
    return _per_label(bits, orders)


def _shuffled_perplexities(model: SetGenerator, test: Sequence[Example], seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {
        str(share): perplexity(model, test, [[shuffled(example.labels, share / 100, rng)] for example in test])
        for share in SHUFFLES
    }


def _likelihood(model: SetGenerator, test: Sequence[Example], cell: Cell) -> Result:
    """Measure test sets in bits: by the process, by the model, and by the bounds of the proposals."""
    chosen = test[:N_SCORED]
    blocks = {name: cell["data"][name] for name in ("n_blocks", "block_size") if name in cell["data"]}
    truth = [paired_log2_probability(one.labels, one.fields["x"], **blocks) for one in chosen]
    bounds: dict[str, dict[str, float]] = {name: {} for name in PROPOSALS}
    for samples in reversed(SAMPLES):
        exact: dict[str, Any] = {} if samples == SAMPLES[0] else {"max_exact": 0}
        found = model.log_likelihoods(chosen, proposals=PROPOSALS, samples=samples, seed=cell["seed"], **exact)
        for name in PROPOSALS:
            bounds[name] = {str(samples): _mean_bits(found, name, "bound"), **bounds[name]}
    return {
        "truth": -sum(truth) / len(truth),
        "exact": _mean_bits(found, PROPOSALS[0], "exact"),
        "allowed": {name: _mean_bits(found, name, "allowed") for name in PROPOSALS},
        "bound": bounds,
    }


def _mean_bits(found: Sequence[dict[str, SetLikelihood]], proposal: str, name: str) -> float:
    values: list[float] = [getattr(one[proposal], name) for one in found]
    return -sum(values) / len(values)


def _decoded(model: SetGenerator, test: Sequence[Example], name: str, *, constrained: bool) -> dict[str, float]:
    found = model.predict(test, name=name, constrained=constrained)
    scores = score_sets([example.labels for example in test], [one.labels for one in found])
    right = [len(one.labels) == len(example.labels) for one, example in zip(found, test, strict=True)]
    return {
        "jaccard": scores.jaccard,
        "right_size": sum(right) / len(right),
        "size": scores.mean_predicted_size,
        "repeated": sum(len(one.repeated or ()) for one in found) / len(found),
    }
