"""The paper's method and its baselines, by name, and the models that are in folders."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setaug.augmenter import SetAugmenter
from setaug.decoding.settings import Decoding
from setaug.errors import ModelError
from setaug.models.base import SetModel
from setaug.models.classifier import SetClassifier
from setaug.models.folder import read_card
from setaug.models.generator import SetGenerator
from setaug.models.search import SetSearch
from setaug.models.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Method:
    """Say what a method is trained on."""

    ordering: str = "given"
    one_order: bool = False
    writes_size: bool = True
    """Whether it writes sizes, where nothing else is said."""
    model: type[SetModel] = SetGenerator


METHODS = {
    "setaug": Method(ordering="topological"),
    "seq2seq": Method(ordering="random", one_order=True, writes_size=False),
    "random": Method(ordering="random"),
    "frequency": Method(ordering="frequency"),
    "reversed": Method(ordering="reversed"),
    "classifier": Method(model=SetClassifier, writes_size=False),
    "set-search": Method(model=SetSearch, writes_size=False),
}
KINDS = {model.kind: model for model in (SetGenerator, SetClassifier, SetSearch)}


def make_model(
    method: str,
    model: str,
    *,
    size: bool | None = None,
    augmenter: SetAugmenter | None = None,
    training: TrainingSettings | None = None,
    decoding: Decoding | None = None,
    vocabulary: Any = "closed",
) -> SetModel:
    """Make the model that a method stands for.

    Parameters
    ----------
    size
        Whether it writes the set's size in front; None leaves it to the method.
    augmenter
        Everything about orders but the ordering itself, which the method decides.

    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    chosen = METHODS[method]
    base = augmenter or SetAugmenter()
    if chosen.model is not SetGenerator and size:
        raise ValueError(f"the method {method} writes no sizes.")
    if chosen.model is SetClassifier and vocabulary != "closed":
        raise ValueError("a classifier knows the labels of the training data only, so vocabulary must be closed.")
    if chosen.model is SetClassifier:
        return SetClassifier(model, template=base.template, training=training)
    writes_size = chosen.writes_size if size is None else size
    return chosen.model(
        model,
        augmenter=replace(base, ordering=chosen.ordering, size=writes_size),
        one_order=chosen.one_order,
        vocabulary=vocabulary,
        training=training,
        decoding=decoding,
    )


def load_model(folder: str | Path) -> SetModel:
    """Load any model that ``setaug train`` wrote."""
    kind = read_card(folder)["kind"]
    if kind not in KINDS:
        raise ModelError(f"{folder} holds a model of the kind {kind!r}, which this version does not know.")
    return KINDS[kind].from_pretrained(folder)
