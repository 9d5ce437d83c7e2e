"""The API of data sets: statistics, the label graph, orders of a set, examples, training pairs."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from anyio import from_thread, open_file
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.types import Message, Receive, Scope, Send

from setaug import registry
from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines import augment_files
from setaug.errors import DataError, FileError
from setaug.examples import Columns, check_labels
from setaug.orders.edges import Thresholds
from setaug.orders.graph import OrderGraph
from setaug.reporting.graph_pictures import to_svg
from setaug.web.bodies import address_of
from setaug.web.datasets import KINDS, Dataset, Datasets
from setaug.web.limits import Budget, Gate, Limits, Refusal
from setaug.web.replies import reply
from setaug.web.schemas import About, Examples, Graph, Labels, Orders, Statistics, Text, problems

Label = Annotated[Text, Field(min_length=1, max_length=1000)]
Name = Annotated[str, Query(min_length=1, max_length=200)]
MinPmi = Annotated[float, Query(ge=-64, le=64, description="alpha: labels depend on each other above so many bits")]
MinRatio = Annotated[
    float, Query(ge=1, le=1e6, description="2**beta: the other label is more than so often as frequent")
]
Seed = Annotated[int, Query(ge=0, lt=2**62)]


def _known_ordering(name: str) -> str:
    registry.check_choice("ordering", name, registry.ORDERINGS)
    return name


def _known_format(name: str) -> str:
    registry.check_choice("format", name, PAGE_FORMATS)
    return name


PAGE_FORMATS = tuple(name for name in registry.PAIR_FORMATS if name != "columns")
FormatName = Annotated[str, AfterValidator(_known_format), Query(json_schema_extra={"enum": list(PAGE_FORMATS)})]
OrderingName = Annotated[
    str,
    AfterValidator(_known_ordering),
    Query(
        description=registry.describe(registry.ORDERINGS, default=registry.DEFAULT_ORDERING),
        json_schema_extra={"enum": list(registry.ORDERINGS)},
    ),
]


def _known_form(name: str) -> str:
    registry.check_choice("written_as", name, registry.FORMS)
    return name


FormName = Annotated[
    str,
    AfterValidator(_known_form),
    Field(
        description=registry.describe(registry.FORMS, default=registry.DEFAULT_FORM),
        json_schema_extra={"enum": list(registry.FORMS)},
    ),
]


class OrdersQuestion(BaseModel):
    """A set, and how many of its orders to draw."""

    model_config = ConfigDict(extra="forbid", strict=True)
    labels: Annotated[list[Label], Field(min_length=1, max_length=64)]
    min_pmi: float = Field(registry.DEFAULT_MIN_PMI, ge=-64, le=64)
    min_ratio: float = Field(registry.DEFAULT_MIN_RATIO, ge=1, le=1e6)
    n: int = Field(5, ge=0, le=50, description="how many orders to draw")
    seed: int = Field(0, ge=0, lt=2**62)
    size: bool = Field(True, description="whether the size stands in front of the labels as they are written")
    written_as: FormName = registry.DEFAULT_FORM


class DataApi:
    """Questions about data sets."""

    def __init__(self, datasets: Datasets, limits: Limits) -> None:
        self._datasets, self._limits = datasets, limits
        self.gate = Gate(limits.computing, limits)
        self._slow_gate = Gate(1, limits)  # so that quick answers never wait for slow ones
        self.downloads = Budget(limits.downloads, limits.share(limits.downloads, 4))

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
        chosen = kind or _kind(name)
        columns = Columns(text=text_field, labels=labels_field, delimiter=delimiter)
        path = self._datasets.new_path()
        try:
            await self._save(request, path)
            address = address_of(request.scope)
            dataset = await self.gate.run(
                address, lambda: self._datasets.add(path, name=name, kind=chosen, columns=columns)
            )
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return about(dataset)

    async def _save(self, request: Request, path: Path) -> None:
        """Write a body to disk as it arrives."""
        n_open = 0  # bytes of the line that has not ended yet
        async with await open_file(path, "xb") as stream:
            async for chunk in request.stream():
                lines = chunk.split(b"\n")
                if max(n_open + len(lines[0]), *map(len, lines)) > self._limits.line_bytes:
                    raise Refusal(413, f"a line is too long; at most {self._limits.line_bytes:,} bytes are taken.")
                n_open = len(lines[-1]) + (n_open if len(lines) == 1 else 0)
                await stream.write(chunk)

    async def _compute(self, request: Request, dataset: Dataset, work: Callable[[], Any], *, slow: bool = False) -> Any:
        gate = self._slow_gate if slow else self.gate
        try:
            return await gate.run(address_of(request.scope), work)
        except FileError:
            if dataset.path.exists():
                raise
            raise Refusal(404, "this data set was dropped to make room for others.") from None

    async def sample(self, request: Request) -> dict[str, Any]:
        """Take the built-in sample."""
        return about(await self.gate.run(address_of(request.scope), self._datasets.add_sample))

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

        def inspect() -> Any:
            return dataset.inspect(thresholds, with_diagnosis=diagnosis, progress=_stop_if_cancelled)

        return reply((await self._compute(request, dataset, inspect, slow=diagnosis)).to_dict())

    async def labels(
        self,
        request: Request,
        key: str,
        search: Annotated[str, Query(max_length=1000)] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Response:
        """Find labels: an exact match first, then the most frequent."""
        dataset, wanted = self._datasets.get(key), search.casefold()

        def find() -> dict[str, Any]:
            hits = [(label, n) for label, n in dataset.frequent_labels if wanted in label.casefold()]
            hits.sort(key=lambda pair: pair[0].casefold() != wanted)
            return {"n": len(hits), "labels": [{"label": label, "count": n} for label, n in hits[:limit]]}

        return reply(await self._compute(request, dataset, find))

    async def graph(
        self,
        request: Request,
        key: str,
        min_pmi: MinPmi = registry.DEFAULT_MIN_PMI,
        min_ratio: MinRatio = registry.DEFAULT_MIN_RATIO,
        around: Annotated[str | None, Query(max_length=1000)] = None,
        top: Annotated[int, Query(ge=2, le=100)] = 30,
    ) -> Response:
        """Return the strongest edges of the label graph, or what is around one label, also as a picture."""
        dataset, thresholds = self._datasets.get(key), Thresholds(min_pmi=min_pmi, min_ratio=min_ratio)

        def draw() -> dict[str, Any]:
            if around is None:
                return _drawn(OrderGraph.of_space(dataset.statistics, thresholds, top=top))
            if not dataset.statistics.count(around):
                raise Refusal(404, f"no set holds the label {around!r}.")
            return _drawn(OrderGraph.around(around, dataset.statistics, thresholds, top=top))

        return reply(await self._compute(request, dataset, draw))

    async def examples(
        self,
        request: Request,
        key: str,
        label: Annotated[str | None, Query(max_length=1000)] = None,
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> Response:
        """Return examples, all of them or those with a label, a page at a time."""
        dataset = self._datasets.get(key)

        def find() -> dict[str, Any]:
            chosen = [at for at, one in enumerate(dataset.examples) if label is None or label in one.labels]
            page = [(at, dataset.examples[at]) for at in chosen[offset : offset + limit]]
            rows = [{"index": at, "text": one.text[:2000], "labels": one.labels} for at, one in page]
            return {"n": len(chosen), "examples": rows}

        return reply(await self._compute(request, dataset, find))

    async def orders(self, request: Request, key: str, question: OrdersQuestion) -> Response:
        """Return the order graph of a set, the exact number of its orders, and some of them, also as training text."""
        dataset = self._datasets.get(key)
        try:
            check_labels(question.labels, "labels")
        except DataError as error:
            raise Refusal(422, str(error)) from None
        thresholds = Thresholds(min_pmi=question.min_pmi, min_ratio=question.min_ratio)

        def answer() -> dict[str, Any]:
            graph = OrderGraph.of_set(question.labels, dataset.statistics, thresholds)
            n_drawn = question.n if graph.n_orders is None else min(question.n, graph.n_orders)
            drawn = graph.draw(n_drawn, seed=question.seed, distinct=True)
            codec = SetAugmenter(with_size=question.size, written_as=question.written_as).codec
            counted = {"n_orders": None if graph.n_orders is None else str(graph.n_orders)}
            written = [codec.encode(order) for order in drawn]
            return {
                **_drawn(graph),
                **counted,
                "log2_orders": graph.log2_orders,
                "orders": drawn,
                "completions": written,
            }

        return reply(await self._compute(request, dataset, answer))

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
        """Return the training pairs, byte for byte what ``setaug augment`` writes."""
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
            await self._compute(
                request,
                dataset,
                lambda: _augment(
                    dataset, Path(download.path), augmenter, PairFormat.named(format), self._limits.download_bytes
                ),
            )
        except BaseException:
            download.end()
            raise
        return download


class _Download(FileResponse):
    """A file of our own, with the slot that it takes; both end when it was sent, or when nobody waits for it."""

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
    """Return the description of a data set."""
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
    return {"labels": graph.labels, "edges": [asdict(edge) for edge in graph.edges], "svg": to_svg(graph)}


def _stop_if_cancelled(*_: object) -> None:
    """Stop a thread whose client has left."""
    from_thread.check_cancelled()


def _augment(dataset: Dataset, path: Path, augmenter: SetAugmenter, pair_format: PairFormat, most: int) -> None:
    """Write pairs, and stop where they become too many bytes or the client has left."""
    folder = path.parent
    folder.mkdir()

    def check(*_: object) -> None:
        from_thread.check_cancelled()
        if folder_size(folder) > most:
            raise Refusal(413, f"that is more than {most:,} bytes; ask for fewer orders, or use setaug augment.")

    augment_files(
        dataset.path,
        path,
        augmenter,
        columns=dataset.columns,
        kind=dataset.kind,
        pair_format=pair_format,
        progress=check,
    )


def folder_size(folder: Path) -> int:
    """Return how many bytes the files in a folder and its folders have."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total
