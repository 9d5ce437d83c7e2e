"""How to train."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Is told what is going on: a word, how much is done, and of how much."""

SEEDS = (15143, 27122, 999888)
"""The paper's seeds."""
PRECISIONS: dict[str, dict[str, Any]] = {"float32": {}, "bfloat16": {"bf16": True}, "float16": {"fp16": True}}
"""The names of precisions, and what transformers' Trainer calls them."""
OBJECTIVES = ("plain", "elbo", "iwelbo")
"""What to maximise: the probability of each target, or a bound of the set's likelihood by orders that are drawn."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Say how to train. The defaults are the paper's (its appendix B), except where it names none."""

    epochs: int = 3
    """Passes over the training data."""
    learning_rate: float | None = None
    """By default 1e-5, or more for models that start from nothing (1e-3 for ``tiny``)."""
    batch_size: int = 8
    """Examples per step and process; each comes with all of its orders."""
    accumulate: int = 1
    """Steps whose gradients make one update."""
    warmup: float = 0.1
    """The share of all updates in which the learning rate grows; then it falls to zero, in a line."""
    weight_decay: float = 0.0
    adam_epsilon: float = 1e-8
    max_source_length: int = 120
    """Tokens of a text; what is longer is cut off, and counted."""
    max_target_length: int = 120
    """Tokens of a target; an example that needs more is left out, and counted."""
    fresh_orders: bool = False
    """Whether to draw new orders for each epoch."""
    objective: str = "plain"
    """``plain``: make the given order and those drawn probable; ``elbo``: drawn orders alone; ``iwelbo``: their mean
    probability, an importance-weighted bound of the set's likelihood (``docs/likelihood.md``)."""
    precision: str = "float32"
    """``float32``, or ``bfloat16`` or ``float16`` for mixed precision."""
    lora_rank: int | None = None
    """Where given, train adapters of this rank (LoRA) instead of all weights; they are merged in at the end."""
    patience: int | None = None
    """Stop after so many evaluations without a better set F1 on the dev data."""
    checkpoint_every: int | None = None
    """Save and evaluate every so many updates; by default after each epoch."""
    seed: int = SEEDS[0]

    def __post_init__(self) -> None:
        whole = {"epochs", "batch_size", "accumulate", "max_source_length", "max_target_length"}
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}.")
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {self.objective!r}.")
        for name in sorted(whole | {"lora_rank", "patience", "checkpoint_every"}):
            value = getattr(self, name)
            if value is None and name not in whole:
                continue
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}.")
        if self.learning_rate is not None and not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate must be above 0 and at most 1, got {self.learning_rate!r}.")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"warmup must be a share from 0 to below 1, got {self.warmup!r}.")
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 32:
            raise ValueError(f"seed must be a whole number below 2**32, got {self.seed!r}.")
