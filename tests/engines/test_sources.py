"""Which files a call names."""

from pathlib import Path

import fsspec
import pytest

from setaug.engines.sources import find_files
from setaug.errors import FileError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_a_folder_gives_its_files_by_name_and_those_below(tmp_path):
    touch(tmp_path, "b.csv.gz", "a.jsonl", "below/c.parquet", "README.md", ".hidden.jsonl", "_temporary/d.jsonl")
    found = find_files(tmp_path)
    assert [file.path for file in found] == [
        f"{tmp_path}/{name}" for name in ("a.jsonl", "b.csv.gz", "below/c.parquet")
    ]
    assert [file.kind for file in found] == ["jsonl", "csv", "parquet"]
    assert find_files(f"{tmp_path}/") == found


def test_files_and_folders_come_in_the_order_given(tmp_path):
    touch(tmp_path, "z.jsonl", "folder/a.jsonl", "folder/b.jsonl")
    found = find_files([tmp_path / "z.jsonl", tmp_path / "folder", "-"])
    assert [file.path for file in found] == [
        f"{tmp_path}/{n}" for n in ("z.jsonl", "folder/a.jsonl", "folder/b.jsonl")
    ] + ["-"]
    assert found[-1].name == "standard input"


def test_a_file_alone_goes_by_its_name_and_one_of_many_by_its_path(tmp_path):
    touch(tmp_path, "a.jsonl", "b.jsonl")
    assert find_files(tmp_path / "a.jsonl")[0].name == "a.jsonl"
    assert find_files([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])[0].name == f"{tmp_path}/a.jsonl"


def test_a_kind_that_is_given_holds_for_all_files(tmp_path):
    touch(tmp_path, "a.txt", "b.jsonl")
    assert [file.kind for file in find_files(tmp_path, "tsv")] == ["tsv", "tsv"]


def test_addresses_are_files_and_folders_too():
    system = fsspec.filesystem("memory")
    for name in ("/sources/b.jsonl", "/sources/below/a.jsonl.zst", "/sources/_SUCCESS"):
        system.pipe(name, b"")
    try:
        found = [file.path for file in find_files("memory://sources")]
        assert found == ["memory://sources/b.jsonl", "memory://sources/below/a.jsonl.zst"]
        assert [file.path for file in find_files("memory://sources/b.jsonl")] == found[:1]
    finally:
        system.rm("/sources", recursive=True)


def test_what_names_no_file_is_refused(tmp_path):
    touch(tmp_path, "notes.txt")
    with pytest.raises(FileError, match="contains no file with examples"):
        find_files(tmp_path)
    with pytest.raises(FileError, match="cannot infer the file format"):
        find_files(tmp_path / "notes.txt")
    with pytest.raises(FileError, match="only once"):
        find_files(["-", "-"])
    with pytest.raises(ValueError, match="at least one"):
        find_files([])
    with pytest.raises(FileError, match=r"cannot reach nowhere://x\.jsonl: Protocol not known"):
        find_files("nowhere://x.jsonl")
