"""A few-shot prompt: an instruction, examples with their labels in a chosen order, and the text to label."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setaug.codec import SetCodec
from setaug.examples import Example, Pair
from setaug.registry import check_choice

KINDS = ("chat", "completion")
"""The endpoints: chat messages, or one text to complete."""
SHOT_CHOICES = ("random", "cover")
"""Choose examples at random, or so that they cover as many distinct labels as possible."""
TEXT, LABELS = "Text: ", "Labels:"
"""The prefixes of a text and its labels in a completion prompt."""


def choose_shots(examples: Sequence[Example], n_shots: int, *, way: str = "random", seed: int = 0) -> list[int]:
    """Return the indices of the few-shot examples, in their order in the prompt.

    Parameters
    ----------
    way
        ``random``: uniformly at random. ``cover``: greedily, the example that adds the most uncovered labels, with
        ties broken at random; once all labels are covered, it starts over.

    """
    check_choice("the way to choose examples", way, SHOT_CHOICES)
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


def write_instruction(codec: SetCodec, labels: Sequence[str] | None) -> str:
    """Return the instruction: how to write labels and, if given, the labels to choose from.

    Examples
    --------
    >>> print(write_instruction(SetCodec(), ["joy", "love"]))
    Label the text: write the number of labels, then each label, separated by "|". Write nothing else.
    Possible labels: joy | love

    """
    instruction = f"Label the text: write {codec.form.description}. Write nothing else."
    return instruction if labels is None else f"{instruction}\nPossible labels: {codec.form.list_labels(labels)}"


@dataclass(frozen=True, kw_only=True)
class FewShotPrompt:
    """Write the prompt for a text.

    Parameters
    ----------
    shots
        The examples to show.
    kind
        ``chat`` or ``completion``.

    Examples
    --------
    >>> prompt = FewShotPrompt(instruction="Name the labels.", shots=(Pair("We won!", "1 | joy"),), kind="completion")
    >>> print(prompt.body("We lost.")["prompt"])
    Name the labels.
    <BLANKLINE>
    Text: We won!
    Labels: 1 | joy
    <BLANKLINE>
    Text: We lost.
    Labels:

    """

    instruction: str
    shots: tuple[Pair, ...]
    kind: str = "chat"

    def body(self, prompt: str) -> dict[str, Any]:
        """Return the request's prompt or messages."""
        if self.kind == "chat":
            return {"messages": self._messages(prompt)}
        return {"prompt": self._text(prompt), "stop": ["\n"]}

    def _messages(self, prompt: str) -> list[dict[str, str]]:
        said = [("system", self.instruction)] if self.instruction else []
        for shot in self.shots:
            said += [("user", shot.prompt), ("assistant", shot.completion)]
        return [{"role": role, "content": content} for role, content in [*said, ("user", prompt)]]

    def _text(self, prompt: str) -> str:
        blocks = [self.instruction] if self.instruction else []
        blocks += [f"{TEXT}{_one_line(shot.prompt)}\n{LABELS} {shot.completion}" for shot in self.shots]
        return "\n\n".join([*blocks, f"{TEXT}{_one_line(prompt)}\n{LABELS}"])


def _one_line(text: str) -> str:
    """Collapse whitespace, so that a text cannot look like several examples."""
    return " ".join(text.split())
