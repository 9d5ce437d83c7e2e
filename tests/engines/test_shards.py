"""Output in several files: in their places when all are whole, and not before."""

from pathlib import Path

import fsspec
import pytest

from setaug.engines.shards import Shards
from setaug.errors import FileError


def fill(shards: Shards, *numbers: int) -> None:
    for number in numbers:
        Path(shards.path(number)).write_text(f"shard {number}")
        shards.note(number, {"n": number})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("pairs.jsonl", "pairs-00000-of-00002.jsonl"),
        ("a/b.c/my.pairs.csv.GZ", "a/b.c/my.pairs-00000-of-00002.csv.GZ"),
        ("s3://bucket/pairs.parquet", "s3://bucket/pairs-00000-of-00002.parquet"),
    ],
)
def test_numbers_stand_before_the_suffix(target, place):
    assert Shards(target, 2).place(0) == place


def test_nothing_is_in_its_place_before_all_is(tmp_path):
    shards = Shards(f"{tmp_path}/out.jsonl", 2)
    with shards.written() as paths:
        for path in paths:
            Path(path).write_text("x")
        assert names(tmp_path) == [f".out.jsonl.{shards.key}.unfinished", ".out.jsonl.lock"]
    assert names(tmp_path) == ["out-00000-of-00002.jsonl", "out-00001-of-00002.jsonl"]


def test_after_an_error_nothing_is_left(tmp_path):
    with pytest.raises(FileNotFoundError), Shards(f"{tmp_path}/out.jsonl", 2).written() as paths:
        Path(paths[0]).write_bytes(Path("no such file").read_bytes())
    assert names(tmp_path) == []


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_the_same_run_goes_on_and_another_starts_anew(suffix, tmp_path):
    shards = Shards(f"{tmp_path}/out.{suffix}", 3, "one")
    shards.begin()
    fill(shards, 1)
    shards.begin()
    assert shards.notes() == {1: {"n": 1}}
    other = Shards(f"{tmp_path}/out.{suffix}", 4, "other")
    other.begin()
    assert other.notes() == {}
    assert names(tmp_path) == [f".out.{suffix}.other.unfinished"]


def test_notes_that_were_cut_off_and_notes_of_nothing_do_not_count(tmp_path):
    shards = Shards(f"{tmp_path}/out.jsonl", 3, "one")
    shards.begin()
    fill(shards, 0, 1, 2)
    Path(shards.path(0) + ".notes").write_text('{"n')
    Path(shards.path(1)).unlink()
    assert set(shards.notes()) == {2}


def test_what_was_not_written_is_not_published(tmp_path):
    shards = Shards(f"{tmp_path}/out.jsonl", 3, "one")
    shards.begin()
    fill(shards, 0, 2)
    for _ in range(2):  # nor the second time, when moving has begun
        with pytest.raises(FileError, match="was not written"):
            shards.publish()


def stopped_while_moving(tmp_path, monkeypatch) -> Shards:
    shards = Shards(f"{tmp_path}/out.jsonl", 3, "one")
    shards.begin()
    fill(shards, 0, 1, 2)
    system = type(fsspec.filesystem("local"))
    move = system.mv

    def move_one(self, source, target, **options):
        if "00001" in source:
            raise KeyboardInterrupt
        move(self, source, target, **options)

    monkeypatch.setattr(system, "mv", move_one)
    with pytest.raises(KeyboardInterrupt):
        shards.publish()
    monkeypatch.undo()
    assert names(tmp_path) == [".out.jsonl.one.unfinished", "out-00000-of-00003.jsonl"]
    return shards


def test_moving_that_was_stopped_goes_on(tmp_path, monkeypatch):
    shards = stopped_while_moving(tmp_path, monkeypatch)
    shards.begin()
    assert set(shards.notes()) == {0, 1, 2}
    shards.publish()
    assert names(tmp_path) == [f"out-0000{k}-of-00003.jsonl" for k in range(3)]
    assert (tmp_path / "out-00000-of-00003.jsonl").read_text() == "shard 0"


def test_another_run_removes_what_was_moved_by_one_that_was_stopped(tmp_path, monkeypatch):
    stopped_while_moving(tmp_path, monkeypatch)
    Shards(f"{tmp_path}/out.jsonl", 2, "other").begin()
    assert names(tmp_path) == [".out.jsonl.other.unfinished"]


def test_shards_that_are_there_are_neither_replaced_nor_mixed_with(tmp_path):
    (tmp_path / "out-00000-of-00002.jsonl").touch()
    for n_shards in (2, 7):
        with pytest.raises(FileError, match="already exists"):
            Shards(f"{tmp_path}/out.jsonl", n_shards).begin()
    assert names(tmp_path) == ["out-00000-of-00002.jsonl"]
    Shards(f"{tmp_path}/other.jsonl", 2).begin()


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"cannot write .*out\.jsonl"):
        Shards(f"{tmp_path}/file/out.jsonl", 2).begin()
    with pytest.raises(FileError, match="standard output cannot be sharded"):
        Shards("-", 2).check()
    with pytest.raises(FileError, match="cannot infer the file format"):
        Shards(f"{tmp_path}/out", 2).check()
