"""Mixtures of models: calibration and weights by likelihood, and how little dev data changes them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from setaug.decoding.mixture import LabelProbabilities, LogisticCalibration, Mixture


def world(n_texts, *, noise, seed=0, n_labels=12):
    """Return true sets, and models that see the log-odds of each label through more or less noise."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-1.5, 2.0, (n_texts, n_labels))
    hits = rng.random(odds.shape) < expit(odds)
    return hits, [LabelProbabilities(expit(odds + rng.normal(0, one, odds.shape))) for one in noise]


def fit(members, hits, **options):
    return Mixture.fit(members, hits, hits.sum(axis=1), **options)


def test_calibration_is_logistic_regression():
    hits, (member,) = world(200, noise=[1.0])
    found = LogisticCalibration.fit(member.labels, hits)
    oracle = LogisticRegression(C=1e6).fit(logit(member.labels).reshape(-1, 1), hits.ravel())
    assert found.slope == pytest.approx(oracle.coef_[0, 0], abs=1e-3)
    assert found.shift == pytest.approx(oracle.intercept_[0], abs=1e-3)


def test_shrinkage_pulls_to_the_identity_and_more_data_overcomes_it():
    hits, (member,) = world(2000, noise=[1.5])
    slopes = {}
    for n_texts in (5, 2000):
        for shrinkage in (0.0, 20.0, 1e9):
            part = LogisticCalibration.fit(member.labels[:n_texts], hits[:n_texts], shrinkage=shrinkage)
            slopes[n_texts, shrinkage] = part.slope
    assert slopes[5, 1e9] == pytest.approx(1, abs=1e-3)
    assert abs(slopes[5, 20.0] - 1) < abs(slopes[5, 0.0] - 1)
    assert slopes[2000, 20.0] == pytest.approx(slopes[2000, 0.0], abs=0.02) != pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(
    "hits", [np.ones((3, 2), bool), np.zeros((3, 2), bool), np.array([[1, 0], [0, 1], [0, 1]], bool)]
)
def test_calibration_of_few_or_separated_examples_is_finite_and_rising(hits):
    found = LogisticCalibration.fit(np.where(hits, 0.9, 0.1), hits)
    assert np.isfinite(found.to_list()).all()
    assert found.slope > 0


def test_calibration_of_scores_that_mislead_is_the_identity():
    hits, (member,) = world(200, noise=[0.1])
    assert LogisticCalibration.fit(1 - member.labels, hits) == LogisticCalibration()


def test_a_label_that_one_model_does_not_know_has_the_probability_of_the_others():
    hits, (one, other) = world(100, noise=[0.3, 0.3])
    known = np.arange(hits.shape[1]) != 3
    other = replace(other, labels=np.where(known, other.labels, 0.0), known=known)
    found = Mixture.equal(2).combine([one, other]).labels
    assert found[:, 3] == pytest.approx(one.labels[:, 3])
    assert found[:, 0] == pytest.approx((one.labels[:, 0] + other.labels[:, 0]) / 2)
    # What it does not know is not held against it: calibrations and weights are those without the label.
    tuned, _ = fit([one, other], hits, calibrate=False)
    without = [LabelProbabilities(member.labels[:, known]) for member in (one, other)]
    assert tuned.weights == pytest.approx(fit(without, hits[:, known], calibrate=False)[0].weights)
    calibrated = [
        fit(members, hits)[0].calibrations[1] for members in ([one, other], [one, replace(other, known=None)])
    ]
    assert calibrated[0] != calibrated[1]
    nobody = replace(one, known=np.zeros(hits.shape[1], bool))
    assert not Mixture.equal(2).combine([nobody, nobody]).labels.any()


def test_new_labels_do_not_seem_more_frequent_because_dev_data_have_all_of_them():
    rng = np.random.default_rng(0)
    rates = np.full(400, 0.004)  # rare labels, each known only if one of the dev texts has it
    hits = rng.random((150, 400)) < rates
    known = hits.any(axis=0)
    hits, new = hits[:, known], np.ones(known.sum(), bool)
    member = LabelProbabilities(np.clip(rates[known] * rng.lognormal(0, 0.1, hits.shape), 0, 1))
    means = {}
    for name, which in {"naive": None, "hidden": new}.items():
        tuned, _ = Mixture.fit([member], hits, hits.sum(axis=1), new=which)
        means[name] = tuned.combine([member]).labels.mean()
    assert means["naive"] > 0.007 > means["hidden"] > 0.002


def test_weights_follow_what_the_models_know():
    hits, members = world(400, noise=[0.3, 3.0])
    better, _ = fit(members, hits)
    worse, _ = fit(members[::-1], hits)
    assert better.weights[0] > 0.7
    assert better.weights == pytest.approx(worse.weights[::-1], abs=1e-3)
    assert sum(better.weights) == pytest.approx(1)


