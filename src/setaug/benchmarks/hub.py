"""Data sets from the Hugging Face hub: those that are there in files which need no program of their own to be read.

GoEmotions is google-research-datasets/go_emotions ("simplified"), and KP20k is memray/kp20k, by its first author. The
hub's Reuters-21578 (ucirvine/reuters21578) is a loading script, which ``datasets`` no longer runs, and we know of no
version of Ultra-Fine Entity Typing by its authors there.
"""

from collections.abc import Callable, Mapping
from typing import Any

from setaug.benchmarks.benchmark import Benchmark, make_example
from setaug.benchmarks.distribution import Distribution
from setaug.benchmarks.kp20k import read_row
from setaug.errors import DataError, FileError, MissingExtraError
from setaug.examples import Example, as_examples

REPOSITORIES = {"go-emotions": "google-research-datasets/go_emotions", "kp20k": "memray/kp20k"}
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "go-emotions": {"name": "simplified"},
    "kp20k": {"data_files": {"train": "train.json", "validation": "valid.json", "test": "test.json"}},
}


def download_benchmark(benchmark: str, distribution: Distribution) -> Benchmark:
    """Get a whole data set from the hub, or from where it was kept when it was last got."""
    by_hand = f"get the files from {distribution.origin}, and name their folder (--data-dir, data_dir)."
    if benchmark not in REPOSITORIES:
        there = " and ".join(REPOSITORIES)
        raise FileError(f"{distribution.title} cannot be got from the Hugging Face hub, only {there}; {by_hand}")
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("Downloading data sets", "hub") from None
    repository = REPOSITORIES[benchmark]
    try:
        found: Mapping[str, Any] = datasets.load_dataset(repository, **_ARGUMENTS[benchmark])
        splits = [found[split] for split in ("train", "validation", "test")]
    except Exception as error:  # of many libraries: no network, no such repository, no space, files that changed
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise FileError(f"cannot get {repository} from the Hugging Face hub ({why}); {by_hand}") from None
    return _CONVERTERS[benchmark](splits, repository)


def _go_emotions(splits: list[Any], repository: str) -> Benchmark:
    names = tuple(splits[0].features["labels"].feature.names)
    train, dev, test = (
        [make_example(one.text, one.labels, str(one.id)) for one in as_examples(split)] for split in splits
    )
    return Benchmark(name="go-emotions", train=train, dev=dev, test=test, labels=names)


def _kp20k(splits: list[Any], repository: str) -> Benchmark:
    def read(split: Any, name: str) -> list[Example]:
        examples = []
        for number, row in enumerate(split, 1):
            try:
                examples.append(read_row(row, f"{name}-{number}"))
            except DataError as error:
                raise DataError(error.problem, source=f"{name} of {repository}", line=number) from None
        return examples

    train, dev, test = (read(split, name) for split, name in zip(splits, ("train", "valid", "test"), strict=True))
    return Benchmark(name="kp20k", train=train, dev=dev, test=test, labels=None)


_CONVERTERS: dict[str, Callable[[list[Any], str], Benchmark]] = {"go-emotions": _go_emotions, "kp20k": _kp20k}
