"""A few-shot prompt: an instruction, examples with their labels in an order of choice, and the text to label."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from setaug.codec import SetCodec
from setaug.examples import Pair

KINDS = ("chat", "completion")
"""The endpoints: messages of a user and an assistant, or one text that goes on."""
TEXT, LABELS = "Text: ", "Labels:"
"""What stands in front of a text and its labels where the prompt is one text."""


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
    """Keep a text from looking like several examples."""
    return " ".join(text.split())
