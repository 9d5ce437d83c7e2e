"""The API of datasets: statistics, the label graph, orders of a set, examples, training pairs."""

import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from anyio import open_file, to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.types import Message, Receive, Scope, Send

from setaug import registry
from setaug.augmenter import PairFormat, SetAugmenter
from setaug.errors import DataError, FileError
from setaug.examples import Columns, check_labels
from setaug.orders.edges import Thresholds
from setaug.web.bodies import address_of
from setaug.web.data import questions
from setaug.web.data.datasets import KINDS, Dataset, Datasets
from setaug.web.data.processes import Worker
from setaug.web.data.questions import Source, TooLarge
from setaug.web.limits import Budget, Gate, Limits, Refusal
from setaug.web.schemas import About, Examples, Graph, Labels, Orders, Statistics, Text, Typed, problems

Label = Annotated[Text, Field(min_length=1, max_length=1000)]
Name = Annotated[str, Query(min_length=1, max_length=200)]
MinPmi = Annotated[float, Query(ge=-64, le=64, description="alpha: labels are dependent above this pmi, in bits")]
MinRatio = Annotated[
    float, Query(ge=1, le=1e6, description="2**beta: the other label must be more than this many times as frequent")
]
Seed = Annotated[int, Query(ge=0, lt=2**62)]


def _one_of(what: str, choices: Collection[str]) -> AfterValidator:
    def check(name: str) -> str:
        registry.check_choice(what, name, choices)
        return name

    return AfterValidator(check)


PAGE_FORMATS = tuple(name for name in registry.PAIR_FORMATS if name != "columns")
FormatName = Annotated[str, _one_of("format", PAGE_FORMATS), Query(json_schema_extra={"enum": list(PAGE_FORMATS)})]
OrderingName = Annotated[
    str,
    _one_of("ordering", registry.ORDERINGS),
    Query(
        description=registry.describe(registry.ORDERINGS, default=registry.DEFAULT_ORDERING),
        json_schema_extra={"enum": list(registry.ORDERINGS)},
    ),
]
FormName = Annotated[
    str,
    _one_of("written_as", registry.FORMS),
    Field(
        description=registry.describe(registry.FORMS, default=registry.DEFAULT_FORM),
        json_schema_extra={"enum": list(registry.FORMS)},
    ),
]


class OrdersQuestion(BaseModel):
    """A set, and the number of orders to sample."""

    model_config = ConfigDict(extra="forbid", strict=True)
    labels: Annotated[list[Label], Field(min_length=1, max_length=64)]
    min_pmi: float = Field(registry.DEFAULT_MIN_PMI, ge=-64, le=64)
    min_ratio: float = Field(registry.DEFAULT_MIN_RATIO, ge=1, le=1e6)
    n: int = Field(5, ge=0, le=50, description="number of orders to sample")
    seed: int = Field(0, ge=0, lt=2**62)
    size: bool = Field(True, description="whether to write the size first")
    written_as: FormName = registry.DEFAULT_FORM


