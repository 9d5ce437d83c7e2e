"""Finding and reading the files of a dataset, with checksums."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from setaug.errors import DataError, FileError
from setaug.storage import open_input

Line = TypeVar("Line")
Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The files of a dataset as its authors distribute them."""

    title: str
    folder: str
    """Prefix of its folder's name: letters and digits, in lower case."""
    layouts: Sequence[Sequence[str]]
    """Alternative lists of files. The first file of a list identifies the layout."""
    expected: str
    """The files, in words."""
    origin: str
    checksums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by file name, for files that never change."""


@dataclass(frozen=True)
class Files:
    """The folder of a dataset and its files."""

    folder: Path
    names: Sequence[str]
    checksums: Mapping[str, str]
    """SHA-256 by file name, verified while reading."""

    def read(self, name: str) -> bytes:
        """Read a whole file and verify its checksum."""
        path = self.folder / name
        with open_input(path) as stream:
            content = stream.read()
        wanted = self.checksums.get(path.name)
        if wanted is not None and hashlib.sha256(content).hexdigest() != wanted:
            raise FileError(
                f"{path} is not the file that its authors distribute: its SHA-256 checksum differs. Download it again, "
                "or skip the check with --no-verify (verify=False)."
            )
        return content

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """Return the non-blank lines of a file with their numbers."""
        # Split at line feeds only: str.splitlines would also split at characters that texts contain.
        for number, line in enumerate(self.read(name).split(b"\n"), 1):
            if line.strip():
                yield number, decode_line(line.removesuffix(b"\r"), name, number)


def decode_line(line: bytes, name: str, number: int) -> str:
    """Decode a line as UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        around = line[max(error.start - 20, 0) : error.start + 20]
        problem = f"invalid UTF-8, byte {line[error.start]:#04x} at column {error.start + 1}: {around!r}."
        raise DataError(problem, source=name, line=number) from None


def parse_lines(lines: Iterable[tuple[int, Line]], parse: Callable[[int, Line], Row], source: str) -> Iterator[Row]:
    """Parse numbered lines; errors name the source and the line."""
    for number, line in lines:
        try:
            yield parse(number, line)
        except DataError as error:
            raise error.located(source=source, line=number) from None


def find_files(distribution: Distribution, data_dir: str | Path, *, verify: bool) -> Files:
    """Find a dataset in a folder, or in a subfolder whose name starts with the dataset's."""
    folder = Path(data_dir)
    expected = (
        f"expected {distribution.expected}, in {folder} or {folder / distribution.folder}; they are distributed at "
        f"{distribution.origin}."
    )
    if not folder.is_dir():
        raise FileError(f"there is no folder {folder}; {expected}")
    for candidate in (folder, *_subfolders(folder, distribution.folder)):
        layouts = [names for names in distribution.layouts if (candidate / names[0]).is_file()]
        missing = [[name for name in names if not (candidate / name).is_file()] for names in layouts]
        for names, absent in zip(layouts, missing, strict=True):
            if not absent:
                return Files(candidate, names, distribution.checksums if verify else {})
        if missing:
            absent = min(missing, key=len)
            listed = ", ".join(absent) if len(absent) <= 6 else f"{absent[0]} to {absent[-1]}"
            raise FileError(f"{candidate} has no {listed}; {expected}")
    raise FileError(f"{distribution.title} is not in {folder}; {expected}")


def _subfolders(folder: Path, prefix: str) -> list[Path]:
    plain = {path: re.sub(r"[^a-z0-9]", "", path.name.lower()) for path in folder.iterdir() if path.is_dir()}
    return sorted(path for path, name in plain.items() if name.startswith(prefix))
