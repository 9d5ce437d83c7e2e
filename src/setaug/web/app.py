"""The server: the page, the API, and the limits of both."""

import mimetypes
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import asdict
from socket import socket
from typing import Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from setaug import __version__
from setaug.errors import SetAugError
from setaug.registry import ORDERINGS
from setaug.serving.completer import Completer, completes
from setaug.web.access import make_check
from setaug.web.batching import Predictor
from setaug.web.bodies import Bodies
from setaug.web.completions_api import CompletionsApi
from setaug.web.connections import Connections
from setaug.web.data.api import PAGE_FORMATS, DataApi, about
from setaug.web.data.datasets import Dataset, Datasets
from setaug.web.data.questions import folder_size
from setaug.web.limits import Limits, Refusal
from setaug.web.model_api import ModelApi
from setaug.web.monitoring import Metrics, Monitor
from setaug.web.schemas import Health, Status, problems


def make_app(
    *,
    datasets: Datasets,
    limits: Limits,
    data: Dataset | None = None,
    model: Any = None,
    model_name: str = "",
    key: str | None = None,
    proxies: Collection[str] = (),
) -> FastAPI:
    """Make the server.

    Parameters
    ----------
    data
        The dataset that the page starts with.
    model, model_name
        A trained model to predict with; without it, everything else works.
    key
        Where given, each request to the API has to bring it: ``Authorization: Bearer KEY``.
    proxies
        Addresses of reverse proxies, whose connections are not counted by address.

    """
    asked = Completer(model) if completes(model) else model
    predictor = None if model is None else Predictor(asked, limits)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        if predictor is not None:
            predictor.start()
        yield
        if predictor is not None:
            await predictor.stop()
        datasets.close()

    async def health() -> dict[str, Any]:
        """Return the state of the server, the dataset that the page starts with, and the model."""
        return {
            "status": "ok" if predictor is None or predictor.problem() is None else "failing",
            "version": __version__,
            "model": None if model is None else {"name": model_name, "kind": model.kind},
            "dataset": None if data is None else about(data),
            "limits": asdict(limits),
            "choices": {"ordering": list(ORDERINGS), "format": list(PAGE_FORMATS)},
        }

    async def live() -> dict[str, str]:
        """Liveness probe: 200 if the server runs."""
        return {"status": "ok"}

    async def ready() -> dict[str, str]:
        """Readiness probe: 200 if the server can predict, 503 if the model has died or hangs."""
        if predictor is not None and (problem := predictor.problem()) is not None:
            raise Refusal(503, problem)
        return {"status": "ok"}

    described = [] if key is None else [Depends(HTTPBearer(auto_error=False))]  # `make_check` checks the key
    api = APIRouter(prefix="/api", dependencies=described)
    api.add_api_route("/health", health, response_model=Health, responses=problems())
    api.add_api_route("/health/live", live, response_model=Status, responses=problems())
    api.add_api_route("/health/ready", ready, response_model=Status, responses=problems(503))
    data_api = DataApi(datasets, limits)
    api.include_router(data_api.router())
    api.include_router(ModelApi(predictor, limits).router())
    app = FastAPI(title="setaug", version=__version__, lifespan=running, docs_url=None, redoc_url=None)
    app.state.connections = Connections(limits, proxies)
    app.state.predictor, app.state.workers = predictor, datasets.workers
    app.include_router(api)
    if predictor is not None and completes(model):
        app.include_router(CompletionsApi(predictor, model_name, limits).router(), dependencies=described)
    metrics = _metrics(app, datasets, data_api)
    app.add_api_route("/metrics", metrics.response, include_in_schema=False)
    mimetypes.add_type("text/javascript", ".js")  # some systems register another type
    app.mount("/", StaticFiles(packages=[("setaug.web", "page")], html=True))
    app.add_middleware(Bodies, limits=limits, check=make_check(key))
    app.add_middleware(Monitor, metrics=metrics)
    _refuse_in_json(app)
    return app


def _metrics(app: FastAPI, datasets: Datasets, data_api: DataApi) -> Metrics:
    metrics, connections = Metrics(), app.state.connections
    metrics.gauge("connections", "Open connections", lambda: len(connections))
    metrics.gauge("connections_refused", "Connections rejected so far", lambda: connections.n_refused)
    metrics.gauge("connections_cut", "Slow or idle connections closed so far", lambda: connections.n_cut)
    metrics.gauge("datasets", "Stored datasets", lambda: len(datasets))
    metrics.gauge("disk_bytes", "Bytes of uploads and downloads on disk", lambda: folder_size(datasets.folder))
    metrics.gauge("computing", "Running and queued dataset requests", lambda: data_api.n_waiting)
    metrics.gauge("data_memory_bytes", "Memory of the dataset processes", datasets.workers.memory)
    metrics.gauge("downloads", "Downloads in progress", lambda: data_api.downloads.taken)
    predictor: Predictor | None = app.state.predictor
    if predictor is not None:
        metrics.gauge("texts_waiting", "Texts queued for the model", lambda: predictor.n_waiting)
        metrics.gauge("batches", "Batches predicted so far", lambda: predictor.batches.total())
        metrics.gauge("batch_texts", "Texts predicted so far", lambda: sum(predictor.batches.elements()))
        metrics.gauge("model_failures", "Model failures so far", lambda: predictor.n_failures)
        metrics.gauge("ready", "1 if the model can predict", lambda: predictor.problem() is None)
    return metrics


def make_config(app: FastAPI, *, proxies: Collection[str] = ()) -> uvicorn.Config:
    """Return the settings of the server: connection limits and trusted proxies."""
    return uvicorn.Config(
        app,
        http=app.state.connections.protocol(),
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=3,
    )


def run_app(app: FastAPI, place: socket, *, proxies: Collection[str] = ()) -> None:
    """Serve on a listening socket, until interrupted."""
    app.state.workers.small.start()  # so that the first dataset does not wait for it
    uvicorn.Server(make_config(app, proxies=proxies)).run(sockets=[place])


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _refuse_in_json(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refuse(request: Request, refusal: Refusal) -> Response:
        return refusal.response()

    @app.exception_handler(RequestValidationError)
    async def complain(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["loc"] == ("body",) and not _is_json(request):
            return Refusal(
                415, "send JSON, with the header Content-Type: application/json (curl: --json, or -H)."
            ).response()
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return Refusal(422, f"{where}: {first['msg']}" if where else str(first["msg"])).response()

    @app.exception_handler(SetAugError)
    async def explain(request: Request, error: SetAugError) -> Response:
        return Refusal(400, str(error)).response()

    @app.exception_handler(HTTPException)
    async def decline(request: Request, error: HTTPException) -> Response:
        response = Refusal(error.status_code, f"{error.detail}.").response()
        response.headers.update(error.headers or {})
        return response
