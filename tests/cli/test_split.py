"""``setaug split``: nothing lost, nothing twice, no text in two parts."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.cli import main
from setaug.engines.split_files import _assign
from setaug.sample import sample_examples


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": at, "text": one.text, "labels": list(one.labels)} for at, one in enumerate(sample_examples(200))]
    rows += [{**rows[at], "id": 200 + at, "labels": ["twin"]} for at in range(0, 60, 2)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def parts(name: str) -> dict[str, list[dict[str, Any]]]:
    files = sorted(Path(name).glob("*.jsonl"))
    return {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in files}


def test_each_row_is_in_one_part_and_a_text_in_one_only(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["split", "in.jsonl", "-o", "out"]) == 0
    found = parts("out")
    assert {name: len(rows) for name, rows in found.items()} == {"train": 184, "dev": 23, "test": 23}
    given = [json.loads(line) for line in Path("in.jsonl").read_text().splitlines()]
    assert sorted((row for rows in found.values() for row in rows), key=lambda row: row["id"]) == given
    texts = [{row["text"] for row in rows} for rows in found.values()]
    assert sum(map(len, texts)) == len(set().union(*texts)) == len({row["text"] for row in given})
    assert all([row["id"] for row in rows] == sorted(row["id"] for row in rows) for rows in found.values())
    assert "out/train.jsonl: 184 rows, out/dev.jsonl: 23 rows, out/test.jsonl: 23 rows" in capfd.readouterr().err


def test_the_seed_decides_and_numbers_are_exact(folder: Path) -> None:
    for name, options in {"a": "--seed 1", "b": "--seed 1", "c": "--seed 2", "d": "--dev 50 --test 0"}.items():
        assert main(f"split in.jsonl -o {name} {options}".split()) == 0
    assert parts("a") == parts("b") != parts("c")
    assert {name: len(rows) for name, rows in parts("d").items()} == {"train": 180, "dev": 50}


def test_tables_and_bad_rows_are_read_as_elsewhere(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"t{at},x|y,{at}\n" for at in range(20))
    Path("in.csv").write_text("body,tags,n\n" + rows)
    assert (
        main(
            [
                "split",
                "in.csv",
                "-o",
                "out",
                "--text-field",
                "body",
                "--labels-field",
                "tags",
                "--delimiter",
                "|",
                "--dev",
                "5",
                "--test",
                "5",
            ]
        )
        == 0
    )
    found = parts("out")
    assert {name: len(rows) for name, rows in found.items()} == {"train": 10, "dev": 5, "test": 5}
    assert found["dev"][0]["tags"] == ["x", "y"]
    with Path("in.jsonl").open("a") as stream:
        stream.write('{"text": 3}\n')
    assert main(["split", "in.jsonl", "-o", "bad"]) == 2
    assert not Path("bad").exists()
    assert main(["split", "in.jsonl", "-o", "bad", "--skip-bad"]) == 0
    assert "skipped 1 bad line" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("in.jsonl -o out --dev 230 --test 0", "no examples are left for training, of 230"),
        ("in.jsonl -o out --dev 1.5", "dev must be a fraction below 1 or a number of rows, got 1.5"),
        ("in.jsonl -o out --test -1", "test must be a fraction below 1 or a number of rows, got -1"),
        ("in.jsonl -o out --dev 1.0", "dev must be a fraction below 1 or a number of rows, got 1.0"),
        ("in.jsonl -o out --dev many", "dev must be a fraction below 1 or a number of rows, got many"),
        ("empty.jsonl -o out", "no examples to split"),
        ("in.jsonl -o there", "there/train.jsonl already exists; choose another folder"),
    ],
)
def test_mistakes_get_one_clear_line(
    folder: Path, arguments: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("empty.jsonl").write_text("")
    Path("there").mkdir()
    Path("there/train.jsonl").write_text("mine")
    assert main(["split", *arguments.split()]) == 2
    said = capfd.readouterr().err
    assert said.startswith("setaug split: ")
    assert message in said
    assert said.count("\n") == 1
    assert not Path("out").exists()
    assert Path("there/train.jsonl").read_text() == "mine"


@pytest.mark.parametrize("left", [["test"], ["test", "dev"]])
def test_a_killed_split_is_completed_and_other_files_are_not_overwritten(
    folder: Path, left: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["split", "in.jsonl", "-o", "whole"]) == 0
    Path("out").mkdir()
    for name in left:  # the order in which they are published
        Path(f"out/{name}.jsonl").write_bytes(Path(f"whole/{name}.jsonl").read_bytes())
    assert main(["split", "in.jsonl", "-o", "out"]) == 0
    assert parts("out") == parts("whole")
    whole = Path("whole/dev.jsonl").read_bytes()
    for at, other in enumerate((b"mine", whole + b"\n", whole[:-2])):
        Path(f"mine{at}").mkdir()
        Path(f"mine{at}/dev.jsonl").write_bytes(other)
        capfd.readouterr()
        assert main(["split", "in.jsonl", "-o", f"mine{at}"]) == 2
        assert f"mine{at}/dev.jsonl already exists; choose another folder" in capfd.readouterr().err
        assert Path(f"mine{at}/dev.jsonl").read_bytes() == other
        assert not Path(f"mine{at}/train.jsonl").exists()


@given(st.dictionaries(st.integers(0, 1 << 64), st.integers(1, 5), max_size=30), st.integers(0, 40), st.integers(0, 40))
def test_no_part_is_larger_than_asked_for(counts: dict[int, int], n_test: int, n_dev: int) -> None:
    found = _assign(counts, {"test": n_test, "dev": n_dev})
    sizes = {name: sum(counts[key] for key in found if found[key] == name) for name in ("test", "dev")}
    assert sizes["test"] <= n_test
    assert sizes["dev"] <= n_dev
    if all(count == 1 for count in counts.values()):
        assert len(found) == min(n_test + n_dev, len(counts))
