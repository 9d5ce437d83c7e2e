"""The limits of a server, and how it rejects requests that exceed them."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio import Lock
from starlette.responses import JSONResponse


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits for clients. Of each shared resource, one address gets only a part."""

    connections: int = 512
    """Open connections."""
    per_address: int = 64
    """Open connections per address; 0 disables all per-address limits."""
    head_seconds: float = 10.0
    """Seconds for the headers of a request to arrive."""
    body_seconds: float = 20.0
    """Seconds for a body to begin, or for a response to be read, in addition to what `min_rate` allows."""
    min_rate: int = 64 << 10
    """Bytes per second below which an upload or a download is aborted."""
    body_bytes: int = 1 << 20
    """Maximum size of a request body, except for uploads."""
    bodies_bytes: int = 64 << 20
    """Total size of such bodies in memory; per address, half of it."""
    upload_bytes: int = 50 << 20
    """Maximum size of an upload."""
    uploads: int = 8
    """Concurrent uploads; per address, a quarter."""
    datasets: int = 16
    """Stored datasets; the least recently used one is evicted."""
    held_bytes: int = 200 << 20
    """Their files on disk."""
    held_memory: int = 512 << 20
    """Their texts and labels in memory; per upload, half of it."""
    line_bytes: int = 1 << 20
    """Maximum length of a line in an upload."""
    labels_per_set: int = 256
    """Labels per set in an upload."""
    label_pairs: int = 4_000_000
    """Label pairs over all sets of an upload."""
    texts: int = 64
    """Texts per request."""
    text_length: int = 20_000
    """Characters per text."""
    waiting_texts: int = 256
    """Texts queued for the model; per address, half."""
    batch_size: int = 32
    """Sequences per batch of the model."""
    predict_seconds: float = 60.0
    """Seconds that a request waits for the model."""
    small_bytes: int = 2 << 20
    """Maximum bytes, on disk and in memory, of a small dataset; small ones do not wait for large ones."""
    waiting: int = 32
    """Queued requests: about small datasets, about large ones, and slow requests, each."""
    downloads: int = 4
    """Concurrent downloads of training pairs; per address, a quarter."""
    download_bytes: int = 256 << 20
    """Maximum size of a download."""

    def share(self, total: int, parts: int = 2) -> int:
        """Return the share of a total that one address may use."""
        return max(1, total // parts) if self.per_address else total


class Refusal(Exception):  # noqa: N818 - it is not an error of the server
    """A rejected request, with a status and a message."""

    def __init__(self, status: int, sentence: str, *, headers: dict[str, str] | None = None, id: str = "") -> None:  # noqa: A002
        self.status, self.sentence, self.headers, self.id = status, sentence, headers or {}, id
        super().__init__(sentence)

    def __reduce__(self) -> tuple[Any, tuple[int, str]]:
        return partial(type(self), headers=self.headers, id=self.id), (self.status, self.sentence)

    def response(self) -> JSONResponse:
        """Return it as JSON; an internal error has the id under which it is logged."""
        return JSONResponse({"error": self.sentence} | ({"id": self.id} if self.id else {}), self.status, self.headers)


def too_busy(sentence: str = "the server is busy; try again later.") -> Refusal:
    """Return the refusal of a request that can be retried later."""
    return Refusal(503, sentence, headers={"Retry-After": "2"})


class Budget:
    """A shared resource: slots, bytes or texts. No address gets more than its share."""

    def __init__(self, total: int, share: int) -> None:
        self._total, self._share = total, share
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """The amount in use."""
        return self._taken.total()

    def take(self, address: str, n: int = 1) -> None:
        """Acquire an amount, or raise a `Refusal`."""
        if self.taken + n > self._total or self._taken[address] + n > self._share:
            raise too_busy()
        self._taken[address] += n

    def give_back(self, address: str, n: int = 1) -> None:
        """Release an amount."""
        self._taken[address] -= n
        if not self._taken[address]:
            del self._taken[address]

    @contextmanager
    def taking(self, address: str, n: int = 1) -> Iterator[None]:
        """Acquire an amount for the duration of a context."""
        self.take(address, n)
        try:
            yield
        finally:
            self.give_back(address, n)


class Gate:
    """A fair lock: one request of each address is in the queue, its others wait behind it."""

    def __init__(self, limits: Limits) -> None:
        self._line = Lock()
        self._own: dict[str, Lock] = {}
        self._places = Budget(1 + limits.waiting, limits.share(1 + limits.waiting))

    @property
    def waiting(self) -> int:
        """The number of running and queued requests."""
        return self._places.taken

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for the lock, or raise a `Refusal` if the queue is full."""
        with self._places.taking(address):
            own = self._own.setdefault(address, Lock())
            try:
                async with own, self._line:
                    yield
            finally:
                if not own.locked() and not own.statistics().tasks_waiting:
                    self._own.pop(address, None)
