"""File names: the format by suffix, and whether two names mean the same file."""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from setaug.errors import FileError
from setaug.storage.addresses import filesystem, is_address, local_path

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
_DESCRIPTORS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


def kind_of(path: str | Path) -> str:
    """Return the format of a file by its suffix; standard streams and devices are JSONL.

    Examples
    --------
    >>> kind_of("train.tsv.gz"), kind_of("-")
    ('tsv', 'jsonl')

    """
    if str(path) == "-" or _is_device(path):
        return "jsonl"
    name = Path(path)
    stem = Path(name.stem) if name.suffix.lower() in COMPRESSED else name
    kind = _SUFFIXES.get(stem.suffix.lower())
    if kind is None:
        raise FileError(
            f"{path}: cannot infer the file format from the name; expected one of the suffixes "
            f"{', '.join(_SUFFIXES)}, optionally followed by .gz or .zst."
        )
    return kind


def has_kind(path: str | Path) -> bool:
    """Return whether a file has a known suffix."""
    try:
        kind_of(path)
    except FileError:
        return False
    return True


def check_jsonl(path: str | Path) -> None:
    """Raise if the suffix of an output implies a format other than JSON lines."""
    if has_kind(path) and kind_of(path) != "jsonl":
        raise FileError(f"the output is JSON lines, but {path} has the suffix of another format; use .jsonl.")


def _is_device(path: str | Path) -> bool:
    """Return whether a path is that of a device or an open file; ``/dev/shm`` is a folder of ordinary files."""
    return str(path).startswith(("/dev/", "/proc/self/fd/")) and not str(path).startswith("/dev/shm/")


def descriptor_of(output: str | Path) -> int | None:
    """Return the number of the open file that an output names (``-``, ``/dev/stdout``, ``/dev/fd/3``), or None.

    To open it by its name would begin at its start, and so replace what others wrote to it.
    """
    found = _DESCRIPTOR.fullmatch(str(output))
    return int(found[1]) if found else _DESCRIPTORS.get(str(output))


def display_name(path: str | Path) -> str:
    """Return the name of a file in messages."""
    return "standard input" if str(path) == "-" else Path(path).name


def check_outputs(outputs: Iterable[str | Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Raise `FileError` if an output would replace an input, under any spelling, or another output.

    Data must not be written into an input folder either: the next run would read it. None is ignored.
    """
    sources = {_canonical(path): path for path in inputs if path is not None and str(path) != "-"}
    targets: set[str] = set()
    for path in outputs:
        if path is None:
            continue
        if (descriptor := descriptor_of(path)) is not None:
            _check_descriptor(descriptor, sources)
            continue
        if _is_device(path):
            continue
        target = _canonical(path)
        for source, spelled in sources.items():
            if target == source or _is_same_file(target, source):
                raise FileError(f"the output would replace the input {spelled}; choose another name.")
            if has_kind(target) and target.startswith(source.rstrip("/") + "/"):
                raise FileError(f"the output would be inside the input folder {spelled}; choose another folder.")
        if target in targets:
            raise FileError(f"{path} would be written twice; choose another name.")
        targets.add(target)


def _check_descriptor(descriptor: int, sources: Mapping[str, str | Path]) -> None:
    """Raise if an open file is an input that a shell redirects to: ``setaug ... train.jsonl >> train.jsonl``."""
    with suppress(OSError):
        opened = os.fstat(descriptor)
        for source, spelled in sources.items():
            if stat.S_ISREG(opened.st_mode) and os.path.isfile(source) and os.path.samestat(os.stat(source), opened):
                raise FileError(f"the output would replace the input {spelled}; choose another name.")


def _canonical(path: str | Path) -> str:
    """Return the canonical form of a path or URL."""
    place = str(path)
    if is_address(path):
        system, name = filesystem(path)
        place = str(system.unstrip_protocol(name))
    return place if is_address(place) else os.path.realpath(local_path(place))


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
