"""Files behind an address such as ``s3://bucket/train.jsonl``, through fsspec and what it knows to reach."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from setaug.errors import FileError, SetAugError

_COMMITTING = frozenset({"file", "local", "s3", "s3a", "gs", "gcs"})
"""Where a file that is written appears only when it is told to; elsewhere it is written beside its place, and moved."""


def is_url(path: str | Path) -> bool:
    """Tell an address from the path of a file here.

    Examples
    --------
    >>> is_url("s3://bucket/train.jsonl"), is_url("data/train.jsonl")
    (True, False)

    """
    return "://" in str(path)


def filesystem(path: str | Path) -> tuple[Any, str]:
    """Give the fsspec file system of a path or an address, and what the file is called there."""
    from fsspec.core import url_to_fs

    try:
        system, name = url_to_fs(str(path))
    except Exception as error:  # it names the package that is missing, or the protocol
        raise FileError(f"cannot reach {path}: {error}") from None
    return system, name


@contextmanager
def telling(what: str, path: str | Path) -> Iterator[None]:
    """Turn whatever goes wrong into a `FileError`: each service has errors of its own."""
    try:
        yield
    except SetAugError:
        raise
    except Exception as error:
        is_missing = isinstance(error, FileNotFoundError)
        told = "No such file or directory" if is_missing else getattr(error, "strerror", None) or error
        raise FileError(f"cannot {what} {path}: {str(told or type(error).__name__).rstrip('.')}.") from None


@contextmanager
def reading(path: str | Path) -> Iterator[Any]:
    """Open what an address names; give its bytes as they are."""
    with telling("read", path):
        system, name = filesystem(path)
        stream = system.open(name, "rb")
    with stream:
        yield stream


@contextmanager
def writing(path: str | Path) -> Iterator[Any]:
    """Open an address to write to; nothing is to be found there before all of it is."""
    with telling("write", path):
        system, name = filesystem(path)
        can_commit = not _COMMITTING.isdisjoint(
            [system.protocol] if isinstance(system.protocol, str) else system.protocol
        )
        beside = name if can_commit else f"{name}.part"
        stream = system.open(beside, "wb", **({"autocommit": False} if can_commit else {}))
    try:
        with stream:
            yield stream
    except BaseException:
        with suppress(Exception):
            stream.discard() if can_commit else system.rm(beside)
        raise
    with telling("write", path):
        stream.commit() if can_commit else system.mv(beside, name)
