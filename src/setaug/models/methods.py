"""The paper's method and its baselines by name, and loading of models from folders."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setaug.augmenter import SetAugmenter
from setaug.errors import ModelError
from setaug.models import require_torch
from setaug.models.hub import find_model
from setaug.models.model_folder import read_card
from setaug.registry import check_choice
from setaug.settings import METHODS, Decoding, TrainingSettings

if TYPE_CHECKING:
    from setaug.models.neural.model import SetModel

KINDS = {
    "generator": "setaug.models.neural.generator:SetGenerator",
    "classifier": "setaug.models.neural.classifier:SetClassifier",
    "set-search": "setaug.models.neural.search:SetSearch",
    "ensemble": "setaug.models.ensemble:SetEnsemble",
}
"""The types of models, and the classes that are imported for them."""


def make_model(
    method: str,
    model: str,
    *,
    size: bool | None = None,
    augmenter: SetAugmenter | None = None,
    training: TrainingSettings | None = None,
    decoding: Decoding | None = None,
    vocabulary: Any = "closed",
    companion: bool | None = None,
) -> "SetModel":
    """Return the unfitted model of a method.

    Parameters
    ----------
    size
        Whether the set's size is written first; None for the method's default.
    augmenter
        All parameters of the orders except the ordering and the size, which depend on the method.
    companion
        Whether a TF-IDF classifier helps a model that writes sets; see `SetGenerator`.

    """
    check_choice("method", method, METHODS)
    chosen = METHODS[method]
    base = augmenter or SetAugmenter()
    if chosen.model != "generator" and size:
        raise ValueError(f"the method {method} does not write sizes.")
    if chosen.model != "generator" and companion:
        raise ValueError(f"the method {method} has no companion.")
    if chosen.model == "classifier" and vocabulary != "closed":
        raise ValueError("a classifier predicts only labels of the training data, so vocabulary must be closed.")
    make: Any = _class_of(chosen.model)
    way = decoding or Decoding()
    if chosen.model == "classifier":
        return make(model, template=base.template, choose=way.choose, training=training)  # type: ignore[no-any-return]
    if chosen.model == "set-search":
        return make(  # type: ignore[no-any-return]
            model,
            template=base.template,
            codec=replace(base.codec, with_size=False),
            vocabulary=vocabulary,
            constrained=way.constrained,
            choose=way.choose,
            training=training,
            batch_size=way.batch_size,
        )
    writes_size = chosen.writes_size if size is None else size
    return make(  # type: ignore[no-any-return]
        model,
        augmenter=replace(base, ordering=chosen.ordering, with_size=writes_size),
        one_order=chosen.one_order,
        vocabulary=vocabulary,
        training=training,
        decoding=decoding,
        companion=companion,
    )


def load_model(folder: str | Path, *, revision: str | None = None) -> "SetModel":
    """Load a model that ``setaug train`` or `SetEnsemble` wrote; raise for an invalid folder before torch is imported.

    Parameters
    ----------
    folder
        The model's folder, or its name on the Hugging Face Hub: ``org/name``.
    revision
        A branch, tag or commit on the Hub.

    """
    require_torch()
    folder = find_model(folder, revision)
    card = read_card(folder)
    if card["kind"] not in KINDS:
        raise ModelError(f"{folder} is a model of type {card['kind']!r}, which this version does not support.")
    return _class_of(card["kind"]).from_card(folder, card)


def _class_of(kind: str) -> "type[SetModel]":
    require_torch()
    module, _, name = KINDS[kind].partition(":")
    found: type[SetModel] = getattr(import_module(module), name)
    return found
