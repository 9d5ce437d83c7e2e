"""Servers that tests start and stop: in a thread, or as the command does it, in a process of its own."""

import json
import os
import re
import signal
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from tempfile import NamedTemporaryFile, TemporaryDirectory
from threading import Thread
from typing import Any

import uvicorn

from setaug.web import Limits, make_app
from setaug.web.app import make_config
from setaug.web.data.datasets import Datasets


class Server:
    """Talk to a server."""

    def __init__(self, url: str, folder: Path = Path(), log: Path = Path()) -> None:
        self.url = url.rstrip("/")
        self.folder = folder
        """Where it keeps uploads and downloads."""
        self.log = log

    def ask(
        self, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **query: Any
    ) -> tuple[int, bytes]:
        """Send a request (with a body, a POST); give status and content."""
        asked = f"?{urllib.parse.urlencode(query)}" if query else ""
        is_json = isinstance(body, dict | list)
        data = json.dumps(body).encode() if is_json else body
        kind = {"Content-Type": "application/json"} if is_json else {}
        request = urllib.request.Request(self.url + path + asked, data, {**kind, **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=600) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def headers(self, path: str) -> dict[str, str]:
        """Send a request; give the headers of the answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=600) as response:
                found = response.headers
        except urllib.error.HTTPError as error:
            with error:
                found = error.headers
        return {name.lower(): value for name, value in found.items()}

    def json(self, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request that has to succeed."""
        status, content = self.ask(path, body, **options)
        assert status in (200, 201), content
        return json.loads(content)

    def refused(self, status: int, path: str, body: Any = None, **options: Any) -> str:
        """Send a request that has to be refused; give the sentence."""
        found, content = self.ask(path, body, **options)
        assert found == status, (found, content)
        return str(json.loads(content)["error"])


@contextmanager
def serving(**options: Any) -> Iterator[Server]:
    """Run a server in a thread of this process."""
    limits = options.setdefault("limits", Limits())
    with TemporaryDirectory() as folder, socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        place.listen(128)
        app = make_app(**{"datasets": Datasets(Path(folder), limits), **options})
        config = make_config(app)
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([place],))
        thread.start()
        try:
            yield Server(f"http://127.0.0.1:{place.getsockname()[1]}", Path(folder))
        finally:
            server.should_exit = True
            thread.join(300)


@contextmanager
def process(*arguments: str, environment: dict[str, str] | None = None) -> Iterator[tuple[Server, Popen[bytes]]]:
    """Run ``setaug serve`` on a free port; its log goes to a file."""
    with NamedTemporaryFile() as log:
        run = Popen(
            [sys.executable, "-m", "setaug", "serve", "--port", "0", *arguments],
            stderr=log,
            env=os.environ | (environment or {}),
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.default_int_handler
            ),  # ignored where tests run unattended
        )
        try:
            while not (told := Path(log.name).read_text()).endswith("\n") and run.poll() is None:
                time.sleep(0.05)
            found = re.match(r"(http://\S+)", told)
            assert found, told
            yield Server(found[1], log=Path(log.name)), run
        finally:
            if run.poll() is None:
                run.kill()
            run.wait()


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
