"""Choose the examples that a prompt shows."""

from collections.abc import Sequence

import numpy as np

from setaug.examples import Example
from setaug.registry import check_choice

CHOICES = ("random", "cover")
"""Draw examples, or take those that together have as many different labels as possible."""


def choose_shots(examples: Sequence[Example], n_shots: int, *, way: str = "random", seed: int = 0) -> list[int]:
    """Return the indices of the examples to show, in the order in which they are shown.

    Parameters
    ----------
    way
        ``random``: each set of examples with the same chance. ``cover``: one after the other the example that adds most
        labels not shown yet, of equals the one drawn first; once all labels are shown, it starts anew.

    """
    check_choice("the way to choose examples", way, CHOICES)
    drawn = np.random.default_rng(seed).permutation(len(examples)).tolist()
    return drawn[:n_shots] if way == "random" else _cover(examples, drawn, n_shots)


def _cover(examples: Sequence[Example], drawn: list[int], n_shots: int) -> list[int]:
    left = dict.fromkeys(drawn)
    shown: set[str] = set()
    chosen: list[int] = []
    while left and len(chosen) < n_shots:
        best = max(left, key=lambda at: len(shown.union(examples[at].labels)))
        if shown and shown.issuperset(examples[best].labels):
            shown.clear()
            continue
        chosen.append(best)
        shown.update(examples[best].labels)
        del left[best]
    return chosen
