"""Settings as cells keep them, so that results measured earlier are found.

- Training settings that are younger than the first results are kept only where they are in use.
- ``with_size`` is kept as ``size``, and the written form only if it is not the default.
- Decodings name the choice that samples would have, also where none are drawn and the set is the one that the model
  writes.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from setaug.augmenter import SetAugmenter
from setaug.registry import DEFAULT_FORM
from setaug.settings import PAPER_EPOCHS, Decoding, TrainingSettings, default_recipe

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
_UNUSED: dict[str, Any] = {"recipe": "paper", "label_head": False}
"""Values of younger settings with which training is what it was without them, where those are not the defaults."""
_OLD_CHOICES = {"vote": "threshold"}
"""Ways by the names that cells keep."""


def _unused() -> dict[str, Any]:
    return {one.name: one.default for one in fields(TrainingSettings) if one.name not in _ALWAYS} | _UNUSED


def paper_settings(**changes: Any) -> TrainingSettings:
    """Return the paper's settings with these changes."""
    return TrainingSettings(**{"epochs": PAPER_EPOCHS, **_unused(), **changes})


def row_settings(row: Mapping[str, Any], paper: Mapping[str, Any], common: Mapping[str, Any]) -> TrainingSettings:
    """Return the settings of a row: by default the paper's, with what all rows have in common.

    A row has a label head only if it says so, since cells are older than label heads.

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
        return TrainingSettings(**{"label_head": False, **common, **row})
    return paper_settings(**{**paper, **common, **row})


def training_to_cell(training: TrainingSettings, *, classifies: bool = False) -> dict[str, Any]:
    """Return training settings as a cell keeps them.

    Examples
    --------
    >>> "held_out" in training_to_cell(paper_settings()), training_to_cell(paper_settings(held_out=0.2))["held_out"]
    (False, 0.2)

    """
    unused, settings = _unused(), asdict(training) | training.lengths
    kept = {name: value for name, value in settings.items() if name in _ALWAYS or value != unused[name]}
    # What the default recipe decides is a part of the cell: results of other defaults are other results.
    return kept if training.is_paper else kept | {"defaults": default_recipe(classifies=classifies)}


def training_from_cell(kept: Mapping[str, Any]) -> TrainingSettings:
    """Return the training settings that a cell describes.

    Examples
    --------
    >>> training_from_cell({"epochs": 5}).recipe
    'paper'

    """
    return paper_settings(**{name: value for name, value in kept.items() if name != "defaults"})


def augmenter_to_cell(augmenter: SetAugmenter) -> dict[str, Any]:
    """Return the parameters of an augmenter as a cell keeps them.

    Examples
    --------
    >>> augmenter_to_cell(SetAugmenter(with_size=False))["size"]
    False

    """
    params = {"size" if name == "with_size" else name: value for name, value in augmenter.get_params().items()}
    if params["written_as"] == DEFAULT_FORM:
        del params["written_as"]
    return params


def augmenter_from_cell(kept: Mapping[str, Any]) -> SetAugmenter:
    """Return the augmenter that a cell describes.

    Examples
    --------
    >>> augmenter_from_cell({"size": False, "n_orders": 1}).with_size
    False

    """
    return SetAugmenter(**{"with_size" if name == "size" else name: value for name, value in kept.items()})


def decoding_to_cell(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return decoding settings as a cell keeps them.

    Examples
    --------
    >>> decoding_to_cell({"samples": 4, "choose": "vote"})["choose"], decoding_to_cell({})["choose"]
    ('vote', 'expected-f1')

    """
    choose = given.get("choose", "expected-f1")
    way = {"threshold": 0.5, **given, "choose": _OLD_CHOICES.get(choose, choose)}
    found = asdict(Decoding(**way)) | {"choose": choose}
    return {name: value for name, value in found.items() if name != "k" or value is not None}


def decoding_from_cell(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decoding settings that a cell describes.

    Examples
    --------
    >>> decoding_from_cell({"samples": 0, "choose": "expected-f1"})["choose"]
    'written'

    """
    choose = kept.get("choose", "expected-f1")
    choose = _OLD_CHOICES.get(choose, choose) if kept.get("samples") else "written"
    unused = () if choose == "threshold" else ("threshold",)
    return {name: value for name, value in kept.items() if name not in unused} | {"choose": choose}


def rule_from_cell(kept: Mapping[str, Any], find_k: Callable[[], int]) -> dict[str, Any]:
    """Return what a classifier is asked for; `find_k` returns the k of ``top-k`` where the cell has none.

    Examples
    --------
    >>> rule_from_cell({"rule": "top-k"}, lambda: 3), rule_from_cell({"rule": "oracle-k"}, lambda: 3)
    ({'choose': 'top-k', 'k': 3}, {'choose': 'oracle-k'})

    """
    found: dict[str, Any] = {"choose": kept["rule"]}
    return found | {"k": kept.get("k") or find_k()} if kept["rule"] == "top-k" else found
