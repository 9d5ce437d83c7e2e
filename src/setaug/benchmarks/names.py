"""Names of benchmarks: the data set, and in brackets which part of it, as in ``kp20k[absent,min3]``."""

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Presence: TypeAlias = Literal["present", "absent"]

BENCHMARKS = ("go-emotions", "ufet", "reuters", "kp20k")
PAPER_VARIANTS = {
    "go-emotions": "go-emotions[min3]",
    "ufet": "ufet[min2]",
    "reuters": "reuters[min2]",
    "kp20k": "kp20k[absent,min3]",
}
"""The variant of each data set whose numbers are those of the paper's Table 1."""

_NAME = re.compile(r"([^\[\]]*)(?:\[([^\[\]]*)\])?")
_PRESENCE: dict[str, Presence] = {"present": "present", "absent": "absent"}
_NUMBERED = re.compile(r"(min|train|test)([1-9][0-9]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """Say which part of which data set; as a string, its canonical name.

    Examples
    --------
    >>> str(Variant(benchmark="ufet", n_train=600, min_labels=2))
    'ufet[min2,train600]'

    """

    benchmark: str
    presence: Presence | None = None
    """Whether to keep only the keyphrases that are in the text, or only those that are not."""
    min_labels: int | None = None
    """Keep the examples with at least so many labels."""
    n_train: int | None = None
    """Take so many training examples."""
    n_test: int | None = None
    """Take so many test examples."""

    def __str__(self) -> str:
        filters = [
            self.presence or "",
            f"min{self.min_labels}" if self.min_labels else "",
            f"train{self.n_train}" if self.n_train else "",
            f"test{self.n_test}" if self.n_test else "",
        ]
        listed = ",".join(filter(None, filters))
        return f"{self.benchmark}[{listed}]" if listed else self.benchmark


def parse_name(name: str) -> Variant:
    """Read the name of a benchmark, with or without filters.

    Examples
    --------
    >>> parse_name("kp20k[min3, absent]")
    Variant(benchmark='kp20k', presence='absent', min_labels=3, n_train=None, n_test=None)

    """
    match = _NAME.fullmatch(name.strip())
    benchmark = match[1].strip() if match else name
    if match is None or benchmark not in BENCHMARKS:
        raise ValueError(
            f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}, with or without filters in brackets, "
            "such as ufet[min2,train600]."
        )
    found: dict[str, Any] = {}
    for text in [] if match[2] is None else match[2].split(","):
        kind, value = _filter(text.strip(), benchmark)
        if kind in found:
            raise ValueError(f"{name} has more than one filter of the kind of {text.strip()!r}; give one of each kind.")
        found[kind] = value
    return Variant(benchmark=benchmark, **found)


def _filter(text: str, benchmark: str) -> tuple[str, Presence | int]:
    if numbered := _NUMBERED.fullmatch(text):
        return {"min": "min_labels", "train": "n_train", "test": "n_test"}[numbered[1]], int(numbered[2])
    if benchmark == "kp20k" and text in _PRESENCE:
        return "presence", _PRESENCE[text]
    raise ValueError(
        f"{benchmark} has no filter {text!r}; there are minN (at least N labels), trainN and testN (N training or test "
        "examples; N from 1), and for kp20k present and absent (keyphrases that are, or are not, in the text)."
    )
