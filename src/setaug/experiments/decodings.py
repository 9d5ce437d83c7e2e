"""Decoding settings as cells keep them, so that results measured earlier are found.

Cells name the choice that samples would have, also where none are drawn and the set is the one that the model writes.
"""

from collections.abc import Mapping
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
    return asdict(Decoding(**{**given, "choose": _OLD.get(choose, choose)})) | {"choose": choose}


def decoding_from_cell(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decoding settings that a cell describes.

    Examples
    --------
    >>> decoding_from_cell({"samples": 0, "choose": "expected-f1"})["choose"]
    'written'

    """
    choose = kept.get("choose", "expected-f1")
    return {**kept, "choose": _OLD.get(choose, choose) if kept.get("samples") else "written"}
