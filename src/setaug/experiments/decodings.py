"""Decoding settings as cells keep them, so that results measured earlier are found.

Cells name the choice that samples would have, also where none are drawn and the set is the one that the model writes.
Those of classifiers name a ``rule``.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from setaug.settings import Decoding

_OLD = {"vote": "threshold"}
"""Ways by the names that cells keep."""


def decoding_to_cell(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return decoding settings as a cell keeps them.

    Examples
    --------
    >>> decoding_to_cell({"samples": 4, "choose": "vote"})["choose"], decoding_to_cell({})["choose"]
    ('vote', 'expected-f1')

    """
    choose = given.get("choose", "expected-f1")
    found = asdict(Decoding(**{"threshold": 0.5, **given, "choose": _OLD.get(choose, choose)})) | {"choose": choose}
    return {name: value for name, value in found.items() if name != "k" or value is not None}


def decoding_from_cell(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decoding settings that a cell describes.

    Examples
    --------
    >>> decoding_from_cell({"samples": 0, "choose": "expected-f1"})["choose"]
    'written'

    """
    choose = kept.get("choose", "expected-f1")
    choose = _OLD.get(choose, choose) if kept.get("samples") else "written"
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
