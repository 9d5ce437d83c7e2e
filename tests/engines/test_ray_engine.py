"""Ray writes the same lines as one machine, whatever dies on the way."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from setaug import SetAugmenter
from setaug.augmenter import PairFormat
from setaug.engines import RayEngine, augment_files
from setaug.engines.partitions import plan_partitions
from setaug.engines.sources import find_files
from setaug.errors import DataError, FileError
from setaug.orders import ORDERINGS
from setaug.sample import sample_examples

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'setaug[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")  # it warns of its own doings


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


def rows(n: int) -> list[dict[str, Any]]:
    """Rows with labels of several spellings, repeated ones, empty sets and large ones."""
    found = [{"id": e.id, "text": e.text + ' "é"\n', "labels": list(e.labels)} for e in sample_examples(n)]
    found[3]["labels"] = []
    found[5]["labels"] *= 2
    found[7]["labels"] = [f"l{k}" for k in range(40)]
    return found


def write(path: Path, some: list[dict[str, Any]]) -> Path:
    # Every other row escapes what is not ASCII: one label in two spellings.
    lines = "".join(json.dumps(row, ensure_ascii=bool(k % 2)) + "\n" for k, row in enumerate(some))
    path.write_text(lines)
    return path


def lines(folder: Path, pattern: str) -> list[bytes]:
    paths = sorted(folder.glob(pattern))
    assert paths
    return b"".join(path.read_bytes() for path in paths).splitlines()


def assert_same(
    tmp_path: Path, source: Path | list[Path], engine: RayEngine, shards: int | None = None, **options: Any
) -> None:
    here = augment_files(source, tmp_path / "here.jsonl", **options)
    there = augment_files(source, tmp_path / "there.jsonl", engine=engine, shards=shards, **options)
    assert lines(tmp_path, "there-*.jsonl") == (tmp_path / "here.jsonl").read_bytes().splitlines()
    for name in ("n_examples", "n_labels", "n_pairs", "n_repeated", "n_edges", "n_constrained", "n_uncounted"):
        assert getattr(there, name) == getattr(here, name), name
    assert there.log2_orders == pytest.approx(here.log2_orders)
    assert (there.skipped.count, there.skipped.first) == (here.skipped.count, here.skipped.first)


@pytest.mark.parametrize("ordering", ORDERINGS)
@pytest.mark.usefixtures("cluster")
def test_the_lines_are_those_of_one_machine(ordering: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(300))
    augmenter = SetAugmenter(ordering=ordering, random_state=7)
    assert_same(tmp_path, source, RayEngine(partition_size=5000), augmenter=augmenter, carry=["id"])


@pytest.mark.parametrize("size", [700, 3333, 1 << 20])
@pytest.mark.usefixtures("cluster")
def test_how_the_input_is_divided_does_not_matter(size: int, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(60))
    assert_same(tmp_path, source, RayEngine(partition_size=size), pair_format=PairFormat.named("chat"))


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.usefixtures("cluster")
def test_there_are_as_many_shards_as_asked_for(shards: int, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(100))
    assert_same(tmp_path, source, RayEngine(partition_size=2000), shards=shards)
    assert len(list(tmp_path.glob("there-*"))) == shards


@pytest.mark.usefixtures("cluster")
def test_folders_of_many_kinds_are_read_and_parquet_is_divided(tmp_path: Path) -> None:
    some = rows(200)
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "a.jsonl", some[:50])
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in some[50:90]).encode()))
    parquet.write_table(pa.Table.from_pylist(some[90:]), folder / "c.parquet", row_group_size=20)
    (folder / "d.csv").write_text('text,labels\n"a, b",joy;event\n')
    partitions, _ = plan_partitions(find_files(folder), 4000)
    assert len([part for part in partitions if part.file.kind == "parquet"]) > 2
    assert_same(tmp_path, folder, RayEngine(partition_size=4000))


@pytest.mark.usefixtures("cluster")
def test_parquet_is_written(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(40))
    augment_files(source, tmp_path / "here.parquet")
    augment_files(source, tmp_path / "there.parquet", shards=2, engine=RayEngine())
    there = [parquet.read_table(path) for path in sorted(tmp_path.glob("there-*.parquet"))]
    assert pa.concat_tables(there).equals(parquet.read_table(tmp_path / "here.parquet"))


@pytest.mark.usefixtures("cluster")
def test_addresses_reach_the_workers(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(60))
    engine = RayEngine(partition_size=3000)
    augment_files(source, tmp_path / "here.jsonl")
    # An address of this machine's files, which goes through fsspec like that of any other store.
    augment_files(f"local://{source}", f"local://{tmp_path}/there.jsonl", engine=engine)
    assert lines(tmp_path, "there-*.jsonl") == (tmp_path / "here.jsonl").read_bytes().splitlines()
    assert not list(tmp_path.glob(".there*"))


@pytest.mark.usefixtures("cluster")
def test_a_bad_line_is_told_as_one_machine_tells_it(tmp_path: Path) -> None:
    some = rows(100)
    source = write(tmp_path / "in.jsonl", some)
    good = source.read_bytes().splitlines(keepends=True)
    good[70] = b'{"text": "cut off\n'
    good[71] = b"\xff\n"
    good[40] = b"\xef\xbb\xbf" + good[40]  # a mark that stands at the start of a file only
    source.write_bytes(b"\n".join([b"", *good]))
    other = write(tmp_path / "other.jsonl", some[:20])
    engine = RayEngine(partition_size=1000)
    for sources in (source, [other, source]):
        with pytest.raises(DataError) as here:
            augment_files(sources, tmp_path / "here.jsonl")
        with pytest.raises(DataError) as there:
            augment_files(sources, tmp_path / "there.jsonl", engine=engine)
        assert str(there.value) == str(here.value)
        assert (there.value.source, there.value.line) == (here.value.source, here.value.line)
        assert sorted(os.listdir(tmp_path)) == ["in.jsonl", "other.jsonl"]
    assert_same(tmp_path, [other, source], engine, skip_bad=True)


@pytest.mark.usefixtures("cluster")
def test_files_without_rows_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("blank.jsonl").write_text("\n")
    Path("bad.jsonl").write_text("{}\n")
    write(Path("good.jsonl"), rows(20))
    sources = [Path("empty.jsonl"), Path("blank.jsonl"), Path("bad.jsonl"), Path("good.jsonl")]
    sources[0].touch()
    assert_same(Path(), sources, RayEngine(), skip_bad=True)
    augment_files(sources, "there.parquet", skip_bad=True, engine=RayEngine())
    assert sum(parquet.read_table(path).num_rows for path in tmp_path.glob("there-*.parquet")) == 60


@pytest.mark.usefixtures("cluster")
def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a", "labels": []}\n' * 100)[:-20])
    with pytest.raises(FileError, match="is damaged"):
        augment_files(tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl", engine=RayEngine())


def test_what_several_workers_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="standard input cannot be read by several workers"):
        augment_files("-", tmp_path / "out.jsonl", engine=RayEngine())
    with pytest.raises(FileError, match="cannot read"):
        augment_files(tmp_path / "none.jsonl", tmp_path / "out.jsonl", engine=RayEngine())
    source = write(tmp_path / "in.jsonl", rows(10))
    with pytest.raises(FileError, match="standard output cannot be sharded"):
        augment_files(source, "-", engine=RayEngine())
    for name, value in (("workers", 0), ("workers", True), ("partition_size", 1.5)):
        with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
            RayEngine(**{name: value})


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "in.csv"])
@pytest.mark.parametrize("ordering", ["topological", "random"])
@pytest.mark.usefixtures("cluster")
def test_a_file_that_changes_between_the_passes_is_refused_by_name(name: str, ordering: str, tmp_path: Path) -> None:
    good = [f'{{"text": "text {k}", "labels": ["a", "b{k % 3}"]}}\n' for k in range(100)]
    if name == "in.csv":
        good = ["text,labels\n", *(f"text {k},a;b{k % 3}\n" for k in range(100))]
    pack = gzip.compress if name.endswith("gz") else bytes
    (tmp_path / name).write_bytes(pack("".join(good).encode()))

    def change(stage: str, done: int, total: int | None) -> None:
        if stage == "reading" and done == 100:  # the labels and the number of rows are the same
            (tmp_path / name).write_bytes(pack("".join(good).replace("text 55", "text 56").encode()))

    with pytest.raises(FileError, match=rf"{name} changed while it was read"):
        augment_files(
            tmp_path / name,
            tmp_path / "out.jsonl",
            SetAugmenter(ordering=ordering),
            engine=RayEngine(partition_size=2000),
            progress=change,
        )
    assert not list(tmp_path.glob("out*"))


# Whole commands, of which something is killed.


def many(path: Path, n: int = 60_000) -> Path:
    some = [orjson.dumps({**row, "text": row["text"] * 5}) for row in rows(1000)]
    path.write_bytes(b"\n".join(some * (n // len(some))) + b"\n")
    return path


def start(source: Path, target: Path, *options: str, workers: int = 2) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "setaug", "augment", str(source), "-o", str(target), "--engine", "ray"]
    command += ["--workers", str(workers), "--shards", "6", *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=heed_interrupts)


def heed_interrupts() -> None:
    """Undo what a test runner without a terminal may have asked for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def until(found: Callable[[], Any], process: subprocess.Popen[bytes]) -> Any:
    while process.poll() is None:
        if something := found():
            return something
        time.sleep(0.002)
    pytest.fail(f"it ended: {process.communicate()[1].decode()}")