class DataApi:
    """The endpoints for datasets."""

    def __init__(self, datasets: Datasets, limits: Limits) -> None:
        self._datasets, self._limits = datasets, limits
        workers = self._workers = datasets.workers
        self._gates = {one: Gate(limits) for one in (workers.small, workers.large, workers.slow)}
        self.downloads = Budget(limits.downloads, limits.share(limits.downloads, 4))

    @property
    def n_waiting(self) -> int:
        """The number of running and queued requests."""
        return sum(gate.waiting for gate in self._gates.values())

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        taken: dict[str, Any] = {"methods": ["POST"], "status_code": 201, "response_model": About}
        upload = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
        about_body = {"requestBody": {"required": True, **upload}}
        router.add_api_route("/datasets", self.upload, **taken, responses=problems(400, 503), openapi_extra=about_body)
        router.add_api_route("/sample", self.sample, **taken, responses=problems(503))
        for handler, answer in (
            (self.statistics, Statistics),
            (self.labels, Labels),
            (self.typed, Typed),
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
        """Upload a file of examples, as the raw body."""
        columns = Columns(text=text_field, labels=labels_field, delimiter=delimiter)
        source = Source(self._datasets.new_path(), name, kind or _kind(name), columns)
        try:
            await self._save(request, source.path)
            dataset = await self._read(request, source)
        except BaseException:
            source.path.unlink(missing_ok=True)
            raise
        self._datasets.hold(dataset)
        return about(dataset)

    async def _save(self, request: Request, path: Path) -> None:
        """Write a body to disk as it arrives."""
        n_open = 0  # bytes of the line that has not ended yet
        async with await open_file(path, "xb") as stream:
            async for chunk in request.stream():
                lines = chunk.split(b"\n")
                if max(n_open + len(lines[0]), *map(len, lines)) > self._limits.line_bytes:
                    raise Refusal(413, f"a line is too long; the limit is {self._limits.line_bytes:,} bytes.")
                n_open = len(lines[-1]) + (n_open if len(lines) == 1 else 0)
                await stream.write(chunk)

    async def _read(self, request: Request, source: Source) -> Dataset:
        """Read a file in the process for small datasets, or in the one for large ones."""
        n_bytes, small = source.path.stat().st_size, self._limits.small_bytes
        if n_bytes <= small:
            try:
                found = await self._run(request, self._workers.small, questions.read, source, self._limits, small)
                return Dataset(source, n_bytes, **found, is_large=False)
            except TooLarge:
                pass
        found = await self._run(request, self._workers.large, questions.read, source, self._limits)
        return Dataset(source, n_bytes, **found, is_large=True)

    async def _run(self, request: Request, worker: Worker, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a process, once this client has its turn."""
        async with self._gates[worker].turn(address_of(request.scope)):
            return await worker.run(function, *arguments)

    async def _ask(
        self, request: Request, dataset: Dataset, function: Callable[..., Any], *arguments: Any, slow: bool = False
    ) -> Any:
        """Query a dataset, in the process that has read it or in the one for slow queries."""
        worker = self._workers.slow if slow else self._workers.of(dataset)
        try:
            return await self._run(request, worker, function, dataset.source, *arguments)
        except (FileError, FileNotFoundError):
            if dataset.source.path.exists():
                raise
            raise Refusal(404, "this dataset was evicted to make room for others.") from None

    async def sample(self, request: Request) -> dict[str, Any]:
        """Load the built-in sample."""
        async with self._gates[self._workers.small].turn(address_of(request.scope)):
            return about(await to_thread.run_sync(self._datasets.sample))

    async def statistics(
        self,
        request: Request,
        key: str,
        min_pmi: MinPmi = registry.DEFAULT_MIN_PMI,
        min_ratio: MinRatio = registry.DEFAULT_MIN_RATIO,
        diagnosis: bool = True,
    ) -> Response:
        """Return what ``setaug inspect --json`` prints."""
        dataset, thresholds = self._datasets.get(key), Thresholds(min_pmi=min_pmi, min_ratio=min_ratio)
        return _reply(await self._ask(request, dataset, questions.statistics, thresholds, diagnosis, slow=diagnosis))

    async def labels(
        self,
        request: Request,
        key: str,
        search: Annotated[str, Query(max_length=1000)] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Response:
        """Find labels: an exact match first, then the most frequent."""
        return _reply(await self._ask(request, self._datasets.get(key), questions.labels, search, limit))

    async def typed(self, request: Request, key: str, text: Annotated[str, Query(max_length=10_000)] = "") -> Response:
        """Return the labels of a comma-separated text; a known label may itself contain commas."""
        return _reply(await self._ask(request, self._datasets.get(key), questions.typed, text))

    async def graph(
        self,
        request: Request,
        key: str,
        min_pmi: MinPmi = registry.DEFAULT_MIN_PMI,
        min_ratio: MinRatio = registry.DEFAULT_MIN_RATIO,
        around: Annotated[str | None, Query(max_length=1000)] = None,
        top: Annotated[int, Query(ge=2, le=100)] = 30,
    ) -> Response:
        """Return the strongest edges of the label graph, or the neighbourhood of a label, also as an SVG image."""
        dataset, thresholds = self._datasets.get(key), Thresholds(min_pmi=min_pmi, min_ratio=min_ratio)
        return _reply(await self._ask(request, dataset, questions.graph, thresholds, around, top))

    async def examples(
        self,
        request: Request,
        key: str,
        label: Annotated[str | None, Query(max_length=1000)] = None,
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> Response:
        """Return examples, all of them or those with a label, paginated."""
        return _reply(await self._ask(request, self._datasets.get(key), questions.examples, label, offset, limit))

    async def orders(self, request: Request, key: str, question: OrdersQuestion) -> Response:
        """Return the order graph of a set, the exact number of its orders, and some of them, also as training text."""
        dataset = self._datasets.get(key)
        try:
            check_labels(question.labels, "labels")
        except DataError as error:
            raise Refusal(422, str(error)) from None
        thresholds = Thresholds(min_pmi=question.min_pmi, min_ratio=question.min_ratio)
        writer = SetAugmenter(with_size=question.size, written_as=question.written_as)
        return _reply(
            await self._ask(
                request, dataset, questions.orders, question.labels, thresholds, writer, question.n, question.seed
            )
        )

    async def augment(
        self,
        request: Request,
        key: str,
        min_pmi: MinPmi = registry.DEFAULT_MIN_PMI,
        min_ratio: MinRatio = registry.DEFAULT_MIN_RATIO,
        orders: Annotated[int, Query(ge=0, le=20, description="orders to add per example")] = registry.DEFAULT_N_ORDERS,
        ordering: OrderingName = registry.DEFAULT_ORDERING,
        size: bool = True,
        written_as: FormName = registry.DEFAULT_FORM,
        seed: Seed = 0,
        format: FormatName = registry.DEFAULT_PAIR_FORMAT,  # noqa: A002
    ) -> Response:
        """Return the training pairs, byte-identical to the output of ``setaug augment``."""
        dataset = self._datasets.get(key)
        augmenter = SetAugmenter(
            n_orders=orders,
            ordering=ordering,
            min_pmi=min_pmi,
            min_ratio=min_ratio,
            with_size=size,
            written_as=written_as,
            random_state=seed,
        )
        download = _Download(self._datasets.new_path(), self.downloads, address_of(request.scope))
        try:
            pair_format, most = PairFormat.named(format), self._limits.download_bytes
            await self._ask(request, dataset, questions.augment, Path(download.path), augmenter, pair_format, most)
        except BaseException:
            download.end()
            raise
        return download


class _Download(FileResponse):
    """A temporary file and its download slot; both are released when it was sent or the client has disconnected."""

    def __init__(self, folder: Path, slots: Budget, address: str) -> None:
        super().__init__(folder / "pairs.jsonl", media_type="application/x-ndjson", filename="pairs.jsonl")
        slots.take(address)
        self._folder, self._slots, self._address, self._is_held = folder, slots, address, True

    def end(self) -> None:
        self._give_back()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _give_back(self) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.give_back(self._address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_part(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._give_back()  # before the client has it all, and may ask for the next one
            await send(message)

        try:
            await super().__call__(scope, receive, send_part)
        finally:
            self.end()


def about(dataset: Dataset) -> dict[str, Any]:
    """Return the description of a dataset."""
    source, columns = dataset.source, dataset.source.columns
    fields = {"text-field": columns.text, "labels-field": columns.labels, "delimiter": columns.delimiter}
    joined = None if dataset.joined is None else dict(zip(("label", "separator"), dataset.joined, strict=True))
    counted = {"n_examples": dataset.n_examples, "joined": joined}
    return {"id": dataset.key, "name": source.name, "kind": source.kind, "fields": fields, **counted}


def _kind(name: str) -> str:
    suffix = name.rpartition(".")[2].lower()
    kind = {"ndjson": "jsonl", "json": "jsonl"}.get(suffix, suffix)
    if kind not in KINDS:
        raise Refusal(422, f"{name}: expected a file that ends with {', '.join(f'.{one}' for one in KINDS)}.")
    return kind


def _reply(content: bytes) -> Response:
    return Response(content, media_type="application/json")
