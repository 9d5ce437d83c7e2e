"""Greedy search and sampling under a set constraint, with as few passes through the model as it needs.

transformers' ``generate`` runs the model on every row for every token. Here a pass is left out where it changes
nothing: all sets that begin alike share a row, sets that have ended leave the batch, tokens that the constraint forces
need no scores, and of the output layer only the rows of tokens in known labels are used.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import torch
import xxhash
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from setaug.decoding.automaton import Choices, SetAutomaton, Tokens
from setaug.decoding.label_sums import LabelTally
from setaug.errors import ModelError
from setaug.models.neural.batches import Batch
from setaug.models.neural.constraint import SetConstraint
from setaug.orders.rng import Stream

SHARING = 4
"""How many times as many sampled sets fit into a batch, since those of a text share what they begin with."""
_OPTIONS = frozenset(("do_sample", "num_beams", "temperature", "top_k", "top_p"))
"""The arguments of ``generate`` that `generate_sets` understands."""
_HARMLESS = _OPTIONS | {
    *("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"),
    *("forced_bos_token_id", "forced_eos_token_id", "max_length", "max_new_tokens", "early_stopping", "length_penalty"),
    *("use_cache", "output_attentions", "output_hidden_states", "output_scores", "return_dict_in_generate"),
    *("transformers_version", "_from_model_config"),
}
"""The settings of a model that do not change what it writes under a constraint, without beams."""


@dataclass(slots=True)
class _Row:
    """A way in which sets of a text begin."""

    text: int
    samples: list[int]
    """Which of the text's sets begin like this."""
    tokens: list[int]
    state: Any
    n_read: int = 0
    """How many of the tokens the model has read."""
    choices: Choices | None = None
    """What may come next; known once all forced tokens are appended."""


def can_generate(model: Any, options: dict[str, Any]) -> bool:
    """Return whether `generate_sets` writes what ``generate`` would write with these options."""
    own = set(model.generation_config.to_diff_dict())
    return options.keys() <= _OPTIONS and options.get("num_beams", 1) == 1 and own <= _HARMLESS


def generate_sets(
    model: Any,
    inputs: Batch,
    constraint: SetConstraint,
    options: dict[str, Any],
    *,
    n_each: int,
    max_new_tokens: int,
    seed: int,
    tally: LabelTally | None = None,
) -> list[list[list[int]]]:
    """Return the tokens of `n_each` sets for each text of a batch, up to and with the end token.

    Parameters
    ----------
    inputs
        The tokens of the texts, and their mask.
    options
        Arguments of ``generate``.
    seed
        What is sampled for a text depends on the seed and on its tokens, not on the other texts.
    tally
        Gets the probabilities of all next tokens. The sets of a text are then drawn together: those that begin alike go
        on with each token as often as its probability says, up to one.

    """
    model = getattr(model, "get_base_model", lambda: model)()  # adapters act from within
    automaton = constraint.automaton
    columns = _Columns(automaton.tokens, len(constraint.tokenizer))
    steps = _Steps(columns.narrow(model), inputs)
    streams = _random_streams(inputs, n_each, seed) if options["do_sample"] else None
    warpers = _make_warpers(options)
    pick = partial(_pick, columns=columns, warpers=warpers, streams=streams, tally=tally)
    written: list[list[list[int]]] = [[[]] * n_each for _ in range(len(inputs["input_ids"]))]
    live = [_Row(text, list(range(n_each)), [], automaton.start()) for text in range(len(written))]
    parents = list(range(len(live)))
    while live:
        for row in live:
            _force(automaton, row, max_new_tokens, tally)
        is_done = [len(row.tokens) >= max_new_tokens or row.tokens[-1:] == [constraint.end] for row in live]
        for row in (row for row, done in zip(live, is_done, strict=True) if done):
            for sample in row.samples:
                written[row.text][sample] = row.tokens
        parents = [parent for parent, done in zip(parents, is_done, strict=True) if not done]
        live = [row for row, done in zip(live, is_done, strict=True) if not done]
        if not live:
            break
        n_next = min(len(row.tokens) - row.n_read for row in live)
        scores = columns.of(steps.next(parents, [row.tokens[row.n_read : row.n_read + n_next] for row in live]))
        if scores.isnan().any():
            raise ModelError("the model's outputs are not numbers (NaN); its training may have diverged.")
        for row in live:
            row.n_read += n_next
        waiting = [at for at, row in enumerate(live) if row.n_read == len(row.tokens)]
        masked = columns.mask(scores[waiting], [live[at].choices for at in waiting])
        chosen = dict(zip(waiting, pick(masked, [live[at] for at in waiting]), strict=True))
        live, parents = _branch(automaton, columns, live, chosen)
    return written


def _force(automaton: SetAutomaton, row: _Row, limit: int, tally: LabelTally | None) -> None:
    """Append the tokens that have to come, and note what may come after them."""
    while row.choices is None and len(row.tokens) < limit:
        choices = automaton.choices(row.state)
        if choices.are_banned or len(choices.tokens) != 1 or automaton.reading(row.state).has_ended:
            row.choices = choices
            return
        if tally is not None:
            tally.add(row.text, row.state, choices.tokens, np.ones(1), len(row.samples))
        row.tokens.append(int(choices.tokens[0]))
        row.state = automaton.step(row.state, row.tokens[-1])


