"""Kill predictions of many texts in the middle: nothing is lost, nothing is there twice, and the bytes are the same.

``python -m tests.prediction_kills --texts 10000`` kills the command, an actor on Ray, and the server that
`setaug prompt` asks; the test suite does it with few texts.
"""

import argparse
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from setaug.cli import main
from setaug.sample import sample_examples
from tests.conftest import write_examples
from tests.kills import ended, outputs, run, start
from tests.prompting.server import free_port

N_SHARDS = 8


def lay_out(folder: Path, n_texts: int) -> None:
    """Write the input: different texts, each with its number."""
    rows = [
        json.dumps({"id": at, "text": f"{one.text} {at}"}) for at, one in enumerate(sample_examples(n_texts, seed=1))
    ]
    (folder / "texts.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    write_examples(folder / "few.jsonl", sample_examples(30, seed=1))


def kill_command(folder: Path, model: str, n_kills: int, *options: str) -> str:
    """Kill ``setaug predict`` again and again, each time after it has got further."""
    expected = _expected(folder, ["predict", model, "texts.jsonl", *options, "-q"])
    size = sum(map(len, expected.values()))
    command = ["predict", model, "texts.jsonl", *options, "-q", "-o", "killed/sets.jsonl"]
    finished: list[int] = []
    code: int | None = None
    for at in range(n_kills):
        child = start(command)
        while (code := ended(child)) is None and _finished_bytes(folder / "killed") < size * (at + 1) // (n_kills + 1):
            time.sleep(0.002)
        time.sleep(random.Random(at).uniform(0, 1e-8 * size))  # so that it is somewhere in the middle
        if code is None and (code := ended(child)) is None:
            os.kill(child, signal.SIGKILL)
            code = ended(child, wait=True)
        if code == 0:  # on a fast machine it may be faster than the kill
            break
        assert code == -signal.SIGKILL, f"it ended with {code}"
        assert not outputs(folder / "killed"), "something is published, and it is not whole"
        finished.append(_finished_bytes(folder / "killed"))
    assert len(finished) > n_kills // 2, f"it was killed only {len(finished)} times"
    assert finished == sorted(set(finished)), "a run did not go on from where the last was killed"
    assert code == 0 or run(command) == 0
    _check(folder, expected)
    shares = ", ".join(f"{100 * each / size:.0f} %" for each in finished)
    return f"killed {len(finished)} times, with {shares} finished"


def kill_actors(folder: Path, model: str, n_kills: int) -> str:
    """Kill actors on Ray, each time after one more shard is finished."""
    shards = ["--shards", str(N_SHARDS)]
    expected = _expected(folder, ["predict", model, "texts.jsonl", *shards, "-q"])
    killed: list[int] = []
    command = ["predict", model, "texts.jsonl", "-o", "killed/sets.jsonl", *shards, "-q"]
    with _meanwhile(lambda stop: _kill_actors(folder / "killed", n_kills, killed, stop)):
        assert main([*command, "--engine", "ray", "--workers", "2"]) == 0
    assert len(killed) == n_kills, f"only {len(killed)} actors were killed"
    _check(folder, expected)
    return f"{n_kills} actors killed"


def _kill_actors(out: Path, n_kills: int, killed: list[int], stop: Event) -> None:
    import psutil

    while len(killed) < n_kills and not stop.is_set():
        time.sleep(0.02)
        if len(list(out.glob(".*/*.notes"))) <= len(killed):
            continue
        for child in psutil.Process().children(recursive=True):
            if child.name().startswith("ray::_Actor") and child.pid not in killed:
                time.sleep(random.Random(len(killed)).uniform(0, 0.3))
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)
                break


