"""Worker processes for datasets, so that the server and the model never wait for the GIL."""

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any

from anyio import from_thread, to_thread

from setaug.web.limits import too_busy

_STOP = None
"""The message that cancels the work: the client has disconnected."""
_SECONDS = 0.1
"""Seconds between checks of a waiting thread that its client is still connected."""
_connection: Connection | None = None
"""In a worker, the connection to its parent."""


class Stopped(Exception):  # noqa: N818 - it is no error
    """Raised in a worker whose client has disconnected."""


def stop_if_asked(*_: object) -> None:
    """Raise in a worker if its client has disconnected; long computations call this regularly."""
    if _connection is not None and _connection.poll():
        raise Stopped


class Worker:
    """A process that runs one function at a time. It starts with the first one, and again if it has died.

    Parameters
    ----------
    niceness
        How far it stands back for other processes; see ``nice``.
    tidy
        Called without arguments after each function, and about every second.

    """

    def __init__(self, niceness: int = 0, tidy: Callable[[], None] | None = None) -> None:
        self._niceness, self._tidy = niceness, tidy
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._parent: Connection | None = None

    def start(self) -> Connection:
        """Start the process unless it is running."""
        if self._parent is None or self._process is None or self._process.poll() is not None:
            self._parent, child = Pipe()
            # Not by multiprocessing, which would run the main script once more.
            code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import work; work({child.fileno()})"
            self._process = subprocess.Popen([sys.executable, "-c", code], pass_fds=[child.fileno()])
            child.close()
            self._parent.send((self._niceness, self._tidy))
        return self._parent

    def end(self) -> None:
        """Terminate the process, even if it is busy."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int | None:
        """The process, if it has been started."""
        return None if self._process is None else self._process.pid

    def memory(self) -> int:
        """Return the resident memory in bytes, if the system reports it."""
        with suppress(OSError, IndexError):
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return 0

    def call(self, function: Callable[..., Any], *arguments: Any, check: Callable[[], None] | None = None) -> Any:
        """Return what the function returns in the process, or raise what it raises.

        Parameters
        ----------
        check
            Called now and then; if it raises, the work is stopped.

        """
        with self._lock:
            connection = self.start()
            try:
                connection.send((function, arguments))
                _wait(connection, check)
                is_good, found = connection.recv()
            except (EOFError, OSError):
                self.end()
                raise too_busy("the process that reads datasets has ended; try again.") from None
        if is_good:
            return found
        raise found

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function, and stop it if the task is cancelled."""
        return await to_thread.run_sync(lambda: self.call(function, *arguments, check=from_thread.check_cancelled))


def _wait(connection: Connection, check: Callable[[], None] | None) -> None:
    """Wait for a result. If the check raises, cancel the work, wait until the process is idle, and raise."""
    try:
        while not connection.poll(None if check is None else _SECONDS):
            if check is not None:
                check()
    except BaseException:
        connection.send(_STOP)
        connection.recv()
        raise


def work(handle: int) -> None:
    """Serve requests on a connection until the parent exits."""
    global _connection
    connection = _connection = Connection(handle)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    with suppress(EOFError, OSError):
        niceness, tidy = connection.recv()
        os.nice(niceness)
        while True:
            if connection.poll(1.0) and (job := connection.recv()) is not _STOP:
                _send(connection, *_result(*job))
            if tidy is not None:
                tidy()


def _result(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, function(*arguments)
    except BaseException as error:
        error.add_note("".join(traceback.format_exception(error)))  # a traceback does not travel
        return False, error


def _send(connection: Connection, is_good: bool, found: Any) -> None:
    try:
        connection.send((is_good, found))
    except (TypeError, ValueError, AttributeError) as error:
        connection.send((False, RuntimeError(f"{type(found).__name__} cannot be sent: {error}")))
