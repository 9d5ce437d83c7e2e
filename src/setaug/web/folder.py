"""The folder of a running server, for uploads and downloads."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "setaug-serve-"


@contextmanager
def own_folder() -> Iterator[Path]:
    """Create a temporary folder, locked while the server runs; remove the folders of killed servers."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{_PREFIX}*"):
        _remove_unlocked(left)
    lock = None
    while lock is None:  # another server may take it for a left-over before it is locked
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        lock = _lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_unlocked(folder: Path) -> None:
    lock = _lock(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a server folder unless another process holds the lock; the lock ends with the process."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if folder.stat().st_uid == os.geteuid():
            return handle
    except OSError:
        pass
    os.close(handle)
    return None