def kill_server(folder: Path, n_texts: int, n_kills: int) -> str:
    """Kill the server in the middle of ``setaug prompt``: it is started again, while the command waits or after it."""
    server = LanguageModel()
    server.start()
    try:
        where = ["--model", "any", "--base-url", f"http://127.0.0.1:{server.port}/v1", "--endpoint", "completion"]
        common = ["prompt", "texts.jsonl", "--train", "few.jsonl", "--shots", "1", "--max-listed", "0", *where, "-q"]
        expected = _expected(folder, common)
        command = [*common, "-o", "killed/sets.jsonl", "--retries"]
        answers = folder / "killed" / "sets.jsonl.answers.jsonl"
        child = start([*command, "12"])
        for at in range(n_kills):
            while ended(child) is None and _n_lines(answers) < n_texts * (at + 1) // (n_kills + 1):
                time.sleep(0.005)
            server.kill()
            if at % 2:
                os.kill(child, signal.SIGKILL)
                ended(child, wait=True)
                assert run([*command, "1"]) == 2, "without a server it did not end as it should"
            n_kept = _n_lines(answers)
            assert n_texts * (at + 1) // (n_kills + 1) <= n_kept < n_texts
            server.start()
            if at % 2:
                child = start([*command, "12"])
        assert ended(child, wait=True) == 0
    finally:
        server.kill()
    _check(folder, expected)
    requests = [json.loads(line)["request"] for line in answers.read_text().splitlines()]
    assert len(requests) == len(set(requests)) == n_texts, "an answer is missing, or was asked for twice"
    return f"the server killed {n_kills} times, and the command {n_kills // 2} times with it"


class LanguageModel:
    """A server whose answers depend on the text, in a process of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process = 0

    def start(self) -> None:
        """Start it, and wait until it can be reached."""
        self._process = os.fork()
        if self._process == 0:
            try:
                ThreadingHTTPServer(("127.0.0.1", self.port), _Answer).serve_forever()
            finally:
                os._exit(1)
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill it."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
            self._process = 0


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        prompt = self.rfile.read(int(self.headers["Content-Length"]))
        labels = random.Random(prompt).sample(["person", "place", "event", "money", "crowd"], 2)
        choice = {"index": 0, "text": f" 2 | {' | '.join(labels)}", "finish_reason": "stop"}
        content = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _expected(folder: Path, command: list[str]) -> dict[str, bytes]:
    """Return what the command writes without kills."""
    os.chdir(folder)
    for name in ("whole", "killed"):
        (folder / name).mkdir()
    assert run([*command, "-o", "whole/sets.jsonl"]) == 0
    found = _sets(folder / "whole")
    texts = (folder / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for part in found.values() for line in part.splitlines()]
    assert [row["id"] for row in rows] == list(range(len(texts))), "a text is missing, or is there twice"
    assert len({tuple(row["labels"]) for row in rows}) > 1, "all sets are the same, so nothing is tested"
    return found


def _check(folder: Path, expected: dict[str, bytes]) -> None:
    assert _sets(folder / "killed") == expected
    left = [path.name for path in (folder / "killed").iterdir() if path.name.startswith(".")]
    assert not left, f"left behind: {left}"


def _sets(out: Path) -> dict[str, bytes]:
    return {name: lines for name, lines in sorted(outputs(out).items()) if "answers" not in name}


def _finished_bytes(out: Path) -> int:
    """Return the size of what a run has finished: windows in a journal, or shards with their notes."""
    for left in out.glob(".*.unfinished"):
        if left.is_file():
            return sum(len(line) for line in left.read_bytes().splitlines(True) if not line.startswith(b"#"))
        return sum(note.with_suffix("").stat().st_size for note in left.glob("*.notes"))
    return 0


def _n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@contextmanager
def _meanwhile(act: Callable[[Event], None]) -> Iterator[None]:
    stop = Event()
    thread = Thread(target=act, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_all() -> None:
    """Try all, and print what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    tries: dict[str, Callable[[Path, str], Any]] = {
        "command": lambda folder, model: kill_command(folder, model, options.kills),
        "shards": lambda folder, model: kill_command(folder, model, options.kills, "--shards", str(N_SHARDS)),
        "actors": lambda folder, model: kill_actors(folder, model, options.kills),
        "server": lambda folder, _: kill_server(folder, options.texts, options.kills),
    }
    parser.add_argument("--only", nargs="*", choices=tries, default=list(tries))
    options = parser.parse_args()
    import setaug.models.neural.training  # noqa: F401 - so that a child need not load it again

    with tempfile.TemporaryDirectory() as place:
        base = Path(place).resolve()
        lay_out(base, 10)
        model = str(base / "model")
        assert run(["train", str(base / "few.jsonl"), "--model", "tiny", "-o", model, "--epochs", "1"]) == 0
        for name in options.only:
            folder = base / name
            folder.mkdir()
            lay_out(folder, options.texts)
            began = time.monotonic()
            found = tries[name](folder, model)
            sys.stdout.write(f"{name}: {options.texts:,} texts, {found}; {time.monotonic() - began:.0f} s; all whole\n")
            sys.stdout.flush()


if __name__ == "__main__":
    run_all()
