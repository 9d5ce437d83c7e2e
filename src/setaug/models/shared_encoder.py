"""Run the encoder once per example and share its states among the example's orders."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


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
