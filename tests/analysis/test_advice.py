"""Advice: what it says of data for which the answer is known, and the command that it names."""

import shlex

import numpy as np
import pytest

from setaug.analysis.diagnosis import TRIED, Diagnosis, diagnose
from setaug.analysis.order_cost import FoldedSets
from setaug.cli import main
from setaug.orders import Thresholds
from tests.analysis.test_diagnosis import independent, specific_and_attributes, topics


def tickets(seed, n_sets=600):
    """Draw a kind of ticket with the tags that it implies, which are only about twice as frequent."""
    rng = np.random.default_rng(seed)
    implied = rng.integers(16, size=(30, 4))
    return [
        {f"kind {kind}", *(f"tag {at}={implied[kind, at]}" for at in range(4) if rng.random() < 0.8)}
        for kind in rng.integers(30, size=n_sets)
    ]


def said(diagnosis: Diagnosis) -> str:
    return " ".join(diagnosis.advice.sentences)


def test_the_default_is_advised_where_it_helps_most():
    advice = diagnose(specific_and_attributes(0)).advice
    assert (advice.ordering, advice.method, advice.options) == ("topological", "setaug", ())
    assert advice.sentences[0].startswith("The default topological orders help: they need ")
    assert advice.sentences[1].startswith("No other ordering and none of ")


def test_another_ordering_is_advised_where_the_default_is_worse_than_random():
    diagnosis = diagnose(topics(0))
    assert diagnosis.sentence.startswith("The default order does not help: topological orders need ")
    assert f"Another order helps: {diagnosis.verdict} orders need " in diagnosis.sentence
    assert diagnosis.advice.ordering in diagnosis.helps
    assert diagnosis.advice.options[:2] == ("--method", diagnosis.advice.method)
    assert diagnosis.advice.sentences[0].startswith("The default topological orders do not help: ")


def test_other_thresholds_are_advised_where_only_they_help():
    diagnosis = diagnose(tickets(0))
    assert diagnosis.verdict == "no-gain"
    assert diagnosis.sentence.startswith("Order helps with other thresholds only: with --min-ratio 1, topological")
    assert diagnosis.advice.options == ("--min-ratio", "1")
    trial = next(one for one in diagnosis.trials if (one.min_pmi, one.min_ratio) == (1, 1))
    assert f"with --min-ratio 1: {trial.n_edges} edges, {trial.constrained:.1%} of the sets, " in said(diagnosis)
    again = diagnose(tickets(0), thresholds=Thresholds(min_ratio=1))
    assert again.verdict == "topological"
    assert again.advice.options == ("--min-ratio", "1")


def test_the_graph_of_a_trial_is_that_of_its_thresholds(monkeypatch):
    sets = tickets(1)
    trials = diagnose(sets).trials
    assert trials
    monkeypatch.setattr("setaug.analysis.diagnosis.TRIED", ())  # the others have no trials to compare
    for trial in trials:
        thresholds = Thresholds(min_pmi=trial.min_pmi, min_ratio=trial.min_ratio)
        given = diagnose(sets, thresholds=thresholds)
        assert given.constrained == pytest.approx(trial.constrained)
        for name, score in trial.scores.items():
            assert score.bits == pytest.approx(given.scores[name].bits)
            assert score.difference == pytest.approx(given.scores[name].difference)
            assert score.high > given.scores[name].high  # an interval for several comparisons at once is wider


def test_each_graph_is_tried_once_and_never_one_without_edges():
    diagnosis = diagnose(specific_and_attributes(0), thresholds=Thresholds(min_ratio=1000))
    assert diagnosis.constrained == 0
    graphs = [(trial.n_edges, *trial.scores.values()) for trial in diagnosis.trials]
    assert 0 < len(graphs) == len(set(graphs)) <= len(TRIED)
    assert all(trial.n_edges for trial in diagnosis.trials)
    assert diagnose([["a", "b"], ["c", "d"]] * 100).trials == ()


def test_trials_of_a_large_data_set_use_a_sample(monkeypatch):
    monkeypatch.setattr("setaug.analysis.diagnosis.MAX_TRIED", 300)
    diagnosis = diagnose(tickets(0, 1000))
    assert diagnosis.n_held_out > 900
    assert {200 < trial.n_held_out <= 300 for trial in diagnosis.trials} == {True}


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_advised_for_independent_labels(seed):
    diagnosis = diagnose(independent(seed, n_labels=200, size=5, n_sets=500), seed=seed)
    assert diagnosis.advice.ordering in {"topological", "random"}
    assert {"--min-pmi", "--min-ratio"}.isdisjoint(diagnosis.advice.options)
    assert "No tested order helps" in said(diagnosis)


def test_random_orders_are_advised_where_the_default_is_worse_and_nothing_helps():
    sets = independent(0, n_labels=2000, size=5, n_sets=600)
    diagnosis = diagnose(sets)
    assert diagnosis.scores["topological"].low > 0
    assert diagnosis.advice.options == ("--method", "random")
    assert "random orders (--method random) are the safer choice" in said(diagnosis)


def test_sets_of_one_label_need_no_orders():
    advice = diagnose([["a"], ["b"]] * 100).advice
    assert advice.options == ("--method", "classifier")
    assert advice.sentences == (
        "No set has two labels or more: order cannot matter, and a classifier is the simpler choice.",
    )


def test_too_little_data_is_no_reason_against_the_default():
    advice = diagnose([["a", "b"], ["a"]] * 5).advice
    assert advice.options == ()
    assert "There is too little data to compare orders, so the default is advised." in advice.sentences


def test_the_size_and_the_constraint_are_told_from_the_sets():
    same = said(diagnose([[f"{i % 7}", f"{i % 5}x"] for i in range(200)]))
    assert "Size: every set has 2 labels, so the size is uninformative; use --no-size." in same
    assert "expect a gain; none of the labels in held-out sets occur in no other set." in same
    mixed = said(diagnose([["a"]] * 150 + [["a", "b", f"new {i}"] for i in range(50)]))
    assert "Only 25.0% of the sets have two labels or more" in mixed
    assert "Size: sets have 1 to 3 labels, most often 1 (75%)." in mixed
    assert "but 16.7% of the labels in held-out sets occur in no other set" in mixed  # 50 of 300


def test_unseen_labels_are_those_of_one_fold_only():
    sets = [["a"], ["a", "b"], ["c"], ["a"]]
    folded = FoldedSets.of(sets, n_folds=2, max_sets=10, seed=0)
    unseen = 0
    for labels, fold in zip(sets, folded.fold, strict=True):
        others = {label for other, at in zip(sets, folded.fold, strict=True) if at != fold for label in other}
        unseen += sum(label not in others for label in labels)
    assert unseen >= 2
    assert folded.share_unseen == unseen / 5


def test_the_advised_command_is_one_that_setaug_takes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"body {i},{'+'.join(sorted(labels))}" for i, labels in enumerate(tickets(0, 60))]
    (tmp_path / "my tickets.csv").write_text("\n".join(["body,tags", *rows]))
    options = ["--text-field", "body", "--labels-field", "tags", "--delimiter", "+"]
    assert main(["inspect", "my tickets.csv", *options]) == 0
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert command[:3] == ["setaug", "train", "my tickets.csv"]
    command[command.index("--model") + 1] = "mini"
    assert main([*command[1:], "--epochs", "1", "--batch-size", "32"]) == 0
    assert (tmp_path / "run" / "setaug.json").exists()
