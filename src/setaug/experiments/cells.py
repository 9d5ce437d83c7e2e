"""Run a grid of cells, one JSON line per finished cell; what is there already is not run again."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from setaug.errors import FileError, ModelError
from setaug.files import adding_lines

if TYPE_CHECKING:
    from setaug.models.settings import Progress

Cell: TypeAlias = dict[str, Any]
"""Everything about a run that can be chosen, as JSON."""
Result: TypeAlias = dict[str, Any]


Run: TypeAlias = Callable[[Sequence[Cell]], Iterable[Result]]
"""Runs cells that go together (they share a training, say), and gives the result of each, in their order."""


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
    groups = [[cell] for cell in cells]
    done = run_groups(groups, partial(_one_by_one, run), path, workers=workers, progress=progress)
    return [done[cell_key(cell)] for cell in cells]


def _one_by_one(run: Callable[[Cell], Result], cells: Sequence[Cell]) -> Iterator[Result]:
    return (run(cell) for cell in cells)


def run_groups(
    groups: Sequence[Sequence[Cell]],
    run: Run,
    path: Path,
    *,
    workers: int = 1,
    progress: "Progress | None" = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Result]:
    """Run cells that go together in one process; give all that the file holds then, by `cell_key`.

    Parameters
    ----------
    run
        Run those cells of a group that are not finished yet; with several workers, all of them are kept once all are
        finished.
    tell
        Is given each line as it is added to the file.

    """
    from setaug.models.folder import versions  # late: the processes need nothing of it

    done = read_results(path)
    wanted = {cell_key(cell) for group in groups for cell in group}
    if not wanted <= done.keys():
        with adding_lines(path, begins=b'{"cell":') as add_line:
            done = read_results(path)  # again: now nobody else writes
            missing = list(_missing(groups, done))
            n_missing = sum(map(len, missing))
            made_by = {"versions": versions(), "commit": _commit()}
            with _running(run, missing, workers) as finished:
                for n_done, found in enumerate(finished, start=1):
                    row = {**found, **made_by}
                    add_line(json.dumps(row).encode())
                    done[cell_key(row["cell"])] = row["result"]
                    if tell is not None:
                        tell(row)
                    if progress is not None:
                        progress("cells", n_done, n_missing)
    if progress is not None:
        progress("cells", len(wanted), len(wanted))
    return done


def _missing(groups: Sequence[Sequence[Cell]], done: Container[str]) -> Iterator[list[Cell]]:
    """Give what is left to do of each group; a cell that comes twice is done once."""
    seen: set[str] = set()
    for group in groups:
        keys = {cell_key(cell): cell for cell in group}
        left = {key: cell for key, cell in keys.items() if key not in done and key not in seen}
        seen.update(left)
        if left:
            yield list(left.values())


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
def _running(run: Run, groups: Sequence[Sequence[Cell]], workers: int) -> Iterator[Iterable[dict[str, Any]]]:
    """Give the lines of cells as they are finished; told to stop, end the processes at once."""
    if workers == 1 or not groups:
        yield (row for group in groups for row in _rows(run, group))
        return
    before = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(groups)), mp_context=context, initializer=_begin_worker)
    try:
        yield _finished([pool.submit(_all_rows, run, group) for group in groups])
    except BaseException:
        for process in set(multiprocessing.active_children()).difference(before):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(running: Sequence[Future[list[dict[str, Any]]]]) -> Iterator[dict[str, Any]]:
    """Give results as they come; after an error, begin nothing new, wait for what is under way, and then raise it."""
    failed: BaseException | None = None
    for future in as_completed(running):
        if future.cancelled():
            continue
        error = future.exception()
        if error is None:
            yield from future.result()
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
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker if the run that began it was killed; a second run would work on the same models."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _all_rows(run: Run, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    if _has_to_stop:
        sys.exit(1)
    return list(_rows(run, cells))


def _rows(run: Run, cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Run cells, and give for each what it is, its result, and how long it took."""
    began = time.monotonic()
    for cell, result in zip(cells, run(cells), strict=True):
        now = time.monotonic()
        yield {"cell": cell, "result": result, "seconds": round(now - began, 1)}
        began = now


def _commit() -> str | None:
    """Give the commit of the source that runs, where it is a checkout; it says so where files were changed since."""
    here = Path(__file__).resolve()
    git = ["git", "-C", str(here.parent)]
    try:
        # Not some repository that an installed package lies in.
        subprocess.run([*git, "ls-files", "--error-unmatch", here.name], capture_output=True, check=True, timeout=10)
        asked = [*git, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
