"""Client of an OpenAI-compatible server: concurrent requests, retries with backoff, and no repeated requests."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from setaug.decoding.set_request import PREFIX
from setaug.errors import EndpointError, MissingExtraError
from setaug.prompting.answers import Answer, AnswerLog, Response
from setaug.settings import Endpoint
from setaug.terminal import printable

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

Tell: TypeAlias = Callable[[str], None]
"""Called with the reason if requests pause."""
_BUSY = (408, 409, 425, 429)
"""Statuses after which a request is retried; also all from 500 on."""
_ABOUT_ONE = (400, 413, 422)
"""Statuses that reject one request only, for example because its text is too long."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_SHORTEST_SECRET = 8
"""A shorter key is a placeholder for a server without keys; it may occur in any answer, so it is not redacted."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and the number of answers to get."""

    key: str
    make_body: Callable[[], dict[str, Any]]
    """Creates the body when it is sent, so that thousands of long prompts are not in memory at once."""
    n_answers: int
    what: str
    """A description for messages."""


def ask(
    requests: Iterable[Request],
    log: AnswerLog,
    endpoint: Endpoint,
    *,
    refusals: dict[str, str] | None = None,
    done: Callable[[], None] = lambda: None,
    tell: Tell = lambda reason: None,
) -> None:
    """Request the answers that are not in the log yet; each is stored as it arrives.

    Parameters
    ----------
    refusals
        If given, the reasons for rejected requests are stored here by key; otherwise a rejected request ends the run.
    done
        Called when a request has all of its answers.

    """
    waiting = [request for request in requests if len(log.of(request.key)) < request.n_answers]
    if waiting:
        _run(lambda: _Asking(endpoint, log, refusals, done, tell).all(waiting))


def negotiate_sets(
    endpoint: Endpoint, body: Mapping[str, Any], tell: Tell = lambda reason: None
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return how to write set parameters for a server; raise `EndpointError` if it does not support them.

    A server that supports them rejects an unknown one.
    """
    for write in (dict, as_generation_config):
        probe = write({**body, "max_tokens": 1, "vllm_xargs": {f"{PREFIX}probe": 1}})
        refusals: dict[str, str] = {}
        ask([Request("probe", partial(dict, probe), 1, "a trial")], AnswerLog(), endpoint, refusals=refusals, tell=tell)
        if any("set_labels" in reason for reason in refusals.values()):
            return write
    raise EndpointError(
        "the server does not support set_labels, so it cannot be constrained to sets; use vLLM with setaug[vllm], or "
        "setaug serve with a causal model."
    )


def as_generation_config(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with the parameters of a set as ``transformers serve`` takes them."""
    rest = {name: value for name, value in body.items() if name != "vllm_xargs"}
    # With a generation_config, that server samples only if it says so.
    settings = {"do_sample": body.get("temperature", 1) > 0, **body["vllm_xargs"]}
    return {**rest, "generation_config": json.dumps(settings)}


def _run(start: Callable[[], Any]) -> None:
    """Run a coroutine in its own thread, and wait for it.

    The main thread may already run an event loop (as in a notebook), and it receives signals: an exception raised in
    the middle of the loop would leave its tasks in an undefined state.
    """
    from concurrent.futures import ThreadPoolExecutor

    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def noted() -> None:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        await start()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: asyncio.run(noted()))
        try:
            future.result()
        except BaseException:
            for loop, task in running:  # interrupted: send no further requests
                if not future.done():
                    loop.call_soon_threadsafe(task.cancel)
            raise


class _RefusedError(Exception):
    """The server rejects a request because of its content."""


class _EndedError(Exception):
    """A request was abandoned because the run ends."""


