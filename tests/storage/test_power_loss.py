"""After a power loss, whatever has the name of an output is whole: the old one or the new one."""

import os
from pathlib import Path

import orjson
import pytest

from setaug.cli import main
from setaug.engines import augment_files
from setaug.errors import FileError
from setaug.sample import sample_examples
from setaug.storage import open_output
from tests.conftest import write_examples
from tests.power_loss import Disk, power_loss

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no /proc/self/fd")
LINES = b"".join(b'{"text":"%d","labels":["a","b"]}\n' % number for number in range(1000))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_bytes(LINES)
    return path


def test_the_simulation_finds_a_file_that_was_renamed_before_it_was_synced(tmp_path: Path) -> None:
    found: list[bytes | None] = []
    with power_loss(tmp_path, lambda disk: found.append(disk.get("out", b"absent"))):
        (tmp_path / "part").write_bytes(b"new")
        os.replace(tmp_path / "part", tmp_path / "out")
    assert found[0] is None


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found: set[bytes | None] = set()
    with power_loss(tmp_path, lambda disk: found.add(disk.get("out", b"absent"))) as moments:
        for content in (b"first", b"second"):
            with open_output(out) as stream:
                stream.write(content)
    assert found == {b"absent", b"first", b"second"}
    assert len(moments) > 5


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.jsonl.gz", "pairs.csv", "pairs.parquet"])
def test_pairs_are_there_whole_or_not(name: str, source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    found: list[bytes | None] = []
    with power_loss(folder, lambda disk: found.append(disk.get(name, b"absent"))):
        augment_files(source, folder / name)
    whole = (folder / name).read_bytes()
    assert set(found) == {b"absent", whole}


def test_shards_are_whole_and_those_of_a_stopped_run_are_replaced(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    disks: list[Disk] = []
    with power_loss(folder, disks.append):
        augment_files(source, folder / "pairs.jsonl", shards=3)
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    for disk in disks:
        in_place = {name: content for name, content in disk.items() if "/" not in name and not name.startswith(".")}
        assert in_place.items() <= whole.items()
        if 0 < len(in_place) < 3:  # the mark that lets the next run replace them is on the disk
            assert any(name.endswith("/moving") and content == b"moving\n" for name, content in disk.items())


@pytest.mark.slow
def test_a_model_folder_and_a_checkpoint_that_are_marked_as_whole_are_whole(tmp_path: Path) -> None:
    train, folder = tmp_path / "train.jsonl", tmp_path / "run"
    write_examples(train, sample_examples(30, seed=1))
    seen = {"setaug.json": 0, "complete": 0}

    def check(disk: Disk) -> None:
        for name in disk:
            place, _, last = name.rpartition("/")
            if last in seen:
                seen[last] += 1
                beside = {path: content for path, content in disk.items() if path.rpartition("/")[0] == place}
                beside = {path: content for path, content in beside.items() if "metrics.jsonl" not in path}
                assert all(content is not None for path, content in beside.items() if not path.endswith(".lock"))
                for path, content in beside.items():
                    if not path.endswith(".lock"):
                        assert (folder / path).read_bytes() == content

    with power_loss(folder, check):
        assert main(["train", str(train), "--model", "tiny", "-o", str(folder), "--epochs", "2"]) == 0
    assert all(seen.values())


def test_answers_and_cells_are_synced_line_by_line(tmp_path: Path) -> None:
    from setaug.storage import appending_lines

    found: list[bytes | None] = []
    with (
        power_loss(tmp_path, lambda disk: found.append(disk.get("cells.jsonl"))),
        appending_lines(tmp_path / "cells.jsonl", begins=b"{") as add,
    ):
        for number in range(3):
            add(orjson.dumps({"n": number}))
            assert found[-1] == b"".join(b'{"n":%d}\n' % n for n in range(number + 1))


def test_a_sync_that_fails_is_an_error_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileError, match=r"cannot write .*out: Input/output error\."), open_output(out) as stream:
        stream.write(b"new")
    assert out.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
