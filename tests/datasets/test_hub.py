"""The Hub's datasets, played by local folders with the same files and columns."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import datasets
import pytest

from setaug.datasets import DATASETS, load_dataset
from setaug.errors import DataError, FileError, MissingExtraError

CARD = """\
---
configs:
- config_name: simplified
  data_files:
  - split: train
    path: simplified/train-*
  - split: validation
    path: simplified/validation-*
  - split: test
    path: simplified/test-*
---
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def pretend(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = DATASETS[name]
    assert entry.hub is not None
    monkeypatch.setitem(DATASETS, name, replace(entry, hub=replace(entry.hub, repository=str(folder))))


def test_emotions_come_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = datasets.Features(
        text=datasets.Value("string"),
        labels=datasets.List(datasets.ClassLabel(names=["joy", "fear"])),
        id=datasets.Value("string"),
    )
    folder = tmp_path / "repository"
    (folder / "simplified").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for split in ("train", "validation", "test"):
        rows = {"text": ["We won!", "Boo!"], "labels": [[0, 1], []], "id": [f"{split}-a", f"{split}-b"]}
        path = folder / "simplified" / f"{split}-00000-of-00001.parquet"
        datasets.Dataset.from_dict(rows, features=features).to_parquet(path)
    pretend(folder, "go-emotions", monkeypatch)
    dataset = load_dataset("go-emotions[min2]", download=True)
    assert [(one.text, one.labels, one.id) for one in dataset.dev] == [("We won!", ("joy", "fear"), "validation-a")]
    assert dataset.dev[0].fields == {"id": "validation-a"}
    assert (dataset.name, dataset.labels) == ("go-emotions[min2]", ("joy", "fear"))


def write_papers(folder: Path, keywords: object) -> Path:
    folder.mkdir()
    row = {"id": "7", "title": "Sorting networks", "abstract": "We sort.", "keywords": keywords}
    for split in ("train", "valid", "test"):
        (folder / f"{split}.json").write_text(json.dumps(row) + "\n")
    return folder


def test_papers_come_as_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_papers(tmp_path / "repository", ["sorting network", "hardware"])
    pretend(folder, "kp20k", monkeypatch)
    downloaded = load_dataset("kp20k[absent]", download=True)
    assert downloaded.dev[0].labels == ("hardware",)
    assert downloaded == load_dataset("kp20k[absent]", folder)


def test_rows_that_changed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(write_papers(tmp_path / "repository", 3), "kp20k", monkeypatch)
    with pytest.raises(
        DataError, match=r'line 1 of train of .*repository: "keyword" or "keywords" must be a list of strings'
    ):
        load_dataset("kp20k", download=True)


@pytest.mark.parametrize("error", [ConnectionError("no network.\nmore"), ConnectionError()])
def test_a_hub_that_fails_is_one_sentence(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(
        FileError, match=r"cannot download memray/kp20k from the Hugging Face Hub \((no net|Conn)"
    ) as caught:
        load_dataset("kp20k", download=True)
    assert "memray/seq2seq-keyphrase" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["ufet", "reuters"])
def test_what_the_hub_does_not_have_must_be_got_by_hand(name: str) -> None:
    with pytest.raises(
        FileError, match="is not available on the Hugging Face Hub, only go-emotions and kp20k; download"
    ):
        load_dataset(name, download=True)


def test_downloading_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"Downloading datasets needs .* pip install 'setaug\[hub\]'"):
        load_dataset("kp20k", download=True)