def assert_ends_right(process: subprocess.Popen[bytes], source: Path, target: Path) -> None:
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told.decode()
    here = target.with_name("here.jsonl")
    augment_files(source, here)
    pattern = f"{target.stem}-*-of-00006.jsonl"
    assert lines(target.parent, pattern) == here.read_bytes().splitlines()
    assert not list(target.parent.glob(".*"))


def writers(path: Path) -> Iterator[int]:
    """Find the processes that have a file open."""
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(descriptor) == str(path):
                yield int(descriptor.parts[2])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
@pytest.mark.minutes
def test_a_worker_is_killed_while_it_writes_and_the_job_ends_right(tmp_path: Path) -> None:
    source, target = many(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    process = start(source, target)

    def kill_one() -> Path | None:
        for part in tmp_path.glob(".out.*.unfinished/.*.part"):
            for writer in writers(part):
                with suppress(ProcessLookupError):
                    os.kill(writer, signal.SIGKILL)
                    if part.exists():  # else it was complete, and in its place, a moment before
                        return part
        return None

    part = until(kill_one, process)
    assert process.poll() is None, f"{part} was the last"
    assert_ends_right(process, source, target)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.minutes
def test_the_driver_is_stopped_and_the_next_run_goes_on(how: signal.Signals, tmp_path: Path) -> None:
    source, target = many(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    process = start(source, target, workers=1)
    until(lambda: list(tmp_path.glob(".out.*.unfinished/*.notes")), process)
    process.send_signal(how)
    process.communicate(timeout=600)
    assert process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143}[how]
    assert not list(tmp_path.glob("out-*")), "nothing looks complete"
    notes = tmp_path.glob(".out.*.unfinished/*.notes")
    whole = {path.name.removesuffix(".notes"): path.with_suffix("").stat() for path in notes}
    assert 0 < len(whole) < 6
    assert_ends_right(start(source, target), source, target)
    for name, before in whole.items():
        after = (tmp_path / name).stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "it was written again"


def test_an_address_that_makes_no_sense_is_one_line(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(10))
    command = [sys.executable, "-m", "setaug", "augment", source, "-o", tmp_path / "out.jsonl", "--engine", "ray"]
    run = subprocess.run(command, env=os.environ | {"RAY_ADDRESS": "nonsense:x"}, capture_output=True, check=False)
    assert run.returncode == 2
    assert run.stderr.decode().splitlines()[-1].startswith("setaug augment: Ray cannot be started or reached: ")
    assert os.listdir(tmp_path) == ["in.jsonl"]
