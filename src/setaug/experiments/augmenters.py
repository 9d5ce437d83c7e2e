"""Augmenters as cells keep them, so that results measured earlier are found.

``with_size`` is stored as ``size``, and the written form only if it is not the usual one.
"""

from collections.abc import Mapping
from typing import Any

from setaug.augmenter import SetAugmenter
from setaug.registry import DEFAULT_FORM


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
