"""Training data as a model takes it: tokens, padded per batch, inputs of similar length together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NotRequired, TypeAlias, TypedDict

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import BatchSampler, Dataset, Sampler

Batch: TypeAlias = dict[str, torch.Tensor]
"""What a model is called with."""
IGNORED = -100
"""The label of positions that the loss ignores."""
TOKENS_PER_ROW = 128
"""How many tokens a row of a batch has on average, at most: texts of the paper's length (120) make full batches, and
longer texts need no more memory."""


class Item(TypedDict):
    """One example, with all of its targets."""

    input_ids: list[int]
    targets: list[list[int]]
    columns: NotRequired[list[int]]
    """The labels of the example by their index, for a `LabelHead`."""


class TrainingSet(Dataset[Item]):
    """The inputs of all examples and their targets, which may change from epoch to epoch.

    Parameters
    ----------
    inputs
        The tokens of each text.
    targets
        Returns the tokens of each example's targets for an epoch.
    columns
        The labels of each example by their index, if a `LabelHead` is trained, too.

    """

    def __init__(
        self,
        inputs: list[list[int]],
        targets: Callable[[int], list[list[list[int]]]],
        columns: list[list[int]] | None = None,
    ) -> None:
        self.inputs = inputs
        self._columns = columns
        self._write = targets
        self._targets = targets(0)

    def begin_epoch(self, epoch: int) -> None:
        """Write the targets of an epoch; the training loop calls this at its start."""
        self._targets = self._write(epoch)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, at: int) -> Item:
        item: Item = {"input_ids": self.inputs[at], "targets": self._targets[at]}
        return item if self._columns is None else {**item, "columns": self._columns[at]}


def pad_rows(rows: Sequence[Sequence[int]], value: int, *, side: str = "right") -> torch.Tensor:
    """Pad rows to one length."""
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=value, padding_side=side)


def pad_inputs(rows: Sequence[Sequence[int]], pad: int, *, side: str = "right") -> Batch:
    """Return padded token ids and their attention mask."""
    mask = pad_rows([[1] * len(row) for row in rows], 0, side=side)
    return {"input_ids": pad_rows(rows, pad, side=side), "attention_mask": mask}


def on_device(batch: Batch, device: Any) -> Batch:
    """Return the batch on a device."""
    return {name: values.to(device) for name, values in batch.items()}


def by_length(rows: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    """Yield the indices of all rows in batches, the shortest rows first.

    A batch has at most `size` rows, and fewer where they are long: with its padding, at most `TOKENS_PER_ROW` tokens
    for each of the `size` rows.
    """
    batch: list[int] = []
    for at in sorted(range(len(rows)), key=lambda at: len(rows[at])):
        if batch and (len(batch) == size or (len(batch) + 1) * len(rows[at]) > size * TOKENS_PER_ROW):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


@contextmanager
def evaluating(
    model: Any, *, seed: int = 0, mode: Callable[[], AbstractContextManager[Any]] = torch.inference_mode
) -> Iterator[None]:
    """Draw from the seed alone, and leave the model's mode and the global generators as they were.

    Parameters
    ----------
    mode
        Turns gradients off. What a model keeps from inference mode (rotary tables, say) cannot be trained with later,
        so within somebody else's training it is ``torch.no_grad``.

    """
    was_training = model.training
    model.eval()
    try:
        with torch.random.fork_rng([] if model.device.type == "cpu" else [model.device]), mode():
            torch.manual_seed(seed)
            yield
    finally:
        model.train(was_training)


class LengthGroups(Sampler[int]):
    """Put inputs of similar length next to each other, in an order that depends on seed and epoch alone.

    transformers' own sampler draws from the global generator, and so would go on differently in a resumed run.
    """

    def __init__(self, lengths: list[int], batch_size: int, seed: int) -> None:
        self._lengths, self._batch_size, self._seed = lengths, batch_size, seed
        self._epoch = 0

    def begin_epoch(self, epoch: int) -> None:
        """Set the epoch; the training loop calls this at its start."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        from transformers.trainer_pt_utils import get_length_grouped_indices  # brings all that training needs

        generator = torch.Generator().manual_seed((self._seed << 16) + self._epoch)
        order: list[int] = get_length_grouped_indices(self._lengths, self._batch_size, generator=generator)
        return iter(order)


class Shares(Sampler[list[int]]):
    """Split each batch among the processes that train together; the last may leave one without examples.

    accelerate's own would fill the last batch up with the first examples, which then count twice.
    """

    def __init__(self, order: Sampler[int], batch_size: int, *, n_processes: int, process: int) -> None:
        self._batches = BatchSampler(order, batch_size * n_processes, drop_last=False)
        self._n_processes, self._process = n_processes, process

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[list[int]]:
        return (batch[self._process :: self._n_processes] for batch in self._batches)


def readable_length(model: Any, limit: int) -> int:
    """Clip a number of tokens to the positions that an encoder has learnt; T5, for one, has no such limit."""
    places: int | None = getattr(getattr(model.config, "encoder", model.config), "max_position_embeddings", None)
    if places is None or places < 0:  # XLNet has -1
        return limit
    return min(limit, places - 2)  # RoBERTa's first two are not for tokens


def cut(tokenizer: Any, texts: list[str], limit: int) -> tuple[list[list[int]], int]:
    """Tokenize texts, truncated to a number of tokens; also return how many were longer."""
    if not texts:
        return [], 0
    whole = tokenizer(texts, verbose=False)["input_ids"]  # no warning: what is too long is cut below
    n_long = sum(len(ids) > limit for ids in whole)
    return (tokenizer(texts, truncation=True, max_length=limit)["input_ids"] if n_long else whole), n_long
