"""One server with a tiny model for all tests of a process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.serving import Server, serving


@pytest.fixture(scope="session")
def server(generator_folder: Path) -> Iterator[Server]:
    from setaug.models import load_model

    with serving(model=load_model(generator_folder), model_name="tiny") as found:
        yield found


@pytest.fixture
def sample(server: Server) -> str:
    return str(server.json("/api/sample", b"")["id"])
