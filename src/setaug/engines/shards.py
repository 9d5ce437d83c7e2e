"""Output in several files (shards), published together once all are complete.

They are written into a folder next to the target, ``.NAME.KEY.unfinished``, and moved once the last is complete. The
key is a hash of everything that their bytes depend on. An interrupted run leaves that folder; the next run resumes from
it if the key is the same, and otherwise removes it. Existing shards are never overwritten. If the move is interrupted,
the numbers in the names (``-00003-of-00016``) show that some are missing.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from setaug.errors import FileError
from setaug.storage import COMPRESSED, as_file_errors, filesystem, is_address, kind_of, locked, open_output, sync_folder

_UNFINISHED, _NOTES, _MOVING = ".unfinished", ".notes", "moving"


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a target.

    Examples
    --------
    >>> Shards("out/pairs.jsonl.zst", 16).place(3)
    'out/pairs-00003-of-00016.jsonl.zst'

    """

    target: str
    n_shards: int
    key: str = field(default_factory=lambda: uuid4().hex[:16])
    """Identifies the run; random unless given."""

    @property
    def _parts(self) -> tuple[str, str, str]:
        """The folder of the target (with a slash, or empty), its name without the suffix, and the suffix."""
        if self.target == "-":
            raise FileError("standard output cannot be sharded; use -o FILE.")
        kind_of(self.target)
        folder, slash, name = self.target.rpartition("/")
        stem, _, suffix = name.rpartition(".")
        if f".{suffix.lower()}" in COMPRESSED:
            stem, _, before = stem.rpartition(".")
            suffix = f"{before}.{suffix}"
        return folder + slash, stem, f".{suffix}"

    def place(self, number: int) -> str:
        """Return the final path of a shard."""
        folder, stem, suffix = self._parts
        return f"{folder}{stem}-{number:05}-of-{self.n_shards:05}{suffix}"

    @property
    def unfinished(self) -> str:
        """The folder of the shards until all are complete."""
        folder, stem, suffix = self._parts
        return f"{folder}.{stem}{suffix}.{self.key}{_UNFINISHED}"

    def path(self, number: int) -> str:
        """Return the path of a shard until all are complete."""
        return f"{self.unfinished}/{_name(self.place(number))}"

    @contextmanager
    def written(self) -> Iterator[list[str]]:
        """Yield the paths to write to; on exit the files are published, or removed after an error."""
        with self.locked():
            self.begin()
            try:
                yield [self.path(number) for number in range(self.n_shards)]
            except BaseException:
                with as_file_errors("write", self.target):
                    _remove(self.unfinished)
                raise
            self.publish()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the shards against a second run; remote stores have no locks."""
        if is_address(self.target):
            yield
            return
        target = Path(os.path.realpath(self.target))
        with as_file_errors("write", self.target):
            target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target, self.target):
            yield

    def check(self) -> None:
        """Raise if the target has shards already: they would be mixed with the new ones, or are being read."""
        with as_file_errors("write", self.target):
            if any(_exists(f"{left}/{_MOVING}") for left in self._left()):
                return  # the published ones are from an interrupted run
            for place in self._in_place():
                raise FileError(f"{place} already exists; remove the old shards or choose another name.")

    def begin(self) -> None:
        """Create the folder unless the same run left it; remove what other interrupted runs left."""
        self.check()
        with as_file_errors("write", self.target):
            for left in self._left():
                if _name(left) != _name(self.unfinished):
                    if _exists(f"{left}/{_MOVING}"):
                        for place in self._in_place():
                            _remove(place)
                    _remove(left)
            system, unfinished = filesystem(self.unfinished)
            system.makedirs(unfinished, exist_ok=True)

    def note(self, number: int, notes: dict[str, Any]) -> None:
        """Record that a shard is complete, with notes about it."""
        with as_file_errors("write", self.target):
            _write(self.path(number) + _NOTES, orjson.dumps(notes))

    def notes(self) -> dict[int, dict[str, Any]]:
        """Return the notes of the complete shards."""
        found = {}
        with as_file_errors("write", self.target):
            system, unfinished = filesystem(self.unfinished)
            names = {_name(path) for path in _listed(self.unfinished)}
            for number in range(self.n_shards):
                name = _name(self.place(number))
                is_there = name in names or (_MOVING in names and _exists(self.place(number)))
                if is_there and name + _NOTES in names:
                    with suppress(orjson.JSONDecodeError):  # truncated
                        found[number] = orjson.loads(system.cat_file(f"{unfinished}/{name}{_NOTES}"))
        return found

    def publish(self) -> None:
        """Move all shards to their final paths, and remove the folder."""
        with as_file_errors("write", self.target):
            system, _ = filesystem(self.unfinished)
            names = {_name(path) for path in _listed(self.unfinished)}
            _write(f"{self.unfinished}/{_MOVING}", b"moving\n")
            for number in range(self.n_shards):
                place = self.place(number)
                if _name(place) in names:
                    system.mv(filesystem(self.path(number))[1], filesystem(place)[1])
                elif _MOVING not in names or not _exists(place):
                    raise FileError(f"{place} was not written; is another run writing there?")
            if not is_address(self.target):
                sync_folder(Path(self.target).parent)
            _remove(self.unfinished)

    def _left(self) -> list[str]:
        """List the folders of all interrupted or running runs."""
        folder, stem, suffix = self._parts
        start, end = f".{stem}{suffix}.", _UNFINISHED
        return [path for path in _listed(folder or ".") if _name(path).startswith(start) and path.endswith(end)]

    def _in_place(self) -> list[str]:
        """List the published shards, whatever their number."""
        folder, stem, suffix = self._parts
        pattern = re.compile(rf"{re.escape(stem)}-\d{{5,}}-of-\d{{5,}}{re.escape(suffix)}")
        return [path for path in _listed(folder or ".") if pattern.fullmatch(_name(path))]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _write(path: str, content: bytes) -> None:
    with open_output(path) as stream:
        stream.write(content)


def _listed(folder: str) -> list[str]:
    """List the entries of a folder as paths or URLs that can be opened."""
    system, place = filesystem(folder)
    system.invalidate_cache()  # other processes write there
    if not system.isdir(place):
        return []
    inside = [_name(path.rstrip("/")) for path in system.ls(place, detail=False)]
    return [f"{folder.rstrip('/')}/{name}" for name in inside]


def _exists(path: str) -> bool:
    system, place = filesystem(path)
    system.invalidate_cache()
    return bool(system.exists(place))


def _remove(path: str) -> None:
    system, place = filesystem(path)
    if system.exists(place):
        system.rm(place, recursive=True)
