"""Files behind addresses appear whole or not at all, whatever the store can do."""

from collections.abc import Iterator
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from setaug.engines.sources import find_files
from setaug.errors import FileError
from setaug.storage import open_output


class Hasty(MemoryFileSystem):
    """A store where what is written is there at once, as in some."""

    protocol = "hasty"
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("hasty://", "memory://")))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        assert "autocommit" not in options or options["autocommit"], "it cannot wait"
        return super()._open(path, mode, **options)

    def isdir(self, path: str) -> bool:
        if "locked" in path:
            raise RuntimeError("no credentials")
        return bool(super().isdir(path))


@pytest.fixture
def store() -> Iterator[Hasty]:
    fsspec.register_implementation("hasty", Hasty, clobber=True)
    system = Hasty()
    yield system
    system.store.clear()


def test_a_store_that_cannot_wait_gets_the_file_when_it_is_whole(store: Hasty) -> None:
    with open_output("hasty://folder/out.jsonl") as stream:
        stream.write(b"one\n")
        assert not store.exists("/folder/out.jsonl")
    assert store.cat("/folder/out.jsonl") == b"one\n"
    assert len(store.find("/")) == 1


@pytest.mark.parametrize("protocol", ["hasty", "memory"])
def test_after_an_error_nothing_is_there(protocol: str, store: Hasty) -> None:
    def write_and_fail() -> None:
        with open_output(f"{protocol}://folder/out.jsonl") as stream:
            stream.write(b"one\n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_fail()
    assert fsspec.filesystem(protocol).find("/folder") == []


@pytest.mark.usefixtures("store")
def test_what_a_service_complains_of_is_one_line() -> None:
    with pytest.raises(FileError, match=r"cannot read hasty://locked/in\.jsonl: no credentials\."):
        find_files("hasty://locked/in.jsonl")
