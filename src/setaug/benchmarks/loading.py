"""Load a benchmark by name, and keep the part of it that the name asks for."""

from collections.abc import Callable
from pathlib import Path

from setaug.benchmarks import go_emotions, kp20k, reuters, ufet
from setaug.benchmarks.benchmark import Benchmark, choose, make_example
from setaug.benchmarks.distribution import Distribution, Files, find_files
from setaug.benchmarks.hub import download_benchmark
from setaug.benchmarks.names import Presence, Variant, parse_name
from setaug.errors import DataError
from setaug.examples import Example, shown

_READERS: dict[str, tuple[Distribution, Callable[[Files], Benchmark]]] = {
    "go-emotions": (go_emotions.DISTRIBUTION, go_emotions.read_go_emotions),
    "ufet": (ufet.DISTRIBUTION, ufet.read_ufet),
    "reuters": (reuters.DISTRIBUTION, reuters.read_reuters),
    "kp20k": (kp20k.DISTRIBUTION, kp20k.read_kp20k),
}


def load_benchmark(
    name: str, data_dir: str | Path | None = None, *, download: bool = False, verify: bool = True
) -> Benchmark:
    """Load one of the paper's data sets from the files that its authors distribute.

    Parameters
    ----------
    name
        ``go-emotions``, ``ufet``, ``reuters`` or ``kp20k``, with filters in brackets: ``minN`` keeps the examples with
        at least N labels, in all splits; ``trainN`` and ``testN`` take only N training or test examples, always the
        same; ``present`` or ``absent`` (of ``kp20k``) keeps only the keyphrases that are, or are not, in the text. They
        are applied in the order present or absent, min, train and test, whatever the order in the name.
    data_dir
        The folder of the data set, or one that holds it in a subfolder whose name begins with the data set's.
    download
        Get it from the Hugging Face hub instead, where it is there: GoEmotions and KP20k. Needs ``datasets``.
    verify
        Whether to check that the files are, byte for byte, those that the authors distribute. KP20k has no single
        distribution, so it is never checked.

    """
    variant = parse_name(name)
    distribution, read = _READERS[variant.benchmark]
    if download and data_dir is not None:
        raise ValueError("give the folder of the files (--data-dir, data_dir) or download them, not both.")
    if download:
        return select(_with_ids(download_benchmark(variant.benchmark, distribution)), variant)
    if data_dir is None:
        raise ValueError(
            f"{variant.benchmark} needs the folder of its files (--data-dir, data_dir): {distribution.expected}; they "
            f"are distributed at {distribution.origin}."
        )
    return select(_with_ids(read(find_files(distribution, data_dir, verify=verify))), variant)


def _with_ids(benchmark: Benchmark) -> Benchmark:
    """Make sure that no two examples have the same id, which decides who is chosen."""
    seen: set[object] = set()
    for name, split in benchmark.splits.items():
        for number, example in enumerate(split, 1):
            if example.id in seen:
                problem = f"example {number:,} of {name} has the id {shown(example.id)}, which another one has too."
                raise DataError(problem, source=benchmark.name)
            seen.add(example.id)
    return benchmark


def select(benchmark: Benchmark, variant: Variant) -> Benchmark:
    """Keep the part of a whole data set that a variant names."""
    splits = benchmark.splits
    if variant.presence:
        splits = {name: keep_phrases(split, variant.presence) for name, split in splits.items()}
    if variant.min_labels:
        at_least = variant.min_labels
        splits = {name: [one for one in split if len(one.labels) >= at_least] for name, split in splits.items()}
    for name, what, wanted in (("train", "training", variant.n_train), ("test", "test", variant.n_test)):
        if wanted is None:
            continue
        n_there = len(splits[name])
        if n_there < wanted:
            raise ValueError(f"{variant} asks for {wanted:,} {what} examples; there are only {n_there:,}.")
        splits[name] = choose(splits[name], wanted)
    return Benchmark(name=str(variant), labels=benchmark.labels, **splits)


def keep_phrases(examples: list[Example], presence: Presence) -> list[Example]:
    """Keep of each example the keyphrases that are in its text, or those that are not; stems decide, as in scoring."""
    from setaug.metrics.keyphrases import find_present

    found = find_present([example.labels for example in examples], [example.text for example in examples])
    return [
        make_example(
            example.text,
            [label for label, is_in in zip(example.labels, flags, strict=True) if is_in == (presence == "present")],
            str(example.id),
        )
        for example, flags in zip(examples, found, strict=True)
    ]
