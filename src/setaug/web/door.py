"""The door of the server: who may ask, how much may be sent, and what browsers are told about each answer."""

import asyncio
import hmac
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setaug.orders.pictures import STYLE
from setaug.web.limits import Limits, Refusal

LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""What this machine is called in a request's ``Host``."""
_PICTURES = b64encode(sha256(STYLE.encode()).digest()).decode()
"""Pictures bring their own style; the page takes that one, and no other that is not in its own file."""
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{_PICTURES}'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Door:
    """Let in what may come in.

    With a key, each request to the API has to bring it. Without one, only this machine is served, and only where it was
    asked for by its own name: a page of another site could have a name of its own lead here.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits, key: str | None) -> None:
        self._app, self._limits, self._key = app, limits, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limits.upload_bytes if scope["path"] == "/api/datasets" else self._limits.body_bytes
        headers = Headers(scope=scope)
        body = _Body(receive, limit, self._limits.body_seconds)

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        async def unless_refused(message: Message) -> None:
            if body.refusal is None:
                await noted(message)

        try:
            self._check(scope["path"], headers)
            body.check(_declared(headers))
            await self._app(scope, body.receive, unless_refused)
        except Refusal as refusal:
            body.refusal = refusal
        if body.refusal is not None:
            if "expect" not in headers:  # who asks first has not sent anything
                await body.pour_away()
            await body.refusal.response()(scope, receive, noted)

    def _check(self, path: str, headers: Headers) -> None:
        if self._key is not None:
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if path.startswith("/api/") and not hmac.compare_digest(given.encode(), self._key.encode()):
                raise Refusal(401, "the API key is missing or wrong.")
            return
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in LOCAL and host not in LOCAL:
            raise Refusal(403, f"this server is not called {host!r}; without a key it answers to localhost only.")
        is_foreign = headers.get("sec-fetch-site") == "cross-site" and path != "/"
        if is_foreign or headers.get("origin", f"http://{host}") != f"http://{host}":
            raise Refusal(403, "requests from pages of other sites are not taken.")


class _Body:
    """Count what comes in, do not wait forever for it, and note what is to be said where it is too much."""

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive, self._limit, self._seconds = receive, limit, seconds
        self._n_bytes, self._is_whole = 0, False
        self.refusal: Refusal | None = None

    def check(self, n_bytes: int) -> None:
        if n_bytes > self._limit:
            raise Refusal(413, f"that is too large; at most {self._limit:,} bytes are taken.")

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout(None if self._is_whole else self._seconds):
                message = await self._receive()
            self._n_bytes += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
            self.check(self._n_bytes)
        except TimeoutError:
            self._is_whole = True  # no more is waited for
            self.refusal = Refusal(408, f"nothing came for {self._seconds:g} s.")
        except Refusal as refusal:
            self.refusal = refusal
        if self.refusal is not None:
            raise self.refusal  # the app may make another error of it
        return message

    async def pour_away(self) -> None:
        """Read what is still coming, for a while: many programs read an answer only when they have sent everything."""
        with suppress(TimeoutError):
            async with asyncio.timeout(10):
                while not self._is_whole and self._n_bytes <= 3 * self._limit:
                    message = await self._receive()
                    self._n_bytes += len(message.get("body", b""))
                    self._is_whole = not message.get("more_body", False)


def _declared(headers: Headers) -> int:
    value = headers.get("content-length", "0")
    return int(value) if value.isdecimal() else 0
