"""OpenAI-compatible completions with sets: the requests of vLLM with setaug's logits processor, for one model."""

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from secrets import randbits, token_hex
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from setaug.decoding.set_request import SetRequest
from setaug.errors import SetAugError
from setaug.examples import shown
from setaug.serving.completer import Answers, Ask
from setaug.web.batching import Predictor
from setaug.web.bodies import address_of
from setaug.web.limits import Limits, Refusal
from setaug.web.schemas import Text, reply

Value = Text | int | float
"""A parameter of a request."""


UNSUPPORTED: dict[str, Any] = {
    **dict.fromkeys(("allowed_token_ids", "bad_words", "logit_bias", "logprobs", "prompt_logprobs", "stop_token_ids")),
    **dict.fromkeys(("echo", "functions", "ignore_eos", "structured_outputs", "suffix", "tools")),
    **dict.fromkeys(("frequency_penalty", "min_p", "min_tokens", "presence_penalty", "top_logprobs")),
    "best_of": 1,
    "repetition_penalty": 1,
    "response_format": {"type": "text"},
    "use_beam_search": False,
}
"""Parameters of other servers that change an answer, with the value (besides none) that is accepted."""


class StreamOptions(BaseModel):
    """What a stream contains."""

    model_config = ConfigDict(extra="ignore")
    include_usage: bool = False


class _Question(BaseModel):
    """The common parameters of completions; fields of OpenAI that do not change an answer are ignored."""

    model_config = ConfigDict(extra="allow")
    model: Text | None = None
    n: Annotated[int, Field(ge=1, le=16)] = 1
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=-1, description="0 or -1 for all")] = 0
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1, description="the newer name of max_tokens")] = None
    stop: Text | Annotated[list[Text], Field(max_length=16)] | None = None
    seed: Annotated[int | None, Field(ge=0, lt=1 << 63)] = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    vllm_xargs: dict[str, Value | list[Value]] | None = Field(
        None, description="the set: set_labels, set_sizes and more"
    )

    def ask(self, *, is_chat: bool) -> Ask:
        """Return the completion parameters; raise a `Refusal` if one is invalid or not supported."""
        for name, value in (self.model_extra or {}).items():
            if name in UNSUPPORTED and value and value != UNSUPPORTED[name]:
                raise Refusal(400, f"{name} is not supported by setaug serve, got {shown(value)}; leave it out.")
        try:
            sets = SetRequest.read(self.vllm_xargs)
        except ValueError as error:
            raise Refusal(400, str(error)) from None
        limit = self.max_completion_tokens or self.max_tokens
        stops = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        ask = Ask(
            sets=sets, is_chat=is_chat, n=self.n, max_tokens=limit, temperature=0, stops=tuple(filter(None, stops))
        )
        if self.temperature == 0:  # others that are greedy, too, can share a batch
            return ask
        seed = randbits(32) if self.seed is None else self.seed
        drawn = replace(ask, temperature=max(self.temperature, 0.001), seed=seed)
        return replace(drawn, top_k=max(self.top_k, 0), top_p=self.top_p)


class Message(BaseModel):
    """A message of a conversation."""

    model_config = ConfigDict(extra="ignore")
    role: Literal["system", "user", "assistant"]
    content: Text


class ChatQuestion(_Question):
    """A conversation to answer with a set."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=256)]


class TextQuestion(_Question):
    """Prompts to complete with a set."""

    prompt: Text | Annotated[list[Text], Field(min_length=1)]


class ProblemContent(BaseModel):
    """Why a request was rejected."""

    message: str
    type: str
    param: str | None
    code: int


class Problems(BaseModel):
    """Why a request was rejected, in OpenAI's format."""

    error: ProblemContent


