"""The real files, where they are at hand: the counts that everybody finds who reads them."""

import os
from pathlib import Path

import pytest

from setaug.datasets import dataset_statistics, load_dataset
from setaug.datasets.reuters import ENTRY, read_stories
from setaug.metrics import find_present

DATA = Path(os.environ.get("SETAUG_DATA", "../shared/data"))
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the dataset data is not there: no folder {DATA}"),
]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("go-emotions", (43410, 5426, 5427)),
        ("go-emotions[min2]", (7102, 878, 837)),
        ("go-emotions[min3]", (561, 69, 63)),
        ("ufet", (1998, 1998, 1998)),
        ("ufet[min2]", (1802, 1852, 1844)),
        ("ufet[min2,train600]", (600, 1852, 1844)),
        ("reuters", (5828, 1942, 3019)),
        ("reuters[min2]", (881, 311, 436)),
        ("kp20k", (1000, 1000, 1000)),
        ("kp20k[absent,min3]", (280, 320, 310)),
    ],
)
def test_there_are_as_many_examples_as_there_should_be(name: str, sizes: tuple[int, int, int]) -> None:
    dataset = load_dataset(name, DATA)
    assert tuple(map(len, dataset.splits.values())) == sizes
    if dataset.labels is not None:
        used = {label for split in dataset.splits.values() for example in split for label in example.labels}
        assert used <= set(dataset.labels)


def test_there_are_as_many_labels_as_there_should_be() -> None:
    n_labels = {name: len(load_dataset(name, DATA).labels or ()) for name in ("go-emotions", "ufet", "reuters")}
    assert n_labels == {"go-emotions": 28, "ufet": 10331, "reuters": 90}
    assert sum(not example.labels for example in load_dataset("ufet", DATA).train) == 29
    assert dataset_statistics(load_dataset("go-emotions[min3]", DATA)).n_labels == 28


def test_modapte_has_as_many_stories_as_its_readme_says() -> None:
    names = ENTRY.distribution.layouts[0]
    stories = [story for name in names for story in read_stories((DATA / "reuters" / name).read_bytes(), name)]
    assert [sum(story.split == split for story in stories) for split in ("TRAIN", "TEST")] == [9603, 3299]
    assert all(story.text for story in stories)
    assert not any("\n" in story.text or "&lt;" in story.text for story in stories)


def test_stems_agree_with_the_marks_of_the_distribution() -> None:
    """``<peos>`` ends the present phrases; it is there in train and valid. They differ on 2 phrases of 10,556."""
    n_phrases = n_alike = 0
    dataset = load_dataset("kp20k", DATA)
    for split, examples in (("train", dataset.train), ("valid", dataset.dev)):
        texts = [example.text for example in examples]
        lists = (DATA / "kp20k_small" / f"{split}_trg.txt").read_text().splitlines()
        marked = [(text, line.split("<peos>")) for text, line in zip(texts, lists, strict=True) if "<peos>" in line]
        sides = [[[phrase for phrase in side.split(";") if phrase] for side in both] for _, both in marked]
        found = find_present([present + absent for present, absent in sides], [text for text, _ in marked])
        for (present, absent), flags in zip(sides, found, strict=True):
            wanted = [True] * len(present) + [False] * len(absent)
            n_phrases += len(wanted)
            n_alike += sum(map(bool.__eq__, wanted, flags))
    assert (n_phrases, n_alike) == (10_556, 10_554)
