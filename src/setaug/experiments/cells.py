"""Run a grid of cells, one JSON line per finished cell; what is there already is not run again."""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from setaug.errors import FileError, ModelError
from setaug.files import open_output

Cell: TypeAlias = dict[str, Any]
"""Everything that a result depends on, as JSON."""
Result: TypeAlias = dict[str, Any]
Told: TypeAlias = Callable[[str, int, int | None], None]


def run_cells(
    cells: Sequence[Cell],
    run: Callable[[Cell], Result],
    path: Path,
    *,
    workers: int = 1,
    progress: Told | None = None,
) -> list[Result]:
    """Give the result of each cell, in the order of the cells.

    Parameters
    ----------
    run
        Run one cell; for several workers, a function that processes can share (one of a module, not a lambda).
    path
        The file that holds what is finished, and to which each cell is added as soon as it is.
    workers
        How many cells to run at once, each in a process with one thread; with 1, all run here, one after the other.

    """
    done = read_results(path)
    todo = [cell for cell in cells if cell_key(cell) not in done]
    n_done = len(cells) - len(todo)

    def tell() -> None:
        if progress is not None:
            progress("cells", n_done, len(cells))

    tell()
    if todo:
        from setaug.models.folder import versions  # late: the processes need nothing of it

        with _appending(path) as keep, _running(run, todo, workers) as finished:
            for cell, result, seconds in finished:
                row = {"cell": cell, "result": result, "seconds": round(seconds, 1), "versions": versions()}
                keep(row)
                done[cell_key(cell)] = result
                n_done += 1
                tell()
    return [done[cell_key(cell)] for cell in cells]


def cell_key(cell: Cell) -> str:
    """Name a cell by all that it depends on."""
    return json.dumps(cell, sort_keys=True)


def read_results(path: Path) -> dict[str, Result]:
    """Read what is finished, by `cell_key`; a last line that was cut off is not."""
    if not path.exists():
        return {}
    found = {}
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            row = json.loads(line)
            found[cell_key(row["cell"])] = row["result"]
        except (ValueError, TypeError, KeyError):
            raise FileError(f"line {number} of {path} is no result of an experiment; move the file away.") from None
    return found


@contextmanager
def _appending(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Give a function that adds a line to a file, at once; drop a cut-off line at its end first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text and not text.endswith("\n"):
        with open_output(path) as stream:
            stream.write(text[: text.rfind("\n") + 1].encode())
    with path.open("a", encoding="utf-8") as lines:

        def keep(row: dict[str, Any]) -> None:
            lines.write(json.dumps(row) + "\n")
            lines.flush()
            os.fsync(lines.fileno())

        yield keep


@contextmanager
def _running(
    run: Callable[[Cell], Result], cells: Sequence[Cell], workers: int
) -> Iterator[Iterable[tuple[Cell, Result, float]]]:
    """Give cells with their results as they are finished; told to stop, end the processes at once."""
    if workers == 1:
        yield (_timed(run, cell) for cell in cells)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(cells)), mp_context=multiprocessing.get_context("spawn"), initializer=_use_one_thread
    )
    try:
        yield _finished([pool.submit(_timed, run, cell) for cell in cells])
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(running: list[Future[tuple[Cell, Result, float]]]) -> Iterator[tuple[Cell, Result, float]]:
    try:
        for future in as_completed(running):
            yield future.result()
    except BrokenProcessPool:
        raise ModelError("a process that ran a cell ended early (out of memory?); try fewer --workers.") from None


def _timed(run: Callable[[Cell], Result], cell: Cell) -> tuple[Cell, Result, float]:
    began = time.monotonic()
    result = run(cell)
    return cell, result, time.monotonic() - began


def _use_one_thread() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # torch, which is not loaded yet, looks at it
