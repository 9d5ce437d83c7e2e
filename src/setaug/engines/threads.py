"""Read ahead and write behind in one other thread each; what is read and written is the same without them."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")


@contextmanager
def read_ahead(items: Generator[_T]) -> Iterator[Iterator[_T]]:
    """Give the items of a generator, each fetched while the one before is worked on; it is closed in the end."""
    end = object()

    def fetched() -> Iterator[_T]:
        coming = reader.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = reader.submit(next, items, end)
            yield item  # type: ignore[misc]

    with closing(items), ThreadPoolExecutor(1) as reader:
        yield fetched()


@contextmanager
def write_behind(write: Callable[[memoryview], Any]) -> Iterator[Callable[[memoryview], None]]:
    """Give a function that hands bytes to another thread, once those before them are written."""
    under_way: list[Future[Any]] = []

    def hand_over(lines: memoryview) -> None:
        if under_way:
            under_way.pop().result()
        under_way.append(writer.submit(write, lines))

    with ThreadPoolExecutor(1) as writer:
        yield hand_over
        if under_way:
            under_way.pop().result()
