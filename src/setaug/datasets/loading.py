"""Loading a dataset by name, from its authors' files or from the Hugging Face Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setaug.datasets.entry import Dataset, DatasetEntry, choose
from setaug.datasets.files import find_files
from setaug.datasets.registry import DATASETS, Variant, parse_name
from setaug.errors import DataError, FileError, MissingExtraError
from setaug.examples import shown


def load_dataset(
    name: str, data_dir: str | Path | None = None, *, download: bool = False, verify: bool = True
) -> Dataset:
    """Load a dataset from the files that its authors distribute.

    Parameters
    ----------
    name
        A name of the registry, with or without filters in brackets: ``minN``, ``trainN``, ``testN``, those of its
        kind (keyphrases: ``present``, ``absent``), and the form of its texts (``ufet[span]``). Filters of the kind are
        applied first, then min, train and test.
    data_dir
        The folder of the dataset, or its parent.
    download
        Download it from the Hugging Face Hub instead (needs ``datasets``).
    verify
        Whether to verify the checksums of the files. KP20k has several distributions and no checksums.

    """
    variant = parse_name(name)
    entry = variant.entry
    if download and data_dir is not None:
        raise ValueError("pass the folder of the files (--data-dir, data_dir) or download them, not both.")
    if download:
        return select(_check_ids(_download(entry)), variant)
    if data_dir is None:
        raise ValueError(
            f"{entry.name} needs the folder of its files (--data-dir, data_dir): {entry.distribution.expected}; they "
            f"are distributed at {entry.distribution.origin}."
        )
    read = entry.forms[variant.form].read if variant.form else entry.read
    return select(_check_ids(read(find_files(entry.distribution, data_dir, verify=verify))), variant)


def _download(entry: DatasetEntry) -> Dataset:
    """Download a dataset from the Hub, or read it from the Hub's cache."""
    by_hand = f"download the files from {entry.distribution.origin} and name their folder (--data-dir, data_dir)."
    if entry.hub is None:
        available = " and ".join(name for name, one in DATASETS.items() if one.hub)
        raise FileError(
            f"{entry.distribution.title} is not available on the Hugging Face Hub, only {available}; {by_hand}"
        )
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("Downloading datasets", "hub") from None
    try:
        found: Mapping[str, Any] = datasets.load_dataset(entry.hub.repository, **entry.hub.arguments)
        splits = [found[split] for split in ("train", "validation", "test")]
    except Exception as error:  # from many libraries: no network, no such repository, no space, changed files
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise FileError(
            f"cannot download {entry.hub.repository} from the Hugging Face Hub ({why}); {by_hand}"
        ) from None
    return entry.hub.convert(splits, entry.hub.repository)


def _check_ids(dataset: Dataset) -> Dataset:
    """Raise if two examples share an id, since ids decide which examples are chosen."""
    seen: set[object] = set()
    for name, split in dataset.splits.items():
        for number, example in enumerate(split, 1):
            if example.id in seen:
                problem = f"example {number:,} of {name} has a duplicate id, {shown(example.id)}."
                raise DataError(problem, source=dataset.name)
            seen.add(example.id)
    return dataset


def select(dataset: Dataset, variant: Variant) -> Dataset:
    """Return the part of a dataset that a variant names."""
    splits = dataset.splits
    if variant.label_filter:
        keep = variant.entry.kind.filters[variant.label_filter].keep
        splits = {name: keep(split) for name, split in splits.items()}
    if least := variant.min_labels:
        splits = {name: [one for one in split if len(one.labels) >= least] for name, split in splits.items()}
    for name, what, wanted in (("train", "training", variant.n_train), ("test", "test", variant.n_test)):
        if wanted is not None:
            if len(splits[name]) < wanted:
                raise ValueError(
                    f"{variant} requires {wanted:,} {what} examples, but there are only {len(splits[name]):,}."
                )
            splits[name] = choose(splits[name], wanted)
    return Dataset(name=str(variant), labels=dataset.labels, **splits)
