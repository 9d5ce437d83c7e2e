"""Access control, and the security headers of each response."""

import hmac
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256

from starlette.datastructures import Headers
from starlette.types import Scope

from setaug.reporting.style import GRAPH
from setaug.web.limits import Refusal

LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names of the local machine in a request's ``Host``."""
_PICTURES = b64encode(sha256(GRAPH.encode()).digest()).decode()
"""SVG images have an inline style, which is allowed by its hash; all other styles must be in the style sheet."""
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{_PICTURES}'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every response."""


def make_check(key: str | None) -> Callable[[Scope], None]:
    """Return a function that raises a `Refusal` for requests that are not allowed.

    With a key, each request to the API has to bring it. Without one, only this machine is served, and only under its
    own names: a page of another site could have its own name resolve to this machine.
    """

    def check(scope: Scope) -> None:
        headers = Headers(scope=scope)
        if key is None:
            _check_host(scope["path"], headers)
        elif scope["path"].startswith(("/api/", "/v1/", "/metrics")):
            _check_key(key, headers)

    return check


def _check_key(key: str, headers: Headers) -> None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), key.encode()):
        raise Refusal(401, "the API key is missing or wrong.", headers={"WWW-Authenticate": "Bearer"})


def _check_host(path: str, headers: Headers) -> None:
    host = headers.get("host", "")
    if host.rpartition(":")[0] not in LOCAL and host not in LOCAL:
        raise Refusal(403, f"invalid host {host!r}; without a key, only localhost is allowed.")
    is_foreign = headers.get("sec-fetch-site") == "cross-site" and path != "/"
    if is_foreign or headers.get("origin", f"http://{host}") != f"http://{host}":
        raise Refusal(403, "cross-site requests are not allowed.")
