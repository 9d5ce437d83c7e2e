"""Limits on request bodies: size, rate, and whether the client is still connected."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from anyio import CancelScope
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setaug.web.limits import Budget, Limits, Refusal

UPLOAD = "/api/datasets"
"""The path of uploads, which are written to disk and not kept in memory."""
_REST_SECONDS = 10
"""Seconds to read the rest of a rejected body: many clients read a response only after they have sent everything."""


class Bodies:
    """Reject bodies that are too large, too slow or too many at once; cancel work for disconnected clients.

    Parameters
    ----------
    check
        Raises a `Refusal` if the client may not ask. Nothing is read before.

    """

    def __init__(self, app: ASGIApp, *, limits: Limits, check: Callable[[Scope], None]) -> None:
        self._app, self._limits, self._check = app, limits, check
        self._memory = Budget(limits.bodies_bytes, limits.share(limits.bodies_bytes))
        self._uploads = Budget(limits.uploads, limits.share(limits.uploads, 4))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, within these limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_upload = scope["path"] == UPLOAD
        body = _Body(scope, receive, self._limits, None if is_upload else self._memory)
        try:
            self._check(scope)
            body.check_length()
            with self._uploads.taking(body.address, int(is_upload)):
                await self._run(scope, body, send)
        except Refusal as refusal:
            await body.skip_rest()
            await refusal.response()(scope, receive, send)

    async def _run(self, scope: Scope, body: "_Body", send: Send) -> None:
        async def unless_refused(message: Message) -> None:
            if body.refusal is None:
                body.is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
                await send(message)

        with CancelScope() as work:
            watcher = asyncio.create_task(body.watch(work))
            try:
                await self._app(scope, body.receive, unless_refused)
            finally:
                watcher.cancel()
                body.give_back()
        if body.refusal is not None:  # the app may have converted it into another error
            raise body.refusal
        if body.is_gone.is_set():
            raise ClientDisconnect


class _Body:
    """The body of one request, as it arrives."""

    def __init__(self, scope: Scope, receive: Receive, limits: Limits, memory: Budget | None) -> None:
        self._receive, self._limits, self._memory = receive, limits, memory
        self._headers = Headers(scope=scope)
        self._limit = limits.upload_bytes if memory is None else limits.body_bytes
        self._deadline = asyncio.get_running_loop().time() + limits.body_seconds
        self._n_bytes = self._n_taken = 0
        self._is_whole, self.is_gone = asyncio.Event(), asyncio.Event()
        self._is_first = True
        self.address = address_of(scope)
        self.is_answered = False
        self.refusal: Refusal | None = None
        if "content-length" not in self._headers and "transfer-encoding" not in self._headers:
            self._is_whole.set()

    def check_length(self) -> None:
        """Reject a body whose declared length is too large."""
        value = self._headers.get("content-length", "0")
        self._check(int(value) if value.isdecimal() else 0)

    def _check(self, n_bytes: int) -> None:
        if n_bytes > self._limit:
            raise Refusal(413, f"the body is too large; the limit is {self._limit:,} bytes.")

    async def receive(self) -> Message:
        """Return the next part; after the last one, wait until the client disconnects."""
        is_first, self._is_first = self._is_first, False
        if self._is_whole.is_set():
            if is_first:
                return {"type": "http.request", "body": b"", "more_body": False}
            await self.is_gone.wait()
            return {"type": "http.disconnect"}
        try:
            async with asyncio.timeout_at(self._deadline + self._n_bytes / self._limits.min_rate):
                message = await self._receive()
            self._count(message)
        except TimeoutError:
            self.refusal = Refusal(408, "the body was sent too slowly.", headers={"Connection": "close"})
        except Refusal as refusal:
            self.refusal = refusal
        if self.refusal is not None:
            raise self.refusal
        return message

    def _count(self, message: Message) -> None:
        if message["type"] == "http.disconnect":
            self.is_gone.set()
        n_bytes = len(message.get("body", b""))
        self._n_bytes += n_bytes
        if not message.get("more_body", False):
            self._is_whole.set()
        self._check(self._n_bytes)
        if self._memory is not None:
            self._memory.take(self.address, n_bytes)
            self._n_taken += n_bytes

    def give_back(self) -> None:
        """Release the memory of the body from the budget."""
        if self._memory is not None:
            self._memory.give_back(self.address, self._n_taken)

    async def watch(self, work: CancelScope) -> None:
        """Cancel the work if the client disconnects before the response."""
        await self._is_whole.wait()
        while not self.is_gone.is_set() and (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.is_answered:
            self.is_gone.set()
            work.cancel()

    async def skip_rest(self) -> None:
        """Read the rest of the body, for a while, unless the client waits for permission to send it."""
        is_late = self.refusal is not None and self.refusal.status == 408
        if is_late or "expect" in self._headers:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_SECONDS):
                while not self._is_whole.is_set() and self._n_bytes <= 3 * self._limit:
                    message = await self._receive()
                    self._n_bytes += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        self._is_whole.set()


def address_of(scope: Scope) -> str:
    """Return the address of a client; for IPv6 the network, because one client may own all of it."""
    return network_of(scope["client"][0] if scope.get("client") else "")


def network_of(address: str) -> str:
    """Return an IPv4 address unchanged, and the first half of an IPv6 address.

    Examples
    --------
    >>> network_of("192.0.2.1"), network_of("2001:db8::1:2"), network_of("::ffff:192.0.2.1")
    ('192.0.2.1', '2001:db8::', '192.0.2.1')

    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> 64 << 64))
