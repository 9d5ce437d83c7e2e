"""What a server lets anybody ask for, and how it says no."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Say how much is too much."""

    upload_bytes: int = 50 << 20
    """The largest file that can be dropped in."""
    held_bytes: int = 200 << 20
    """Files that are held at once, in bytes,"""
    datasets: int = 16
    """and in number; the one that was not looked at for longest goes first."""
    body_bytes: int = 1 << 20
    """The largest body of any other request."""
    body_seconds: float = 60.0
    """How long the next part of a body may take to come."""
    texts: int = 64
    """Texts in one request."""
    text_length: int = 20_000
    """Characters of a text."""
    waiting_texts: int = 256
    """Texts that wait for the model; more are turned away."""
    batch_size: int = 32
    """Texts that the model sees at once."""
    predict_seconds: float = 60.0
    """How long a request waits for the model."""
    computing: int = 2
    """Requests about a data set that are worked on at once; of slow ones, one."""
    waiting: int = 32
    """Those that wait for it; more are turned away."""
    downloads: int = 4
    """Files of training pairs that are sent at once; more are turned away."""


class Refusal(Exception):  # noqa: N818 - it is no error of ours
    """Turn a request away, with a status and a sentence."""

    def __init__(self, status: int, sentence: str, *, retry_after: int | None = None) -> None:
        self.status, self.sentence, self.retry_after = status, sentence, retry_after
        super().__init__(sentence)

    def response(self) -> JSONResponse:
        """Say it in JSON."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse({"error": self.sentence}, self.status, headers)


def too_busy() -> Refusal:
    """Make the refusal of a request that would have to wait too long."""
    return Refusal(503, "too much to do at the moment; try again soon.", retry_after=2)


Gate = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs something that takes a while in a thread, when it is its turn."""


def make_gate(at_once: int, waiting: int) -> Gate:
    """Let a few things run at once, let some more wait, and turn others away."""
    from anyio import CapacityLimiter, to_thread

    limiter = CapacityLimiter(at_once)

    async def run(work: Callable[[], Any]) -> Any:
        if limiter.statistics().tasks_waiting >= waiting:
            raise too_busy()
        return await to_thread.run_sync(work, limiter=limiter)

    return run
