"""The files of a data set as its authors distribute them: where they are looked for, and whether they are the same."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from setaug.errors import DataError, FileError
from setaug.files import open_input


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Say which files make up a data set, and who gives them out."""

    title: str
    folder: str
    """How the names of its folders begin: letters and digits, in lower case."""
    layouts: Sequence[Sequence[str]]
    """The files; where they may be laid out in several ways, those of each. A folder is known by the first file."""
    expected: str
    """The files, in words."""
    origin: str
    """Where the authors give them out."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file that never changes."""


@dataclass(frozen=True)
class Files:
    """Hold the folder of a data set, and read its files."""

    folder: Path
    names: Sequence[str]
    checksums: Mapping[str, str]
    """What is checked while reading."""

    def read(self, name: str) -> bytes:
        """Read a whole file, and check that it is the one that the authors distribute."""
        path = self.folder / name
        with open_input(path) as stream:
            content = stream.read()
        wanted = self.checksums.get(path.name)
        if wanted is not None and hashlib.sha256(content).hexdigest() != wanted:
            raise FileError(
                f"{path} is not the file that its authors distribute (its SHA-256 is another one); get it again, or "
                "read it anyway with --no-verify (verify=False)."
            )
        return content

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """Give the lines of a file that are not blank, with their numbers, without what ends them."""
        # Only at line feeds: a text may hold other characters that str.splitlines takes for the end of a line.
        for number, line in enumerate(self.read(name).split(b"\n"), 1):
            if line.strip():
                yield number, decode_line(line.removesuffix(b"\r"), name, number)


def decode_line(line: bytes, name: str, number: int) -> str:
    """Read a line as UTF-8, or say where it is none."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        around = line[max(error.start - 20, 0) : error.start + 20]
        problem = f"invalid UTF-8, byte {line[error.start]:#04x} at column {error.start + 1}: {around!r}."
        raise DataError(problem, source=name, line=number) from None


def find_files(distribution: Distribution, data_dir: str | Path, *, verify: bool) -> Files:
    """Find a data set in its own folder, or in a subfolder that begins with its name."""
    folder = Path(data_dir)
    if not folder.is_dir():
        raise FileError(f"there is no folder {folder}; {_expected(distribution, folder)}")
    for candidate in (folder, *_subfolders(folder, distribution.folder)):
        layouts = [names for names in distribution.layouts if (candidate / names[0]).is_file()]
        missing = [[name for name in names if not (candidate / name).is_file()] for names in layouts]
        for names, absent in zip(layouts, missing, strict=True):
            if not absent:
                return Files(candidate, names, distribution.checksums if verify else {})
        if missing:
            raise FileError(f"{candidate} has no {_listed(min(missing, key=len))}; {_expected(distribution, folder)}")
    raise FileError(f"{distribution.title} is not in {folder}; {_expected(distribution, folder)}")


def _subfolders(folder: Path, beginning: str) -> list[Path]:
    plain = {path: re.sub(r"[^a-z0-9]", "", path.name.lower()) for path in folder.iterdir() if path.is_dir()}
    return sorted(path for path, name in plain.items() if name.startswith(beginning))


def _expected(distribution: Distribution, folder: Path) -> str:
    return (
        f"expected {distribution.expected}, in {folder} or {folder / distribution.folder}; they are distributed at "
        f"{distribution.origin}."
    )


def _listed(names: Sequence[str]) -> str:
    """List names in a sentence; of many only the first and the last."""
    return ", ".join(names) if len(names) <= 6 else f"{names[0]} to {names[-1]}"
