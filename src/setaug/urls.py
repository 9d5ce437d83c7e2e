"""Files behind an address such as ``s3://bucket/train.jsonl``, through fsspec and what it knows to reach."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from setaug.errors import FileError


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
    except (ImportError, ValueError) as error:  # it names the package that is missing, or the protocol
        raise FileError(f"cannot reach {path}: {error}") from None
    return system, name


@contextmanager
def reading(path: str | Path) -> Iterator[Any]:
    """Open what an address names; give its bytes as they are."""
    system, name = filesystem(path)
    try:
        stream = system.open(name, "rb")
    except Exception as error:
        raise FileError(f"cannot read {path}: {told(error)}.") from None
    with stream:
        yield stream


@contextmanager
def writing(path: str | Path) -> Iterator[Any]:
    """Open an address to write to; nothing is to be found there before all of it is."""
    system, name = filesystem(path)
    try:
        stream = system.open(name, "wb", autocommit=False)
    except Exception as error:
        raise FileError(f"cannot write {path}: {told(error)}.") from None
    try:
        with stream:
            yield stream
    except BaseException:
        with suppress(Exception):
            stream.discard()
        raise
    try:
        stream.commit()
    except Exception as error:
        raise FileError(f"cannot write {path}: {told(error)}.") from None


def told(error: Exception) -> str:
    """Say what went wrong; each service has errors of its own."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip(".")
