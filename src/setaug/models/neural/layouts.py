"""How texts and what is written for them become tokens: apart in an encoder-decoder, in one row in a causal model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, TypeAlias

import torch

from setaug.errors import ModelError
from setaug.models.neural.batches import IGNORED, Batch, Item, cut, on_device, pad_inputs, pad_rows, readable_length
from setaug.models.neural.sharing import pack, pack_targets, restarted_positions, selected_logits, shared_encoder

Collate: TypeAlias = Callable[[Sequence[Item]], Batch]
"""Makes a batch of examples with their targets; ``n_targets`` says how many each has."""

_N_TRIED = 32
"""Of how many tokens a trial compares the logits."""
_SPARE = 8
"""Places left free, since a text may need more tokens within a prompt than by itself."""
_ENCODER_DECODER = ("input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask")
_CAUSAL = ("input_ids", "attention_mask", "position_ids")
"""What of a batch models are called with."""


@dataclass(frozen=True, eq=False)
class Layout(ABC):
    """How one kind of model reads prompts and writes targets.

    Parameters
    ----------
    around_text
        What the prompt puts before and behind a text.
    max_source_length, max_target_length
        Tokens of a text, and of what is written for it.

    """

    model: Any
    tokenizer: Any
    around_text: tuple[str, str]
    max_source_length: int
    max_target_length: int

    @abstractmethod
    def read(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        """Return the tokens of each text's prompt, and the number of truncated texts."""

    padding_side: ClassVar[str]
    """Where prompts are padded, so that the output follows."""

    def inputs(self, prompts: Sequence[Sequence[int]]) -> Batch:
        """Make a batch of prompts, for ``generate``."""
        return pad_inputs(prompts, self._pad, side=self.padding_side)

    @abstractmethod
    def start(self, inputs: Batch) -> int:
        """Return where the output starts in what ``generate`` returns for a batch of prompts."""

    @abstractmethod
    def room(self, n_tokens: int, prompt_length: int) -> int:
        """Clip a token budget to the positions left after the prompt."""

    def collator(self) -> Collate:
        """Return the function that collates examples: it packs them, unless that would change what the model learns."""
        return self.pack if self._can_pack else self.repeat

    @abstractmethod
    def pack(self, items: Sequence[Item]) -> Batch:
        """Return one row per example, with all of its targets."""

    @abstractmethod
    def repeat(self, items: Sequence[Item]) -> Batch:
        """Return one row per target."""

    @abstractmethod
    def run(self, model: Any, batch: Batch) -> torch.Tensor:
        """Return the logits of the model (or of what wraps it) at all places of a batch."""

    @abstractmethod
    def _predicting(self, labels: torch.Tensor) -> torch.Tensor:
        """Return the places whose logits predict the tokens to learn, as a mask."""

    def logits(self, model: Any, batch: Batch) -> torch.Tensor:
        """Return the logits of each token to learn, target by target; of a batch with ``columns``, only those."""
        places, columns = self._predicting(batch["labels"]), batch.get("columns")
        sliced = columns if columns is not None and self._can_slice else None
        with selected_logits(self.model, places, sliced) if self._can_select else nullcontext():
            found = self.run(model, batch)
        found = found if found.dim() == 2 else found[places]
        return found if columns is None or sliced is not None else found[:, columns]

    def token_log_probabilities(self, model: Any, batch: Batch) -> torch.Tensor:
        """Return the natural log-probability of each token to learn, target by target."""
        return _log_p(self.logits(model, batch), batch["labels"])

    def log_probabilities(self, model: Any, batch: Batch) -> torch.Tensor:
        """Return the natural log-probability of each target of a batch."""
        return self.by_target(self.token_log_probabilities(model, batch), batch)

    def by_target(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Sum the values of tokens over each target."""
        return torch.stack([one.sum() for one in torch.split(values, batch["lengths"].tolist())])

    @cached_property
    def _can_select(self) -> bool:
        """Whether the model works if its output layer sees only some places."""
        return self._agrees(self.repeat, selected=True)

    @cached_property
    def _can_slice(self) -> bool:
        """Whether the model works if its output layer leaves out tokens; BART, for one, adds to all of them."""
        is_plain = type(self.model.get_output_embeddings()) is torch.nn.Linear
        return is_plain and self._can_select and self._agrees(self.repeat, selected=True, sliced=True)

    @cached_property
    def _can_pack(self) -> bool:
        """Whether a model reads targets that share a row as it reads them apart; not each heeds masks and positions.

        It is tried with rows as long as they may get, since some models do not see beyond a window.
        """
        return self._agrees(self.pack)

    def _agrees(self, collate: Collate, **way: bool) -> bool:
        """Return whether a way gives the logits of targets that are read apart."""
        try:
            return torch.allclose(self._try(collate, **way), self._try(self.repeat), rtol=1e-4, atol=1e-3)
        except Exception:  # whatever a model of another kind says to a mask or to positions
            return False

    def _try(self, collate: Collate, *, selected: bool = False, sliced: bool = False) -> torch.Tensor:
        """Return the logits of some tokens at each place that the trial learns."""
        was_training = self.model.training
        self.model.eval()
        batch = on_device(collate(self._trial()), self.model.device)
        places = self._predicting(batch["labels"])
        columns = torch.arange(_N_TRIED, device=places.device)
        select = selected_logits(self.model, places, columns if sliced else None) if selected else nullcontext()
        try:
            with torch.no_grad(), select:
                found = self.run(self.model, batch)
            found = found if found.dim() == 2 else found[places]
            return found if sliced else found[:, columns]
        finally:
            self.model.train(was_training)

    def _trial(self) -> list[Item]:
        """Return made-up examples: a long one and a short one."""
        generator = torch.Generator().manual_seed(0)

        def draw(length: int) -> list[int]:
            return torch.randint(len(self.tokenizer), (length,), generator=generator).tolist()

        long: Item = {
            "input_ids": draw(self._trial_length),
            "targets": [draw(self.max_target_length) for _ in range(3)],
        }
        return [long, {"input_ids": draw(1), "targets": [draw(1), draw(2)]}]

    @property
    @abstractmethod
    def _trial_length(self) -> int:
        """How many tokens the longest prompt of a trial has."""

    @property
    def prefix(self) -> tuple[int, ...]:
        """The tokens that stand in front of each target."""
        forced = self.model.generation_config.forced_bos_token_id
        return () if forced is None else (forced,)

    def targets(self, texts: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Return the tokens of each example's targets, with the end token."""
        flat = [text for each in texts for text in each]
        tokens = iter(self.tokenizer(flat, add_special_tokens=False)["input_ids"] if flat else ())
        return [[self.target(ids) for ids in islice(tokens, len(each))] for each in texts]

    def target(self, tokens: Sequence[int]) -> list[int]:
        """Make a target of the tokens of a text."""
        return [*self.prefix, *tokens, self.model.generation_config.eos_token_id]

    @property
    def _pad(self) -> int:
        return int(self.model.generation_config.pad_token_id)

    @property
    def _places(self) -> int | None:
        """For how many tokens a model has learnt positions."""
        return getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)


