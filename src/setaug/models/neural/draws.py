"""Draws of ``generate`` that depend on the seed and the text alone, not on the batch that a text is in."""

from typing import Any

import torch
from transformers import LogitsProcessor

from setaug.models.neural.batches import Batch
from setaug.models.neural.generation import make_warpers, random_streams


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
    streams = [stream for each in random_streams(inputs, n_each, seed) for stream in each]
    numbers = [[(stream.next() >> 11) / (1 << 53) for _ in range(max(n_tokens, 1))] for stream in streams]
    return [*make_warpers(options), _Draws(torch.tensor(numbers, dtype=torch.float64), start)]


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
