"""Read ahead and write behind in one other thread each; what is read and written is the same without them."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")


def read_ahead(items: Iterator[_T]) -> Generator[_T]:
    """Give the items of an iterator, each fetched while the one before is worked on."""
    end = object()
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = reader.submit(next, items, end)
            yield item  # type: ignore[misc]


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
