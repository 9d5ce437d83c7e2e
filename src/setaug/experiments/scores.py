"""The scores of a result by name, and which one the paper compares methods by on each data set."""

from typing import Any

from setaug.benchmarks.names import parse_name
from setaug.errors import FileError
from setaug.experiments.cells import Result

OWN = {"go-emotions": "macro_f1", "reuters": "macro_f1", "ufet": "samples_f1", "kp20k": "samples_f1"}
"""What the paper calls macro F fits the average over labels on some data sets, and over examples on others."""
TITLES = {
    "micro_precision": "micro P",
    "micro_recall": "micro R",
    "micro_f1": "micro F",
    "macro_precision": "macro P",
    "macro_recall": "macro R",
    "macro_f1": "macro F",
    "samples_precision": "samples P",
    "samples_recall": "samples R",
    "samples_f1": "samples F",
    "jaccard": "Jaccard",
    "agreement": "as many as stated",
    "agreement_within_one": "stated within one",
    "accuracy": "size is right",
    "accuracy_within_one": "size within one",
    "repeated": "outputs with a repeat",
    "unknown": "with an unknown label",
    "present_f1_at_m": "present F1@M",
    "absent_f1_at_m": "absent F1@M",
    "present_f1_at_5": "present F1@5",
    "absent_f1_at_5": "absent F1@5",
}
"""How tables call the scores."""


def own_score(data: str) -> str:
    """Give the score that the paper compares methods by on a data set."""
    return OWN[parse_name(data).benchmark]


def score_of(result: Result, name: str) -> float | None:
    """Look a score up, in per cent; None where a row has no such thing (a size, say)."""
    if name.startswith(("present_", "absent_")):
        kind, _, rest = name.partition("_")
        value = field_of(result, "keyphrases", kind, rest)
    else:
        value = field_of(result, "sets" if name in field_of(result, "sets") else "sizes", name)
    return None if value is None else 100 * float(value)


def field_of(result: Result, *path: str) -> Any:
    """Look something up in a result."""
    found: Any = result
    try:
        for name in path:
            found = found[name]
    except (KeyError, TypeError):
        raise FileError(
            f"a result has no {' / '.join(path)}: another version of setaug wrote it; use another folder."
        ) from None
    return found
