"""A head that scores every label from what an encoder reads: trained with the decoder, and asked beside it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, linear, normalize

from setaug.examples import Example, check_labels
from setaug.models.neural.batches import Batch, Item
from setaug.models.neural.layouts import Collate

MAX_LABELS = 5000
"""Above this number of labels there is no head by default: it needs a score of each label for each token."""
_SPREAD = 0.02
"""Standard deviation of the initial queries."""
WEIGHT = 0.2
"""Weight of the head's loss. Its gradient in the encoder costs the decoder something where there are many labels."""
_DROPOUTS = ("dropout_rate", "dropout", "hidden_dropout_prob")
"""Names of an encoder's dropout in configurations, which the head has, too."""
_ATTRIBUTE = "label_head"
"""What the head is in the model while both are trained, so that checkpoints have it."""


class LabelHead(torch.nn.Module):
    """Score labels: each attends to the tokens of a text, and the tokens score the label.

    A label has a query, which tokens are compared with, and a value, by which they score it. In training, both are
    sums of what is learnt for the label alone and of a linear function of its name, which all labels share: so rare
    labels profit from frequent ones.

    Parameters
    ----------
    labels
        The labels of the training data, in the order of the scores.
    width
        The hidden size of the encoder.
    names
        A vector for the name of each label, of length 1; without it, names do not count.
    dropout
        Which part of the states is dropped in training.

    """

    def __init__(
        self, labels: Sequence[str], width: int, names: torch.Tensor | None = None, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.labels = list(labels)
        self.queries = torch.nn.Parameter(torch.empty(len(self.labels), width).normal_(std=_SPREAD))
        self.values = torch.nn.Parameter(torch.zeros(len(self.labels), width))
        self.bias = torch.nn.Parameter(torch.zeros(len(self.labels)))
        self.dropout = torch.nn.Dropout(dropout)
        self.names = names
        if names is not None:
            self.query_of_name = torch.nn.Parameter(torch.empty(width, names.shape[1]).normal_(std=_SPREAD))
            self.value_of_name = torch.nn.Parameter(torch.zeros(width, names.shape[1]))

    @classmethod
    def start(
        cls, model: Any, tokenizer: Any, labels: Sequence[str], examples: Sequence[Example], *, seed: int
    ) -> Self:
        """Return a head for the encoder of a model that gives each label its frequency in the examples."""
        tokens = tokenizer(list(labels), add_special_tokens=False)["input_ids"]
        table = model.get_input_embeddings().weight.detach().float()
        means = [table[ids].mean(dim=0) if ids else torch.zeros(table.shape[1]) for ids in tokens]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            config = model.get_encoder().config
            dropout = next((getattr(config, name) for name in _DROPOUTS if hasattr(config, name)), 0.0)
            head = cls(labels, width_of(model), normalize(torch.stack(means), dim=1), dropout=dropout)
        counts = torch.zeros(len(head.labels), dtype=torch.float64)
        for example in examples:
            counts[[head.places[label] for label in example.labels]] += 1
        with torch.no_grad():
            head.bias.copy_(torch.logit((counts + 0.5) / (len(examples) + 1)))
        return head

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of each label."""
        return {label: at for at, label in enumerate(self.labels)}

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the log-odds of each label (columns) for each text (rows).

        Parameters
        ----------
        states, mask
            What the encoder returns for each token, and which of them are not padding.

        """
        queries, values = self._queries_and_values()
        is_token = mask.bool().unsqueeze(-1)
        is_token = is_token | ~is_token.any(dim=1, keepdim=True)  # a text without tokens has only padding
        squares = states.float().square().mean(dim=2, keepdim=True).masked_fill(~is_token, 0)
        scale = (squares.sum(dim=1, keepdim=True) / is_token.sum(dim=1, keepdim=True)).rsqrt()
        states = states.float() * scale  # models differ in scale; tokens of one text keep their proportions
        attention = linear(states, queries).float().masked_fill(~is_token, -torch.inf).softmax(dim=1)
        scores = linear(self.dropout(states), values)
        return (attention * scores).sum(dim=1) + self.bias

    def _queries_and_values(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self.names is None:
            return self.queries, self.values
        names = self.names.to(self.queries.device)
        return self.queries + linear(names, self.query_of_name), self.values + linear(names, self.value_of_name)

    def trained(self) -> "LabelHead":
        """Return the head as it predicts: what it learnt of names is a part of queries and values."""
        head = LabelHead(self.labels, self.queries.shape[1]).to(self.queries.device)
        with torch.no_grad():
            for kept, found in zip((head.queries, head.values), self._queries_and_values(), strict=True):
                kept.copy_(found)
            head.bias.copy_(self.bias)
        return head.eval()

    def save(self, path: Path) -> None:
        """Write the head into one file of safetensors."""
        from safetensors.torch import save_file

        save_file({name: values.contiguous().cpu() for name, values in self.state_dict().items()}, path)

    @classmethod
    def load(cls, path: Path, labels: Any, width: int) -> Self:
        """Read a file that `save` wrote; the labels stand elsewhere."""
        from safetensors.torch import load_file

        head = cls(check_labels(labels, "labels"), width)
        head.load_state_dict(load_file(path))
        if not all(values.isfinite().all() for values in head.parameters()):
            raise ValueError("the label head has numbers that are not finite")
        return head.eval()


def width_of(model: Any) -> int:
    """Return the size of what an encoder returns for each token."""
    return int(model.get_encoder().config.hidden_size)


class HeadCollator:
    """Add to a batch which labels each text has, as ``hits``."""

    def __init__(self, collate: Collate, n_labels: int) -> None:
        self._collate, self._n_labels = collate, n_labels

    def __call__(self, items: Sequence[Item]) -> Batch:
        """Make a batch."""
        hits = torch.zeros(len(items), self._n_labels)
        for row, item in zip(hits, items, strict=True):
            row[item["columns"]] = 1.0
        return {**self._collate(items), "hits": hits}


def joint_loss(model: Any, batch: Batch, *, whole: Any, loss: Callable[[Any, Batch], torch.Tensor]) -> torch.Tensor:
    """Return the loss of the decoder plus, with its weight, that of the head.

    That is the negative log-likelihood of the labels, per token like that of the decoder, once for each target of a
    text: so the two are in the same proportion whatever the number of targets.

    Parameters
    ----------
    model
        The model that is trained, which may be wrapped.
    whole
        The same model as it is, with the head in it.
    loss
        Returns the loss of the decoder.

    """
    with _scoring(whole, batch["attention_mask"]) as scored:
        value = loss(model, batch)
    (log_odds,) = scored
    each = binary_cross_entropy_with_logits(log_odds.float(), batch["hits"], reduction="none").sum(dim=1)
    return value + WEIGHT * each @ batch["n_targets"].to(each.dtype) / batch["lengths"].sum()


@contextmanager
def _scoring(model: Any, mask: torch.Tensor) -> Iterator[list[torch.Tensor]]:
    """Within this, the head runs in the model's own forward pass; yield its log-odds.

    They are also put into the model's output, where nothing else is called its loss: data parallelism takes weights for
    unused if the output does not depend on them.
    """
    found: list[torch.Tensor] = []

    def score(encoder: Any, args: Any, output: Any) -> None:
        found.append(getattr(model, _ATTRIBUTE)(output.last_hidden_state, mask))

    def add(model: Any, args: Any, output: Any) -> None:
        output["loss"] = found[-1]

    hooks = [model.get_encoder().register_forward_hook(score), model.register_forward_hook(add)]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def trained_with(
    model: Any, head: LabelHead | None, collate: Collate, loss: Callable[[Any, Batch], torch.Tensor]
) -> Iterator[tuple[Collate, Callable[[Any, Batch], torch.Tensor]]]:
    """Make the head a part of the model within this; yield the collator and the loss to train both with."""
    if head is None:
        yield collate, loss
        return
    setattr(model, _ATTRIBUTE, head)
    try:
        yield HeadCollator(collate, len(head.labels)), partial(joint_loss, whole=model, loss=loss)
    finally:
        delattr(model, _ATTRIBUTE)
