"""Output in several files: in their places when all are whole, and not before."""

from pathlib import Path

import fsspec
import pytest

from setaug import FileError
from setaug.engines.shards import Shards


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
        assert names(tmp_path) == [".out.jsonl.unfinished"]
    assert names(tmp_path) == ["out-00000-of-00002.jsonl", "out-00001-of-00002.jsonl"]


def test_after_an_error_nothing_is_left(tmp_path):
    with pytest.raises(FileNotFoundError), Shards(f"{tmp_path}/out.jsonl", 2).written() as paths:
        Path(paths[0]).write_bytes(Path("no such file").read_bytes())
    assert names(tmp_path) == []


def test_the_same_plan_goes_on_and_another_starts_anew(tmp_path):
    shards = Shards(f"{tmp_path}/out.jsonl", 3)
    shards.begin({"seed": 0})
    fill(shards, 1)
    shards.begin({"seed": 0})
    assert shards.notes() == {1: {"n": 1}}
    shards.begin({"seed": 1})
    assert shards.notes() == {}
    assert not Path(shards.path(1)).exists()


def test_a_folder_whose_plan_was_not_written_starts_anew(tmp_path):
    shards = Shards(f"{tmp_path}/out.jsonl", 3)
    shards.begin({"seed": 0})
    fill(shards, 0)
    Path(shards.unfinished, "plan.json").write_text('{"see')
    shards.begin({"seed": 0})
    assert shards.notes() == {}


def test_moving_that_was_stopped_goes_on(tmp_path, monkeypatch):
    shards = Shards(f"{tmp_path}/out.jsonl", 3)
    shards.begin({})
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
    assert names(tmp_path) == [".out.jsonl.unfinished", "out-00000-of-00003.jsonl"]
    monkeypatch.undo()
    shards.begin({})
    assert set(shards.notes()) == {0, 1, 2}
    shards.publish()
    assert names(tmp_path) == [f"out-0000{k}-of-00003.jsonl" for k in range(3)]
    assert (tmp_path / "out-00000-of-00003.jsonl").read_text() == "shard 0"


def test_shards_of_another_number_are_not_mixed_with(tmp_path):
    (tmp_path / "out-00000-of-00007.jsonl").touch()
    with pytest.raises(FileError, match="from a run with 7 shards"):
        Shards(f"{tmp_path}/out.jsonl", 2).begin({})
    Shards(f"{tmp_path}/out.jsonl", 7).begin({})
    Shards(f"{tmp_path}/other.jsonl", 2).begin({})


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"cannot write .*out\.jsonl"):
        Shards(f"{tmp_path}/file/out.jsonl", 2).begin({})
    with pytest.raises(FileError, match="standard output is one file"):
        Shards("-", 2).check()
    with pytest.raises(FileError, match="cannot tell the kind"):
        Shards(f"{tmp_path}/out", 2).check()
