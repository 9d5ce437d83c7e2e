"""One log line per request, an id per internal error, and Prometheus metrics."""

import logging
import sys
import time
from collections.abc import Callable
from secrets import token_hex
from typing import Literal

import orjson
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setaug.web.access import HEADERS
from setaug.web.limits import Refusal

LOG = logging.getLogger("setaug.web")
_METHODS = frozenset({"GET", "POST"})
CLIENT_LEFT = 499
"""The status in logs and metrics of a request whose client disconnected before the response."""


class Metrics:
    """The metrics of the server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "setaug_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram("setaug_request_seconds", "Time to answer", ["route"], registry=self.registry)

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Add a metric whose value is computed on each scrape."""
        Gauge(f"setaug_{name}", meaning, registry=self.registry).set_function(value)

    def response(self) -> Response:
        """Return all metrics as text."""
        return Response(generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


class Monitor:
    """Log and count requests; convert exceptions into responses with the id under which they are logged."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; ``HEAD`` as ``GET``, for which the server sends only the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, key, status, n_bytes = time.perf_counter(), token_hex(8), 0, 0

        async def noted(message: Message) -> None:
            nonlocal status, n_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS | {"X-Request-Id": key})
            n_bytes += len(message.get("body", b""))
            await send(message)

        inner = {**scope, "method": "GET" if scope["method"] == "HEAD" else scope["method"]}
        try:
            await self._app(inner, receive, noted)
        except ClientDisconnect:
            status = CLIENT_LEFT
        except Exception as error:
            LOG.error("the server failed", exc_info=error, extra={"id": key})
            if not status:  # otherwise the response has started, and the connection is closed
                refusal = Refusal(500, f"the server failed: {type(error).__name__}.", id=key)
                await refusal.response()(scope, receive, noted)
        finally:
            self._note(inner, status or CLIENT_LEFT, n_bytes, time.perf_counter() - start, key)

    def _note(self, scope: Scope, status: int, n_bytes: int, seconds: float, key: str) -> None:
        route = getattr(scope.get("endpoint"), "__name__", "other")  # never text from a client
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        told = {
            "address": scope["client"][0] if scope.get("client") else "-",
            "method": scope["method"],
            "path": scope.get("raw_path", b"").decode("ascii", "backslashreplace"),
            "status": status,
            "bytes": n_bytes,
            "seconds": round(seconds, 4),
            "id": key,
        }
        LOG.info("%(address)s %(method)s %(path)s %(status)s %(bytes)s bytes %(seconds)s s", told, extra=told)


class _Json(logging.Formatter):
    """Log records as JSON lines."""

    _FIELDS = ("address", "method", "path", "status", "bytes", "seconds", "id")

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        told = {name: getattr(record, name) for name in self._FIELDS if hasattr(record, name)}
        message = {} if "path" in told else {"message": record.getMessage()}
        failed = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        when = {"time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"), "level": record.levelname.lower()}
        return orjson.dumps(when | message | told | failed, default=str).decode()


class _Text(logging.Formatter):
    """Log records as lines of text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and the traceback of a failure."""
        key = getattr(record, "id", "")
        record.shown_id = f" [{key}]" if key else ""
        return super().format(record)


def log_to_stderr(style: Literal["text", "json"]) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    text = _Text("%(asctime)s %(levelname)s %(message)s%(shown_id)s")
    handler.setFormatter(_Json() if style == "json" else text)
    for logger in (LOG, logging.getLogger("uvicorn.error")):
        logger.handlers, logger.propagate = [handler], False
    LOG.setLevel(logging.INFO)