class _Route(APIRoute):
    """A route with errors in OpenAI's format."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the request handler."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"][1:])
                refusal = Refusal(400, f"{where}: {first['msg']}" if where else str(first["msg"]))
            except SetAugError as error:
                refusal = Refusal(400, str(error))
            except Refusal as error:
                refusal = error
            kind = "invalid_request_error" if refusal.status < 500 else "server_error"
            content = {"message": refusal.sentence, "type": kind, "param": None, "code": refusal.status}
            return JSONResponse({"error": content}, refusal.status, refusal.headers)

        return answer


class CompletionsApi:
    """Completions of a causal model."""

    def __init__(self, predictor: Predictor, name: str, limits: Limits) -> None:
        self._predictor, self._name, self._limits = predictor, name, limits

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v1", route_class=_Route)
        refusals: dict[int | str, dict[str, Any]] = {
            status: {"model": Problems, "description": "why not"} for status in (400, 404, 500, 503, 504)
        }
        router.add_api_route("/models", self.models, responses={})
        router.add_api_route("/chat/completions", self.chat, methods=["POST"], responses=refusals)
        router.add_api_route("/completions", self.complete, methods=["POST"], responses=refusals)
        return router

    async def models(self) -> dict[str, Any]:
        """Return the model."""
        return {"object": "list", "data": [{"id": self._name, "object": "model", "created": 0, "owned_by": "setaug"}]}

    async def chat(self, request: Request, question: ChatQuestion) -> Response:
        """Answer a conversation with sets."""
        ask = question.ask(is_chat=True)
        prompt = self._predictor.model.chat([message.model_dump() for message in question.messages])
        (found,) = await self._complete(request, question, [prompt], ask)
        field = "delta" if question.stream else "message"
        choices = [
            {"index": at, field: {"role": "assistant", "content": one.text}, "finish_reason": _reason(one)}
            for at, one in enumerate(found.answers)
        ]
        kind = "chat.completion.chunk" if question.stream else "chat.completion"
        return self._reply(question, "chatcmpl", kind, choices, [found])

    async def complete(self, request: Request, question: TextQuestion) -> Response:
        """Complete prompts with sets."""
        prompts = [question.prompt] if isinstance(question.prompt, str) else question.prompt
        found = await self._complete(request, question, prompts, question.ask(is_chat=False))
        answers = [one for each in found for one in each.answers]
        choices = [
            {"index": at, "text": one.text, "logprobs": None, "finish_reason": _reason(one)}
            for at, one in enumerate(answers)
        ]
        return self._reply(question, "cmpl", "text_completion", choices, found)

    async def _complete(self, request: Request, question: _Question, prompts: list[str], ask: Ask) -> Sequence[Answers]:
        if question.model not in (None, self._name):
            raise Refusal(404, f"unknown model {question.model!r}; this server has {self._name!r}.")
        if len(prompts) * ask.n > self._limits.texts:
            raise Refusal(400, f"prompt: at most {self._limits.texts} answers per request.")
        if any(len(prompt) > self._limits.text_length for prompt in prompts):
            raise Refusal(400, f"prompt: at most {self._limits.text_length:,} characters each.")
        found: Any = await self._predictor.predict(prompts, {"ask": ask}, address_of(request.scope))
        return list(found)

    def _reply(
        self, question: _Question, prefix: str, kind: str, choices: list[dict[str, Any]], found: Sequence[Answers]
    ) -> Response:
        n_read = sum(each.n_tokens for each in found)
        n_written = sum(one.n_tokens for each in found for one in each.answers)
        usage = {"prompt_tokens": n_read, "completion_tokens": n_written, "total_tokens": n_read + n_written}
        head = {"id": f"{prefix}-{token_hex(12)}", "object": kind, "created": int(time.time()), "model": self._name}
        if not question.stream:
            return reply({**head, "choices": choices, "usage": usage})
        chunks = [orjson.dumps({**head, "choices": [choice]}) for choice in choices]
        if question.stream_options is not None and question.stream_options.include_usage:
            chunks.append(orjson.dumps({**head, "choices": [], "usage": usage}))
        events = b"".join(b"data: " + chunk + b"\n\n" for chunk in [*chunks, b"[DONE]"])
        return Response(events, media_type="text/event-stream")


def _reason(answer: Any) -> str:
    return "length" if answer.is_cut else "stop"
