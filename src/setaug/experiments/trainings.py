"""Training settings as cells keep them, so that results measured earlier are found.

Settings that are younger than the first results are kept only where they are in use.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from setaug.settings import PAPER_EPOCHS, TrainingSettings

_ALWAYS = (
    "epochs",
    "learning_rate",
    "batch_size",
    "accumulate",
    "warmup",
    "weight_decay",
    "adam_epsilon",
    "max_source_length",
    "max_target_length",
    "fresh_orders",
    "objective",
    "precision",
    "lora_rank",
    "patience",
    "checkpoint_every",
    "seed",
)
_UNUSED: dict[str, Any] = {"recipe": "paper"}
"""Values of newer settings that reproduce the behaviour before they existed, if they are not the defaults."""


def _unused() -> dict[str, Any]:
    return {one.name: one.default for one in fields(TrainingSettings) if one.name not in _ALWAYS} | _UNUSED


def paper_settings(**changes: Any) -> TrainingSettings:
    """Return the paper's settings with these changes."""
    return TrainingSettings(**{"epochs": PAPER_EPOCHS, **_unused(), **changes})


def training_to_cell(training: TrainingSettings) -> dict[str, Any]:
    """Return training settings as a cell keeps them.

    Examples
    --------
    >>> "held_out" in training_to_cell(paper_settings()), training_to_cell(paper_settings(held_out=0.2))["held_out"]
    (False, 0.2)

    """
    unused = _unused()
    return {name: value for name, value in asdict(training).items() if name in _ALWAYS or value != unused[name]}


def training_from_cell(kept: Mapping[str, Any]) -> TrainingSettings:
    """Return the training settings that a cell describes.

    Examples
    --------
    >>> training_from_cell({"epochs": 5}).recipe
    'paper'

    """
    return paper_settings(**kept)
