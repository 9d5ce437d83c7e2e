"""Open files for reading: by path or URL, decompressed by suffix."""

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from setaug.errors import FileError
from setaug.storage.addresses import is_address, local_path, read_address
from setaug.storage.names import display_name

BROKEN_ARCHIVE = (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)
"""Errors raised by damaged compressed files."""


_PACKED = 1 << 11
"""Bytes to decompress at once: they may expand 32,000-fold."""


class _ZstandardReader(io.RawIOBase):
    """A decompressing reader that, unlike the library's own, detects a truncated file."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes, zero at the end."""
        while not self._ready:
            packed = self._frame.unused_data if self._frame.eof else b""
            packed = packed or self._raw.read(_PACKED)
            if not packed:
                if not self._frame.eof:
                    raise EOFError("unexpected end of file")
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
                with _archive(raw, path) as packed, gzip.open(packed) as stream:
                    yield cast(BinaryIO, stream)
            case ".zst":
                with _archive(raw, path) as packed, _ZstandardReader(packed) as reader:
                    yield cast(BinaryIO, reader)
            case _:
                yield cast(BinaryIO, raw)


@contextmanager
def _archive(raw: Any, path: str | Path) -> Iterator[BinaryIO]:
    """Buffer a compressed file; raise if it is empty, which the gzip module would accept."""
    buffered = io.BufferedReader(raw, 1 << 17)
    try:
        if not buffered.peek(1):
            raise FileError(f"{display_name(path)} is damaged: it is empty.")
        yield cast(BinaryIO, buffered)
    finally:
        buffered.detach()


@contextmanager
def open_stored(path: str | Path) -> Iterator[Any]:
    """Open a file for reading its raw bytes, without decompression."""
    if is_address(path):
        with read_address(path) as stream:
            yield stream
        return
    try:
        raw = io.FileIO(local_path(path), "rb")
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', error)}.") from None
    with raw:
        yield raw


@contextmanager
def open_again(path: str | Path) -> Iterator[Callable[[], AbstractContextManager[BinaryIO]]]:
    """Yield a function that opens a file from its start each time it is called.

    Streams (standard input, a pipe) are copied to a temporary file first.
    """
    if is_address(path) or Path(local_path(path)).is_file():
        yield lambda: open_input(path)
        return
    with open_input(path) as stream, tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)

        def rewind() -> AbstractContextManager[BinaryIO]:
            copy.seek(0)
            return nullcontext(cast(BinaryIO, copy))

        yield rewind
