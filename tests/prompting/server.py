"""A real OpenAI-compatible server with a tiny model, and a relay in front of it that can make trouble."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from setaug.sample import sample_examples
from tests.ports import free_port

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def save_tiny_model(folder: Path) -> Path:
    """Write a Llama with random weights, and a tokenizer that was trained on the sample."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from setaug.models.neural.pretrained import quiet
    from setaug.models.neural.scratch import train_tokenizer

    tokenizer = train_tokenizer([example.text for example in sample_examples(200)], vocabulary=400)
    tokenizer.chat_template = CHAT_TEMPLATE
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=4096,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.5,  # so that different texts get different answers
    )
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


class ModelServer:
    """Run ``transformers serve`` in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("transformers")), "serve", str(self.folder)]
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--device", "cpu", *self.options]
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command + options, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 600
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                assert self.process.poll() is None, "the server ended"
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.2)

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def answer(self, path: str, body: bytes) -> bytes:
        """Ask the server itself."""
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as response:
            return bytes(response.read())


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[ModelServer]:
    """Serve a model, and end the server afterwards."""
    found = ModelServer(folder, *options)
    found.start()
    try:
        yield found
    finally:
        found.kill()


TRICKLE = "trickle"
Trouble = tuple[int, dict[str, str], dict[str, Any] | bytes] | float | str | None
"""A status with headers and a body to answer with, seconds to hang, a blank now and then, or nothing: then the model
answers."""


class Relay:
    """Stand in front of a server: pass requests on, unless told to make trouble; note what was asked and answered."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.trouble: Callable[[int, dict[str, Any]], Trouble] = lambda n_asked, body: None
        self.asked: list[dict[str, Any]] = []
        self.answered: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.keys: list[str | None] = []
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                relay.handle(self)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        return Handler

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["Content-Length"]))
        body = json.loads(raw)
        with self._lock:
            self.asked.append(body)
            self.times.append(time.monotonic())
            self.keys.append(handler.headers.get("Authorization"))
            trouble = self.trouble(len(self.asked), body)
        if isinstance(trouble, str):
            self._trickle(handler)
            return
        if isinstance(trouble, float):
            time.sleep(trouble)
            trouble = (504, {}, {"error": {"message": "too late"}})
        if trouble is None:
            try:
                answer = self.server.answer(handler.path, raw)
            except urllib.error.HTTPError as error:
                trouble = (error.code, {}, {"error": {"message": error.read().decode()}})
            except OSError:  # the server is gone: the connection ends without an answer
                handler.close_connection = True
                return
        status, headers, content = trouble or (200, {}, {})
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        data = answer if trouble is None else data
        if trouble is None:  # before the one who asks can go on
            with self._lock:
                self.answered.append(body)
        try:
            handler.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
        except OSError:  # nobody waits for it any more
            with self._lock:
                self.answered = [one for one in self.answered if one is not body]

    def _trickle(self, handler: BaseHTTPRequestHandler) -> None:
        """Keep a connection alive as proxies do, and never answer."""
        try:
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.end_headers()
            for _ in range(50):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.1)
        except OSError:
            return

    @contextmanager
    def running(self) -> Iterator["Relay"]:
        thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()
