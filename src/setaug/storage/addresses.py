"""Remote files with a URL such as ``s3://bucket/train.jsonl``, through fsspec."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from setaug.errors import FileError, SetAugError

_COMMITTING = frozenset({"s3", "s3a", "gs", "gcs"})
"""Stores that publish a file on commit; elsewhere a file is written under a temporary name and moved."""
_LOCAL = ("file://", "local://")


def is_address(path: str | Path) -> bool:
    """Return whether a path is the URL of a remote file; ``file://`` is a local path.

    Examples
    --------
    >>> is_address("s3://bucket/train.jsonl"), is_address("data/train.jsonl"), is_address("file:///data/train.jsonl")
    (True, False, False)

    """
    return "://" in str(path) and not str(path).startswith(_LOCAL)


def local_path(path: str | Path) -> str:
    """Return a path without ``file://``.

    Examples
    --------
    >>> local_path("file:///data/train.jsonl"), local_path("data/train.jsonl")
    ('/data/train.jsonl', 'data/train.jsonl')

    """
    for prefix in _LOCAL:
        if str(path).startswith(prefix):
            return str(path)[len(prefix) :]
    return str(path)


def filesystem(path: str | Path) -> tuple[Any, str]:
    """Return the fsspec filesystem of a path or URL, and the file's path in it."""
    from fsspec.core import url_to_fs

    try:
        system, name = url_to_fs(str(path))
    except Exception as error:  # it names the missing package, or the protocol
        raise FileError(f"cannot reach {path}: {error}") from None
    return system, name


@contextmanager
def as_file_errors(verb: str, path: str | Path) -> Iterator[None]:
    """Convert any error into a `FileError`: each store raises its own types."""
    try:
        yield
    except SetAugError:
        raise
    except Exception as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = "No such file or directory" if is_missing else getattr(error, "strerror", None) or error
        raise FileError(f"cannot {verb} {path}: {str(reason or type(error).__name__).rstrip('.')}.") from None


@contextmanager
def read_address(path: str | Path) -> Iterator[Any]:
    """Open a remote file for reading bytes."""
    with as_file_errors("read", path):
        system, name = filesystem(path)
        stream = system.open(name, "rb")
    with stream:
        yield stream


@contextmanager
def write_address(path: str | Path) -> Iterator[Any]:
    """Open a remote file for an atomic write."""
    with as_file_errors("write", path):
        system, name = filesystem(path)
        protocols = [system.protocol] if isinstance(system.protocol, str) else system.protocol
        can_commit = not _COMMITTING.isdisjoint(protocols)
        temporary = name if can_commit else f"{name}.{token_hex(8)}.part"
        stream = system.open(temporary, "wb", **({"autocommit": False} if can_commit else {}))
    try:
        with stream:
            yield stream
    except BaseException:
        with suppress(Exception):
            stream.discard() if can_commit else system.rm(temporary)
        raise
    with as_file_errors("write", path):
        stream.commit() if can_commit else system.mv(temporary, name)
