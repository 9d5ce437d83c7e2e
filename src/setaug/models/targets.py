"""Training targets of an example: orders of its set, one order repeated, or one label at a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from setaug.augmenter import SetAugmenter
from setaug.examples import Example
from setaug.orders.statistics import LabelStatistics


def fitted_copy(augmenter: SetAugmenter, statistics: LabelStatistics, **changes: Any) -> SetAugmenter:
    """Return a copy with these statistics, and with other parameters where they are given."""
    copied = replace(augmenter, **changes)
    copied.statistics_ = statistics
    return copied


def orders(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Return the given order and those that the augmenter adds, which differ between epochs."""
    if epoch:
        seed = (augmenter.random_state + epoch * 1_000_003) % (1 << 63)
        augmenter = fitted_copy(augmenter, augmenter.statistics_, random_state=seed)
    completions = [pair.completion for pair in augmenter.augment(examples)]
    per_example = augmenter.n_orders + 1
    return [completions[start : start + per_example] for start in range(0, len(completions), per_example)]


def draws(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Return as many orders as `orders`, all of them independent draws from the augmenter's ordering."""
    more = fitted_copy(augmenter, augmenter.statistics_, n_orders=augmenter.n_orders + 1)
    return [drawn for _, *drawn in orders(more, examples, epoch)]


def one_order(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Return one random order, repeated as often as `orders` has orders (the paper's seq2seq baseline)."""
    single = fitted_copy(augmenter, augmenter.statistics_, ordering="random", n_orders=1)
    return [[drawn] * (augmenter.n_orders + 1) for _, drawn in orders(single, examples)]


def each_label(augmenter: SetAugmenter, examples: Sequence[Example], epoch: int = 0) -> list[list[str]]:
    """Return each label by itself (the paper's set search)."""
    return [[augmenter.codec.encode([label]) for label in example.labels] for example in examples]
