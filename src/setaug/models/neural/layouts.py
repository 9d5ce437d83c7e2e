"""How texts and what is written for them become tokens: apart in an encoder-decoder, in one row in a causal model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from math import log
from typing import Any, ClassVar, TypeAlias

import torch

from setaug.errors import ModelError
from setaug.models.neural.batches import IGNORED, Batch, Item, cut, pad_inputs, pad_rows

Collate: TypeAlias = Callable[[Sequence[Item]], Batch]
"""Makes a batch of examples with their targets; ``n_targets`` says how many each has."""

_SPARE = 8
"""Places left free, since a text may need more tokens within a prompt than by itself."""
_PROMPT, _PADDING = 0, -1


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

    @abstractmethod
    def collator(self) -> Collate:
        """Return the function that collates examples, for the model as it is now."""

    @abstractmethod
    def run(self, model: Any, batch: Batch) -> Any:
        """Return the output of the model (or of what wraps it) for a batch, with the mean loss."""

    @abstractmethod
    def log_probabilities(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the natural log-probability of each target of a batch."""

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
        return cut(self.tokenizer, [before + text + after for text in texts], self.max_source_length)

    def start(self, inputs: Batch) -> int:
        """Leave out the token that starts the decoder."""
        return 1

    def room(self, n_tokens: int, prompt_length: int) -> int:
        """Stay within the decoder's places."""
        return n_tokens if self._places is None else min(n_tokens, self._places - 2)

    def collator(self) -> Collate:
        """Return the only collator there is."""
        return self.collate

    def collate(self, items: Sequence[Item]) -> Batch:
        """Return one row of ``input_ids`` and ``attention_mask`` per example, one row of ``labels`` per target."""
        return {
            **pad_inputs([item["input_ids"] for item in items], self._pad),
            "n_targets": count_targets(items),
            "labels": pad_rows([target for item in items for target in item["targets"]], IGNORED),
        }

    def run(self, model: Any, batch: Batch) -> Any:
        """Run the encoder once per example."""
        n_targets = batch["n_targets"]
        mask = batch["attention_mask"].repeat_interleave(n_targets, dim=0)
        with shared_encoder(self.model, n_targets):
            return model(input_ids=batch["input_ids"], attention_mask=mask, labels=batch["labels"])

    def log_probabilities(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Sum over each row."""
        return token_log_probabilities(logits, labels).sum(dim=1)


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
                f"the model has places for {self._places} tokens, too few for the prompt and "
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

    def collator(self) -> Collate:
        """Pack, unless it would change what the model makes of a target."""
        return self.pack if self._can_pack else self.repeat

    @cached_property
    def _can_pack(self) -> bool:
        """Whether a model reads targets that share a prompt as it reads them apart; not each heeds masks and positions.

        It is tried with rows as long as they may get, since some models do not see beyond a window.
        """
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                together, apart = (self._score(collate(self._trial())) for collate in (self.pack, self.repeat))
            return torch.allclose(together, apart, rtol=1e-6, atol=1e-3)
        except Exception:  # whatever a model of another kind says to a mask or to positions
            return False
        finally:
            self.model.train(was_training)

    def _trial(self) -> list[Item]:
        """Return made-up examples: a long one and a short one."""
        generator = torch.Generator().manual_seed(0)

        def draw(length: int) -> list[int]:
            return torch.randint(len(self.tokenizer), (length,), generator=generator).tolist()

        long: Item = {
            "input_ids": draw(self._n_around + self._text_length),
            "targets": [draw(self.max_target_length) for _ in range(3)],
        }
        return [long, {"input_ids": draw(1), "targets": [draw(1), draw(2)]}]

    def _score(self, batch: Batch) -> torch.Tensor:
        batch = {name: values.to(self.model.device) for name, values in batch.items()}
        return self.log_probabilities(self.run(self.model, batch).logits, batch["labels"])

    def pack(self, items: Sequence[Item]) -> Batch:
        """Return one row per example: its prompt and all of its targets."""
        return {**pack(items, self._pad, self.model.dtype), "n_targets": count_targets(items)}

    def repeat(self, items: Sequence[Item]) -> Batch:
        """Return one row per target, each with its prompt."""
        pairs = [(item["input_ids"], target) for item in items for target in item["targets"]]
        return {
            **pad_inputs([[*prompt, *target] for prompt, target in pairs], self._pad),
            "n_targets": count_targets(items),
            "labels": pad_rows([[IGNORED] * len(prompt) + target for prompt, target in pairs], IGNORED),
        }

    def run(self, model: Any, batch: Batch) -> Any:
        """Run the model on all rows."""
        return model(**{name: values for name, values in batch.items() if name != "n_targets"})

    def log_probabilities(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Sum over each run of labels: what is not learnt stands before each target."""
        is_target = labels != IGNORED
        begins = is_target[:, 1:] & ~is_target[:, :-1]
        runs = (begins.flatten().cumsum(0) - 1)[is_target[:, 1:].flatten()]
        found = token_log_probabilities(logits[:, :-1], labels[:, 1:])[is_target[:, 1:]]
        return torch.stack([run.sum() for run in torch.split(found, runs.bincount().tolist())])


def make_layout(model: Any, tokenizer: Any, **options: Any) -> Layout:
    """Make the layout for a model."""
    kind = EncoderDecoder if model.config.is_encoder_decoder else Causal
    return kind(model, tokenizer, **options)


@contextmanager
def shared_encoder(model: Any, n_targets: torch.Tensor) -> Iterator[None]:
    """Within this, call the model with one input per example, but with a row of ``attention_mask`` per target.

    Two hooks sit on the encoder, so that the model's own forward pass stays one call (which data parallelism needs):
    the encoder sees each input once, the decoder sees its states once per target. The gradient is that of repeating
    the inputs.

    Parameters
    ----------
    model
        Any encoder-decoder of transformers.
    n_targets
        How many targets each input serves.

    """

    def see_once(encoder: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        firsts = n_targets.cumsum(0) - n_targets
        return args, {**kwargs, "attention_mask": kwargs["attention_mask"][firsts]}

    def repeat_states(encoder: Any, args: Any, output: Any) -> Any:
        output.last_hidden_state = output.last_hidden_state.repeat_interleave(n_targets, dim=0)
        return output

    encoder = model.get_encoder()
    hooks = [
        encoder.register_forward_pre_hook(see_once, with_kwargs=True),
        encoder.register_forward_hook(repeat_states),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def pack(items: Sequence[Item], pad: int, dtype: torch.dtype) -> Batch:
    """Return a batch with one row per example: the prompt, then each target as if it were the only one.

    A part is the prompt's last token, which predicts the target's first, and the target. Positions restart with each
    part, and the mask lets a part attend to the prompt and to itself. So each token is predicted from the same context
    as in a row of its own, and the model's usual loss is the mean over all tokens of all targets.

    Parameters
    ----------
    dtype
        The model's: the mask is added to its scores.

    """
    rows = [_row(item) for item in items]
    tokens, labels, positions, parts = (
        pad_rows([row[at] for row in rows], value) for at, value in enumerate((pad, IGNORED, 0, _PADDING))
    )
    shared = (parts == _PROMPT)[:, None, :] | (parts[:, None, :] == parts[:, :, None])
    seen = shared.tril()  # padding sees itself: a row of which nothing is seen has no mean
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
    return {"input_ids": tokens, "labels": labels, "position_ids": positions, "attention_mask": mask[:, None]}


def _row(item: Item) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return the tokens, labels, positions and parts of an example."""
    *before, last = item["input_ids"]
    tokens, labels = list(before), [IGNORED] * len(before)
    positions, parts = list(range(len(before))), [_PROMPT] * len(before)
    for part, target in zip(count(_PROMPT + 1), item["targets"], strict=False):
        tokens += [last, *target]
        labels += [IGNORED, *target]
        positions += range(len(before), len(before) + 1 + len(target))
        parts += [part] * (1 + len(target))
    return tokens, labels, positions, parts


def count_targets(items: Sequence[Item]) -> torch.Tensor:
    """Return the number of targets of each example."""
    return torch.tensor([len(item["targets"]) for item in items])


def token_log_probabilities(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the natural log-probability of each label; 0 where it is ignored."""
    return -torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), labels, reduction="none", ignore_index=IGNORED
    )


def training_loss(layout: Layout, model: Any, batch: Batch, objective: str) -> torch.Tensor:
    """Run a model on a batch of the layout; return the loss that the objective defines."""
    output = layout.run(model, batch)
    if objective == "plain":
        loss: torch.Tensor = output.loss
        return loss
    log_p = layout.log_probabilities(output.logits, batch["labels"])
    return set_loss(log_p, batch["labels"], len(batch["n_targets"]), objective)


def set_loss(log_p: torch.Tensor, labels: torch.Tensor, n_examples: int, objective: str) -> torch.Tensor:
    """Return the negative bound of the sets' log-likelihood, per token, for targets that are drawn orders.

    With p_k the probability of the k-th of an example's K targets, the bound is the mean of log p_k (``elbo``) or the
    logarithm of the mean of p_k (``iwelbo``). An example's orders are drawn with the same chance 1 / e each, so log e
    would be added; it does not depend on the model, and is left out. The sum over examples is divided by the sum of
    their mean numbers of tokens: so ``elbo`` is what the plain loss is for the same targets.

    Parameters
    ----------
    log_p, labels
        The natural logarithm of each target's probability, and its tokens; K rows for each example.

    """
    each = log_p.reshape(n_examples, -1)
    n_targets = each.shape[1]
    bounds = each.mean(dim=1) if objective == "elbo" else each.logsumexp(dim=1) - log(n_targets)
    return -bounds.sum() * n_targets / (labels != IGNORED).sum()
