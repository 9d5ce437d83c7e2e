"""Output in several files, of which none is in its place before all are whole.

They are written into a folder beside their places, ``.NAME.unfinished``, and moved when the last of them is done. A
run that was stopped leaves that folder; the next one goes on from it if it is asked for the same, and otherwise starts
anew. Should the moving be stopped, the numbers in the names (``-00003-of-00016``) tell that some are missing.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from setaug.errors import FileError
from setaug.files import COMPRESSED, kind_of
from setaug.urls import filesystem, told

_PLAN, _MOVING = "plan.json", "moving"


@dataclass(frozen=True, slots=True)
class Shards:
    """Name the files in which a target is written.

    Examples
    --------
    >>> shards = Shards("out/pairs.jsonl.zst", 16)
    >>> shards.place(3), shards.path(3)
    ('out/pairs-00003-of-00016.jsonl.zst', 'out/.pairs.jsonl.zst.unfinished/pairs-00003-of-00016.jsonl.zst')

    """

    target: str
    n_shards: int

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
        return f"{folder}.{stem}{suffix}.unfinished"

    def path(self, number: int) -> str:
        """Give the path of a shard until all are whole."""
        return f"{self.unfinished}/{self.place(number).rpartition('/')[2]}"

    @contextmanager
    def written(self) -> Iterator[list[str]]:
        """Give the paths to write to; afterwards the files are in their places, or gone after an error."""
        self.begin(None)
        try:
            yield [self.path(number) for number in range(self.n_shards)]
            self.publish()
        except BaseException:
            self.clear()
            raise

    def check(self) -> None:
        """Refuse a place where shards stand that would seem to belong to these."""
        folder, stem, suffix = self._parts
        with _telling(self.target):
            system, place = filesystem(folder or ".")
            pattern = re.compile(rf"{re.escape(stem)}-\d{{5,}}-of-(\d{{5,}}){re.escape(suffix)}")
            for path in system.ls(place, detail=False) if system.isdir(place) else []:
                found = pattern.fullmatch(path.rpartition("/")[2])
                if found and int(found[1]) != self.n_shards:
                    raise FileError(f"{path} is from a run with {int(found[1])} shards; remove those, or name others.")

    def begin(self, plan: object) -> None:
        """Make the folder; one that is there stays as it is if it belongs to the same plan, and goes otherwise."""
        self.check()
        with _telling(self.target):
            system, unfinished = filesystem(self.unfinished)
            written = orjson.dumps(plan)
            noted = f"{unfinished}/{_PLAN}"
            if plan is not None and system.exists(noted) and system.cat_file(noted) == written:
                return
            self.clear()
            system.makedirs(unfinished, exist_ok=True)
            system.pipe_file(noted, written)

    def note(self, number: int, notes: dict[str, Any]) -> None:
        """Say that a shard is whole, and what there is to say about it."""
        with _telling(self.target):
            system, path = filesystem(self.path(number))
            system.pipe_file(f"{path}.json", orjson.dumps(notes))

    def notes(self) -> dict[int, dict[str, Any]]:
        """Give what was said about the shards that are whole."""
        found = {}
        with _telling(self.target):
            system, unfinished = filesystem(self.unfinished)
            for path in system.ls(unfinished, detail=False):
                if path.endswith(".json") and not path.endswith(f"/{_PLAN}"):
                    number = int(re.findall(r"-(\d{5,})-of-", path)[-1])
                    found[number] = orjson.loads(system.cat_file(path))
        return found

    def publish(self) -> None:
        """Move all shards to their places, and remove the folder."""
        with _telling(self.target):
            system, unfinished = filesystem(self.unfinished)
            moving = f"{unfinished}/{_MOVING}"
            was_moving = system.exists(moving)
            system.pipe_file(moving, b"")
            for number in range(self.n_shards):
                path, place = filesystem(self.path(number))[1], filesystem(self.place(number))[1]
                if not was_moving or system.exists(path):
                    system.mv(path, place)
        self.clear()

    def clear(self) -> None:
        """Remove the folder and what is in it."""
        with _telling(self.target):
            system, unfinished = filesystem(self.unfinished)
            if system.exists(unfinished):
                system.rm(unfinished, recursive=True)


@contextmanager
def _telling(target: str) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except Exception as error:  # each service has errors of its own
        raise FileError(f"cannot write {target}: {told(error)}.") from None
