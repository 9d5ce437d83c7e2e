"""Read ahead and write behind in one thread each, without changing what is read and written."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")


@contextmanager
def read_ahead(items: Generator[_T]) -> Iterator[Iterator[_T]]:
    """Yield an iterator that fetches each item while the previous one is processed, and closes the generator."""
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
    """Yield a function that writes bytes in another thread, after waiting for the previous write."""
    under_way: list[Future[Any]] = []

    def hand_over(lines: memoryview) -> None:
        if under_way:
            under_way.pop().result()
        under_way.append(writer.submit(write, lines))

    with ThreadPoolExecutor(1) as writer:
        yield hand_over
        if under_way:
            under_way.pop().result()
