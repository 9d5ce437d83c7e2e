"""Batches: padding, and inputs of similar length together, in an order that depends on seed and epoch alone."""

import torch

from setaug.models.neural.batches import LengthGroups, cut, pad_inputs
from setaug.models.neural.scratch import train_tokenizer

LENGTHS = [int(n) for n in torch.randint(1, 50, (200,), generator=torch.Generator().manual_seed(0))]


def test_inputs_are_padded_behind_or_before():
    for side, ids, mask in (
        ("right", [[5, 1, 2], [2, 1, 1]], [[1, 1, 1], [1, 0, 0]]),
        ("left", [[5, 1, 2], [1, 1, 2]], [[1, 1, 1], [0, 0, 1]]),
    ):
        batch = pad_inputs([[5, 1, 2], [2]], 1, side=side)
        assert {name: values.tolist() for name, values in batch.items()} == {"input_ids": ids, "attention_mask": mask}


def test_similar_lengths_stand_together_and_each_once():
    order = list(LengthGroups(LENGTHS, 10, seed=3))
    assert sorted(order) == list(range(200))
    spread = [
        max(LENGTHS[at] for at in order[i : i + 10]) - min(LENGTHS[at] for at in order[i : i + 10])
        for i in range(0, 200, 10)
    ]
    assert sum(spread) / len(spread) < 15
    assert len(LengthGroups(LENGTHS, 10, seed=3)) == 200


def test_the_order_depends_on_seed_and_epoch_and_on_nothing_else():
    groups = LengthGroups(LENGTHS, 8, seed=3)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = list(groups)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert list(groups) == first
    assert list(LengthGroups(LENGTHS, 8, seed=4)) != first
    groups.begin_epoch(1)
    assert list(groups) != first
    groups.begin_epoch(0)
    assert list(groups) == first


def test_texts_are_cut_only_where_they_are_too_long():
    tokenizer = train_tokenizer(["one two three"])
    texts = ["one", "one two three one two three"]
    whole = tokenizer(texts)["input_ids"]
    assert cut(tokenizer, texts, 100) == (whole, 0)
    short, n_long = cut(tokenizer, texts, 5)
    assert n_long == 1
    assert short[0] == whole[0][:5]
    assert len(short[1]) == 5
    assert cut(tokenizer, [], 5) == ([], 0)
