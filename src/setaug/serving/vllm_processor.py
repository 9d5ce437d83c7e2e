"""A logits processor for vLLM: a request that names labels is answered with a set.

vLLM finds it through the entry point ``vllm.logits_processors``. vLLM 0.32 has two model runners, with an interface
each: version 2 by default, version 1 where there is no Triton (on CPUs). The class has both, since an entry point
names one class: version 1 calls `update_state` and then ``apply(logits)``, version 2 `add_request` and then
``apply(logits, context)``.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from vllm import SamplingParams
from vllm.config import VllmConfig
from vllm.logger import init_logger
from vllm.v1.sample.logits_processor.builtin import process_dict_updates
from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor

from setaug.decoding.automaton import Choices
from setaug.decoding.set_request import SetRequest
from setaug.models.neural.constraint import SetConstraint
from setaug.serving.request_constraint import make_constraint

_KEPT = 64
"""How many constraints are kept for later requests."""
logger = init_logger(__name__)


class _Answer:
    """The set that a request is answered with, as far as it is written."""

    def __init__(self, constraint: SetConstraint | None, end: int, tokens: Sequence[int] = ()) -> None:
        self._constraint = constraint
        self._end = end
        self._state: Any = None if constraint is None else constraint.automaton.start()
        self.tokens = tokens
        """What the request has been answered with; version 1 of the interface appends to it."""
        self.n_read = 0

    def read(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if self._constraint is not None and self._state is not None:
                self._state = self._constraint.automaton.step(self._state, token)
        self.n_read += len(tokens)

    def choices(self) -> Choices:
        """Return what may come next: the end, where there is no constraint or the answer has left it."""
        if self._constraint is None or self._state is None:
            return Choices(torch.tensor([self._end]).numpy())
        return self._constraint.automaton.choices(self._state)


class SetLogitsProcessor(LogitsProcessor):  # type: ignore[misc]  # types are checked without vLLM
    """Lets a request with ``set_labels`` in its ``vllm_xargs`` write nothing but a set; others stay as they are."""

    def __init__(self, vllm_config: VllmConfig, *others: Any) -> None:
        self._model = vllm_config.model_config
        self._answers: dict[int, _Answer] = {}
        self._constraints: OrderedDict[tuple[SetRequest, int], SetConstraint | None] = OrderedDict()
        self._tokenizer: Any = None
        self._requests: Any = others[0] if len(others) == 1 else None
        self._drafts = vllm_config.speculative_config is not None
        self._obstacle = ""
        """Why no request can be answered with a set."""
        if self._drafts:
            self._obstacle = "setaug does not support speculative decoding"
        elif self._requests is None and vllm_config.scheduler_config.async_scheduling:
            # In version 1 a plugin is not shown the last token where steps are scheduled ahead.
            self._obstacle = "setaug needs --no-async-scheduling with version 1 of the model runner"

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Raise `ValueError` for bad parameters: the server answers with status 400."""
        if SetRequest.read(sampling_params.extra_args) is None:
            return
        if sampling_params.ignore_eos:
            raise ValueError("ignore_eos must be false for a request with set_labels: a set ends.")
        if sampling_params.structured_outputs is not None:
            raise ValueError(
                "a request with set_labels takes no structured outputs; set_form=json writes sets as JSON."
            )
        if sampling_params.allowed_token_ids is not None:
            raise ValueError("a request with set_labels takes no allowed_token_ids: its labels determine the tokens.")

    def _new(self, params: SamplingParams, prompt: list[int] | None, tokens: list[int]) -> _Answer | None:
        request = SetRequest.read(params.extra_args)
        if request is None:
            return None
        self._tokenizer = self._tokenizer or _load_tokenizer(self._model)
        end = params.eos_token_id
        end = self._tokenizer.eos_token_id if end is None else end
        key = (request, end)
        if key not in self._constraints:
            self._constraints[key] = self._make(request, end)
        self._constraints.move_to_end(key)
        if len(self._constraints) > _KEPT:
            self._constraints.popitem(last=False)
        return _Answer(self._constraints[key], end, tokens)

    def _make(self, request: SetRequest, end: int) -> SetConstraint | None:
        """Make a constraint; None (an empty answer) where the tokenizer allows none, since an error would end vLLM."""
        if self._obstacle:
            logger.error("%s; the answer is empty.", self._obstacle)
            return None
        try:
            return make_constraint(request, self._tokenizer, end=end)
        except ValueError as error:
            logger.error("setaug answers a request with an empty text: %s", error)
            return None

    # Version 1

    def is_argmax_invariant(self) -> bool:
        """Return that greedy search needs it, too."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests that come, go and move."""
        process_dict_updates(self._answers, batch_update, self._new)

    # Version 2

    def add_request(self, req_idx: int, sampling_params: SamplingParams) -> bool:
        """Begin an answer; a request that was interrupted is added again, with what it was answered so far."""
        answer = self._new(sampling_params, None, [])
        self._answers.pop(req_idx, None)
        if answer is not None:
            self._answers[req_idx] = answer
        return answer is not None

    # Both

    def apply(self, logits: torch.Tensor, context: Any = None) -> torch.Tensor:
        """Forbid all tokens that no set can go on with."""
        if not self._answers:
            return logits
        rows = self._read_lists(len(logits)) if context is None else self._read_slots(context)
        _forbid(logits, {row: answer.choices() for row, answer in rows.items()})
        return logits

    def _read_lists(self, n_rows: int) -> dict[int, _Answer]:
        rows = {row: answer for row, answer in self._answers.items() if row < n_rows}
        for answer in rows.values():
            answer.read(answer.tokens[answer.n_read :])
        return rows

    def _read_slots(self, context: Any) -> dict[int, _Answer]:
        """Read the tokens that vLLM keeps per request; the last one is also what the model has just been fed."""
        if self._drafts:  # several rows per request; all of them end the answer
            slots = enumerate(context.expanded_idx_mapping.tolist())
            return {row: self._answers[slot] for row, slot in slots if slot in self._answers}
        found = {}
        last = None
        for row, slot in enumerate(context.idx_mapping_np.tolist()):
            answer = self._answers.get(slot)
            length = int(context.seq_lens_upper_bound_np[row])
            if answer is None or length < int(self._requests.prefill_len.np[slot]):  # a prompt is read in parts
                continue
            start = int(self._requests.prompt_len.np[slot])
            n_missing = length - start - answer.n_read
            if n_missing == 1:
                last = context.input_ids.tolist() if last is None else last
                answer.read([last[row]])
            elif n_missing > 1:
                answer.read(self._requests.all_token_ids.gpu[slot, start + answer.n_read : length].tolist())
            found[row] = answer
        return found


