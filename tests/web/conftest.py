"""One server with a tiny model for all tests of a process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.serving import Server, serving


@pytest.fixture(scope="session", autouse=True)
def impatient_workers() -> Iterator[None]:
    """Let no worker stand back: on a busy machine it would wait for minutes, and the test with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setaug.web.data.datasets._STANDS_BACK", 0)
        yield


@pytest.fixture(scope="session")
def server(generator_folder: Path) -> Iterator[Server]:
    from setaug.models import load_model

    with serving(model=load_model(generator_folder), model_name="tiny") as found:
        yield found


@pytest.fixture
def sample(server: Server) -> str:
    return str(server.json("/api/sample", b"")["id"])