def test_weights_have_the_highest_likelihood_times_prior():
    hits, members = world(60, noise=[0.8, 1.2, 2.0])
    mixture, _ = fit(members, hits)
    calibrated = np.stack([apply(one.labels) for apply, one in zip(mixture.calibrations, members, strict=True)])

    def score(weights):
        mean = np.tensordot(weights, calibrated, 1)
        return np.log(np.where(hits, mean, 1 - mean)).sum() + 30 * np.log(weights).sum()

    steps = list(np.eye(3) - np.eye(3)[[1, 2, 0]])
    best = score(np.array(mixture.weights))
    assert all(score(np.array(mixture.weights) + size * move) < best for move in steps for size in (0.02, -0.02))


def test_little_dev_data_leaves_weights_nearly_equal():
    hits, members = world(400, noise=[0.3, 3.0])
    few, _ = fit([LabelProbabilities(one.labels[:4]) for one in members], hits[:4])
    many, _ = fit(members, hits)
    assert 0.5 < few.weights[0] < 0.65 < many.weights[0]


def test_models_that_agree_have_equal_weights():
    hits, (member,) = world(50, noise=[1.0])
    mixture, f1 = fit([member, member], hits)
    alone, f1_alone = fit([member], hits)
    assert mixture.weights == pytest.approx((0.5, 0.5))
    assert alone.weights == (1.0,)
    assert f1 == pytest.approx(f1_alone)


def test_two_models_with_different_errors_are_better_together():
    hits, members = world(600, noise=[1.5, 1.5])
    train = [LabelProbabilities(one.labels[:200]) for one in members]
    mixture, _ = fit(train, hits[:200])
    rest, n_true = hits[200:], hits[200:].sum(axis=1)

    def likelihood(found):
        return float(np.log(np.where(rest, found, 1 - found)).mean())

    both = likelihood(mixture.combine([LabelProbabilities(one.labels[200:]) for one in members]).labels)
    singles = [
        likelihood(fit([one], hits[:200])[0].combine([LabelProbabilities(other.labels[200:])]).labels)
        for one, other in zip(train, members, strict=True)
    ]
    assert len(n_true) == 400
    assert both > max(singles) + 0.01


def test_without_calibration_the_identity_is_kept():
    hits, members = world(50, noise=[1.0, 2.0])
    mixture, _ = fit(members, hits, calibrate=False)
    assert mixture.calibrations == (LogisticCalibration(), LogisticCalibration())


def test_a_saved_mixture_is_the_same():
    hits, members = world(50, noise=[1.0, 2.0])
    mixture, _ = fit(members, hits)
    assert Mixture.from_dict(mixture.to_dict(), n_labels=12) == mixture


def test_the_mean_is_calibrated_again():
    """A mean of calibrated probabilities is less certain than it should be."""
    hits, members = world(600, noise=[1.0, 1.0])
    mixture, _ = fit(members, hits)
    assert mixture.slope > 1.1
    found = mixture.combine(members).labels
    for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1)):
        part = (found >= low) & (found < high)
        assert found[part].mean() == pytest.approx(hits[part].mean(), abs=0.04)


@pytest.mark.parametrize(("seen", "is_raised"), [(2.0, True), (0.5, False)])
def test_rare_labels_are_raised_and_never_lowered(seen, is_raised):
    """The models take labels for rarer than they are, or for more frequent."""
    rng = np.random.default_rng(0)
    rarity = np.linspace(0, 2.5, 12)
    odds = rng.normal(-1.0, 2.0, (600, 12))
    hits = rng.random(odds.shape) < expit(odds - rarity)
    members = [LabelProbabilities(expit(odds - seen * rarity + rng.normal(0, 0.5, odds.shape))) for _ in range(2)]
    shifts = np.array(fit(members, hits)[0].shifts)
    if is_raised:
        assert np.corrcoef(shifts, rarity)[0, 1] > 0.95
    else:
        assert np.ptp(shifts) == 0


def test_few_dev_examples_do_not_replace_expected_f1():
    hits, members = world(400, noise=[1.0])
    for n_texts, wanted in ((49, {"expected-f1"}), (400, {"expected-f1", "threshold", "size", "top-k"})):
        part, _ = fit([LabelProbabilities(one.labels[:n_texts]) for one in members], hits[:n_texts])
        assert part.rule.way in wanted
    asked, _ = fit([LabelProbabilities(members[0].labels[:9])], hits[:9], ways=("top-k",))
    assert asked.rule.way == "top-k"


@pytest.mark.parametrize(
    "change", [{"slope": float("nan")}, {"shifts": [float("inf")]}, {"shifts": [0.5]}, {"weights": [0.5]}]
)
def test_a_mixture_with_strange_numbers_is_refused(change):
    hits, members = world(20, noise=[1.0, 2.0])
    saved = fit(members, hits)[0].to_dict()
    with pytest.raises(ValueError, match="must"):
        Mixture.from_dict(saved | change, n_labels=12)