def _forbid(logits: torch.Tensor, choices: dict[int, Choices]) -> None:
    """Forbid, in place, all but the choices of some rows, with few operations however many rows there are."""
    banned = {row: one for row, one in choices.items() if one.are_banned}
    if banned:
        logits[_places(banned, logits.device)] = -torch.inf
    listed = {row: one for row, one in choices.items() if not one.are_banned}
    if not listed:
        return
    rows, tokens = _places(listed, logits.device)
    kept = logits[rows, tokens]
    n_left = torch.zeros(len(logits), device=logits.device).index_add_(0, rows, (kept > -torch.inf).float())
    logits.index_fill_(0, torch.tensor(list(listed), device=logits.device), -torch.inf)
    # What has forbidden all that a set can go on with (min_tokens, say) does not count: it is to be a set.
    logits[rows, tokens] = kept.masked_fill(n_left[rows] == 0, 0.0)


def _places(choices: dict[int, Choices], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the row and the token of each choice."""
    lengths = [len(one.tokens) for one in choices.values()]
    rows = torch.from_numpy(np.repeat(np.array(list(choices)), lengths))
    tokens = torch.from_numpy(np.concatenate([one.tokens for one in choices.values()]))
    return rows.to(device), tokens.to(device)


def _load_tokenizer(model: Any) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(
        model.tokenizer, revision=model.tokenizer_revision, trust_remote_code=model.trust_remote_code
    )
