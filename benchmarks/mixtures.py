"""How well a generator, its label head and its TF-IDF companion are mixed, by the number of dev examples.

    OMP_NUM_THREADS=1 python benchmarks/mixtures.py MODEL --data 'reuters[min2,train300]' --data-dir DIR

MODEL is a folder that `setaug train` wrote for this training data. A part of the dev data tunes, the rest is predicted;
this is repeated with other parts. F1 is the mean over the sets, macro F that over the labels of the rest.
"""

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from setaug.datasets import load_dataset
from setaug.decoding.choice import Hits, Rule, mean_f1
from setaug.decoding.mixture import LabelProbabilities, LogisticCalibration, Mixture, average, probabilities_of
from setaug.metrics.indicators import hits_of
from setaug.models import load_model
from setaug.models.neural.writer import DRAWS
from setaug.models.tfidf import TfidfClassifier

Members = list[LabelProbabilities]


def tuned(members: Members, hits: Hits, sizes: Any, *, which: slice, largest: int, calibrate: bool = True) -> Any:
    mixture, _ = Mixture.fit(members[which], hits, sizes, largest=largest, calibrate=calibrate)

    def choose(others: Members) -> Any:
        found = mixture.combine(others[which])
        return mixture.rule.choose(found.labels, found.sizes)

    return choose


def tuned_by_f1(members: Members, hits: Hits, sizes: Any, *, largest: int) -> Any:
    """Choose the weight of TF-IDF by F1 on the dev examples; the probabilities are calibrated without a prior."""
    calibrations = [LogisticCalibration.fit(one.labels, hits) for one in members[:2]]

    def mean(others: Members, weight: float) -> LabelProbabilities:
        parts = [replace(one, labels=apply(one.labels)) for apply, one in zip(calibrations, others[:2], strict=True)]
        return average(parts, (weight, 1 - weight))

    def score(weight: float) -> float:
        found = mean(members, weight)
        return mean_f1(Rule(largest=largest).choose(found.labels, found.sizes), hits, sizes)

    weight = max(np.linspace(0, 1, 11).tolist(), key=score)
    found = mean(members, weight)
    rule, _ = Rule.fit(found.labels, found.sizes, hits, sizes, largest=largest)

    def choose(others: Members) -> Any:
        found = mean(others, weight)
        return rule.choose(found.labels, found.sizes)

    return choose


def macro_f1(chosen: Any, hits: Hits) -> float:
    found = np.zeros_like(hits)
    for row, columns in zip(found, chosen, strict=True):
        row[columns] = True
    total = found.sum(axis=0) + hits.sum(axis=0)
    return float((2 * (found & hits).sum(axis=0) / np.maximum(total, 1))[hits.any(axis=0)].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", required=True)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--dev", type=int, nargs="+", default=[20, 60, 150])
    parser.add_argument("--texts", type=int, default=700, help="dev texts in all, at most")
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    dataset, model = load_dataset(options.data, options.data_dir), load_model(options.model)
    dev = dataset.dev[: options.texts]
    texts, known = [one.text for one in dev], list(model.classes_)
    members = [model.network_.probabilities(texts, model.decoding, n_each=DRAWS)]
    members.append(probabilities_of(TfidfClassifier().fit(dataset.train), texts, known))
    if model.network_.head is not None:
        members.append(model.network_.head_probabilities(texts, 32))
    hits, sizes = hits_of(dev, known)
    ways = {
        "alone": partial(tuned, which=slice(1)),
        "TF-IDF": partial(tuned, which=slice(1, 2)),
        "weights by F1": tuned_by_f1,
        "without calibration": partial(tuned, which=slice(3), calibrate=False),
        "without the label head": partial(tuned, which=slice(2)),
        "default": partial(tuned, which=slice(3)),
    }
    print(f"{options.data}: {len(dev)} dev texts, {options.repeat} repetitions; F1 and macro F, per cent")
    for n_dev in options.dev:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        rng = np.random.default_rng(0)
        for _ in range(options.repeat):
            order = rng.permutation(len(dev))
            tuning, rest = order[:n_dev], order[n_dev:]
            for name, way in ways.items():
                choose = way(_rows(members, tuning), hits[tuning], sizes[tuning], largest=model.largest_)
                chosen = choose(_rows(members, rest))
                found[name].append((mean_f1(chosen, hits[rest], sizes[rest]), macro_f1(chosen, hits[rest])))
        for name, scores in found.items():
            f1, macro = 100 * np.mean(scores, axis=0)
            print(f"{n_dev:4} dev texts   {name:22} {f1:5.1f} {macro:5.1f}")


def _rows(members: Members, rows: Any) -> Members:
    return [
        replace(one, labels=one.labels[rows], sizes=None if one.sizes is None else one.sizes[rows]) for one in members
    ]


if __name__ == "__main__":
    main()
