"""A progress bar on standard error, if that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from setaug.settings import Progress

PATIENCE = 2.0
"""Seconds without progress before a message says what is going on."""
_COMPILING = "compiling the inner loops; this happens once after installation"


@contextmanager
def progress_bar(waiting_for: str = _COMPILING) -> Iterator[Progress]:
    """Yield a function that shows the stage, the examples done and their total; explain a slow start."""
    waiting = Timer(PATIENCE, sys.stderr.write, [waiting_for + "\n"])
    waiting.daemon = True
    waiting.start()
    try:
        if not sys.stderr.isatty():
            yield lambda stage, done, total: waiting.cancel()
            return
        with _rich_bar() as show:

            def shown(stage: str, done: int, total: int | None) -> None:
                waiting.cancel()
                show(stage, done, total)

            yield shown
    finally:
        waiting.cancel()


def counting_from(n_done: int, progress: Progress) -> Progress:
    """Return a progress function that adds an offset and ignores the total."""
    return lambda stage, n, total: progress(stage, n_done + n, None)


@contextmanager
def _rich_bar() -> Iterator[Progress]:
    from rich import progress
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda stage, done, total: bar.update(task, description=stage, completed=done, total=total)