class EncoderDecoder(Layout):
    """The encoder reads a prompt, the decoder writes; all targets of an example share what the encoder read."""

    padding_side = "right"

    def read(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        """Return the tokens of each text's prompt, truncated where it is too long."""
        before, after = self.around_text
        limit = readable_length(self.model, self.max_source_length)
        return cut(self.tokenizer, [before + text + after for text in texts], limit)

    def start(self, inputs: Batch) -> int:
        """Leave out the token that starts the decoder."""
        return 1

    def room(self, n_tokens: int, prompt_length: int) -> int:
        """Stay within the decoder's places."""
        return n_tokens if self._places is None else min(n_tokens, self._places - 2)

    _trial_length = 16

    def pack(self, items: Sequence[Item]) -> Batch:
        """Return one row of the encoder and one of the decoder per example, where the decoder has enough places."""
        longest = max(sum(map(len, item["targets"])) for item in items)
        if self._places is not None and longest > self._places - 2:
            return self.repeat(items)
        shifted = iter(self._shift([target for item in items for target in item["targets"]]))
        starts = [[next(shifted)[: len(target)] for target in item["targets"]] for item in items]
        inputs = pad_inputs([item["input_ids"] for item in items], self._pad)
        return {**inputs, **count_targets(items), **pack_targets(starts, items, self._pad, self.model.dtype)}

    def repeat(self, items: Sequence[Item]) -> Batch:
        """Return one row of the encoder per example, and one of the decoder per target."""
        targets = [target for item in items for target in item["targets"]]
        return {
            **pad_inputs([item["input_ids"] for item in items], self._pad),
            **count_targets(items),
            "decoder_input_ids": torch.tensor(self._shift(targets)),
            "labels": pad_rows(targets, IGNORED),
        }

    def _shift(self, targets: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return what the decoder reads for each target, padded: the model's own way to start, where it has one."""
        labels = pad_rows(targets, IGNORED)
        shift = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        if shift is not None:
            rows: list[list[int]] = shift(labels=labels).tolist()
            return rows
        start = torch.full((len(labels), 1), self.model.generation_config.decoder_start_token_id)
        return torch.cat([start, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self._pad)], dim=1).tolist()

    def run(self, model: Any, batch: Batch) -> torch.Tensor:
        """Run the encoder once per example."""
        inputs = {name: batch[name] for name in _ENCODER_DECODER if name in batch}
        if "positions" in batch:
            with restarted_positions(self.model, batch["positions"]):
                logits: torch.Tensor = model(**inputs, use_cache=False).logits
            return logits
        inputs["attention_mask"] = batch["attention_mask"].repeat_interleave(batch["n_targets"], dim=0)
        with shared_encoder(self.model, batch["n_targets"]):
            logits = model(**inputs, use_cache=False).logits
        return logits

    def _predicting(self, labels: torch.Tensor) -> torch.Tensor:
        return labels != IGNORED


class Causal(Layout):
    """Prompt and target stand in one row, cut into tokens apart; only the target is learnt.

    A tokenizer's chat template makes the prompt a message of the user and the target the answer; without one, a line
    break ends the prompt. All targets of an example share its prompt, where the model can do that.
    """

    padding_side = "left"

    def read(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        """Return the tokens of each text's prompt; a long text is truncated, never the prompt's end."""
        if not texts:
            return [], 0
        short = self._cut(texts)
        prompts = self._tokens([self._prompt(text) for text in short])
        n_cut = sum(one != other for one, other in zip(short, texts, strict=True))
        return [[*self._front, *tokens] or [self._first] for tokens in prompts], n_cut

    def _prompt(self, text: str) -> str:
        before, after = self.around_text
        prompt = before + text + after
        if not self.tokenizer.chat_template:
            return f"{prompt}\n"
        message = {"role": "user", "content": prompt}
        return str(self.tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True))

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def _cut(self, texts: Sequence[str]) -> list[str]:
        """Cut off texts (not tokens: within the prompt they may be others) where they are too long."""
        limit = self._text_length
        return [
            text if len(ids) <= limit else self._beginning(text, ids[:limit])
            for text, ids in zip(texts, self._tokens(list(texts)), strict=True)
        ]

    def _beginning(self, text: str, tokens: list[int]) -> str:
        if not self.tokenizer.is_fast:
            return str(self.tokenizer.decode(tokens, skip_special_tokens=True))
        spans = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return text[: spans["offset_mapping"][len(tokens) - 1][1]]

    @cached_property
    def _text_length(self) -> int:
        """How many tokens of a text fit, with the rest of the prompt and a target."""
        if self._places is None:
            return self.max_source_length
        left = self._places - self._n_around - self.max_target_length - _SPARE
        if left < 1:
            raise ModelError(
                f"the model's maximum length of {self._places} tokens is too short for the prompt and "
                f"max_target_length = {self.max_target_length}."
            )
        return min(self.max_source_length, left)

    @cached_property
    def _n_around(self) -> int:
        """How many tokens a prompt has beside its text."""
        (rest,) = self._tokens([self._prompt("")])
        return len(self._front) + len(rest)

    @cached_property
    def _front(self) -> list[int]:
        """What the tokenizer puts in front of a text; a chat template has it already."""
        if self.tokenizer.chat_template:
            return []
        (bare,), whole = self._tokens(["a"]), self.tokenizer("a")["input_ids"]
        at = next((at for at in range(len(whole)) if whole[at : at + len(bare)] == bare), 0)
        return list(whole[:at])

    @property
    def _first(self) -> int:
        """The token in place of a prompt that has none."""
        start = self.tokenizer.bos_token_id
        return int(self.model.generation_config.eos_token_id if start is None else start)

    def start(self, inputs: Batch) -> int:
        """Leave out the prompt."""
        return inputs["input_ids"].shape[1]

    def room(self, n_tokens: int, prompt_length: int) -> int:
        """Stay within the places that the prompt leaves."""
        return n_tokens if self._places is None else max(min(n_tokens, self._places - prompt_length), 1)

    @property
    def _trial_length(self) -> int:
        return self._n_around + self._text_length

    def pack(self, items: Sequence[Item]) -> Batch:
        """Return one row per example: its prompt and all of its targets."""
        return {**pack(items, self._pad, self.model.dtype), **count_targets(items)}

    def repeat(self, items: Sequence[Item]) -> Batch:
        """Return one row per target, each with its prompt."""
        pairs = [(item["input_ids"], target) for item in items for target in item["targets"]]
        return {
            **pad_inputs([[*prompt, *target] for prompt, target in pairs], self._pad),
            **count_targets(items),
            "labels": pad_rows([[IGNORED] * len(prompt) + target for prompt, target in pairs], IGNORED),
        }

    def run(self, model: Any, batch: Batch) -> torch.Tensor:
        """Run the model on all rows."""
        inputs = {name: batch[name] for name in _CAUSAL if name in batch}
        logits: torch.Tensor = model(**inputs, use_cache=False).logits
        return logits

    def _predicting(self, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(labels[:, 1:] != IGNORED, (0, 1))


def make_layout(model: Any, tokenizer: Any, **options: Any) -> Layout:
    """Make the layout for a model."""
    kind = EncoderDecoder if model.config.is_encoder_decoder else Causal
    return kind(model, tokenizer, **options)


def count_targets(items: Sequence[Item]) -> Batch:
    """Return the number of targets of each example, and of tokens of each target."""
    return {
        "n_targets": torch.tensor([len(item["targets"]) for item in items]),
        "lengths": torch.tensor([len(target) for item in items for target in item["targets"]]),
    }


def _log_p(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the natural log-probability of each label that is not ignored."""
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return -torch.nn.functional.cross_entropy(exact, labels[labels != IGNORED], reduction="none")
