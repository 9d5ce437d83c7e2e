"""Cells in which a language model is shown examples, and nothing is trained."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from setaug.augmenter import SetAugmenter
from setaug.prompting import Endpoint, PromptedSetModel


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """Say how language models are asked."""

    shots: int = 24
    kind: str = "chat"
    max_tokens: int = 256
    skip_refused: bool = False
    endpoint: Endpoint = field(default_factory=Endpoint)
    """Where the model is, which does not make another result."""

    def as_cell(self) -> dict[str, Any]:
        """Give what a result depends on."""
        named = {"shots": self.shots, "kind": self.kind, "max_tokens": self.max_tokens}
        return {
            **named,
            "request": dict(self.endpoint.request),
            **({"skip_refused": True} if self.skip_refused else {}),
        }


def make_prompted(cell: Mapping[str, Any], model: str, prompts: Prompts) -> PromptedSetModel:
    """Make the model of a cell."""
    return PromptedSetModel(
        model,
        augmenter=SetAugmenter(**cell["augmenter"]),
        shots=cell["prompt"]["shots"],
        kind=cell["prompt"]["kind"],
        max_tokens=cell["prompt"]["max_tokens"],
        vocabulary=cell["vocabulary"],
        skip_refused=cell["prompt"].get("skip_refused", False),
        endpoint=prompts.endpoint,
    )


def describe_prompt(prompt: Mapping[str, Any]) -> str:
    """Say in a few words how a model is asked.

    Examples
    --------
    >>> describe_prompt({"shots": 24, "kind": "chat", "max_tokens": 64, "request": {"top_p": 0.9}})
    '24 examples, chat, at most 64 tokens, top_p 0.9'

    """
    told = [f"{prompt['shots']} examples", prompt["kind"], f"at most {prompt['max_tokens']} tokens"]
    return ", ".join([*told, *(f"{name} {value}" for name, value in prompt["request"].items())])
