"""The files that a call names: single ones, the files in a folder, standard input; here or behind an address."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from setaug.errors import FileError
from setaug.files import display_name, kind_of
from setaug.urls import filesystem, is_url, telling


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Name a file with examples."""

    path: str
    kind: str
    name: str
    """What messages call it."""


def find_files(sources: str | Path | Iterable[str | Path], kind: str | None = None) -> list[SourceFile]:
    """List the files, those of a folder (and of the folders in it) by name.

    In a folder, files whose names do not tell their kind are left out, and all that begins with a dot or an
    underscore: what programs leave beside the data.

    Parameters
    ----------
    kind
        The kind of all files, where their names do not tell.

    """
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    if not named:
        raise ValueError("at least one file is needed.")
    paths = [path for source in named for path in _expand(str(source), kind)]
    if sum(path == "-" for path in paths) > 1:
        raise FileError("standard input can be read only once.")
    is_alone = len(paths) == 1 and paths[0] == str(named[0])
    return [
        SourceFile(path, kind or kind_of(path), display_name(path) if is_alone or path == "-" else path)
        for path in paths
    ]


def _expand(source: str, kind: str | None) -> list[str]:
    found = sorted(_in_folder(source, kind)) if _is_folder(source) else [source]
    if not found:
        raise FileError(f"{source} holds no file with examples: none whose name tells its kind.")
    return found


def _is_folder(source: str) -> bool:
    if not is_url(source):
        return os.path.isdir(source)
    with telling("read", source):
        system, name = filesystem(source)
        return bool(system.isdir(name))


def _in_folder(folder: str, kind: str | None) -> Iterator[str]:
    with telling("read", folder):
        system, start = filesystem(folder)
        paths = system.find(start)
    for path in paths:
        inside = path[len(start) :].strip("/")
        if not any(part.startswith((".", "_")) for part in inside.split("/")) and (kind or _has_kind(inside)):
            yield f"{folder.rstrip('/')}/{inside}"


def _has_kind(name: str) -> bool:
    try:
        kind_of(name)
    except FileError:
        return False
    return True
