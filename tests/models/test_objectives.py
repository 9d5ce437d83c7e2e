"""Training on bounds of a set's likelihood: the loss and its gradient by hand, runs of each kind, what is refused."""

from copy import deepcopy

import pytest
import torch

from setaug import Example, SetAugmenter
from setaug.models import SetGenerator, TrainingSettings, make_model
from setaug.models.neural.batches import TrainingSet
from setaug.models.neural.generator import draws, orders
from setaug.models.neural.layouts import make_layout
from setaug.models.neural.pretrained import add_adapters
from setaug.models.neural.training.objectives import training_loss
from setaug.models.neural.training.trainer import SetTrainer
from setaug.sample import sample_examples
from tests.tiny import make_model as make_torch_model
from tests.tiny import make_tokenizer

OBJECTIVES = ("plain", "elbo", "iwelbo")
"""Those that differ by their orders; `test_closed_objective` has the other."""
TRAIN = list(sample_examples(40, seed=3))
DEV = list(sample_examples(6, seed=4))
ITEMS = [
    {"input_ids": [4, 5, 6, 2], "targets": [[7, 8, 2], [9, 10, 11, 2]]},
    {"input_ids": [9, 2], "targets": [[5, 2], [11, 12, 13, 14, 2]]},
    {"input_ids": [3, 4, 2], "targets": [[7, 2], [8, 9, 2]]},
]


def make(kind):
    return deepcopy(make_torch_model(kind)).double().eval()


def trainer_loss(model, items, objective, tmp_path):
    """Let the trainer compute the loss of one batch; give it with its gradient."""
    from transformers import TrainingArguments

    data = TrainingSet([item["input_ids"] for item in items], lambda epoch: [item["targets"] for item in items])
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to="none", disable_tqdm=True)
    layout = make_layout(
        model, make_tokenizer("bytes"), around_text=("", ""), max_source_length=20, max_target_length=20
    )

    def compute(model, batch):
        return training_loss(layout, model, batch, objective)

    trainer = SetTrainer(model, data, loss=compute, score=None, args=arguments, data_collator=layout.collator())
    model.zero_grad()
    (batch,), n_learnt = trainer.get_batch_samples(iter(trainer.get_train_dataloader()), 1, model.device)
    loss = trainer.compute_loss(model, batch, num_items_in_batch=n_learnt)
    loss.backward()
    return loss.detach(), gradient(model)


def gradient(model):
    return torch.cat([weights.grad.flatten() for weights in model.parameters() if weights.grad is not None])


def log_p(model, ids, target):
    """Score one target by itself: no padding, no shared encoder."""
    labels = torch.tensor([target])
    if model.config.is_encoder_decoder:
        logits = model(input_ids=torch.tensor([ids]), labels=labels).logits[0]
    else:
        logits = model(input_ids=torch.tensor([ids + target])).logits[0, len(ids) - 1 : -1]
    return logits.log_softmax(-1)[torch.arange(len(target)), labels[0]].sum()


def by_hand(model, items, weigh):
    """Compute minus the sum of the bounds, over the sum of mean lengths, with repeated inputs."""
    model.zero_grad()
    bounds = [weigh(torch.stack([log_p(model, item["input_ids"], one) for one in item["targets"]])) for item in items]
    lengths = [sum(map(len, item["targets"])) / len(item["targets"]) for item in items]
    loss = -sum(bounds) / sum(lengths)
    loss.backward()
    return loss.detach(), gradient(model)


BY_HAND = {
    "elbo": lambda values: values.sum() / len(values),
    "iwelbo": lambda values: (values.exp().sum() / len(values)).log(),
}
# T5 normalises in single precision, and scores are computed in it.
CLOSE = {"rtol": 1e-4, "atol": 1e-6, "check_dtype": False}


