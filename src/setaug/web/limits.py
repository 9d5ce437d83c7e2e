"""The bounds of a server, and how it refuses what exceeds them."""

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
    """Bounds on what clients may ask for. Of what clients share, one address gets a part."""

    connections: int = 512
    """Open connections."""
    per_address: int = 64
    """Open connections of one address; 0 takes this bound and all shares of an address away."""
    head_seconds: float = 10.0
    """Time for the head of a request to arrive."""
    body_seconds: float = 20.0
    """Time for a body to begin, or for an answer to be read, beyond what `min_rate` allows."""
    min_rate: int = 64 << 10
    """Bytes a second below which an upload or a download is cut."""
    body_bytes: int = 1 << 20
    """The largest body of a request that is no upload."""
    bodies_bytes: int = 64 << 20
    """Such bodies in memory, in all; of one address, half."""
    upload_bytes: int = 50 << 20
    """The largest upload."""
    uploads: int = 8
    """Uploads under way; of one address, a quarter."""
    datasets: int = 16
    """Datasets held; the least recently used one is removed."""
    held_bytes: int = 200 << 20
    """Their files on disk."""
    held_memory: int = 512 << 20
    """Their texts and labels in memory; of one upload, half of it."""
    line_bytes: int = 1 << 20
    """The longest line of an upload."""
    labels_per_set: int = 256
    """Labels of one set of an upload."""
    label_pairs: int = 4_000_000
    """Pairs of labels, over all sets of an upload."""
    texts: int = 64
    """Texts in one request."""
    text_length: int = 20_000
    """Characters of a text."""
    waiting_texts: int = 256
    """Texts that wait for the model; of one address, half."""
    batch_size: int = 32
    """Sequences that the model writes at once."""
    predict_seconds: float = 60.0
    """Time that a request waits for the model."""
    small_bytes: int = 2 << 20
    """The largest dataset, in bytes on disk and in memory, that is small: these do not wait for large ones."""
    waiting: int = 32
    """Requests that wait: for answers about small datasets, about large ones, and for slow answers."""
    downloads: int = 4
    """Files of training pairs that are made or sent; of one address, a quarter."""
    download_bytes: int = 256 << 20
    """The largest of them."""

    def share(self, total: int, parts: int = 2) -> int:
        """Return how much of a total one address may take."""
        return max(1, total // parts) if self.per_address else total


class Refusal(Exception):  # noqa: N818 - it is no error of ours
    """A request that is refused, with a status and a sentence."""

    def __init__(self, status: int, sentence: str, *, headers: dict[str, str] | None = None, id: str = "") -> None:  # noqa: A002
        self.status, self.sentence, self.headers, self.id = status, sentence, headers or {}, id
        super().__init__(sentence)

    def __reduce__(self) -> tuple[Any, tuple[int, str]]:
        return partial(type(self), headers=self.headers, id=self.id), (self.status, self.sentence)

    def response(self) -> JSONResponse:
        """Return it as JSON; a failure has the id under which it is logged."""
        return JSONResponse({"error": self.sentence} | ({"id": self.id} if self.id else {}), self.status, self.headers)


def too_busy(sentence: str = "the server is busy; try again later.") -> Refusal:
    """Return the refusal of a request that can be retried later."""
    return Refusal(503, sentence, headers={"Retry-After": "2"})


class Budget:
    """Something that clients share: slots, bytes or texts. No address takes more than its share."""

    def __init__(self, total: int, share: int) -> None:
        self._total, self._share = total, share
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """How much is in use."""
        return self._taken.total()

    def take(self, address: str, n: int = 1) -> None:
        """Take some, or raise a `Refusal`."""
        if self.taken + n > self._total or self._taken[address] + n > self._share:
            raise too_busy()
        self._taken[address] += n

    def give_back(self, address: str, n: int = 1) -> None:
        """Release some of the budget."""
        self._taken[address] -= n
        if not self._taken[address]:
            del self._taken[address]

    @contextmanager
    def taking(self, address: str, n: int = 1) -> Iterator[None]:
        """Take some for the duration of a context."""
        self.take(address, n)
        try:
            yield
        finally:
            self.give_back(address, n)


class Gate:
    """One place to work at. One request of each address is in line, its others wait behind it."""

    def __init__(self, limits: Limits) -> None:
        self._line = Lock()
        self._own: dict[str, Lock] = {}
        self._places = Budget(1 + limits.waiting, limits.share(1 + limits.waiting))

    @property
    def waiting(self) -> int:
        """How many work or wait."""
        return self._places.taken

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for the place, or raise a `Refusal` if too many do."""
        with self._places.taking(address):
            own = self._own.setdefault(address, Lock())
            try:
                async with own, self._line:
                    yield
            finally:
                if not own.locked() and not own.statistics().tasks_waiting:
                    self._own.pop(address, None)
