"""Run the encoder once per example and let its states serve all of the example's orders."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class SharedEncoder:
    """Make a model take fewer inputs than targets: each input serves as many targets as is said.

    Two hooks sit on the encoder, so that the model's own forward pass stays one call (which data parallelism needs):
    the encoder sees each input once, the decoder sees its states once per target. The gradient is that of repeating
    the inputs.

    Parameters
    ----------
    model
        Any encoder-decoder of transformers.

    """

    def __init__(self, model: Any) -> None:
        self._n_targets: torch.Tensor | None = None
        encoder = model.get_encoder()
        self._hooks = [
            encoder.register_forward_pre_hook(self._see_once, with_kwargs=True),
            encoder.register_forward_hook(self._repeat_states),
        ]

    @contextmanager
    def serving(self, n_targets: torch.Tensor) -> Iterator[None]:
        """Within this, call the model with one input per example, but with a row of ``attention_mask`` per target."""
        self._n_targets = n_targets
        try:
            yield
        finally:
            self._n_targets = None

    def remove(self) -> None:
        """Take the hooks off the model."""
        for hook in self._hooks:
            hook.remove()

    def _see_once(self, encoder: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        if self._n_targets is None:
            return None
        firsts = self._n_targets.cumsum(0) - self._n_targets
        return args, {**kwargs, "attention_mask": kwargs["attention_mask"][firsts]}

    def _repeat_states(self, encoder: Any, args: Any, output: Any) -> Any:
        if self._n_targets is None:
            return None
        output.last_hidden_state = output.last_hidden_state.repeat_interleave(self._n_targets, dim=0)
        return output