@pytest.mark.parametrize("objective", BY_HAND)
@pytest.mark.parametrize("kind", ["bart", "t5", "gpt2", "llama"])
@pytest.mark.parametrize("has_adapters", [False, True], ids=["all weights", "LoRA"])
def test_loss_and_gradient_are_those_by_hand(kind, objective, has_adapters, tmp_path):
    model = make(kind)
    if has_adapters:
        model = add_adapters(model, 2).double().eval()
        for name, weights in model.named_parameters():
            if "lora_B" in name:  # they start at zero, and so would hide the others' gradients
                torch.nn.init.normal_(weights, generator=torch.Generator().manual_seed(0))
    loss, slope = trainer_loss(model, ITEMS, objective, tmp_path)
    wanted, wanted_slope = by_hand(model, ITEMS, BY_HAND[objective])
    torch.testing.assert_close(loss, wanted, **CLOSE)
    torch.testing.assert_close(slope, wanted_slope, rtol=1e-3, atol=1e-4, check_dtype=False)


def test_the_weighted_bound_moves_each_order_by_its_share(tmp_path):
    """The gradient of iwelbo is that of the orders' log-probabilities, weighted by softmax."""
    model = make("bart")
    _, slope = trainer_loss(model, ITEMS[:1], "iwelbo", tmp_path)
    (item,) = ITEMS[:1]
    values, slopes = [], []
    for target in item["targets"]:
        model.zero_grad()
        value = log_p(model, item["input_ids"], target)
        value.backward()
        values.append(value.detach())
        slopes.append(gradient(model))
    shares = torch.stack(values).softmax(0)
    assert 0 < shares.min() < 0.5
    wanted = -sum(share * each for share, each in zip(shares, slopes, strict=True)) / 3.5
    torch.testing.assert_close(slope, wanted, rtol=1e-3, atol=1e-4, check_dtype=False)


@pytest.mark.parametrize("kind", ["bart", "t5", "llama"])
def test_elbo_is_plain_on_the_same_targets_and_with_one_target_all_are(kind, tmp_path):
    model = make(kind)
    plain, plain_slope = trainer_loss(model, ITEMS, "plain", tmp_path)
    loss, slope = trainer_loss(model, ITEMS, "elbo", tmp_path)
    torch.testing.assert_close(loss, plain, **CLOSE)
    torch.testing.assert_close(slope, plain_slope, rtol=1e-3, atol=1e-4, check_dtype=False)
    weighted, _ = trainer_loss(model, ITEMS, "iwelbo", tmp_path)
    assert weighted < loss  # the bound is tighter
    single = [{**ITEMS[0], "targets": ITEMS[0]["targets"][:1]}]
    losses = [trainer_loss(model, single, objective, tmp_path)[0] for objective in OBJECTIVES]
    torch.testing.assert_close(losses[1], losses[0], **CLOSE)
    torch.testing.assert_close(losses[2], losses[0], **CLOSE)


def test_equal_targets_have_the_plain_loss(tmp_path):
    """log of the mean of K equal probabilities is the logarithm of one of them: log K is taken off."""
    model = make("bart")
    items = [{**item, "targets": item["targets"][:1] * 3} for item in ITEMS]
    losses = [trainer_loss(model, items, objective, tmp_path)[0] for objective in OBJECTIVES]
    torch.testing.assert_close(losses[2], losses[0], **CLOSE)


# --- targets ----------------------------------------------------------------------------------------------------------


def test_all_targets_are_drawn_and_as_many_as_before():
    augmenter = SetAugmenter(n_orders=3, random_state=5).fit(TRAIN)
    found = draws(augmenter, TRAIN)
    assert {len(each) for each in found} == {4}
    for each, example in zip(found, TRAIN, strict=True):
        graph = augmenter.graph(example.labels)
        assert all(graph.allows(augmenter.codec.decode(target).labels) for target in each)
    given = [augmenter.codec.encode(example.labels) for example in TRAIN]
    assert [each[0] for each in found] != given
    assert draws(augmenter, TRAIN, 1) != found == draws(augmenter, TRAIN)
    assert augmenter.n_orders == 3
    assert [each[0] for each in orders(augmenter, TRAIN)] == given


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_number_of_pairs_does_not_depend_on_the_objective(objective):
    model = SetGenerator(training=TrainingSettings(objective=objective))
    assert {len(each) for each in _targets(model)} == {3}


