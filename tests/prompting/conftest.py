"""One server for all tests; each has a relay of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MakeOnce
from tests.prompting.server import ModelServer, Relay, save_tiny_model, serving


@pytest.fixture(scope="session")
def tiny_model(make_once: MakeOnce) -> Path:
    return make_once("llama", save_tiny_model)


@pytest.fixture(scope="session")
def server(tiny_model: Path) -> Iterator[ModelServer]:
    with serving(tiny_model) as found:
        yield found


@pytest.fixture
def relay(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with Relay(server).running() as found:
        yield found
