"""The loss among the tokens with which a set can go on: by hand, in training, and what is refused."""

from copy import deepcopy

import pytest
import torch

from setaug import SetAugmenter
from setaug.codec import SetCodec
from setaug.models import SetGenerator, TrainingSettings, make_model
from setaug.models.neural.constraint import SetConstraint
from setaug.models.neural.training.objectives import ClosedCollator, training_loss
from setaug.settings import Decoding
from tests.conftest import EXAMPLES
from tests.models.test_shared_encoder import layout_of
from tests.tiny import make_model as make_torch_model

LABELS = ["joy", "love", "fear", "joyful surprise"]
WRITTEN = Decoding(choose="written")
SETS = [[["joy", "love"], ["love", "joy"]], [["fear"], ["joyful surprise", "joy", "love"]]]


def parts(kind):
    """Return a layout of a tiny model, its constraint, and items with the targets of two examples."""
    layout = layout_of(deepcopy(make_torch_model(kind)).double().eval(), max_target_length=60)
    constraint = SetConstraint.for_model(layout.model, layout.tokenizer, LABELS, codec=SetCodec(), sizes=range(4))
    targets = layout.targets([[SetCodec().encode(labels) for labels in each] for each in SETS])
    return layout, constraint, [{"input_ids": [5 + at, 6, 2], "targets": each} for at, each in enumerate(targets)]


def by_hand(layout, constraint, items):
    """Let the constraint mask the model's scores of each prefix, as in generation."""
    model, losses = layout.model, []
    for item in items:
        for target in item["targets"]:
            prompt = torch.tensor([item["input_ids"]])
            if model.config.is_encoder_decoder:
                start = [model.config.decoder_start_token_id]
                logits = model(input_ids=prompt, decoder_input_ids=torch.tensor([start + target[:-1]])).logits[0]
            else:
                start = item["input_ids"]
                logits = model(input_ids=torch.tensor([start + target])).logits[0, len(start) - 1 : -1]
            for at, token in enumerate(target):
                constraint.start = len(start)
                scores = constraint(torch.tensor([start + target[:at]]), logits[at : at + 1])
                losses.append(-scores.log_softmax(-1)[0, token])
    return sum(losses) / len(losses)


@pytest.mark.parametrize("kind", ["bart", "t5", "gpt2", "llama"])
def test_loss_and_gradient_are_those_of_masked_scores(kind):
    layout, constraint, items = parts(kind)
    assert layout._can_slice == (kind != "bart")
    model = layout.model
    wanted = by_hand(layout, constraint, items)
    wanted.backward()
    slopes = {name: weights.grad.clone() for name, weights in model.named_parameters() if weights.grad is not None}
    for collate in (layout.pack, layout.repeat):
        model.zero_grad()
        batch = ClosedCollator(collate, constraint.automaton, constraint.automaton.tokens.tolist())(items)
        loss = training_loss(layout, model, batch, "closed")
        loss.backward()
        torch.testing.assert_close(loss, wanted, rtol=1e-5, atol=1e-6, check_dtype=False)
        for name, weights in model.named_parameters():
            if name in slopes:
                torch.testing.assert_close(weights.grad, slopes[name], rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("kind", ["bart", "t5", "llama"])
def test_the_mixed_loss_and_gradient_are_the_mean_of_plain_and_closed(kind):
    layout, constraint, items = parts(kind)
    batch = ClosedCollator(layout.pack, constraint.automaton, constraint.automaton.tokens.tolist())(items)
    found = {}
    for objective in ("closed", "mixed"):
        layout.model.zero_grad()
        loss = training_loss(layout, layout.model, batch, objective)
        loss.backward()
        found[objective] = [loss, *(weights.grad.clone() for weights in layout.model.parameters())]
    layout.model.zero_grad()
    plain = training_loss(layout, layout.model, layout.pack(items), "plain")
    plain.backward()
    found["plain"] = [plain, *(weights.grad.clone() for weights in layout.model.parameters())]
    assert found["plain"][0] > found["closed"][0] + 0.1
    for one, other, mean in zip(found["plain"], found["closed"], found["mixed"], strict=True):
        torch.testing.assert_close(mean, (one + other) / 2, rtol=1e-3, atol=1e-5, check_dtype=False)


def test_a_set_goes_on_with_unused_labels_until_its_size_is_reached():
    layout, constraint, items = parts("t5")
    batch = ClosedCollator(layout.pack, constraint.automaton, constraint.automaton.tokens.tolist())(items)
    counts = batch["allowed"].sum(dim=1)
    ends = (batch["columns"][batch["chosen"]] == layout.model.generation_config.eos_token_id).nonzero().flatten()
    # Behind as many labels as the size says, nothing but the end; but "joy" could go on to "joyful surprise".
    assert counts[ends].tolist() == [1, 2, 1, 1]
    assert batch["allowed"][torch.arange(len(counts)), batch["chosen"]].all()
    assert counts[0] > 1
    assert len(batch["columns"]) < len(layout.tokenizer)


def test_a_target_that_is_no_set_may_go_on_with_anything():
    layout, constraint, _ = parts("t5")
    strange = max(set(range(3, len(layout.tokenizer))) - set(constraint.automaton.tokens.tolist()))
    items = [{"input_ids": [5, 2], "targets": [[strange, strange, 1]]}]
    collate = ClosedCollator(layout.pack, constraint.automaton, constraint.automaton.tokens.tolist())
    batch = collate(items)
    assert batch["allowed"].all()
    assert strange in batch["columns"]
    assert training_loss(layout, layout.model, batch, "closed").isfinite()


@pytest.mark.parametrize(("name", "objective"), [("mini", "closed"), ("mini-causal", "closed"), ("mini", "mixed")])
def test_a_model_learns_with_it(name, objective, tmp_path):
    settings = TrainingSettings(epochs=6, objective=objective, learning_rate=3e-3)
    model = SetGenerator(name, training=settings, augmenter=SetAugmenter(n_orders=1), decoding=WRITTEN)
    model.fit(EXAMPLES, folder=tmp_path)
    barely = TrainingSettings(epochs=1, learning_rate=1e-9)
    untrained = SetGenerator(name, training=barely, decoding=WRITTEN).fit(EXAMPLES)
    assert model.score(EXAMPLES) > untrained.score(EXAMPLES) + 0.1


@pytest.mark.parametrize("objective", ["closed", "mixed"])
def test_what_has_no_known_labels_or_no_sets_is_refused(objective):
    training = TrainingSettings(objective=objective)
    with pytest.raises(ValueError, match=f"the objective {objective} needs known labels"):
        SetGenerator("mini", vocabulary="open", training=training).fit(EXAMPLES)
    for method in ("classifier", "set-search"):
        with pytest.raises(ValueError, match="so its objective is plain"):
            make_model(method, "mini", training=training).fit(EXAMPLES)
