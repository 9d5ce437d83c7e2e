"""What can be asked about a data set: statistics, the label graph, orders of a set, examples, training pairs."""

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from anyio import open_file
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines import augment_files
from setaug.examples import Columns
from setaug.orders.edges import Thresholds
from setaug.orders.graph import OrderGraph
from setaug.web.answers import About, Examples, Graph, Labels, Orders, Statistics, problems
from setaug.web.datasets import KINDS, Dataset, Datasets
from setaug.web.limits import Limits, Refusal, make_gate, too_busy
from setaug.web.replies import reply

Label = Annotated[str, Field(min_length=1, max_length=1000)]
Name = Annotated[str, Query(min_length=1, max_length=200)]
MinPmi = Annotated[float, Query(ge=-64, le=64, description="alpha: labels depend on each other above so many bits")]
MinRatio = Annotated[
    float, Query(ge=1, le=1e6, description="2**beta: the other label is more than so often as frequent")
]
Seed = Annotated[int, Query(ge=0, lt=2**62)]


class OrdersQuestion(BaseModel):
    """Ask which orders a set allows."""

    model_config = ConfigDict(extra="forbid")
    labels: Annotated[list[Label], Field(min_length=1, max_length=64)]
    min_pmi: float = Field(1.0, ge=-64, le=64)
    min_ratio: float = Field(3.0, ge=1, le=1e6)
    n: int = Field(5, ge=0, le=50, description="how many orders to draw")
    seed: int = Field(0, ge=0, lt=2**62)
    size: bool = Field(True, description="whether the size stands in front of the labels as they are written")


