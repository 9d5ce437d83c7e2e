"""Run a grid of cells, one JSON line per finished cell; what is there already is not run again."""

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from setaug.errors import FileError, ModelError

if TYPE_CHECKING:
    from setaug.models.settings import Progress

Cell: TypeAlias = dict[str, Any]
"""Everything about a run that can be chosen, as JSON."""
Result: TypeAlias = dict[str, Any]


def run_cells(
    cells: Sequence[Cell],
    run: Callable[[Cell], Result],
    path: Path,
    *,
    workers: int = 1,
    progress: "Progress | None" = None,
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
    if any(cell_key(cell) not in done for cell in cells):
        with _adding_to(path) as keep:
            done = read_results(path)  # again: now nobody else writes
            missing = {cell_key(cell): cell for cell in cells if cell_key(cell) not in done}
            _run_missing(list(missing.values()), run, done, keep, workers, progress)
    if progress is not None:
        progress("cells", len(cells), len(cells))
    return [done[cell_key(cell)] for cell in cells]


def _run_missing(
    cells: Sequence[Cell],
    run: Callable[[Cell], Result],
    done: dict[str, Result],
    keep: Callable[[dict[str, Any]], None],
    workers: int,
    progress: "Progress | None",
) -> None:
    from setaug.models.folder import versions  # late: the processes need nothing of it

    with _running(run, cells, workers) as finished:
        for n_done, (cell, result, seconds) in enumerate(finished, start=1):
            keep({"cell": cell, "result": result, "seconds": round(seconds, 1), "versions": versions()})
            done[cell_key(cell)] = result
            if progress is not None:
                progress("cells", n_done, len(cells))


def cell_key(cell: Cell) -> str:
    """Name a cell by all that it depends on."""
    return json.dumps(cell, sort_keys=True)


def read_results(path: Path) -> dict[str, Result]:
    """Read what is finished, by `cell_key`; a last line that was cut off is not."""
    if not path.exists():
        return {}
    found = {}
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
            found[cell_key(row["cell"])] = row["result"]
        except (ValueError, TypeError, KeyError):
            raise FileError(f"line {number} of {path} is no result of an experiment; use another folder.") from None
    return found


@contextmanager
def _adding_to(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Give a function that adds a line to a file, at once; nobody else may write to it meanwhile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+b")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}.") from None
    with stream:
        _lock(stream, path)
        stream.seek(0)
        stream.truncate(stream.read().rfind(b"\n") + 1)  # drop a line that was cut off

        def keep(row: dict[str, Any]) -> None:
            stream.write(json.dumps(row).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

        yield keep


def _lock(stream: BinaryIO, path: Path) -> None:
    """Keep others from writing to a file until it is closed, where the system can do that."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return
    try:
        flock(stream, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise FileError(f"another run is writing to {path}; wait for it, or use another folder.") from None


@contextmanager
def _running(
    run: Callable[[Cell], Result], cells: Sequence[Cell], workers: int
) -> Iterator[Iterable[tuple[Cell, Result, float]]]:
    """Give cells with their results as they are finished; told to stop, end the processes at once."""
    if workers == 1:
        yield (_timed(run, cell) for cell in cells)
        return
    before = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(cells)), mp_context=context, initializer=_begin_worker)
    try:
        yield _finished([pool.submit(_timed, run, cell) for cell in cells])
    except BaseException:
        for process in set(multiprocessing.active_children()).difference(before):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(running: Sequence[Future[tuple[Cell, Result, float]]]) -> Iterator[tuple[Cell, Result, float]]:
    """Give results as they come; after an error, begin nothing new, wait for what is under way, and then raise it."""
    failed: BaseException | None = None
    for future in as_completed(running):
        if future.cancelled():
            continue
        error = future.exception()
        if error is None:
            yield future.result()
        elif failed is None:
            failed = error
            for other in running:
                other.cancel()
    if isinstance(failed, BrokenProcessPool):
        raise ModelError("a process that ran a cell ended early (out of memory?); try fewer workers.") from None
    if failed is not None:
        raise failed


_has_to_stop = False
"""Whether this worker was told to end: it unwinds, to leave nothing behind, and takes no other cell."""


def _begin_worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # torch, which is not loaded yet, looks at it

    def stop(*_: Any) -> None:
        global _has_to_stop
        _has_to_stop = True
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)


def _timed(run: Callable[[Cell], Result], cell: Cell) -> tuple[Cell, Result, float]:
    if _has_to_stop:
        sys.exit(1)
    began = time.monotonic()
    result = run(cell)
    return cell, result, time.monotonic() - began
