"""Output in several files, of which none is in its place before all are whole.

They are written into a folder beside their places, ``.NAME.KEY.unfinished``, and moved when the last of them is done.
The key stands for all that their bytes depend on. A run that was stopped leaves that folder; the next one goes on from
it if it is asked for the same, and otherwise removes it. Where there are shards already, nothing is written, so should
the moving be stopped, the numbers in the names (``-00003-of-00016``) tell that some are missing.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from setaug.errors import FileError
from setaug.files import COMPRESSED, kind_of
from setaug.urls import filesystem, telling

_UNFINISHED, _NOTES, _MOVING = ".unfinished", ".notes", "moving"


@dataclass(frozen=True, slots=True)
class Shards:
    """Name the files in which a target is written.

    Examples
    --------
    >>> Shards("out/pairs.jsonl.zst", 16).place(3)
    'out/pairs-00003-of-00016.jsonl.zst'

    """

    target: str
    n_shards: int
    key: str = field(default_factory=lambda: uuid4().hex[:16])
    """Tells runs apart; that of another run is another, unless it is given."""

    @property
    def _parts(self) -> tuple[str, str, str]:
        """The folder of the target, ending in a slash or empty, and its name without and from the suffix on."""
        if self.target == "-":
            raise FileError("standard output is one file: name a file to write shards of.")
        kind_of(self.target)
        folder, slash, name = self.target.rpartition("/")
        stem, _, suffix = name.rpartition(".")
        if f".{suffix.lower()}" in COMPRESSED:
            stem, _, before = stem.rpartition(".")
            suffix = f"{before}.{suffix}"
        return folder + slash, stem, f".{suffix}"

    def place(self, number: int) -> str:
        """Give the place of a shard."""
        folder, stem, suffix = self._parts
        return f"{folder}{stem}-{number:05}-of-{self.n_shards:05}{suffix}"

    @property
    def unfinished(self) -> str:
        """The folder where they are until all are whole."""
        folder, stem, suffix = self._parts
        return f"{folder}.{stem}{suffix}.{self.key}{_UNFINISHED}"

    def path(self, number: int) -> str:
        """Give the path of a shard until all are whole."""
        return f"{self.unfinished}/{_name(self.place(number))}"

    @contextmanager
    def written(self) -> Iterator[list[str]]:
        """Give the paths to write to; afterwards the files are in their places, or gone after an error."""
        self.begin()
        try:
            yield [self.path(number) for number in range(self.n_shards)]
        except BaseException:
            with telling("write", self.target):
                _remove(self.unfinished)
            raise
        self.publish()

    def check(self) -> None:
        """Refuse a place where there are shards already: these would be mixed with them, or replace what is read."""
        with telling("write", self.target):
            if any(_exists(f"{left}/{_MOVING}") for left in self._left()):
                return  # those in their places are of a run that was stopped
            for place in self._in_place():
                raise FileError(f"{place} is there already; remove such files, or choose another name.")

    def begin(self) -> None:
        """Make the folder, if it is not there from the same run; remove what other runs left that were stopped."""
        self.check()
        with telling("write", self.target):
            for left in self._left():
                if _name(left) != _name(self.unfinished):
                    if _exists(f"{left}/{_MOVING}"):
                        for place in self._in_place():
                            _remove(place)
                    _remove(left)
            system, unfinished = filesystem(self.unfinished)
            system.makedirs(unfinished, exist_ok=True)

    def note(self, number: int, notes: dict[str, Any]) -> None:
        """Say that a shard is whole, and what there is to say about it."""
        with telling("write", self.target):
            system, path = filesystem(self.path(number))
            system.pipe_file(path + _NOTES, orjson.dumps(notes))

    def notes(self) -> dict[int, dict[str, Any]]:
        """Give what was said about the shards that are whole."""
        found = {}
        with telling("write", self.target):
            system, unfinished = filesystem(self.unfinished)
            names = {_name(path) for path in _listed(self.unfinished)}
            for number in range(self.n_shards):
                name = _name(self.place(number))
                is_there = name in names or (_MOVING in names and _exists(self.place(number)))
                if is_there and name + _NOTES in names:
                    with suppress(orjson.JSONDecodeError):  # it was cut off
                        found[number] = orjson.loads(system.cat_file(f"{unfinished}/{name}{_NOTES}"))
        return found

    def publish(self) -> None:
        """Move all shards to their places, and remove the folder."""
        with telling("write", self.target):
            system, unfinished = filesystem(self.unfinished)
            names = {_name(path) for path in _listed(self.unfinished)}
            system.pipe_file(f"{unfinished}/{_MOVING}", b"moving\n")
            for number in range(self.n_shards):
                place = self.place(number)
                if _name(place) in names:
                    system.mv(filesystem(self.path(number))[1], filesystem(place)[1])
                elif _MOVING not in names or not _exists(place):
                    raise FileError(f"{place} was not written; is another run writing there?")
            _remove(self.unfinished)

    def _left(self) -> list[str]:
        """List the folders of all runs that were stopped, or are under way."""
        folder, stem, suffix = self._parts
        start, end = f".{stem}{suffix}.", _UNFINISHED
        return [path for path in _listed(folder or ".") if _name(path).startswith(start) and path.endswith(end)]

    def _in_place(self) -> list[str]:
        """List the shards in their places, of any number."""
        folder, stem, suffix = self._parts
        pattern = re.compile(rf"{re.escape(stem)}-\d{{5,}}-of-\d{{5,}}{re.escape(suffix)}")
        return [path for path in _listed(folder or ".") if pattern.fullmatch(_name(path))]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _listed(folder: str) -> list[str]:
    """List what is in a folder, by paths or addresses that can be opened."""
    system, place = filesystem(folder)
    system.invalidate_cache()  # others write there
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
