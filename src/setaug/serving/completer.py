"""Complete prompts with sets: what vLLM does with its logits processor, for one causal model in this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from setaug.decoding.set_request import SetRequest
from setaug.errors import DataError, ModelError

if TYPE_CHECKING:
    from setaug.models.neural.constraint import SetConstraint


@dataclass(frozen=True, kw_only=True)
class Ask:
    """How to complete a prompt.

    Parameters
    ----------
    sets
        The sets that an answer may be; None for those of the model's own labels.
    is_chat
        Whether the prompt has its special tokens already.
    n
        Number of answers.
    temperature
        0 for greedy search.
    top_k, top_p
        Number of tokens, and probability mass, to sample from; 0 and 1 for all.
    max_tokens
        Maximum tokens of an answer; None for as many as a set needs.
    stops
        Texts that end an answer where they first occur, without them.

    """

    sets: SetRequest | None = None
    is_chat: bool = False
    n: int = 1
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int | None = None
    seed: int = 0
    stops: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of ``generate``."""
        if self.temperature == 0:
            return {"do_sample": False}
        return {"do_sample": True, "temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p}


@dataclass(frozen=True)
class Answer:
    """An answer to a prompt."""

    text: str
    n_tokens: int
    is_cut: bool
    """Whether it ended because no more tokens were allowed."""


@dataclass(frozen=True)
class Answers:
    """The answers to a prompt of `n_tokens` tokens."""

    n_tokens: int
    answers: tuple[Answer, ...]


class Completer:
    """A causal model that writes sets, as a server asks it: its own predictions, or completed prompts.

    Parameters
    ----------
    model
        A trained `SetGenerator` with a causal model; all of its attributes can be read here.

    """

    def __init__(self, model: Any) -> None:
        if not completes(model):
            raise ModelError("only causal models that write sets complete prompts.")
        self._model = model
        self._constraint = lru_cache(maxsize=64)(self._make)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, texts: Sequence[str], *, ask: Ask | None = None, **options: Any) -> list[Any]:
        """Return the model's prediction for each text, or `Answers` to each prompt."""
        return self._model.predict(texts, **options) if ask is None else self.complete(texts, ask)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt of a conversation; without a chat template, its texts, each ended by a line break."""
        tokenizer = self._model.network_.tokenizer
        if not tokenizer.chat_template:
            return "".join(f"{message['content']}\n" for message in messages)
        from jinja2 import TemplateError

        try:
            prompt = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            raise DataError(f"the model's chat template refuses the messages: {error}") from None
        return str(prompt)

    def complete(self, prompts: Sequence[str], ask: Ask) -> list[Answers]:
        """Return the answers to each prompt."""
        from setaug.models.neural.batches import by_length, evaluating, on_device
        from setaug.models.neural.generation import generate_sets

        writer = self._model.network_
        try:
            constraint = self._constraint(ask.sets)
        except ValueError as error:
            raise DataError(str(error)) from None
        rows = [self._tokens(prompt, ask) for prompt in prompts]
        limit = constraint.max_new_tokens if ask.max_tokens is None else ask.max_tokens
        found: list[Answers | None] = [None] * len(rows)
        with evaluating(writer.model):
            for batch in by_length(rows, 32):
                inputs = on_device(writer.layout.inputs([rows[at] for at in batch]), writer.model.device)
                room = writer.layout.room(limit, inputs["input_ids"].shape[1])
                limits = {"n_each": ask.n, "max_new_tokens": room, "seed": ask.seed}
                written = generate_sets(writer.model, inputs, constraint, ask.options, **limits)
                for at, outputs in zip(batch, written, strict=True):
                    answers = tuple(self._answer(output, constraint.end, ask.stops) for output in outputs)
                    found[at] = Answers(len(rows[at]), answers)
        return [one for one in found if one is not None]

    def _tokens(self, prompt: str, ask: Ask) -> list[int]:
        """Return the tokens of a prompt, after what the tokenizer puts in front of texts; a chat template has it."""
        layout, tokenizer = self._model.network_.layout, self._model.network_.tokenizer
        bare = tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"]
        whole = bare if ask.is_chat else tokenizer(prompt, verbose=False)["input_ids"]
        at = next((at for at in range(len(whole)) if whole[at : at + len(bare)] == bare), 0)
        tokens = [*whole[:at], *bare] or [layout._first]
        if layout._places is not None and len(tokens) >= layout._places:
            raise DataError(f"the prompt has {len(tokens)} tokens, and the model has places for {layout._places}.")
        return tokens

    def _make(self, sets: SetRequest | None) -> "SetConstraint":
        from setaug.serving.request_constraint import make_constraint

        writer = self._model.network_
        if sets is None:
            constraint: SetConstraint = writer.constraint(self._model.decoding.sizes(writer.largest))
            return constraint
        return make_constraint(sets, writer.tokenizer, model=writer.model)

    def _answer(self, tokens: list[int], end: int, stops: tuple[str, ...]) -> Answer:
        text = self._model.network_.tokenizer.decode(tokens, skip_special_tokens=True)
        found = [at for at in map(text.find, stops) if at >= 0]
        if found:
            return Answer(text[: min(found)], len(tokens), is_cut=False)
        return Answer(text, len(tokens), tokens[-1:] != [end])


def completes(model: Any) -> bool:
    """Return whether a model can complete prompts with sets: a causal model that writes sets."""
    network = getattr(model, "network_", None) if getattr(model, "kind", None) == "generator" else None
    return network is not None and not network.model.config.is_encoder_decoder