def _targets(model):
    model.augmenter_ = model.augmenter.fit(TRAIN)
    return model.write_targets(TRAIN, 0)


def test_targets_are_drawn_only_where_asked_for():
    plain, elbo, weighted = (
        _targets(SetGenerator(training=TrainingSettings(objective=objective))) for objective in OBJECTIVES
    )
    assert plain == orders(SetAugmenter().fit(TRAIN), TRAIN)
    assert elbo == weighted == draws(SetAugmenter().fit(TRAIN), TRAIN)


# --- runs -------------------------------------------------------------------------------------------------------------

RUNS = {
    "accumulated": {"accumulate": 2, "batch_size": 4},
    "adapters": {"lora_rank": 4},
    "bfloat16": {"precision": "bfloat16"},
    "fresh": {"fresh_orders": True},
}


@pytest.mark.parametrize(("name", "objective"), [("tiny", "elbo"), ("tiny", "iwelbo"), ("mini-causal", "iwelbo")])
@pytest.mark.parametrize("run", RUNS)
def test_training_runs_and_learns(name, objective, run, tmp_path):
    losses = []
    examples = [Example("a b", ["x", "y", "z"]), Example("c d", ["u", "v"])] * 16
    settings = TrainingSettings(epochs=4, learning_rate=3e-3, objective=objective, **RUNS[run])
    compute = SetTrainer.compute_loss

    def noting(self, *args, **kwargs):
        loss = compute(self, *args, **kwargs)
        losses.append(loss.item())
        return loss

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SetTrainer, "compute_loss", noting)
        model = SetGenerator(name, training=settings).fit(examples, folder=tmp_path / "run")
    assert sum(losses[-4:]) < 0.9 * sum(losses[:4])
    assert model.record_["n_pairs_per_epoch"] == 96
    assert SetGenerator.from_pretrained(tmp_path / "run").training.objective == objective


@pytest.mark.parametrize(("name", "objective"), [("tiny", "elbo"), ("mini-causal", "iwelbo")])
def test_a_resumed_run_ends_the_same(name, objective, tmp_path):
    settings = TrainingSettings(epochs=2, fresh_orders=True, checkpoint_every=3, objective=objective)

    def stop(stage, step, total):
        if step == 7:
            raise KeyboardInterrupt

    def fit(folder, **options):
        return SetGenerator(name, training=settings).fit(TRAIN, folder=folder, **options)

    whole = fit(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "stopped", progress=stop)
    resumed = fit(tmp_path / "stopped", resume=True)
    assert resumed.record_["resumed_from"] == 6
    for name, weights in whole.model_.state_dict().items():
        assert torch.equal(weights, resumed.model_.state_dict()[name]), name


def test_each_objective_ends_with_other_weights():
    models = [SetGenerator(training=TrainingSettings(epochs=1, objective=name)).fit(TRAIN[:16]) for name in OBJECTIVES]
    weights = [model.model_.state_dict()["lm_head.weight"] for model in models]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["elbo", "iwelbo"])
def test_an_objective_without_draws_is_refused(objective):
    training = TrainingSettings(objective=objective)
    for method, message in [
        ("seq2seq", f"the objective {objective} requires sampled orders, not a single repeated order"),
        ("classifier", "a classifier has no orders, so its objective is plain"),
        ("set-search", "set search has no orders, so its objective is plain"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_model(method, "tiny", training=training).fit(TRAIN)
    for options, message in [
        ({"sampler": "quick"}, "requires uniformly sampled orders, so sampler must be uniform"),
        ({"distinct": True}, "requires independent samples, so orders cannot be distinct"),
    ]:
        with pytest.raises(ValueError, match=message):
            SetGenerator(augmenter=SetAugmenter(**options), training=training).fit(TRAIN)


def test_an_unknown_objective_is_named():
    with pytest.raises(ValueError, match="objective must be one of plain, closed, mixed, elbo, iwelbo, got 'magic'"):
        TrainingSettings(objective="magic")