def _branch(
    automaton: SetAutomaton, columns: "_Columns", rows: list[_Row], chosen: dict[int, list[int]]
) -> tuple[list[_Row], list[int]]:
    """Return a row for each way to go on, and the index of the row that it goes on from."""
    found, parents = [], []
    for at, row in enumerate(rows):
        if at not in chosen:
            found.append(row)
            parents.append(at)
            continue
        samples: dict[int, list[int]] = {}
        for sample, column in zip(row.samples, chosen[at], strict=True):
            samples.setdefault(columns.token(column), []).append(sample)
        for token, ones in samples.items():
            found.append(_Row(row.text, ones, [*row.tokens, token], automaton.step(row.state, token), row.n_read))
            parents.append(at)
    return found, parents


def _make_warpers(options: dict[str, Any]) -> LogitsProcessorList:
    """Return what ``generate`` does to scores before it samples."""
    warpers = LogitsProcessorList()
    if options.get("temperature", 1.0) != 1.0:
        warpers.append(TemperatureLogitsWarper(options["temperature"]))
    if options.get("top_k", 0):
        warpers.append(TopKLogitsWarper(options["top_k"]))
    if options.get("top_p", 1.0) < 1.0:
        warpers.append(TopPLogitsWarper(options["top_p"]))
    return warpers


def _random_streams(inputs: Batch, n_each: int, seed: int) -> list[list[Stream]]:
    """Return the random numbers of each sample: they depend on the text, so that equal texts get equal samples."""
    found = []
    for tokens, mask in zip(inputs["input_ids"].cpu().numpy(), inputs["attention_mask"].cpu().numpy(), strict=True):
        text = xxhash.xxh3_64_intdigest(tokens[mask.astype(bool)].tobytes())
        found.append([Stream(seed, text + sample) for sample in range(n_each)])
    return found


def draw_by_text(
    inputs: Batch, options: dict[str, Any], *, n_each: int, start: int, n_tokens: int, seed: int
) -> list[LogitsProcessor]:
    """Return processors that sample as ``generate`` does with these options, with numbers of each text's own.

    They come last; ``generate`` itself then has to sample from the whole distribution, which is one token.

    Parameters
    ----------
    inputs
        The tokens of the texts, and their mask.
    n_each
        Consecutive rows of each text.
    start
        Number of tokens in a row before the first draw.
    n_tokens
        Maximum number of tokens to draw for a row.

    """
    streams = [stream for each in _random_streams(inputs, n_each, seed) for stream in each]
    numbers = [[_uniform(stream) for _ in range(max(n_tokens, 1))] for stream in streams]
    return [*_make_warpers(options), _Draws(torch.tensor(numbers, dtype=torch.float64), start)]


