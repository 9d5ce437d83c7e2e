"""What a model learns to write for an example: orders of its set, one order again and again, or label by label."""

from collections.abc import Sequence
from dataclasses import replace

from setaug.augmenter import SetAugmenter
from setaug.examples import Example


def orders(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Give the order in which the labels were given, and those that the augmenter adds; other ones in each epoch."""
    if epoch:
        fitted = augmenter
        augmenter = replace(fitted, random_state=(fitted.random_state + epoch * 1_000_003) % (1 << 63))
        augmenter.statistics_ = fitted.statistics_
    completions = [pair.completion for pair in augmenter.augment(examples)]
    per_example = augmenter.n_orders + 1
    return [completions[start : start + per_example] for start in range(0, len(completions), per_example)]


def draws(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Give as many orders as `orders`, all of them drawn: independent draws from the augmenter's ordering."""
    more = replace(augmenter, n_orders=augmenter.n_orders + 1)
    more.statistics_ = augmenter.statistics_
    return [drawn for _, *drawn in orders(more, examples, epoch)]


def one_order(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Give one random order, as often as others give different ones (the paper's seq2seq baseline)."""
    single = replace(augmenter, ordering="random", n_orders=1)
    single.statistics_ = augmenter.statistics_
    return [[drawn] * (augmenter.n_orders + 1) for _, drawn in orders(single, examples)]


def each_label(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Give each label by itself (the paper's set search)."""
    return [[augmenter.codec.encode_label(label) for label in example.labels] for example in examples]