class DataApi:
    """Answer questions about data sets."""

    def __init__(self, datasets: Datasets, limits: Limits) -> None:
        self._datasets = datasets
        self._gate = make_gate(limits.computing, limits.waiting)
        self._slow_gate = make_gate(1, limits.waiting)  # so that quick answers never wait for slow ones
        self._n_downloads, self._max_downloads = 0, limits.downloads

    def router(self) -> APIRouter:
        """Give the routes."""
        router = APIRouter()
        taken: dict[str, Any] = {"methods": ["POST"], "status_code": 201, "response_model": About}
        upload = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
        about_body = {"requestBody": {"required": True, **upload}}
        router.add_api_route("/datasets", self.upload, **taken, responses=problems(400, 503), openapi_extra=about_body)
        router.add_api_route("/sample", self.sample, **taken, responses=problems(503))
        for handler, answer in (
            (self.statistics, Statistics),
            (self.labels, Labels),
            (self.graph, Graph),
            (self.examples, Examples),
        ):
            path = f"/datasets/{{key}}/{handler.__name__}"
            router.add_api_route(path, handler, response_model=answer, responses=problems(404, 503))
        router.add_api_route(
            "/datasets/{key}/orders",
            self.orders,
            methods=["POST"],
            response_model=Orders,
            responses=problems(400, 404, 503),
        )
        lines: dict[int | str, dict[str, Any]] = {
            200: {"content": {"application/x-ndjson": {}}, "description": "JSON lines"}
        }
        router.add_api_route(
            "/datasets/{key}/augment", self.augment, response_class=Response, responses=lines | problems(404, 503)
        )
        return router

    async def upload(
        self,
        request: Request,
        name: Name = "data.jsonl",
        kind: Literal["jsonl", "csv", "tsv"] | None = None,
        text_field: Name = "text",
        labels_field: Name = "labels",
        delimiter: Annotated[str, Query(min_length=1, max_length=10)] = ";",
    ) -> dict[str, Any]:
        """Take a file of examples: the body, as it is."""
        content = await request.body()
        chosen = kind or _kind(name)
        columns = Columns(text=text_field, labels=labels_field, delimiter=delimiter)
        return about(await self._gate(lambda: self._datasets.add(content, name=name, kind=chosen, columns=columns)))

    async def sample(self) -> dict[str, Any]:
        """Take the built-in sample."""
        return about(await self._gate(self._datasets.add_sample))

    async def statistics(
        self, key: str, min_pmi: MinPmi = 1.0, min_ratio: MinRatio = 3.0, diagnosis: bool = True
    ) -> Response:
        """Give what ``setaug inspect --json`` gives."""
        dataset, thresholds = self._datasets.get(key), Thresholds(min_pmi=min_pmi, min_ratio=min_ratio)
        gate = self._slow_gate if diagnosis else self._gate
        found = await gate(lambda: dataset.inspect(thresholds, with_diagnosis=diagnosis))
        return reply(found.to_dict())

    async def labels(
        self,
        key: str,
        search: Annotated[str, Query(max_length=1000)] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Response:
        """Find labels: the one that is named first, then the most frequent."""
        dataset, wanted = self._datasets.get(key), search.casefold()

        def find() -> dict[str, Any]:
            hits = [(label, n) for label, n in dataset.frequent_labels if wanted in label.casefold()]
            hits.sort(key=lambda pair: pair[0].casefold() != wanted)
            return {"n": len(hits), "labels": [{"label": label, "count": n} for label, n in hits[:limit]]}

        return reply(await self._gate(find))

    async def graph(
        self,
        key: str,
        min_pmi: MinPmi = 1.0,
        min_ratio: MinRatio = 3.0,
        around: Annotated[str | None, Query(max_length=1000)] = None,
        top: Annotated[int, Query(ge=2, le=100)] = 30,
    ) -> Response:
        """Give the strongest edges of the label graph, or what is around one label, also as a picture."""
        dataset, thresholds = self._datasets.get(key), Thresholds(min_pmi=min_pmi, min_ratio=min_ratio)

        def draw() -> dict[str, Any]:
            if around is None:
                return _drawn(OrderGraph.of_space(dataset.statistics, thresholds, top=top))
            if not dataset.statistics.count(around):
                raise Refusal(404, f"no set holds the label {around!r}.")
            return _drawn(OrderGraph.around(around, dataset.statistics, thresholds, top=top))

        return reply(await self._gate(draw))

    async def examples(
        self,
        key: str,
        label: Annotated[str | None, Query(max_length=1000)] = None,
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> Response:
        """Give examples, all of them or those with a label, a page at a time."""
        dataset = self._datasets.get(key)

        def find() -> dict[str, Any]:
            chosen = [at for at, one in enumerate(dataset.examples) if label is None or label in one.labels]
            page = [(at, dataset.examples[at]) for at in chosen[offset : offset + limit]]
            rows = [{"index": at, "text": one.text[:2000], "labels": one.labels} for at, one in page]
            return {"n": len(chosen), "examples": rows}

        return reply(await self._gate(find))

    async def orders(self, key: str, question: OrdersQuestion) -> Response:
        """Give the order graph of a set, the exact number of its orders, and some of them, also as training text."""
        dataset = self._datasets.get(key)
        thresholds = Thresholds(min_pmi=question.min_pmi, min_ratio=question.min_ratio)

        def answer() -> dict[str, Any]:
            graph = OrderGraph.of_set(question.labels, dataset.statistics, thresholds)
            n_drawn = question.n if graph.n_orders is None else min(question.n, graph.n_orders)
            drawn = graph.draw(n_drawn, seed=question.seed, distinct=True)
            codec = SetAugmenter(size=question.size).codec
            counted = {"n_orders": None if graph.n_orders is None else str(graph.n_orders)}
            written = [codec.encode(order) for order in drawn]
            return {
                **_drawn(graph),
                **counted,
                "log2_orders": graph.log2_orders,
                "orders": drawn,
                "completions": written,
            }

        return reply(await self._gate(answer))

    async def augment(
        self,
        key: str,
        min_pmi: MinPmi = 1.0,
        min_ratio: MinRatio = 3.0,
        orders: Annotated[int, Query(ge=0, le=20, description="orders to add per example")] = 2,
        ordering: Literal["topological", "reversed", "random", "frequency", "given"] = "topological",
        size: bool = True,
        seed: Seed = 0,
        format: Literal["prompt-completion", "chat", "chat-prompt-completion"] = "prompt-completion",  # noqa: A002
    ) -> Response:
        """Give the training pairs, byte for byte what ``setaug augment`` writes."""
        dataset = self._datasets.get(key)
        augmenter = SetAugmenter(
            n_orders=orders, ordering=ordering, min_pmi=min_pmi, min_ratio=min_ratio, size=size, random_state=seed
        )
        if self._n_downloads >= self._max_downloads:
            raise too_busy()
        self._n_downloads += 1
        try:
            path = await self._gate(lambda: _augmented(dataset, augmenter, PairFormat.named(format)))
        except BaseException:
            self._n_downloads -= 1
            raise
        headers = {"Content-Disposition": 'attachment; filename="pairs.jsonl"'}
        headers["Content-Length"] = str(path.stat().st_size)
        return _Download(path, self._end_download, headers)

    def _end_download(self) -> None:
        self._n_downloads -= 1


class _Download(StreamingResponse):
    """Send a file, and remove it, also where nobody waits for it any more."""

    def __init__(self, path: Path, end: Callable[[], None], headers: dict[str, str]) -> None:
        super().__init__(_chunks(path), media_type="application/x-ndjson", headers=headers)
        self._path, self._end = path, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()
            self._path.unlink(missing_ok=True)


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    async with await open_file(path, "rb") as stream:
        while chunk := await stream.read(1 << 16):
            yield chunk


def about(dataset: Dataset) -> dict[str, Any]:
    """Say which data set it is."""
    columns = dataset.columns
    fields = {"text-field": columns.text, "labels-field": columns.labels, "delimiter": columns.delimiter}
    return {"id": dataset.key, "name": dataset.name, "n_examples": len(dataset.examples), "fields": fields}


def _kind(name: str) -> str:
    suffix = name.rpartition(".")[2].lower()
    kind = {"ndjson": "jsonl", "json": "jsonl"}.get(suffix, suffix)
    if kind not in KINDS:
        raise Refusal(422, f"{name}: expected a file that ends with {', '.join(f'.{one}' for one in KINDS)}.")
    return kind


def _drawn(graph: OrderGraph) -> dict[str, Any]:
    return {"labels": graph.labels, "edges": [asdict(edge) for edge in graph.edges], "svg": graph.to_svg()}


def _augmented(dataset: Dataset, augmenter: SetAugmenter, pair_format: PairFormat) -> Path:
    """Write pairs to a file of our own, beside the data set."""
    handle, name = tempfile.mkstemp(suffix=".jsonl", dir=dataset.path.parent)
    os.close(handle)
    path = Path(name)
    try:
        augment_files(
            dataset.path, path, augmenter, columns=dataset.columns, kind=dataset.kind, pair_format=pair_format
        )
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path
