"""Progress on standard error: a bar on a terminal, a line that is rewritten in a notebook, and a line now and then."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from time import monotonic

from setaug.settings import Progress
from setaug.terminal import printable

PATIENCE = 2.0
"""Seconds without progress before a message says what is going on."""
LINE_EVERY = 30.0
"""Seconds between two lines where standard error is no terminal."""
_NOTEBOOK_EVERY = 0.5
_COMPILING = "compiling the inner loops; this happens once after installation"


@contextmanager
def progress_bar(waiting_for: str = _COMPILING) -> Iterator[Progress]:
    """Yield a function that shows the stage, the examples done, their total and the time left; explain a slow start.

    A stage may carry news behind a colon: ``training: loss 0.31``.
    """
    waiting = Timer(PATIENCE, sys.stderr.write, [waiting_for + "\n"])
    waiting.daemon = True
    waiting.start()
    try:
        with _rich_bars() if sys.stderr.isatty() else _lines() as show:

            def shown(stage: str, done: int, total: int | None) -> None:
                waiting.cancel()
                show(stage, done, total)

            yield shown
    finally:
        waiting.cancel()


@contextmanager
def chosen_progress(progress: Progress | bool | None, waiting_for: str) -> Iterator[Progress | None]:
    """Yield the function to report progress to: a given one, that of `progress_bar` for True, or none."""
    if progress is True:
        with progress_bar(waiting_for) as shown:
            yield shown
    else:
        yield progress or None


def counting_from(n_done: int, progress: Progress) -> Progress:
    """Return a progress function that adds an offset and ignores the total."""
    return lambda stage, n, total: progress(stage, n_done + n, None)


@contextmanager
def _rich_bars() -> Iterator[Progress]:
    """Yield a function that draws a bar for each stage; that of a finished one gives way to the next."""
    from rich import progress
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(bar_width=16), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int | None) -> None:
            name = _name(stage)
            for other in bars.tasks:
                bars.update(other.id, visible=not other.finished)
            if name not in tasks:
                tasks[name] = bars.add_task("", total=None)
            elif done < bars.tasks[tasks[name]].completed:
                bars.reset(tasks[name])
            bars.update(tasks[name], description=printable(stage), completed=done, total=total, visible=True)

        yield show


@contextmanager
def _lines() -> Iterator[Progress]:
    """Yield a function that writes a line every half minute; in a notebook, one line that is always up to date."""
    is_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    every = _NOTEBOOK_EVERY if is_notebook else LINE_EVERY
    began: dict[str, tuple[float, int]] = {}
    width, last = 0, monotonic()

    def show(stage: str, done: int, total: int | None) -> None:
        nonlocal width, last
        now = monotonic()
        since, first = began.get(_name(stage), (now, done))
        if done <= first:
            began[_name(stage)] = since, first = now, done
        if now - last < every:
            return
        line = printable(_line(stage, done, total, (now - since) / (done - first) if done > first else None))
        last = now
        sys.stderr.write(f"\r{line:{width}}" if is_notebook else line + "\n")
        sys.stderr.flush()
        width = len(line)

    try:
        yield show
    finally:
        if is_notebook and width:
            sys.stderr.write("\n")


def _line(stage: str, done: int, total: int | None, seconds_each: float | None) -> str:
    """Return a line such as ``training: loss 0.31, 120 of 400, 3:20 left``.

    Examples
    --------
    >>> _line("training: loss 0.31", 120, 400, 0.7142)
    'training: loss 0.31, 120 of 400, 3:20 left'
    >>> _line("reading", 120, None, 0.1)
    'reading, 120'

    """
    count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
    if total is None or seconds_each is None:
        return f"{stage}, {count}"
    minutes, seconds = divmod(round((total - done) * seconds_each), 60)
    hours, minutes = divmod(minutes, 60)
    left = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{stage}, {count}, {left} left"


def _name(stage: str) -> str:
    return stage.partition(":")[0]
