"""The registry of datasets, and names with filters such as ``kp20k[absent,min3]``.

A new dataset is a module with a `DatasetEntry`, and a line in `DATASETS`.
"""

import re
from dataclasses import dataclass
from typing import Any

from setaug.datasets import go_emotions, kp20k, reuters, ufet
from setaug.datasets.entry import DatasetEntry

DATASETS: dict[str, DatasetEntry] = {
    "go-emotions": go_emotions.ENTRY,
    "ufet": ufet.ENTRY,
    "reuters": reuters.ENTRY,
    "kp20k": kp20k.ENTRY,
}
FILTERS = {
    "minN": "keep examples with at least N labels, in all splits",
    "trainN": "take N training examples, always the same ones",
    "testN": "take N test examples, always the same ones",
}
"""The filters that all datasets have."""

_NAME = re.compile(r"([^\[\]]*)(?:\[([^\[\]]*)\])?")
_NUMBERED = re.compile(r"(min|train|test)([1-9][0-9]*)")
_FIELDS = {"min": "min_labels", "train": "n_train", "test": "n_test"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """A part of a dataset; as a string, its canonical name.

    Examples
    --------
    >>> str(Variant(dataset="ufet", n_train=600, min_labels=2))
    'ufet[min2,train600]'

    """

    dataset: str
    form: str | None = None
    """A form of the dataset's texts, such as ``span``."""
    label_filter: str | None = None
    """A filter of the dataset's kind, such as ``absent``."""
    min_labels: int | None = None
    n_train: int | None = None
    n_test: int | None = None

    @property
    def entry(self) -> DatasetEntry:
        """The registry's entry of the dataset."""
        return DATASETS[self.dataset]

    def __str__(self) -> str:
        numbered = [f"{name}{n}" for name, field in _FIELDS.items() if (n := getattr(self, field))]
        filters = ",".join([*filter(None, (self.form, self.label_filter)), *numbered])
        return f"{self.dataset}[{filters}]" if filters else self.dataset


def parse_name(name: str) -> Variant:
    """Parse the name of a dataset, with or without filters.

    Examples
    --------
    >>> parse_name("kp20k[min3, absent]")
    Variant(dataset='kp20k', form=None, label_filter='absent', min_labels=3, n_train=None, n_test=None)

    """
    match = _NAME.fullmatch(name.strip())
    dataset = match[1].strip() if match else name
    if match is None or dataset not in DATASETS:
        raise ValueError(
            f"unknown dataset {name!r}; use one of {', '.join(DATASETS)}, with or without filters in brackets, as in "
            "ufet[min2,train600]."
        )
    found: dict[str, Any] = {}
    for text in [] if match[2] is None else match[2].split(","):
        field, value = _parse_filter(text.strip(), dataset)
        if field in found:
            raise ValueError(f"{name} has two filters of the same kind; remove {text.strip()!r} or the other one.")
        found[field] = value
    return Variant(dataset=dataset, **found)


def _parse_filter(text: str, dataset: str) -> tuple[str, str | int]:
    if numbered := _NUMBERED.fullmatch(text):
        return _FIELDS[numbered[1]], int(numbered[2])
    filters, forms = DATASETS[dataset].kind.filters, DATASETS[dataset].forms
    if text in filters:
        return "label_filter", text
    if text in forms:
        return "form", text
    known = {**FILTERS, **{name: one.help for part in (filters, forms) for name, one in part.items()}}
    listed = ", ".join(f"{name} ({meaning})" for name, meaning in known.items())
    raise ValueError(f"{dataset} has no filter {text!r}; use {listed}; N is at least 1.")
