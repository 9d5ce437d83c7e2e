"""Connections: how many, and how long a client may take to send the head of a request or to read an answer.

uvicorn has no such bounds. They are timers around its protocol, which `uvicorn.Config` takes as ``http``.
"""

import asyncio
import json
import socket
import struct
from collections import Counter
from collections.abc import Collection
from http import HTTPStatus
from typing import ClassVar

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from setaug.web.bodies import network_of
from setaug.web.limits import Limits, too_busy

_REFUSED_AT_ONCE = 32
"""Connections above the limit that still get a response; further ones are closed."""
_DRAINED = 48 << 10
"""Bytes that a client has read at least when asyncio resumes writing: the difference of its two watermarks."""


class Connections:
    """Open connections, by address.

    Where there are too many, the oldest one that has not sent the head of a request makes room.
    """

    def __init__(self, limits: Limits, proxies: Collection[str] = ()) -> None:
        self.limits = limits
        self._proxies = frozenset(map(network_of, proxies))
        self._open: Counter[str] = Counter()
        self._silent: dict[BoundedProtocol, None] = {}
        self.refused: set[BoundedProtocol] = set()
        self.n_refused = self.n_cut = 0

    def __len__(self) -> int:
        return self._open.total()

    def protocol(self) -> "type[BoundedProtocol]":
        """Return the protocol for ``uvicorn.Config(http=...)``."""
        return type("BoundedProtocol", (BoundedProtocol,), {"bounds": self})

    def add(self, connection: "BoundedProtocol") -> bool:
        """Register a connection, if the limits allow it."""
        address, limits = connection.address, self.limits
        is_bound = limits.per_address and address not in self._proxies
        if is_bound and self._open[address] >= limits.per_address and not self._make_room(address):
            return False
        if len(self) >= limits.connections and not self._make_room(None):
            return False
        self._open[address] += 1
        self._silent[connection] = None
        return True

    def _make_room(self, address: str | None) -> bool:
        oldest = next((one for one in self._silent if address in (None, one.address)), None)
        if oldest is not None:
            oldest.cut()
        return oldest is not None

    def is_heard(self, connection: "BoundedProtocol") -> None:
        """Record that a connection has sent the headers of a request."""
        self._silent.pop(connection, None)

    def remove(self, address: str, connection: "BoundedProtocol") -> None:
        """Unregister a connection."""
        self._silent.pop(connection, None)
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, with timeouts for headers and for slow readers."""

    bounds: ClassVar[Connections]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection; respond with 503 if there are too many."""
        super().connection_made(transport)
        limits = self.bounds.limits
        self.address = network_of(self.client[0] if self.client else "")
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._paused_at, self._credit = 0.0, limits.body_seconds
        self._is_counted = self.bounds.add(self)
        if not self._is_counted:
            self.bounds.n_refused += 1
            if len(self.bounds.refused) >= _REFUSED_AT_ONCE:
                transport.abort()
                return
            self.bounds.refused.add(self)
            self.app = _refuse
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection."""
        self._stop_head_timer()
        self._stop_read_timer()
        self._count_out()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start or stop the timeout for headers."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()
            self.bounds.is_heard(self)
        elif self._head_timer is None and not self.transport.is_closing():
            self._start_head_timer()

    def on_response_complete(self) -> None:
        """Reset the timeout of a slow reader that has read everything."""
        self._credit = self.bounds.limits.body_seconds
        self._stop_head_timer()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for a client to read, until its timeout."""
        super().pause_writing()
        self._paused_at = self.loop.time()
        self._read_timer = self.loop.call_later(self._credit, self.cut)

    def resume_writing(self) -> None:
        """Extend the timeout of a reader by the bytes that it has read."""
        super().resume_writing()
        self._stop_read_timer()
        limits = self.bounds.limits
        left = self._credit - (self.loop.time() - self._paused_at)
        self._credit = max(0.0, min(limits.body_seconds, left + _DRAINED / limits.min_rate))

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, even if its client does not read the last response."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.bounds.limits.body_seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Reject invalid HTTP with a JSON response."""
        self._close_with(400, "invalid HTTP request.")

    def cut(self) -> None:
        """Abort the connection; unsent data is dropped."""
        self.bounds.n_cut += 1
        self._count_out()
        own: socket.socket = self.transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _count_out(self) -> None:
        self.bounds.refused.discard(self)
        if self._is_counted:
            self._is_counted = False
            self.bounds.remove(self.address, self)

    def _start_head_timer(self) -> None:
        seconds = self.bounds.limits.head_seconds if self._is_counted else 1.0
        self._head_timer = self.loop.call_later(seconds, self._end_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _end_late(self) -> None:
        self.bounds.n_cut += 1
        self._close_with(408, "the request headers were sent too slowly.")

    def _close_with(self, status: int, sentence: str) -> None:
        """Send a response without a request, unless one is being sent, and close."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_raw(status, sentence))
        self.transport.close()
        self.loop.call_later(1.0, self.transport.abort)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    refusal = too_busy("too many connections; try again later.")
    refusal.headers["Connection"] = "close"
    await refusal.response()(scope, receive, send)


def _raw(status: int, sentence: str) -> bytes:
    content = json.dumps({"error": sentence}).encode()
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode() + content
