"""Open files by name or address: compression by suffix, ``-`` for the standard streams, output whole or not at all."""

import errno
import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from setaug import urls
from setaug.errors import FileError

KINDS = ("jsonl", "csv", "tsv", "parquet")
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
COMPRESSED = (".gz", ".zst")
BROKEN_ARCHIVE = (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)
"""What reading a damaged compressed file raises."""


def kind_of(path: str | Path) -> str:
    """Tell the kind of file from its name; a standard stream or a device is JSONL.

    Examples
    --------
    >>> kind_of("train.tsv.gz"), kind_of("-")
    ('tsv', 'jsonl')

    """
    if str(path) == "-" or str(path).startswith("/dev/"):
        return "jsonl"
    name = Path(path)
    stem = Path(name.stem) if name.suffix.lower() in COMPRESSED else name
    kind = _SUFFIXES.get(stem.suffix.lower())
    if kind is None:
        raise FileError(
            f"{path}: cannot tell the kind of file from its name; expected a suffix among "
            f"{', '.join(_SUFFIXES)}, with .gz or .zst behind it where it is compressed."
        )
    return kind


def display_name(path: str | Path) -> str:
    """Give the name by which messages call a file."""
    return "standard input" if str(path) == "-" else Path(path).name


class _ZstandardReader(io.RawIOBase):
    """Decompress a file; unlike the library's own reader, notice where it was cut off."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as there is something; give the number of bytes, zero at the end."""
        while not self._ready:
            packed = self._frame.unused_data if self._frame.eof else b""
            packed = packed or self._raw.read(1 << 17)
            if not packed:
                if not self._frame.eof:
                    raise EOFError("it ends in the middle")
                return 0
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._ready = memoryview(self._frame.decompress(packed))
        size = min(len(self._ready), len(buffer))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


@contextmanager
def open_input(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed by suffix."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    with open_stored(path) as raw:
        match Path(path).suffix.lower():
            case ".gz":
                with gzip.open(raw) as stream:
                    yield cast(BinaryIO, stream)
            case ".zst":
                with _ZstandardReader(raw) as reader:
                    yield cast(BinaryIO, reader)
            case _:
                yield cast(BinaryIO, raw)


@contextmanager
def open_stored(path: str | Path) -> Iterator[Any]:
    """Open a file for reading its bytes as they are stored."""
    if urls.is_url(path):
        with urls.reading(path) as stream:
            yield stream
        return
    try:
        raw = io.FileIO(path, "rb")
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', error)}.") from None
    with raw:
        yield raw


@contextmanager
def open_again(path: str | Path) -> Iterator[Callable[[], AbstractContextManager[BinaryIO]]]:
    """Give a function that opens a file from its start, each time it is called.

    What can be read only once (standard input, a pipe) is copied to a temporary file first.
    """
    if urls.is_url(path) or Path(path).is_file():
        yield lambda: open_input(path)
        return
    with open_input(path) as stream, tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)

        def rewind() -> AbstractContextManager[BinaryIO]:
            copy.seek(0)
            return nullcontext(cast(BinaryIO, copy))

        yield rewind


@contextmanager
def open_output(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, compressed by suffix; it appears under its name only once it is whole.

    The bytes go to a hidden file in the same folder, which is renamed at the end, or removed after an error.
    What is no regular file (``-`` for standard output, a device, a pipe) is written to directly.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if urls.is_url(path):
        with urls.writing(path) as stored, _compressed(stored, Path(path).suffix.lower()) as stream:
            yield stream
        return
    if os.path.isdir(path):
        raise FileError(f"cannot write {path}: it is a folder.")
    is_special = os.path.exists(path) and not os.path.isfile(path)
    target = Path(path if is_special else os.path.realpath(path))
    beside = target if is_special else target.with_name(f".{target.name}.{os.getpid()}.part")
    raw = None
    try:  # around all of it: a signal may come as soon as the file is there
        raw = io.FileIO(beside, "wb")
        with raw, _compressed(raw, target.suffix.lower()) as stream:
            yield stream
        if not is_special:
            os.replace(beside, target)
    except BaseException as error:
        if not is_special:
            with suppress(OSError):
                os.unlink(beside)
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if isinstance(error, OSError) and (raw is None or is_full):
            raise FileError(f"cannot write {path}: {error.strerror}.") from None
        raise


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
def adding_lines(path: Path, *, begins: bytes) -> Iterator[Callable[[bytes], None]]:
    """Give a function that adds a line to a file, at once; nobody else may write to it meanwhile.

    Parameters
    ----------
    begins
        How each line begins. A file with other lines is left as it is; a last line that was cut off is dropped.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+b")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}.") from None
    with stream:
        _lock(stream, path)
        stream.seek(0)
        *lines, rest = stream.read().split(b"\n")
        for number, line in enumerate([*lines, rest] if rest else lines, start=1):
            if not (line.startswith(begins) or (line is rest and begins.startswith(rest))):
                raise FileError(f"line {number} of {path} is not what this command writes; name another place.")
        stream.truncate(sum(map(len, lines)) + len(lines))

        def add(line: bytes) -> None:
            stream.write(line + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

        yield add


def _lock(stream: BinaryIO, path: Path) -> None:
    """Keep others from writing to a file until it is closed, where the system can do that."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return
    try:
        flock(stream, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise FileError(f"another run is writing to {path}; wait for it, or use another place.") from None