class _Draws(LogitsProcessor):
    """Draw each next token by inverting the distribution, so that one number per token is enough."""

    def __init__(self, numbers: torch.Tensor, start: int) -> None:
        self._numbers, self._start = numbers, start

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores that allow the drawn token only."""
        numbers = self._numbers[:, input_ids.shape[1] - self._start, None].to(scores.device)
        sums = scores.double().softmax(dim=-1).cumsum(dim=-1)
        whole = sums[:, -1:].contiguous()
        # The first token whose sum is above the number; never one without probability, whatever the rounding.
        drawn = torch.searchsorted(sums, numbers * whole, right=True)
        drawn = torch.minimum(drawn, torch.searchsorted(sums, whole))
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn, 0.0)


def _pick(
    scores: torch.Tensor,
    rows: Sequence[_Row],
    *,
    columns: "_Columns",
    warpers: LogitsProcessorList,
    streams: list[list[Stream]] | None,
    tally: LabelTally | None,
) -> list[list[int]]:
    """Return the column that each sample of each row goes on with."""
    if streams is None:
        return [[best] * len(row.samples) for best, row in zip(scores.argmax(dim=-1).tolist(), rows, strict=True)]
    warped: torch.Tensor = warpers(None, scores)  # type: ignore[arg-type]  # these read no tokens
    shares = warped.double().softmax(dim=-1)
    found = []
    for row, weights, sums in zip(rows, shares.cpu().numpy(), shares.cumsum(dim=-1).cpu().numpy(), strict=True):
        if tally is None:
            draws = np.array([_uniform(streams[row.text][sample]) for sample in row.samples])
        else:
            assert row.choices is not None
            tokens = row.choices.tokens
            tally.add(row.text, row.state, tokens, weights[columns.at(tokens)], len(row.samples))
            start = _uniform(streams[row.text][row.samples[0]])
            draws = (start + np.arange(len(row.samples))) / len(row.samples)
        found.append(np.searchsorted(sums, draws * sums[-1], side="right").tolist())
    return found


def _uniform(stream: Stream) -> float:
    return (stream.next() >> 11) / (1 << 53)


class _Columns:
    """The tokens whose scores are needed: a column for each.

    Parameters
    ----------
    tokens
        The tokens that a set can contain, sorted; None for any.
    n_tokens
        The number of tokens of the tokenizer; a model may have more places.

    """

    def __init__(self, tokens: Tokens | None, n_tokens: int) -> None:
        self._tokens = tokens
        self._width = n_tokens if tokens is None else len(tokens)
        if tokens is not None:
            self._places = np.zeros(int(tokens[-1]) + 1, np.int64)
            self._places[tokens] = np.arange(len(tokens))

    def narrow(self, model: Any) -> Any:
        """Return the model with the needed rows of the output layer; they are copied, all else is shared."""
        head = model.get_output_embeddings()
        name = next((name for name, part in model.named_children() if part is head), None)
        if self._tokens is None or name is None or type(head) is not torch.nn.Linear or "forward" in vars(model):
            return model
        if 2 * self._width > head.out_features:
            return model
        kept = torch.from_numpy(self._tokens).to(head.weight.device)
        small = torch.nn.Linear(head.in_features, self._width, bias=head.bias is not None, device="meta")
        small.weight = torch.nn.Parameter(head.weight[kept], requires_grad=False)
        if head.bias is not None:
            small.bias = torch.nn.Parameter(head.bias[kept], requires_grad=False)
        found = copy(model)
        found._modules = {**model._modules, name: small}
        wide = {name for name, values in model._buffers.items() if values.shape[-1:] == (head.out_features,)}
        found._buffers = {
            name: values[..., kept] if name in wide else values for name, values in model._buffers.items()
        }
        return found

    def of(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the needed columns of a model's scores."""
        if self._tokens is None:
            return logits[:, : self._width]
        return logits if logits.shape[1] == self._width else logits[:, torch.from_numpy(self._tokens)]

    def mask(self, scores: torch.Tensor, choices: Sequence[Any]) -> torch.Tensor:
        """Forbid all but the choices of each row."""
        allowed = np.zeros(scores.shape, bool)
        for row, one in zip(allowed, choices, strict=True):
            if one.are_banned:
                row[:] = True
            row[self.at(one.tokens)] = not one.are_banned
        return scores.float().masked_fill(~torch.from_numpy(allowed).to(scores.device), -torch.inf)

    def at(self, tokens: Tokens) -> Any:
        """Return the columns of tokens."""
        return tokens if self._tokens is None else self._places[tokens]

    def token(self, column: int) -> int:
        """Return the token of a column."""
        return column if self._tokens is None else int(self._tokens[column])


class _Steps:
    """A model that reads rows of tokens step by step; what it has read is kept for the rows that go on."""

    def __init__(self, model: Any, inputs: Batch) -> None:
        self._model = model
        self._known = signature(model.forward).parameters.keys()
        self._mask = inputs["attention_mask"]
        self._states: Any = None
        self._cache: Any = None
        self._prompts = inputs["input_ids"]
        if model.config.is_encoder_decoder:
            self._states = model.get_encoder()(**inputs, return_dict=True)
            start = model.generation_config.decoder_start_token_id
            self._prompts = torch.full((len(self._mask), 1), start, device=self._mask.device)

    def next(self, parents: list[int], tokens: list[list[int]]) -> torch.Tensor:
        """Let each row go on from one of the last rows with some tokens; return the scores of what follows."""
        if parents != list(range(len(self._mask))):
            self._select(torch.tensor(parents, device=self._mask.device))
        given = torch.tensor(tokens, dtype=torch.long, device=self._mask.device).reshape(len(tokens), -1)
        if self._cache is None:
            given = torch.cat([self._prompts, given], dim=1)
        run = self._decode if self._states is not None else self._continue
        output = run(given)
        self._cache = output.past_key_values
        scores: torch.Tensor = output.logits[:, -1]
        return scores

    def _select(self, rows: torch.Tensor) -> None:
        self._mask = self._mask[rows]
        if self._states is not None:
            self._states.last_hidden_state = self._states.last_hidden_state[rows]
        if self._cache is None:
            self._prompts = self._prompts[rows]
        else:
            self._cache.reorder_cache(rows)

    def _decode(self, tokens: torch.Tensor) -> Any:
        return self._model(
            encoder_outputs=self._states,
            attention_mask=self._mask,
            decoder_input_ids=tokens,
            past_key_values=self._cache,
            use_cache=True,
        )

    def _continue(self, tokens: torch.Tensor) -> Any:
        n_new = tokens.shape[1] - (self._prompts.shape[1] if self._cache is None else 0)
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), n_new)], dim=1)
        options: dict[str, Any] = {}
        if "position_ids" in self._known:
            options["position_ids"] = (self._mask.cumsum(dim=1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        if "logits_to_keep" in self._known:
            options["logits_to_keep"] = 1
        return self._model(
            input_ids=tokens, attention_mask=self._mask, past_key_values=self._cache, use_cache=True, **options
        )
