"""Run cells over processes, and store each result as a JSON line. Stored cells are not run again."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias

from setaug.errors import ModelError
from setaug.experiments.cells import Cell, Result, Results, Row, cell_key
from setaug.storage import appending_lines

Run: TypeAlias = Callable[[Sequence[Cell]], Iterable[Result]]
"""Run a group of cells that share work, such as a training; return their results in order."""


def run_cells(
    groups: Sequence[Sequence[Cell]],
    run: Run,
    path: Path,
    *,
    workers: int = 1,
    progress: Callable[[str, int, int | None], None] | None = None,
    on_result: Callable[[Row], None] | None = None,
) -> Results:
    """Run the cells that are not stored yet; return all stored results.

    Parameters
    ----------
    groups
        Cells that share work, and are run in one process.
    run
        Runs the missing cells of a group. For several workers it must be picklable.
    path
        The file of results, locked during the run. A line is added per finished cell.
    workers
        The number of processes, each with one thread; 1 runs everything in this process. With several, the cells of a
        group are stored together.
    on_result
        Called with each line that is stored.

    """
    from setaug.models.model_folder import versions  # late: workers do not need it

    wanted = {cell_key(cell) for group in groups for cell in group}
    results = Results(path)
    if any(_missing(groups, results)):
        with appending_lines(path, begins=b'{"cell":') as add_line:
            results = Results(path)  # again, now that the file is locked
            missing = _missing(groups, results)
            made_by = {"versions": versions(), "commit": _commit()}
            with _running(run, missing, workers) as finished:
                for n_done, found in enumerate(finished, start=1):
                    row = {**found, **made_by}
                    add_line(json.dumps(row).encode())
                    results.add(row)
                    if on_result is not None:
                        on_result(row)
                    if progress is not None:
                        progress("cells", n_done, sum(map(len, missing)))
    if progress is not None:
        progress("cells", len(wanted), len(wanted))
    return results


def _missing(groups: Sequence[Sequence[Cell]], results: Results) -> list[list[Cell]]:
    """Return the cells to run of each group, without duplicates."""
    seen: set[str] = set()
    missing = []
    for group in groups:
        left = {cell_key(cell): cell for cell in group if cell not in results and cell_key(cell) not in seen}
        seen.update(left)
        missing.append(list(left.values()))
    return [group for group in missing if group]


@contextmanager
def _running(run: Run, groups: Sequence[Sequence[Cell]], workers: int) -> Iterator[Iterable[Row]]:
    """Yield rows as cells finish; on an interruption, terminate the processes."""
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


def _finished(running: Sequence[Future[list[Row]]]) -> Iterator[Row]:
    """Yield rows as groups finish; after an error, start no other group, wait for the running ones, and raise it."""
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
        raise ModelError("a worker process ended unexpectedly (out of memory?); try fewer workers.") from None
    if failed is not None:
        raise failed


_is_terminated = False
"""Whether this worker received SIGTERM: it unwinds to remove temporary files, and starts no other group."""


def _begin_worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # read by torch, which is not imported yet

    def stop(*_: Any) -> None:
        global _is_terminated
        _is_terminated = True
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent is killed; another run might use the same model folders."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _all_rows(run: Run, cells: Sequence[Cell]) -> list[Row]:
    if _is_terminated:
        sys.exit(1)
    return list(_rows(run, cells))


def _rows(run: Run, cells: Sequence[Cell]) -> Iterator[Row]:
    began = time.monotonic()
    for cell, result in zip(cells, run(cells), strict=True):
        now = time.monotonic()
        yield {"cell": cell, "result": result, "seconds": round(now - began, 1)}
        began = now


def _commit() -> str | None:
    """Return the commit of the source, if it is a checkout; it ends in -dirty if files were changed."""
    here = Path(__file__).resolve()
    git = ["git", "-C", str(here.parent)]
    try:
        # An installed package may lie within some other repository.
        subprocess.run([*git, "ls-files", "--error-unmatch", here.name], capture_output=True, check=True, timeout=10)
        asked = [*git, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
