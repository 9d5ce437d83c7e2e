"""The server: the page, the API, and what keeps both within bounds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from importlib.resources import files
from socket import socket
from typing import Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from setaug import __version__
from setaug.errors import SetAugError
from setaug.web.answers import Health, problems
from setaug.web.batching import Predictor
from setaug.web.data_api import DataApi, about
from setaug.web.datasets import Dataset, Datasets
from setaug.web.door import Door
from setaug.web.limits import Limits, Refusal
from setaug.web.model_api import ModelApi

_PAGE = {"index.html": "text/html", "app.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml"}
_CONNECTIONS = 500
"""So many may be open at once: fewer than the files that a process may usually open."""


def make_app(
    *,
    datasets: Datasets,
    limits: Limits,
    data: Dataset | None = None,
    model: Any = None,
    model_name: str = "",
    key: str | None = None,
) -> FastAPI:
    """Make the server.

    Parameters
    ----------
    data
        The data set that the page starts with.
    model, model_name
        A trained model to predict with; without it, everything else works.
    key
        Where given, each request to the API has to bring it: ``Authorization: Bearer KEY``.

    """
    predictor = None if model is None else Predictor(model, limits)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        worker = None if predictor is None else asyncio.create_task(predictor.run())
        yield
        if worker is not None:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker

    async def health() -> dict[str, Any]:
        """Say that all is well, what there is to start with, and which model predicts."""
        return {
            "status": "ok",
            "version": __version__,
            "model": None if model is None else {"name": model_name, "kind": model.kind},
            "dataset": None if data is None else about(data),
            "limits": asdict(limits),
        }

    described = [] if key is None else [Depends(HTTPBearer(auto_error=False))]  # the door is what checks it
    api = APIRouter(prefix="/api", dependencies=described)
    api.add_api_route("/health", health, response_model=Health, responses=problems())
    api.include_router(DataApi(datasets, limits).router())
    api.include_router(ModelApi(predictor, limits).router())
    app = FastAPI(title="setaug", version=__version__, lifespan=running, docs_url=None, redoc_url=None)
    app.include_router(api)
    app.include_router(_page())
    app.add_middleware(Door, limits=limits, key=key)
    _say_no_in_json(app)
    return app


def run_app(app: FastAPI, place: socket) -> None:
    """Serve at a socket that listens, until interrupted."""
    config = uvicorn.Config(
        app, log_level="warning", server_header=False, limit_concurrency=_CONNECTIONS, timeout_graceful_shutdown=3
    )
    uvicorn.Server(config).run(sockets=[place])


def _page() -> APIRouter:
    router = APIRouter(include_in_schema=False)
    folder = files("setaug.web") / "page"

    async def part(name: str = "index.html") -> Response:
        if name not in _PAGE:  # a name that is not in the list never becomes a path
            raise Refusal(404, "there is no such page.")
        return Response((folder / name).read_bytes(), media_type=_PAGE[name])

    router.add_api_route("/", part)
    router.add_api_route("/{name}", part)
    return router


def _say_no_in_json(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refuse(request: Request, refusal: Refusal) -> Response:
        return refusal.response()

    @app.exception_handler(RequestValidationError)
    async def complain(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return Refusal(422, f"{where}: {first['msg']}" if where else str(first["msg"])).response()

    @app.exception_handler(ValueError)
    async def object_to(request: Request, error: ValueError) -> Response:
        return Refusal(422, str(error)).response()

    @app.exception_handler(SetAugError)
    async def explain(request: Request, error: SetAugError) -> Response:
        return Refusal(400, str(error)).response()

    @app.exception_handler(HTTPException)
    async def decline(request: Request, error: HTTPException) -> Response:
        response = Refusal(error.status_code, f"{error.detail}.").response()
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def fail(request: Request, error: Exception) -> Response:
        return Refusal(500, f"the server failed: {type(error).__name__}.").response()
