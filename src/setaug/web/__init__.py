"""A server with a page to look at label sets and to try a model, and a small JSON API behind it."""

from importlib.util import find_spec

from setaug.errors import MissingExtraError

if not all(find_spec(name) for name in ("fastapi", "prometheus_client", "uvicorn")):
    raise MissingExtraError("Serving", "serve")

from setaug.web.app import make_app, run_app
from setaug.web.limits import Limits

__all__ = ["Limits", "make_app", "run_app"]
