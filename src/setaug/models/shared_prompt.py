"""All targets of an example in one row after its prompt, so that a causal model reads the prompt once."""

from collections.abc import Sequence
from itertools import count

import torch

from setaug.models.batches import IGNORED, Batch, Item, pad_rows

_PROMPT, _PADDING = 0, -1


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
