"""A cache of answers, stored as soon as they arrive, so that no request is repeated, or paid for, twice."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from setaug.errors import FileError
from setaug.storage import appending_lines


@dataclass(frozen=True, slots=True)
class Answer:
    """One generated text."""

    text: str
    is_cut_off: bool = False
    """Whether it was truncated at the maximum number of tokens."""


@dataclass(frozen=True, slots=True)
class Response:
    """A server's response to one request: one or more answers, and the token counts."""

    request: str
    """The request's `request_key`."""
    answers: tuple[Answer, ...]
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def as_line(self) -> bytes:
        """Return the response as JSON."""
        return orjson.dumps(self)

    @classmethod
    def from_line(cls, line: bytes) -> "Response":
        """Parse a response from JSON."""
        row = orjson.loads(line)
        answers = tuple(Answer(str(one["text"]), bool(one["is_cut_off"])) for one in row["answers"])
        return cls(str(row["request"]), answers, int(row["prompt_tokens"]), int(row["completion_tokens"]))


def request_key(body: Mapping[str, Any], server: str) -> str:
    """Return a hash of a request and its server."""
    said = json.dumps([server, body], sort_keys=True)  # ASCII with escapes, so that any text is valid
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


@dataclass
class AnswerLog:
    """The answers to each request."""

    responses: list[Response] = field(default_factory=list)
    _keep: Callable[[bytes], None] | None = None
    _answers: dict[str, list[Answer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for response in self.responses:
            self._answers.setdefault(response.request, []).extend(response.answers)

    def of(self, key: str) -> list[Answer]:
        """Return the answers to a request, in the order of arrival."""
        return self._answers.get(key, [])

    def add(self, response: Response) -> None:
        """Store a response."""
        if self._keep is not None:
            self._keep(response.as_line())
        self.responses.append(response)
        self._answers.setdefault(response.request, []).extend(response.answers)


@contextmanager
def open_answers(path: str | Path) -> Iterator[AnswerLog]:
    """Open a file of answers; an existing one is continued."""
    with appending_lines(Path(path), begins=b'{"request":') as keep:
        yield AnswerLog(_read(Path(path)), keep)


def _read(path: Path) -> list[Response]:
    responses = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            responses.append(Response.from_line(line))
        except (ValueError, TypeError, KeyError):
            raise FileError(f"line {number} of {path} was not written by this command; choose another name.") from None
    return responses
