"""What training minimises: the loss of a batch, for each objective."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import log
from typing import Any

import torch

from setaug.decoding.automaton import SetAutomaton
from setaug.models.neural.batches import IGNORED, Batch, Item
from setaug.models.neural.layouts import Collate, Layout


def training_loss(layout: Layout, model: Any, batch: Batch, objective: str) -> torch.Tensor:
    """Run a model on a batch of the layout; return the loss that the objective defines."""
    if objective == "closed":
        return _closed_loss(layout.logits(model, batch), batch)
    if objective == "mixed":
        logits = layout.logits(model, {name: values for name, values in batch.items() if name != "columns"}).float()
        plain = torch.nn.functional.cross_entropy(logits, batch["columns"][batch["chosen"]])
        return (plain + _closed_loss(logits[:, batch["columns"]], batch)) / 2
    found = layout.token_log_probabilities(model, batch)
    if objective == "plain":
        return -found.mean()
    log_p = layout.by_target(found, batch)
    return set_loss(log_p, batch["labels"], len(batch["n_targets"]), objective)


def _closed_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the loss of logits of the batch's columns, normalized over the allowed ones."""
    masked = logits.float().masked_fill(~batch["allowed"], -torch.inf)
    return torch.nn.functional.cross_entropy(masked, batch["chosen"])


class ClosedCollator:
    """Add to a batch which tokens a set can go on with, for the objectives `CONSTRAINED`.

    The columns of the masks are the tokens that any set of known labels needs, so the output layer computes no others.
    A target that the constraint cannot read (its labels are tokenized otherwise in a set) may go on with any of them.

    Parameters
    ----------
    automaton
        Reads sets token by token.
    tokens
        All tokens that it can allow.

    """

    def __init__(self, collate: Collate, automaton: SetAutomaton, tokens: Collection[int]) -> None:
        self._collate, self._automaton = collate, automaton
        self._tokens = sorted(tokens)
        self._allowed = lru_cache(maxsize=1 << 14)(self._walk)

    def __call__(self, items: Sequence[Item]) -> Batch:
        """Make a batch with ``columns``, and for each token to learn ``allowed`` and its ``chosen`` column."""
        targets = [tuple(target) for item in items for target in item["targets"]]
        known = set(self._tokens)
        columns = self._tokens + sorted({token for target in targets for token in target} - known)
        places = {token: at for at, token in enumerate(columns)}
        chosen = [places[token] for target in targets for token in target]
        allowed = torch.zeros(len(chosen), len(columns), dtype=torch.bool)
        for row, choices in zip(allowed, (one for target in targets for one in self._allowed(target)), strict=True):
            row[slice(None) if choices is None else [places[token] for token in choices]] = True
        batch = self._collate(items)
        return {**batch, "columns": torch.tensor(columns), "allowed": allowed, "chosen": torch.tensor(chosen)}

    def _walk(self, target: tuple[int, ...]) -> list[list[int] | None]:
        """Return the tokens that may stand at each place of a target; None for all, where it is not read."""
        state: object | None = self._automaton.start()
        found: list[list[int] | None] = []
        for token in target:
            choices = None if state is None else self._automaton.choices(state).tokens.tolist()
            state = None if state is None else self._automaton.step(state, token)
            found.append(None if state is None else choices)
        return found


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
