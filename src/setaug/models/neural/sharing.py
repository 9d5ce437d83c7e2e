"""Targets of one example share what the model has read: packed rows, the shared encoder, logits only where needed."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

import torch

from setaug.models.neural.batches import IGNORED, Batch, Item, pad_rows

_PROMPT, _PADDING = 0, -1


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


@contextmanager
def restarted_positions(model: Any, positions: torch.Tensor) -> Iterator[None]:
    """Within this, the decoder's learnt (or sinusoidal) positions are these: they restart with each target of a row.

    Relative positions need no help: within a target they are the same in a packed row.
    """
    embed = getattr(model.get_decoder(), "embed_positions", None)

    def restart(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        return output.reshape(-1, *output.shape[-2:])[0][positions]

    with ExitStack() as stack:
        if isinstance(embed, torch.nn.Module):
            stack.callback(embed.register_forward_hook(restart).remove)
        yield


@contextmanager
def selected_logits(model: Any, places: torch.Tensor, columns: torch.Tensor | None = None) -> Iterator[None]:
    """Within this, the output layer sees only these places of a batch (true in rows and columns): one row for each.

    Parameters
    ----------
    columns
        The tokens whose logits are computed; by default all. Only a plain linear layer can leave some out.

    """
    layer = model.get_output_embeddings()
    chosen: list[torch.Tensor] = []

    def select(module: Any, args: tuple[Any, ...]) -> Any:
        states = args[0] if args else None
        if not isinstance(states, torch.Tensor) or states.dim() != 3 or states.shape[:2] != places.shape:
            return None
        if columns is None:
            return (states[places], *args[1:])
        chosen.append(states[places])
        return (states[:0, :0], *args[1:])

    def compute(module: Any, args: Any, output: Any) -> Any:
        if not chosen:
            return None
        bias = None if module.bias is None else module.bias[columns]
        return torch.nn.functional.linear(chosen.pop(), module.weight[columns], bias)

    with ExitStack() as stack:
        if isinstance(layer, torch.nn.Module):
            stack.callback(layer.register_forward_pre_hook(select).remove)
        if columns is not None and isinstance(layer, torch.nn.Module):
            stack.callback(layer.register_forward_hook(compute).remove)
        yield


def pack_targets(
    starts: Sequence[Sequence[Sequence[int]]], items: Sequence[Item], pad: int, dtype: torch.dtype
) -> Batch:
    """Return the decoder's side of a batch with one row per example: all of its targets, each as if it were alone.

    Parameters
    ----------
    starts
        What the decoder reads for each target of each item: the target, shifted by its start token.
    dtype
        The model's: the mask is added to its scores.

    """
    labels = [[token for target in item["targets"] for token in target] for item in items]
    tokens = [[token for start in each for token in start] for each in starts]
    positions = [[at for target in item["targets"] for at in range(len(target))] for item in items]
    parts = pad_rows([[at for at, one in enumerate(item["targets"], 1) for _ in one] for item in items], _PADDING)
    return {
        "decoder_input_ids": pad_rows(tokens, pad),
        "decoder_attention_mask": _mask(parts[:, None, :] == parts[:, :, None], dtype),
        "positions": pad_rows(positions, 0),
        "labels": pad_rows(labels, IGNORED),
    }


def _mask(shared: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    seen = shared.tril()  # padding sees itself: a row of which nothing is seen has no mean
    return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)[:, None]


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
    mask = _mask(shared, dtype)
    return {"input_ids": tokens, "labels": labels, "position_ids": positions, "attention_mask": mask}


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
