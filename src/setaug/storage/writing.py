"""Open files for writing: atomic, synced to the disk, and one writer at a time."""

import errno
import gzip
import hashlib
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from setaug.errors import FileError
from setaug.storage.addresses import is_address, local_path, write_address
from setaug.storage.names import check_jsonl, descriptor_of
from setaug.terminal import json_line

_PART = ".part"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def open_output(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for an atomic write of bytes, compressed by suffix.

    The bytes go to a temporary file in the same folder. At the end it is synced to the disk and renamed; after an error
    it is removed. A lock refuses a second writer of the same file. The mode of a replaced file is kept, and a
    symbolic link stays a link. Anything but a regular file (a device, a pipe), and a file that is already open (``-``
    for standard output, ``/dev/fd/3``), is written directly.
    """
    suffix = Path(path).suffix.lower()
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif (descriptor := descriptor_of(path)) is not None:
        with _disk_errors(path):
            with _write_errors(path):
                raw = io.FileIO(os.dup(descriptor), "wb")
            with raw, _compressed(raw, suffix) as stream:
                yield stream
    elif is_address(path):
        with write_address(path) as stored, _compressed(stored, suffix) as stream:
            yield stream
    elif os.path.isdir(place := local_path(path)):
        raise FileError(f"cannot write {path}: it is a folder.")
    elif os.path.exists(place) and not os.path.isfile(place):
        with _disk_errors(path):
            with _write_errors(path):
                raw = io.FileIO(place, "wb")
            with raw, _compressed(raw, suffix) as stream:
                yield stream
    else:
        target = Path(os.path.realpath(place))
        writing = _replacing(target, path)
        with _disk_errors(path), locked(target, path), writing as raw, _compressed(raw, suffix) as stream:
            yield stream


def write_rows(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines, atomically; the suffix must not be that of another format."""
    check_jsonl(path)
    with open_output(path) as stream:
        for row in rows:
            stream.write(json_line(row))


@contextmanager
def _replacing(target: Path, path: str | Path) -> Iterator[io.FileIO]:
    """Open a temporary file next to a target; rename it at the end, or remove it after an error."""
    beside = target.with_name(_hidden(target.name, f".{secrets.token_hex(8)}{_PART}"))
    try:  # around everything: a signal may arrive as soon as the file exists
        with _write_errors(path):
            raw = io.FileIO(beside, "xb", opener=_create)
            _take_mode(raw, target)
        with raw:
            with io.FileIO(os.dup(raw.fileno()), "wb") as written:  # closed by its writer, then synced
                yield written
            with _write_errors(path):
                os.fsync(raw.fileno())
        with _write_errors(path):
            os.replace(beside, target)
        sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _create(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_FOLLOW, 0o666)


def _take_mode(raw: io.FileIO, target: Path) -> None:
    """Copy the mode and, if permitted, the owner of the replaced file."""
    with suppress(FileNotFoundError):
        before = target.stat()
        with suppress(PermissionError):
            os.fchown(raw.fileno(), before.st_uid, before.st_gid)
        os.fchmod(raw.fileno(), stat.S_IMODE(before.st_mode))


@contextmanager
def _write_errors(path: str | Path) -> Iterator[None]:
    """Convert system errors into a `FileError` with the caller's file name."""
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}.") from None


@contextmanager
def _disk_errors(path: str | Path) -> Iterator[None]:
    """Convert errors of a full disk into a `FileError`; other errors may come from the caller's reads."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise FileError(f"cannot write {path}: {error.strerror}.") from None


def sync_folder(folder: str | Path) -> None:
    """Sync the entries of a folder to the disk, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_tree(folder: str | Path) -> None:
    """Sync a folder and everything in it to the disk."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            with open(os.path.join(place, name), "rb") as stream:
                os.fsync(stream.fileno())
        sync_folder(place)
    sync_folder(Path(folder).parent)


@contextmanager
def locked(target: Path, name: str | Path) -> Iterator[None]:
    """Lock a file or a folder for writing; raise `FileError` if another run holds it.

    The lock is a hidden file next to the target, removed at the end. Temporary files of the target that exist while it
    is held are leftovers of killed runs, and are removed.

    Parameters
    ----------
    name
        Name of the target in messages.

    """
    path = target.with_name(_hidden(target.name, ".lock"))
    descriptor = None
    try:  # around everything: a signal may arrive as soon as the file exists
        with _write_errors(name):
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
                is_held = _lock(descriptor, name)
                if _is_linked(path, descriptor):
                    break
                os.close(descriptor)  # its last holder has removed it
                descriptor = None
        if is_held:
            _remove_parts(target)
        yield
    finally:
        _release(path, descriptor)


def _release(path: Path, descriptor: int | None) -> None:
    """Remove a lock unless another process holds it; a signal may have arrived before its descriptor was known."""
    with suppress(OSError, FileError):
        opened = os.open(path, os.O_RDWR | _NO_FOLLOW) if descriptor is None else descriptor
        try:
            _lock(opened, path)
            if _is_linked(path, opened):
                os.unlink(path)
        finally:
            os.close(opened)


def _is_linked(path: Path, descriptor: int) -> bool:
    """Return whether a path still refers to an open file."""
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _lock(descriptor: int, name: str | Path) -> bool:
    """Lock an open file until it is closed; return False if the system has no locks."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return False
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise FileError(f"another run is writing to {name}; wait for it, or choose another name.") from None
    except OSError:
        return False
    return True


def _remove_parts(target: Path) -> None:
    start = _hidden(target.name, ".")
    for name in os.listdir(target.parent):
        if name.startswith(start) and re.fullmatch(rf"[0-9a-f]+{re.escape(_PART)}", name[len(start) :]):
            with suppress(OSError):
                os.unlink(target.parent / name)


def _hidden(name: str, ending: str) -> str:
    """Return the name of a hidden file that belongs to another; long names are hashed."""
    is_long = len(os.fsencode(name)) > 200
    return f".{hashlib.sha256(os.fsencode(name)).hexdigest() if is_long else name}{ending}"


@contextmanager
def _compressed(raw: Any, suffix: str) -> Iterator[BinaryIO]:
    match suffix:
        case ".gz":
            # No name and no time in the header: the same content gives the same bytes.
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as stream:
                yield cast(BinaryIO, stream)
        case ".zst":
            with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as writer:
                yield cast(BinaryIO, writer)
        case _ if isinstance(raw, io.RawIOBase):
            with io.BufferedWriter(raw, 1 << 20) as buffered:
                yield cast(BinaryIO, buffered)
        case _:
            yield raw


@contextmanager
def appending_lines(path: Path, *, begins: bytes) -> Iterator[Callable[[bytes], None]]:
    """Lock a file; yield a function that appends a line to it and syncs it to the disk.

    Parameters
    ----------
    begins
        The prefix of each line. A file with other lines is refused; a truncated last line is dropped.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+b")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}.") from None
    with stream:
        _lock(stream.fileno(), path)
        sync_folder(path.parent)
        stream.seek(0)
        *lines, rest = stream.read().split(b"\n")
        for number, line in enumerate([*lines, rest] if rest else lines, start=1):
            if not (line.startswith(begins) or (line is rest and begins.startswith(rest))):
                raise FileError(f"line {number} of {path} was not written by this command; choose another name.")
        stream.truncate(sum(map(len, lines)) + len(lines))

        def add(line: bytes) -> None:
            stream.write(line + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

        yield add
