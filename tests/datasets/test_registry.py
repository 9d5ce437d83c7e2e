"""A new data set needs an entry and nothing else: it is read, filtered, written and trained on by name."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.datasets import DATASETS, Dataset, DatasetEntry
from setaug.datasets.entry import Filter, Kind, make_example
from setaug.datasets.files import Distribution, Files
from setaug.examples import Example
from setaug.sample import sample_examples


def read_toy(files: Files) -> Dataset:
    splits: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    for number, line in files.lines("toy.tsv"):
        split, text, labels = line.split("\t")
        splits[split].append(make_example(text, labels.split(","), str(number)))
    return Dataset(name="toy", labels=None, **splits)


def keep_first(examples: list[Example]) -> list[Example]:
    return [make_example(one.text, one.labels[:1], str(one.id)) for one in examples]


TOY = DatasetEntry(
    name="toy",
    help="news items with topics",
    distribution=Distribution(title="Toy", folder="toy", layouts=[["toy.tsv"]], expected="toy.tsv", origin="this test"),
    read=read_toy,
    kind=Kind(name="topics", vocabulary="closed", filters={"first": Filter("keep the first label", keep_first)}),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(DATASETS, "toy", TOY)
    monkeypatch.setitem(DATASETS, "toy-phrases", replace(TOY, name="toy-phrases", kind=DATASETS["kp20k"].kind))
    monkeypatch.chdir(tmp_path)
    splits = ["train"] * 24 + ["dev"] * 4 + ["test"] * 4
    rows = zip(splits, sample_examples(32), strict=True)
    lines = (f"{split}\t{one.text}\t{','.join(one.labels)}\n" for split, one in rows)
    (tmp_path / "toy.tsv").write_text("".join(lines))
    return tmp_path


def test_a_new_data_set_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "toy[train5,min2]", "--data-dir", ".", "-o", "out"]) == 0
    assert capsys.readouterr().err.startswith("wrote out/train.jsonl: 5 examples\n")
    rows = [json.loads(line) for line in (folder / "out" / "train.jsonl").read_text().splitlines()]
    assert all(len(row["labels"]) >= 2 for row in rows)
    assert main(["data", "toy[min2]", "--data-dir", "."]) == 0
    assert "| toy[min2] | found |" in capsys.readouterr().out


def test_its_kind_brings_filters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "toy[first]", "--data-dir", ".", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["found"]["max_labels"], row["paper"]) == (1, None)
    assert main(["data", "toy[absent]", "--data-dir", "."]) == 2
    assert "first (keep the first label)" in capsys.readouterr().err
    assert main(["data", "toy-phrases[absent]", "--data-dir", "."]) == 0


def test_tables_are_made_on_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["TF-IDF, linear", "the most frequent labels, whatever the text"]
    call = ["reproduce", "main", "--data-dir", ".", "--model", "tiny", "--workers", "1", "--rows", *rows]
    assert main([*call, "-o", "out", "--data", "toy"]) == 0
    page = (folder / "out" / "main.md").read_text()
    assert "| row | toy: samples F |" in page
    assert all(f"| {row} |" in page for row in rows)
    capsys.readouterr()
    assert main([*call, "-o", "other", "--data", "toy-phrases"]) == 2
    assert capsys.readouterr().err.endswith("main needs closed labels; use go-emotions, ufet, reuters, toy.\n")


@pytest.mark.parametrize("module", ["datasets.registry", "cli.data", "cli.reproduce", "cli.simulate"])
def test_the_registries_are_light(module: str) -> None:
    heavy = {"torch", "numba", "numpy", "sklearn", "multiprocessing.pool"}
    code = f"import sys, setaug.{module}; sys.exit(' '.join({heavy} & set(sys.modules)) or 0)"
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
