"""Training settings as cells keep them, so that results measured earlier are found.

Settings that are younger than the first results are kept only where they are in use.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from setaug.settings import PAPER_EPOCHS, TrainingSettings, default_recipe

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
"""Values of younger settings with which training is what it was without them, where those are not the defaults."""


def _unused() -> dict[str, Any]:
    return {one.name: one.default for one in fields(TrainingSettings) if one.name not in _ALWAYS} | _UNUSED


def paper_settings(**changes: Any) -> TrainingSettings:
    """Return the paper's settings with these changes."""
    return TrainingSettings(**{"epochs": PAPER_EPOCHS, **_unused(), **changes})


def row_settings(row: Mapping[str, Any], paper: Mapping[str, Any], common: Mapping[str, Any]) -> TrainingSettings:
    """Return the settings of a row: by default the paper's, with what all rows have in common.

    Parameters
    ----------
    row
        The settings of the row itself.
    paper
        Changes to the paper's settings; a row with the default recipe does not have them.
    common
        The settings of all rows.

    Examples
    --------
    >>> row_settings({"recipe": "default"}, {"learning_rate": 1e-5}, {"seed": 1}).learning_rate is None
    True
    >>> row_settings({}, {"learning_rate": 1e-5}, {"seed": 1}).epochs
    3

    """
    if row.get("recipe") == "default":
        return TrainingSettings(**{**common, **row})
    return paper_settings(**{**paper, **common, **row})


def training_to_cell(training: TrainingSettings) -> dict[str, Any]:
    """Return training settings as a cell keeps them.

    Examples
    --------
    >>> "held_out" in training_to_cell(paper_settings()), training_to_cell(paper_settings(held_out=0.2))["held_out"]
    (False, 0.2)

    """
    unused = _unused()
    kept = {name: value for name, value in asdict(training).items() if name in _ALWAYS or value != unused[name]}
    # What the default recipe decides is a part of the cell: results of other defaults are other results.
    return kept if training.is_paper else kept | {"defaults": default_recipe()}


def training_from_cell(kept: Mapping[str, Any]) -> TrainingSettings:
    """Return the training settings that a cell describes.

    Examples
    --------
    >>> training_from_cell({"epochs": 5}).recipe
    'paper'

    """
    return paper_settings(**{name: value for name, value in kept.items() if name != "defaults"})
