"""Whether order will help: synthetic label sets for which the answer is known."""

import itertools
import json
import math

import numpy as np
import pytest

from setaug.analysis.diagnosis import Diagnosis, diagnose
from setaug.analysis.label_sequence_model import LabelSequenceModel, _compiled_sweep, _sweep
from setaug.analysis.order_cost import FoldedSets, split_sets
from setaug.errors import DataError
from setaug.orders import SetBatch, Thresholds
from setaug.orders.orderings import RandomOrdering


def independent(seed, n_sets=600, n_labels=60, size=4, exponent=1.0):
    """Draw labels one by one, frequent ones more often."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, n_labels + 1) ** -exponent
    return [
        [f"label {i}" for i in rng.choice(n_labels, size, replace=False, p=shares / shares.sum())]
        for _ in range(n_sets)
    ]


def specific_and_attributes(seed, n_sets=1000):
    """Draw a specific label; each of four general ones that it implies comes four times in five."""
    rng = np.random.default_rng(seed)
    implied = rng.integers(8, size=(200, 4))
    return [
        {f"specific {s}", *(f"general {a}={implied[s, a]}" for a in range(4) if rng.random() < 0.8)}
        for s in rng.integers(200, size=n_sets)
    ]


def topics(seed, n_sets=1000):
    """Draw a topic and three of its forty words."""
    rng = np.random.default_rng(seed)
    return [
        {f"topic {t}", *(f"word {t}.{w}" for w in rng.choice(40, 3, replace=False))}
        for t in rng.integers(20, size=n_sets)
    ]


def relative(diagnosis, name):
    return diagnosis.scores[name].difference / diagnosis.scores["random"].bits


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "shape",
    [
        {"exponent": 0.0},
        {"exponent": 1.5, "size": 3},
        {"n_labels": 2000, "size": 5},
        {"n_labels": 8, "size": 2, "n_sets": 150},
    ],
)
def test_order_does_not_help_on_independent_labels(shape, seed):
    diagnosis = diagnose(independent(seed, **shape), seed=seed)
    assert diagnosis.verdict == "no-gain"
    assert diagnosis.helps == ()
    assert diagnosis.sentence.startswith("Order will not help: ")


@pytest.mark.parametrize("seed", range(2))
def test_specific_labels_first_help_where_each_implies_many_general_ones(seed):
    diagnosis = diagnose(specific_and_attributes(seed), seed=seed)
    assert diagnosis.verdict == "topological"
    assert diagnosis.scores["topological"].high < diagnosis.scores["reversed"].low
    assert diagnosis.sentence.startswith("Order helps: topological orders need ")
    assert diagnosis.constrained > 0.9


@pytest.mark.parametrize("seed", range(2))
def test_general_labels_first_help_where_each_opens_up_many_rare_ones(seed):
    diagnosis = diagnose(topics(seed), seed=seed)
    assert diagnosis.verdict in {"reversed", "frequency"}
    assert {"reversed", "frequency"} <= set(diagnosis.helps)
    assert relative(diagnosis, "topological") > 0.02


def test_no_direction_helps_where_a_set_is_one_label_and_its_parent():
    # Once the leaves are well known, both directions need the bits of the leaf and nothing else.
    rng = np.random.default_rng(0)
    diagnosis = diagnose([{f"leaf {i}", f"parent {i // 8}"} for i in rng.integers(64, size=5000)])
    assert diagnosis.verdict == "no-gain"
    assert all(score.bits == pytest.approx(6, abs=0.25) for score in diagnosis.scores.values())


def test_random_orders_of_uniform_labels_cost_what_theory_says():
    diagnosis = diagnose(independent(0, n_sets=3000, n_labels=12, size=3, exponent=0.0))
    assert diagnosis.scores["random"].bits == pytest.approx(math.log2(math.comb(12, 3)), rel=0.01)


def test_nothing_depends_on_the_order_in_which_labels_are_listed():
    sets = independent(3, n_sets=200)
    assert diagnose(sets) == diagnose([list(reversed(labels)) for labels in sets])


def test_the_seed_alone_decides():
    sets = independent(3, n_sets=200)
    first, again, other = (diagnose(iter(sets), seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.scores != other.scores


def test_too_little_data_is_a_verdict():
    for sets in ([], [[]], [["a"]] * 500, [["a", "b"]] * 20, [[f"{i}a", f"{i}b"] for i in range(300)]):
        diagnosis = diagnose(sets)
        assert diagnosis.verdict == "too-little-data"
        assert diagnosis.scores == {}
        assert diagnosis.n_sets == len(sets)
        assert diagnosis.sentence.startswith("Too little data: ")


@pytest.mark.parametrize("sets", [[["a", "b"]] * 200, [["a", "b"], ["a", "c"]] * 100, [list("abc")] * 100])
def test_sets_without_surprise_are_no_reason_for_an_order(sets):
    diagnosis = diagnose(sets)
    assert diagnosis.verdict == "no-gain"
    assert all(abs(score.bits) < 1.2 for score in diagnosis.scores.values())


def test_small_and_large_sets_are_counted_but_not_compared():
    sets = independent(0, n_sets=300)
    more = [[], ["alone"], [f"wide {i}" for i in range(17)]]
    diagnosis = diagnose(sets + more * 10)
    assert diagnosis.n_sets == 330
    assert diagnosis.n_held_out <= 300
    assert diagnosis.n_fit <= 240


def test_labels_that_were_not_fitted_are_left_out_whatever_the_ordering():
    sets = [[*labels, f"once {i}"] for i, labels in enumerate(independent(0, n_sets=300, n_labels=12, size=3))]
    diagnosis = diagnose(sets)
    assert diagnosis.n_held_out == 300
    assert all(math.isfinite(score.bits) and score.bits > 0 for score in diagnosis.scores.values())


def test_held_out_sets_do_not_change_the_graph_of_the_fitted_part():
    def encode(*label_sets):
        return FoldedSets.of(label_sets, n_folds=2, max_sets=10, seed=0)

    folded = encode([*"ab"], [*"ac"], [*"ac"], [*"bc"])
    sets, labels = folded.sets, folded.labels
    is_fitted = np.array([True, True, True, False])
    split = split_sets(sets, is_fitted, len(labels), Thresholds(min_pmi=-5, min_ratio=1))
    other = encode([*"ab"], [*"ac"], [*"ac"], [*"ab"]).sets
    again = split_sets(other, is_fitted, len(labels), Thresholds(min_pmi=-5, min_ratio=1))
    assert len(split.edges.keys) > 0
    assert split.edges.keys.tolist() == again.edges.keys.tolist()
    assert [labels[i] for i in split.held_out.ids] == ["b", "c"]


def test_a_large_data_set_is_sampled():
    diagnosis = diagnose([*independent(0, n_sets=900), *[["alone"]] * 900], max_sets=300)
    assert diagnosis.n_sets == 600
    assert 200 < diagnosis.n_held_out < 400


def test_thresholds_decide_which_sets_are_constrained():
    sets = specific_and_attributes(0, n_sets=300)
    assert diagnose(sets, thresholds=Thresholds(min_ratio=1000)).constrained == 0
    assert diagnose(sets, thresholds=Thresholds(min_pmi=0, min_ratio=1)).constrained > 0.9


def test_a_diagnosis_can_be_written_as_json():
    diagnosis = diagnose(independent(0, n_sets=100))
    saved = json.loads(json.dumps(diagnosis.to_dict()))
    assert saved["verdict"] == diagnosis.verdict
    assert set(saved["scores"]) == {"random", "topological", "reversed", "frequency"}
    assert set(saved) == set(Diagnosis.__dataclass_fields__)
    for score in saved["scores"].values():
        assert score["low"] <= score["difference"] <= score["high"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_folds": 1}, "n_folds must be at least 2, got 1."),
        ({"n_orders": 0}, "n_orders must be at least 1, got 0."),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        diagnose([], **arguments)


def test_a_string_is_not_a_set_of_labels():
    with pytest.raises(DataError, match='line 1 of the data: "labels" must be a list of strings, got "ab"'):
        diagnose(["ab"])


def fitted_model(n_labels=6, n_sets=300):
    rng = np.random.default_rng(0)
    # Labels 0 and 1 go together, and so do 2 and 3; label 6 never occurs.
    sets = SetBatch.of([[0, 1, 4 + i % 2] if rng.random() < 0.5 else [2, 3, 4, 5][: 3 + i % 2] for i in range(n_sets)])
    orders = RandomOrdering().orders(sets, 2, seed=0, first_index=0)
    return LabelSequenceModel.fit(sets, orders.positions, n_labels + 1), sets, orders


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_probabilities_of_all_sequences_of_a_size_sum_to_one(size):
    model, _, _ = fitted_model()
    sets = SetBatch.of(itertools.combinations(range(7), size))
    orders = np.array([list(order) * len(sets) for order in itertools.permutations(range(size))], np.int32)
    bits = model.bits(sets, orders)
    assert np.all(bits >= 0)
    assert np.sum(2.0**-bits) == pytest.approx(1)


def test_the_model_expects_what_was_seen():
    model, sets, orders = fitted_model()
    shapes = (len(model.columns), len(model.biases), model.context.shape)
    seen, expected = ([np.zeros(shape) for shape in shapes] for _ in range(2))
    model._sweep(sets, orders.positions, seen, expected)
    assert seen[1].sum() == 2 * len(sets.ids)
    assert expected[1].sum() == pytest.approx(2 * len(sets.ids))
    assert expected[1][:6] == pytest.approx(seen[1][:6], rel=0.03)
    assert seen[2].sum() == pytest.approx(expected[2].sum())


def test_the_compiled_loop_does_what_the_plain_one_does(monkeypatch):
    model, sets, orders = fitted_model(n_sets=40)
    shapes = (len(model.columns), len(model.biases), model.context.shape)
    results = []
    for sweep in (_compiled_sweep(), _sweep):
        monkeypatch.setattr("setaug.analysis.label_sequence_model._compiled_sweep", lambda sweep=sweep: sweep)
        seen, expected = ([np.zeros(shape) for shape in shapes] for _ in range(2))
        results.append([model._sweep(sets, orders.positions, seen, expected), *seen, *expected])
    assert len(model.columns) > 0
    for compiled, plain in zip(*results, strict=True):
        assert compiled == pytest.approx(plain)
