"""Input files: single ones, those in a folder, or standard input; local or remote."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from setaug.errors import FileError
from setaug.storage import as_file_errors, display_name, filesystem, has_kind, is_address, kind_of, local_path


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file with examples."""

    path: str
    kind: str
    name: str
    """Its name in messages."""

    def changed(self) -> FileError:
        """Return the error for a file that changed between two reads."""
        return FileError(f"{self.name} changed while it was read; run the command again when nothing writes to it.")


def find_files(sources: str | Path | Iterable[str | Path], kind: str | None = None) -> list[SourceFile]:
    """List the files; those of a folder and its subfolders are sorted by name.

    In a folder, files without a known suffix are skipped, and so are names that start with a dot or an underscore,
    which programs use for temporary files.

    Parameters
    ----------
    kind
        The kind of all files, if not clear from their suffixes.

    """
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    if not named:
        raise ValueError("at least one file is required.")
    paths = [path for source in named for path in _expand(local_path(source), kind)]
    if sum(path == "-" for path in paths) > 1:
        raise FileError("standard input can be read only once.")
    is_alone = len(paths) == 1 and paths[0] == local_path(named[0])
    return [
        SourceFile(path, kind or kind_of(path), display_name(path) if is_alone or path == "-" else path)
        for path in paths
    ]


def _expand(source: str, kind: str | None) -> list[str]:
    found = sorted(_in_folder(source, kind)) if _is_folder(source) else [source]
    if not found:
        raise FileError(f"{source} contains no file with examples: no file name has a known suffix.")
    return found


def _is_folder(source: str) -> bool:
    if not is_address(source):
        return os.path.isdir(source)
    with as_file_errors("read", source):
        system, name = filesystem(source)
        return bool(system.isdir(name))


def _in_folder(folder: str, kind: str | None) -> Iterator[str]:
    with as_file_errors("read", folder):
        system, start = filesystem(folder)
        paths = system.find(start)
    for path in paths:
        inside = path[len(start) :].strip("/")
        if not any(part.startswith((".", "_")) for part in inside.split("/")) and (kind or has_kind(inside)):
            yield f"{folder.rstrip('/')}/{inside}"
