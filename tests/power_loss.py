"""A simulated power loss: what was not synced is gone, while every rename may have reached the disk already."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

FSYNC = os.fsync
Disk = dict[str, bytes | None]
"""What is found after a power loss, by path within the folder; None for a file whose bytes were never synced."""


def do_not_sync(descriptor: int) -> None:
    """Stand in for ``os.fsync`` where no power is lost: a process that is killed loses nothing without it."""
    os.fstat(descriptor)  # it has to be an open file all the same


@contextmanager
def power_loss(folder: Path, check: Callable[[Disk], None]) -> Iterator[list[int]]:
    """Call `check` with what would be left, for a power loss after each rename, removal and sync within a folder.

    Renames count as done at once and bytes only once they are synced: the worst that a file system may do. The list
    that is yielded counts the moments.
    """
    synced: dict[int, bytes] = {}
    moments: list[int] = []
    real = {name: getattr(os, name) for name in ("fsync", "replace", "rename", "unlink")}

    def look() -> None:
        disk: Disk = {}
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                disk[str(path.relative_to(folder))] = synced.get(path.stat().st_ino)
        moments.append(len(disk))
        check(disk)

    def fsync(descriptor: int) -> None:
        real["fsync"](descriptor)
        place = Path(f"/proc/self/fd/{descriptor}")
        if place.is_file():
            synced[os.fstat(descriptor).st_ino] = place.read_bytes()
        look()

    def noticed(name: str) -> Callable[..., None]:
        def call(*places: object, **options: object) -> None:
            real[name](*places, **options)
            look()

        return call

    with (
        mock.patch.object(os, "fsync", fsync),
        mock.patch.object(os, "replace", noticed("replace")),
        mock.patch.object(os, "rename", noticed("rename")),
        mock.patch.object(os, "unlink", noticed("unlink")),
    ):
        yield moments
        look()