class _Asking:
    """The shared state of all requests of a run: whether the server has responded, and until when to pause."""

    def __init__(
        self, endpoint: Endpoint, log: AnswerLog, refusals: dict[str, str] | None, done: Callable[[], None], tell: Tell
    ) -> None:
        self.endpoint, self.log, self.refusals, self.done, self.tell = endpoint, log, refusals, done, tell
        self.was_heard_of = False
        self.takes_n = True
        self.quiet_until = 0.0
        self.ending = asyncio.Event()
        self.secret = endpoint.key()

    async def all(self, requests: list[Request]) -> None:
        """Send all requests, a few at a time; after an error, wait for those in progress, and store their answers."""
        async with _client(self.endpoint) as client:
            self.client = client
            rest = iter(requests)
            workers = [asyncio.create_task(self._work(rest)) for _ in range(self.endpoint.concurrency)]
            try:
                await asyncio.gather(*workers)
            except EndpointError:
                self.ending.set()
                await asyncio.gather(*workers, return_exceptions=True)
                raise
            except BaseException:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                raise

    async def _work(self, rest: Iterator[Request]) -> None:
        for request in rest:
            try:
                while (n_there := len(self.log.of(request.key))) < request.n_answers:
                    if self.ending.is_set():
                        return
                    self.log.add(await self._respond(request, n_there))
            except _EndedError:
                return
            except _RefusedError as refused:
                if self.refusals is None:
                    raise EndpointError(f"{request.what}: {refused}") from None
                self.refusals[request.key] = str(refused)
            self.done()

    async def _respond(self, request: Request, n_there: int) -> Response:
        n_missing = request.n_answers - n_there
        body = request.make_body()
        if "seed" in body:
            body["seed"] += n_there  # with the same seed, a server would return the same answer again
        if n_missing > 1 and self.takes_n:
            try:
                return await self._try(request.key, {**body, "n": n_missing})
            except _RefusedError:
                response = await self._try(request.key, body)
                self.takes_n = False  # the server returns one answer at a time
                return response
        return await self._try(request.key, body)

    async def _try(self, key: str, body: dict[str, Any]) -> Response:
        """Send a request until it succeeds, or until a retry is pointless."""
        from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

        for n_failed in range(self.endpoint.max_retries + 1):
            while (left := self.quiet_until - time.monotonic()) > 0:
                await self._sleep(left)
            wait = None
            try:
                async with asyncio.timeout(self.endpoint.timeout):  # the client's own timeout is per part of a response
                    response = await self._send(key, body)
            except (APITimeoutError, TimeoutError):
                reason = f"no answer within {self.endpoint.timeout:g} s"
            except APIConnectionError as error:
                reason = f"cannot reach the server: {_innermost(error)}"
                if not self.was_heard_of and n_failed >= 2:
                    break
            except APIStatusError as error:
                self.was_heard_of = True
                reason, wait = self._status(error), _asked_wait(error)
            except (APIError, ValueError, RecursionError) as error:  # the last: JSON that is nested too deeply
                raise EndpointError(f"invalid response: {self._clean(str(error))}") from None
            else:
                self.was_heard_of = True
                return response
            if wait is not None and wait > self.endpoint.max_wait:
                raise EndpointError(f"{reason}; the server asks to wait for {wait:.0f} s, which is too long.")
            if self.ending.is_set():
                raise _EndedError
            if n_failed < self.endpoint.max_retries:
                await self._pause(reason, n_failed, wait)
        raise EndpointError(f"gave up after {n_failed + 1} tries: {self._clean(reason)}.")

    async def _pause(self, reason: str, n_failed: int, asked: float | None) -> None:
        """Wait before the next retry; if the server requests it, all requests wait."""
        pause = min(_FIRST_PAUSE * 2**n_failed, _LONGEST_PAUSE) * random.uniform(0.75, 1)
        if asked is not None:
            pause = max(pause, asked + random.uniform(0, 0.1))
            self.quiet_until = max(self.quiet_until, time.monotonic() + pause)
        self.tell(f"waiting {pause:.1f} s: {self._clean(reason)}")
        await self._sleep(pause)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, unless the run ends."""
        try:
            async with asyncio.timeout(seconds):
                await self.ending.wait()
        except TimeoutError:
            return
        raise _EndedError

    def _status(self, error: "APIStatusError") -> str:
        """Return the server's error message; raise if a retry is pointless."""
        status = error.status_code
        if 300 <= status < 400:
            place = self._clean(error.response.headers.get("location", "nowhere"))
            raise EndpointError(
                f"the server redirects to {place}, but redirects are not followed, so that prompts go to no other "
                "server; to use it, pass it as the base URL."
            )
        reason = f"the server returned {status}: {self._clean(_message(error))}"
        is_about_money = status == 429 and error.code == "insufficient_quota"
        if (status in _BUSY or status >= 500) and not is_about_money:
            return reason
        if status in _ABOUT_ONE:
            raise _RefusedError(reason)
        raise EndpointError(reason)

    async def _send(self, key: str, body: dict[str, Any]) -> Response:
        is_chat = "messages" in body
        create: Any = self.client.chat.completions.create if is_chat else self.client.completions.create
        named = {name: body[name] for name in ("model", "messages", "prompt") if name in body}
        rest = {name: value for name, value in body.items() if name not in named}
        found = await create(**named, extra_body=rest)
        choices = getattr(found, "choices", None)
        if not isinstance(choices, list) or not choices:
            raise ValueError("it has no choices; is this the URL of an OpenAI-compatible server (.../v1)?")
        try:
            answers = tuple(self._read(choice, is_chat=is_chat) for choice in choices)
            usage = found.usage
            counted = (0, 0) if usage is None else (int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0))
        except (AttributeError, TypeError):
            raise ValueError("its choices have no text, or its usage no numbers") from None
        return Response(key, answers, *counted)

    def _read(self, choice: Any, *, is_chat: bool) -> Answer:
        """Parse one of the answers in a response; redact the key if it is repeated."""
        answer = _answer(choice, is_chat=is_chat)
        is_secret = self.secret is not None and len(self.secret) >= _SHORTEST_SECRET
        return replace(answer, text=answer.text.replace(self.secret, "...")) if self.secret and is_secret else answer

    def _clean(self, text: str) -> str:
        """Return a message as one line, with the key redacted."""
        line = " ".join((text.replace(self.secret, "...") if self.secret else text).split())
        return line if len(line) <= 300 else f"{line[:297]}..."


