"""Cells: stored one by one, not run again, and intact after an interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from setaug.errors import FileError, ModelError
from setaug.experiments.cells import Results
from setaug.experiments.runner import run_cells

CELLS = [{"n": number} for number in range(5)]
Values = dict[str, Any]


def each(function: Callable[[Values], Values], cells: Sequence[Values]) -> Iterator[Values]:
    return map(function, cells)


def run(cells: Sequence[Values], function: Callable[[Values], Values], path: Path, **options: Any) -> list[Values]:
    """Run each cell as a group of its own."""
    results = run_cells([[cell] for cell in cells], partial(each, function), path, **options)
    return [results.value(cell) for cell in cells]


def square(cell: dict[str, Any]) -> dict[str, Any]:
    return {"square": cell["n"] ** 2}


def die(cell: dict[str, Any]) -> dict[str, Any]:
    os._exit(1)


def fail_at_three(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["n"] == 3:
        raise ModelError("three is too many.")
    return square(cell)


def sleep(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["n"]:
        with TemporaryDirectory(prefix="setaug-cells-") as folder:
            (Path(folder) / "weights").write_text("")
            time.sleep(600)
    return square(cell)


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_cells(tmp_path: Path, workers: int) -> None:
    found = run(CELLS, square, tmp_path / "new" / "cells.jsonl", workers=workers)
    assert found == [{"square": number**2} for number in range(5)]
    rows = [json.loads(line) for line in (tmp_path / "new" / "cells.jsonl").read_text().splitlines()]
    assert sorted(row["cell"]["n"] for row in rows) == list(range(5))
    assert all(row["seconds"] >= 0 and row["versions"]["setaug"] for row in rows)


def test_stored_cells_are_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run(CELLS[:3], square, path)
    before = path.read_bytes()
    ran = []

    def watched(cell: dict[str, Any]) -> dict[str, Any]:
        ran.append(cell["n"])
        return square(cell)

    told: list[tuple[str, int, int | None]] = []
    found = run(CELLS, watched, path, progress=lambda *args: told.append(args))
    assert ran == [3, 4]
    assert found[1] == {"square": 1}
    assert told == [("cells", 1, 2), ("cells", 2, 2), ("cells", 5, 5)]
    assert path.read_bytes().startswith(before)


def test_cells_are_told_apart_by_content_not_by_the_order_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run([{"a": 1, "b": 2}], lambda cell: {"value": 1}, path)
    assert run([{"b": 2, "a": 1}], lambda cell: {"value": 2}, path) == [{"value": 1}]
    assert run([{"b": 2, "a": 2}], lambda cell: {"value": 2}, path) == [{"value": 2}]


def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run(CELLS[:2], square, path)
    whole = path.read_text()
    path.write_text(whole[:-10])
    assert len(Results(path)) == 1
    assert run(CELLS[:2], square, path) == [{"square": 0}, {"square": 1}]
    assert len(path.read_text().splitlines()) == 2
    assert len(Results(path)) == 2


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_text('{"text": "not ours"}\n')
    with pytest.raises(FileError, match=r"line 1 of .*cells.jsonl is not the result of an experiment"):
        run(CELLS, square, path)
    assert path.read_text() == '{"text": "not ours"}\n'


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_finished_before_an_error_is_kept(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "cells.jsonl"
    with pytest.raises(ModelError, match="three is too many"):
        run(CELLS, fail_at_three, path, workers=workers)
    assert len(Results(path)) >= 1
    assert run(CELLS, square, path) == [{"square": number**2} for number in range(5)]


def test_a_cell_that_is_listed_twice_is_run_once(tmp_path: Path) -> None:
    run([CELLS[1], CELLS[1]], square, tmp_path / "cells.jsonl")
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"[]\n", b'{"cell": {}}\n', b"{\n"])
def test_a_damaged_file_is_refused_by_name_and_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"line 1 of .*cells.jsonl is not the result"):
        run(CELLS, square, path)
    assert path.read_bytes() == content


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"

    def run_another(cell: dict[str, Any]) -> dict[str, Any]:
        with pytest.raises(FileError, match=r"another run is writing to .*cells.jsonl"):
            run(CELLS, square, path)
        return square(cell)

    assert run(CELLS[:1], run_another, path) == [{"square": 0}]
    assert len(run(CELLS, square, path)) == 5


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot write .*cells.jsonl: "):
        run(CELLS, square, tmp_path / "file" / "cells.jsonl")


def slow_or_wrong(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["n"] == 0:
        raise ModelError("nothing is not enough.")
    time.sleep(1)
    return square(cell)


def test_what_is_under_way_when_a_cell_fails_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    with pytest.raises(ModelError, match="nothing is not enough"):
        run(CELLS[:2], slow_or_wrong, path, workers=2)
    assert len(Results(path)) == 1
    assert Results(path).value({"n": 1}, "square") == 1


def test_a_process_that_dies_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="a worker process ended unexpectedly"):
        run(CELLS, die, tmp_path / "cells.jsonl", workers=2)


_PROGRAM = """
import sys
from pathlib import Path
from tests.experiments.test_runner import CELLS, run, sleep

if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGTERM, lambda *args: sys.exit(143))
    run(CELLS, sleep, Path(sys.argv[1]), workers=2)
"""


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_stopped_or_killed_its_processes_end_and_what_is_finished_is_kept(
    tmp_path: Path, signum: signal.Signals, code: int
) -> None:
    path, program = tmp_path / "cells.jsonl", tmp_path / "program.py"
    program.write_text(_PROGRAM)
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    running = subprocess.Popen(
        [sys.executable, str(program), str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(tmp_path)},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 600
        while not len(Results(path)) and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len(Results(path)) == 1
        while len(list(tmp_path.glob("setaug-cells-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        running.send_signal(signum)
        assert running.wait(timeout=600) == code
        deadline = time.monotonic() + 300
        while _group_lives(running.pid) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not _group_lives(running.pid)
        assert len(Results(path)) == 1
        if signum == signal.SIGTERM:  # who is killed cannot clean up
            assert not list(tmp_path.glob("setaug-cells-*"))
    finally:
        if _group_lives(running.pid):
            os.killpg(running.pid, signal.SIGKILL)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_groups_run_their_missing_cells_together(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run(CELLS[1:2], square, path)
    asked: list[list[int]] = []

    def watched(cells: Sequence[Values]) -> Iterator[Values]:
        asked.append([cell["n"] for cell in cells])
        return each(square, cells)

    stored: list[Values] = []
    results = run_cells([CELLS[:2], CELLS[2:4], CELLS[:1]], watched, path, on_result=stored.append)
    assert asked == [[0], [2, 3]]
    assert [row["cell"]["n"] for row in stored] == [0, 2, 3]
    assert len(results) == 4


def test_a_value_that_a_result_lacks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run(CELLS[:1], lambda cell: {"sets": {"f1": None}}, path)
    assert Results(path).value(CELLS[0], "sets", "f1") is None
    with pytest.raises(FileError, match="a result has no sets / f1 / x: it was written by another version of setaug"):
        Results(path).value(CELLS[0], "sets", "f1", "x")
    with pytest.raises(FileError, match="a result has no sets / f1: "):
        Results(path).value(CELLS[0], "sets", "f1", convert=float)
