"""Grids of cells: kept one by one, not run again, whole after whatever happened."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from setaug.errors import FileError, ModelError
from setaug.experiments.cells import read_results, run_cells

CELLS = [{"n": number} for number in range(5)]


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
    found = run_cells(CELLS, square, tmp_path / "new" / "cells.jsonl", workers=workers)
    assert found == [{"square": number**2} for number in range(5)]
    rows = [json.loads(line) for line in (tmp_path / "new" / "cells.jsonl").read_text().splitlines()]
    assert sorted(row["cell"]["n"] for row in rows) == list(range(5))
    assert all(row["seconds"] >= 0 and row["versions"]["setaug"] for row in rows)


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run_cells(CELLS[:3], square, path)
    before = path.read_bytes()
    ran = []

    def watched(cell: dict[str, Any]) -> dict[str, Any]:
        ran.append(cell["n"])
        return square(cell)

    told: list[tuple[str, int, int | None]] = []
    found = run_cells(CELLS, watched, path, progress=lambda *args: told.append(args))
    assert ran == [3, 4]
    assert found[1] == {"square": 1}
    assert told == [("cells", 1, 2), ("cells", 2, 2), ("cells", 5, 5)]
    assert path.read_bytes().startswith(before)


def test_cells_are_told_apart_by_content_not_by_the_order_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run_cells([{"a": 1, "b": 2}], lambda cell: {"value": 1}, path)
    assert run_cells([{"b": 2, "a": 1}], lambda cell: {"value": 2}, path) == [{"value": 1}]
    assert run_cells([{"b": 2, "a": 2}], lambda cell: {"value": 2}, path) == [{"value": 2}]


def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    run_cells(CELLS[:2], square, path)
    whole = path.read_text()
    path.write_text(whole[:-10])
    assert len(read_results(path)) == 1
    assert run_cells(CELLS[:2], square, path) == [{"square": 0}, {"square": 1}]
    assert len(path.read_text().splitlines()) == 2
    assert len(read_results(path)) == 2


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_text('{"text": "not ours"}\n')
    with pytest.raises(FileError, match=r"line 1 of .*cells.jsonl is no result of an experiment"):
        run_cells(CELLS, square, path)
    assert path.read_text() == '{"text": "not ours"}\n'


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_finished_before_an_error_is_kept(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "cells.jsonl"
    with pytest.raises(ModelError, match="three is too many"):
        run_cells(CELLS, fail_at_three, path, workers=workers)
    assert len(read_results(path)) >= 1
    assert run_cells(CELLS, square, path) == [{"square": number**2} for number in range(5)]


def test_a_cell_that_is_listed_twice_is_run_once(tmp_path: Path) -> None:
    run_cells([CELLS[1], CELLS[1]], square, tmp_path / "cells.jsonl")
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"[]\n", b'{"cell": {}}\n', b"{\n"])
def test_a_damaged_file_is_refused_by_name_and_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"line 1 of .*cells.jsonl is no result"):
        run_cells(CELLS, square, path)
    assert path.read_bytes() == content


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"

    def run_another(cell: dict[str, Any]) -> dict[str, Any]:
        with pytest.raises(FileError, match=r"another run is writing to .*cells.jsonl"):
            run_cells(CELLS, square, path)
        return square(cell)

    assert run_cells(CELLS[:1], run_another, path) == [{"square": 0}]
    assert len(run_cells(CELLS, square, path)) == 5


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot write .*cells.jsonl: "):
        run_cells(CELLS, square, tmp_path / "file" / "cells.jsonl")


def slow_or_wrong(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["n"] == 0:
        raise ModelError("nothing is not enough.")
    time.sleep(2)
    return square(cell)


def test_what_is_under_way_when_a_cell_fails_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    with pytest.raises(ModelError, match="nothing is not enough"):
        run_cells(CELLS[:2], slow_or_wrong, path, workers=2)
    assert list(read_results(path).values()) == [{"square": 1}]


def test_a_process_that_dies_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="a process that ran a cell ended early"):
        run_cells(CELLS, die, tmp_path / "cells.jsonl", workers=2)


_PROGRAM = """
import sys
from pathlib import Path
from setaug.experiments.cells import run_cells
from tests.experiments.test_cells import CELLS, sleep

if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGTERM, lambda *args: sys.exit(143))
    run_cells(CELLS, sleep, Path(sys.argv[1]), workers=2)
"""


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_stopped_or_killed_its_processes_end_and_what_is_finished_is_kept(
    tmp_path: Path, signum: signal.Signals, code: int
) -> None:
    path, program = tmp_path / "cells.jsonl", tmp_path / "program.py"
    program.write_text(_PROGRAM)
    root = str(Path(__file__).parents[2])
    running = subprocess.Popen(
        [sys.executable, str(program), str(path)],
        env={**os.environ, "PYTHONPATH": root, "TMPDIR": str(tmp_path)},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while not read_results(path) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len(read_results(path)) == 1
        while len(list(tmp_path.glob("setaug-cells-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        running.send_signal(signum)
        assert running.wait(timeout=60) == code
        deadline = time.monotonic() + 30
        while _group_lives(running.pid) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not _group_lives(running.pid)
        assert len(read_results(path)) == 1
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
