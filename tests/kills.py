"""Kill each command that writes at many moments: what it names is whole, and the same command then finishes the work.

``python -m tests.kills --moments 20`` tries all commands; the test suite tries fewer moments.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from setaug.cli import main
from setaug.sample import sample_examples
from tests.conftest import write_examples

MODEL, SERVER = "MODEL", "SERVER"
COMMANDS = {
    "augment to JSON lines": "augment train.jsonl -o out/pairs.jsonl -q",
    "augment to zstandard": "augment train.jsonl -o out/pairs.jsonl.zst -q",
    "augment to Parquet": "augment train.jsonl -o out/pairs.parquet -q",
    "augment to CSV": "augment train.jsonl -o out/pairs.csv.gz -q",
    "augment to shards": "augment train.jsonl -o out/pairs.jsonl --shards 5 -q",
    "inspect": "inspect few.jsonl --html out/report.html --graph out/labels.svg",
    "simulate data": "simulate data --examples 20000 -o out/made-up.jsonl",
    "split": "split train.jsonl -o out",
    "predict": f"predict {MODEL} few.jsonl -o out/predictions.jsonl -q",
    "predict to shards": f"predict {MODEL} few.jsonl -o out/predictions.jsonl --shards 3 -q",
    "score": f"score {MODEL} few.jsonl -o out/scores.jsonl -q",
    "evaluate": "evaluate few.jsonl few.jsonl --html out/report.html",
    "prompt": f"prompt few.jsonl --train few.jsonl --model m --base-url {SERVER} --answers kept -o out/sets.jsonl",
    "demo": "demo out --no-train --examples 2000",
    "train": "train few.jsonl --model tiny -o out/run --epochs 2 --checkpoint-every 2",
}


def try_command(command: list[str], folder: Path, moments: int) -> int:
    """Kill a command at so many moments of its time; return how often it was killed before its end."""
    os.chdir(folder)
    out = folder / "out"
    seconds = float("inf")
    for _ in range(2):  # the first may have to load or compile more
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        (folder / "kept").unlink(missing_ok=True)
        began = time.monotonic()
        run(command)
        seconds = min(seconds, time.monotonic() - began)
    whole = outputs(out)
    assert whole, "it wrote nothing"
    n_killed = 0
    for moment in range(moments):
        shutil.rmtree(out)
        out.mkdir()
        (folder / "kept").unlink(missing_ok=True)
        n_killed += run(command, kill_after=seconds * (moment + 0.5) / moments) == -signal.SIGKILL
        found = outputs(out)
        assert found.items() <= whole.items(), f"after a kill at {moment}: {found.keys()}"
        if command[0] == "train" and (out / "run" / "run.json").exists():
            command_again = [*command, "--resume"]
        elif ("--shards" in command or command[0] == "split") and found.keys() == whole.keys():
            continue  # all of them are in their places, and are not replaced
        else:
            command_again = command
        assert run(command_again) == 0, f"it cannot be run again after a kill at {moment}"
        assert outputs(out) == whole
        left = [path.name for path in out.iterdir() if path.name.startswith(".")]
        assert not left, f"left behind: {left}"
    return n_killed


def run(command: list[str], kill_after: float | None = None) -> int:
    """Run a command in a process of its own, and perhaps kill it; return how it ended."""
    child = start(command)
    began = time.monotonic()
    while kill_after is not None and time.monotonic() < began + kill_after:
        if (code := ended(child)) is not None:
            return code
        time.sleep(0.002)
    if kill_after is not None:
        os.kill(child, signal.SIGKILL)
    code = ended(child, wait=True)
    assert code is not None
    return code


def start(command: list[str]) -> int:
    """Start a command in a process of its own; return its id."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        code = 1
        try:
            code = main(command)
        finally:
            os._exit(code)
    return child


def ended(child: int, *, wait: bool = False) -> int | None:
    """Return how a process ended; None if it runs still."""
    found, status = os.waitpid(child, 0 if wait else os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def outputs(out: Path) -> dict[str, bytes]:
    """Return what a user finds: files, and models whose folder says that they are whole."""
    found = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file() and path.name[0] != "."}
    if (out / "run" / "setaug.json").exists():
        found["run"] = (out / "run" / "model.safetensors").read_bytes()
    return found


class _Answer(BaseHTTPRequestHandler):
    """A language model that always says the same."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "1 | joy"}
        content = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering() -> Iterator[str]:
    """Run such a model; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def lay_out(folder: Path, n_examples: int) -> None:
    """Write the input."""
    write_examples(folder / "train.jsonl", sample_examples(n_examples, seed=1))
    write_examples(folder / "few.jsonl", sample_examples(30, seed=1))


def try_commands(names: list[str], moments: int, n_examples: int, model: str) -> Iterator[tuple[str, int]]:
    """Try commands, each in a folder of its own."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder, answering() as server:
            lay_out(Path(folder), n_examples)
            command = COMMANDS[name].replace(MODEL, model).replace(SERVER, server)
            yield name, try_command(command.split(), Path(folder).resolve(), moments)


def run_all() -> None:
    """Try all commands, and print how often each was killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--only", nargs="*", choices=COMMANDS, default=list(COMMANDS))
    options = parser.parse_args()
    import setaug.models.neural.training.trainer  # noqa: F401 - so that a child need not load it again

    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder), 10)
        assert run(["train", f"{folder}/few.jsonl", "--model", "tiny", "-o", f"{folder}/model", "--epochs", "1"]) == 0
        for name, n_killed in try_commands(options.only, options.moments, options.examples, f"{folder}/model"):
            sys.stdout.write(f"{name}: killed {n_killed} of {options.moments} times before its end; all whole\n")
            sys.stdout.flush()


if __name__ == "__main__":
    run_all()