def _client(endpoint: Endpoint) -> "AsyncOpenAI":
    try:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    except ImportError:
        raise MissingExtraError("Prompting language models", "llm") from None
    key = endpoint.key()
    if key is None and endpoint.is_default:
        raise EndpointError(f"no key: set the environment variable {endpoint.key_variable}, or pass a base URL.")
    return AsyncOpenAI(
        api_key=key or "none",  # the client requires a key, even if the server does not
        base_url=endpoint.url,
        timeout=endpoint.timeout,
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(follow_redirects=False),
    )


def _asked_wait(error: "APIStatusError") -> float | None:
    """Return the seconds that a server asks clients to wait (``Retry-After``)."""
    from email.utils import parsedate_to_datetime

    headers = error.response.headers
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _finite(float(milliseconds) / 1000)
        asked = headers.get("retry-after")
        if asked is None:
            return None
        if asked.strip()[:1].isalpha():  # a date
            return _finite(parsedate_to_datetime(asked).timestamp() - time.time())
        return _finite(float(asked))
    except (TypeError, ValueError):
        return None


def _finite(seconds: float) -> float | None:
    return max(seconds, 0.0) if isfinite(seconds) else None


def _answer(choice: Any, *, is_chat: bool) -> Answer:
    """Parse one of the answers in a response."""
    text = choice.message.content if is_chat else choice.text
    if text is not None and not isinstance(text, str):
        raise TypeError
    whole = (text or "").encode(errors="replace").decode()  # a lone surrogate cannot be written to a file
    return Answer(whole, choice.finish_reason == "length")


class Teller:
    """Reports why requests pause, but not repeatedly: many requests wait for the same reason."""

    def __init__(self, write: Callable[[str], object], every: float = 10.0) -> None:
        self._write, self._every = write, every
        self._last = -inf

    def __call__(self, reason: str) -> None:
        """Report a message, unless one was reported a moment ago."""
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._write(f"{printable(reason)}\n")


def _message(error: "APIStatusError") -> str:
    """Extract the error message from a server's response."""
    body = error.body
    try:
        if isinstance(body, dict):
            for name in ("message", "detail", "error"):
                if body.get(name):
                    return str(body[name])
        return str(body or error.message)
    except RecursionError:
        return "something that is nested too deeply"


def _innermost(error: BaseException) -> str:
    """Return the root cause of an error."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
