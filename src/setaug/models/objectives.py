"""What training minimises: the loss of each target, or the negative of a bound of the set's likelihood."""

from math import log
from typing import Any

import torch

from setaug.models.batches import IGNORED, Batch
from setaug.models.layouts import Layout


def training_loss(layout: Layout, model: Any, batch: Batch, objective: str) -> torch.Tensor:
    """Run a model on a batch of the layout; give what the objective makes of it."""
    output = layout.run(model, batch)
    if objective == "plain":
        loss: torch.Tensor = output.loss
        return loss
    log_p = layout.log_probabilities(output.logits, batch["labels"])
    return set_loss(log_p, batch["labels"], len(batch["n_targets"]), objective)


def set_loss(log_p: torch.Tensor, labels: torch.Tensor, n_examples: int, objective: str) -> torch.Tensor:
    """Give the negative bound of the sets' log-likelihood, per token, for targets that are drawn orders.

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
