"""Measure a server with a tiny model on this machine: requests a second, how long each takes, and that none is wrong.

    OMP_NUM_THREADS=1 python benchmarks/serving.py load [--seconds 10] [--clients 1 8 64]
    OMP_NUM_THREADS=1 python benchmarks/serving.py labels [--labels 10000] [--examples 100000]
    OMP_NUM_THREADS=1 python benchmarks/serving.py attack [--seconds 60] [--clients 64]
    OMP_NUM_THREADS=1 python benchmarks/serving.py bounds

``load`` asks for sets of single texts, compares each answer with the model's own, and then asks more than the server
lets wait: it has to turn requests away, stay up, and recover. ``labels`` times what the page asks for where there
are many labels. ``attack`` compares good clients alone with good clients beside hostile ones. ``bounds`` fills the
server with the largest and the most awkward files that it takes. Clients and server share the machine.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import psutil

from setaug.sample import sample_examples

TEXTS = [example.text for example in sample_examples(200, seed=5)]


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    place: str
    pid: int
    folder: Path
    """Its temporary files."""

    def memory(self) -> int:
        """Return the resident memory in bytes of its processes."""
        total = 0
        for one in (psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
        return total

    def disk(self) -> int:
        """Return the bytes of all files that it has open or named in its folder."""
        sizes = {}
        pids = (self.pid, *(one.pid for one in psutil.Process(self.pid).children(recursive=True)))
        for path in (*self.folder.rglob("*"), *(path for pid in pids for path in Path("/proc").glob(f"{pid}/fd/*"))):
            with suppress(OSError):
                found = path.stat()
                if found.st_dev == self.folder.stat().st_dev and stat.S_ISREG(found.st_mode):
                    sizes[found.st_ino] = found.st_blocks * 512
        return sum(sizes.values())


@contextmanager
def running(*arguments: str) -> Iterator[Running]:
    """Run a server on a free port, with its log and its temporary files in a folder of its own."""
    command = [sys.executable, "-m", "setaug", "serve", "--port", "0", *arguments]
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("r") as log:
        with subprocess.Popen(command, stderr=open(log.name, "w"), env=os.environ | {"TMPDIR": folder}) as server:
            try:
                while not (line := log.readline()) and server.poll() is None:
                    time.sleep(0.05)
                found = re.match(r"http://(\S+)/", line)
                if found is None:
                    sys.exit(line)
                yield Running(found[1], server.pid, Path(folder))
            finally:
                server.send_signal(signal.SIGTERM)
        failures = [line for line in log if "Traceback" in line or "ERROR" in line]
        print(f"{'failures in the log':31} {len(failures):8}", *failures[:3])


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Run a server; give its address."""
    with running(*arguments) as server:
        yield server.place


class Client:
    """Ask one thing after the other over one connection."""

    def __init__(self, place: str, address: str = "127.0.0.1") -> None:
        self.place, self.address = urlsplit(f"//{place}"), address

    async def __aenter__(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection(
            self.place.hostname, self.place.port, local_addr=(self.address, 0), limit=1 << 20
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        """Send a request; give status and content."""
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: {self.place.netloc}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.writer.write(head.encode() + content)
        answered = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"content-length: (\d+)", answered)
        return int(answered.split()[1]), await self.reader.readexactly(int(length[1]) if length else 0)


@dataclass
class Tally:
    """Count what came back."""

    seconds: list[float] = field(default_factory=list)
    """How long each right answer took."""
    outcomes: Counter[str] = field(default_factory=Counter)


async def ask_many(place: str, n_clients: int, seconds: float, expected: dict[str, object], n_texts: int = 1) -> Tally:
    """Let clients ask for sets, each as soon as it has an answer, and compare the answers with those expected."""
    tally, numbers, addresses = Tally(), count(), count(1)
    until = time.perf_counter() + seconds

    async def one() -> None:
        async with Client(place, f"127.1.0.{next(addresses)}") as client:
            while time.perf_counter() < until:
                first = next(numbers)
                texts = [TEXTS[(first + at) % len(TEXTS)] for at in range(n_texts)]
                start = time.perf_counter()
                status, content = await client.ask("/api/predict", {"texts": texts})
                took = time.perf_counter() - start
                if status == 503:
                    tally.outcomes["turned away"] += 1
                    await asyncio.sleep(0.02)
                elif status == 200 and _sets(json.loads(content)) == [expected[text] for text in texts]:
                    tally.outcomes["right"] += 1
                    tally.seconds.append(took)
                else:
                    tally.outcomes["wrong"] += 1

    lost = await asyncio.gather(*(one() for _ in range(n_clients)), return_exceptions=True)
    tally.outcomes["lost"] += sum(found is not None for found in lost)
    return tally


def report(name: str, tally: Tally, seconds: float) -> None:
    times = sorted(tally.seconds) or [float("nan")]
    middle, late = statistics.median(times), times[min(int(0.95 * len(times)), len(times) - 1)]
    kept = {name: tally.outcomes[name] for name in ("wrong", "lost", "turned away")}
    rate = tally.outcomes["right"] / seconds
    print(f"{name:31} {rate:8.1f}/s  p50 {1000 * middle:7.1f} ms  p95 {1000 * late:7.1f} ms  {kept}", flush=True)


def train(folder: Path) -> tuple[Path, dict[str, object]]:
    """Train a tiny model; give its folder, and its own answers."""
    from setaug.models import SetGenerator, TrainingSettings, load_model

    model = folder / "tiny"
    SetGenerator("tiny", training=TrainingSettings(epochs=2, seed=1)).fit(list(sample_examples(200)), folder=model)
    own = load_model(model)
    return model, {text: list(own.predict([text])[0].labels) for text in TEXTS}


def _sets(reply: dict[str, list[dict[str, list[str]]]]) -> list[list[str]]:
    """Return the sets of a reply; their probabilities vary in the last digits with the other texts of a batch."""
    return [one["labels"] for one in reply["predictions"]]


def load(options: argparse.Namespace, folder: Path) -> None:
    from setaug.models import load_model

    model, expected = train(folder)
    own = load_model(model)
    start = time.perf_counter()
    for text in TEXTS[:40]:
        own.predict([text])
    alone = 40 / (time.perf_counter() - start)
    print(f"{'the model itself, one by one':31} {alone:8.1f}/s")
    with serving(str(model)) as place:
        asyncio.run(ask_many(place, 1, 1.0, expected))  # warm
        for n_clients in options.clients:
            tally = asyncio.run(ask_many(place, n_clients, options.seconds, expected))
            report(f"{n_clients} clients", tally, options.seconds)
    with serving(str(model), "--max-waiting", "32") as place:
        tally = asyncio.run(ask_many(place, 64, options.seconds, expected, n_texts=4))
        report("64 clients of 4 texts, limit 32", tally, options.seconds)
        if not tally.outcomes["turned away"]:
            sys.exit("nothing was turned away")
        report("then 1 client", asyncio.run(ask_many(place, 1, 2.0, expected)), 2.0)


async def ask_about_data(place: str, address: str, seconds: float) -> Tally:
    """Upload a small file, look at its graph, download its pairs; again and again."""
    tally, until = Tally(), time.perf_counter() + seconds
    line = b'{"text": "x", "labels": ["a", "b"]}\n'
    while time.perf_counter() < until:
        try:
            async with Client(place, address) as client:
                start = time.perf_counter()
                status, content = await client.ask("/api/datasets", line * 20)
                if status == 201:
                    path = f"/api/datasets/{json.loads(content)['id']}"
                    status, content = await client.ask(f"{path}/labels")
                    is_right = json.loads(content).get("n") == 2
                    status, content = await client.ask(f"{path}/augment?orders=0")
                    is_right = is_right and content.count(b"\n") == 20
                    tally.outcomes["right" if is_right else "wrong"] += 1
                    tally.seconds.append(time.perf_counter() - start)
                else:
                    tally.outcomes["turned away" if status == 503 else "wrong"] += 1
        except (OSError, EOFError):
            tally.outcomes["lost"] += 1
        await asyncio.sleep(0.5)
    return tally


def attack(options: argparse.Namespace, folder: Path) -> None:
    """Compare good clients alone with good clients beside one hostile client of each kind."""
    model, expected = train(folder)
    with running(str(model)) as server:
        asyncio.run(ask_many(server.place, options.clients, 3.0, expected))  # warm
        start = server.memory()
        late = {}
        for name in ("alone", "attacked", "alone again", "attacked again")[: 2 * options.rounds]:
            with watching(server) as peaks, attacking(server.place, name.startswith("attacked"), options.only):
                good, data = asyncio.run(ask_both(server.place, options.clients, options.seconds, expected))
            report(f"{name}: sets", good, options.seconds)
            report(f"{name}: data", data, options.seconds)
            print(f"{'':31} memory {peaks[0] / 1e6:.0f} MB (start {start / 1e6:.0f}), disk {peaks[1] / 1e6:.0f} MB")
            late[name] = np.quantile(good.seconds, 0.95)
            bad = {one: n for one, n in (good.outcomes + data.outcomes).items() if one != "right" and n}
            if bad:
                print(f"{'':31} good requests that failed: {bad}")
            if name.startswith("attacked"):
                print(f"{'':31} p95 is {late[name] / late[name.replace('attacked', 'alone')]:.2f} times that alone")
        client = asyncio.run(ask_once(server.place, "/metrics")).decode()
        print(*re.findall(r"^setaug_connections\w* .*", client, re.M), sep=", ")


async def ask_once(place: str, path: str) -> bytes:
    async with Client(place) as client:
        return (await client.ask(path))[1]


async def ask_both(place: str, n_clients: int, seconds: float, expected: dict[str, object]) -> tuple[Tally, Tally]:
    good, data = await asyncio.gather(
        ask_many(place, n_clients, seconds, expected), ask_about_data(place, "127.1.1.1", seconds)
    )
    return good, data


@contextmanager
def watching(server: Running) -> Iterator[list[int]]:
    """Note the most memory and disk that a server takes."""
    peaks, is_over = [0, 0], threading.Event()

    def watch() -> None:
        while not is_over.wait(0.2):
            peaks[:] = max(peaks[0], server.memory()), max(peaks[1], server.disk())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        is_over.set()
        thread.join()


@contextmanager
def attacking(place: str, is_on: bool, only: list[str] | None) -> Iterator[None]:
    """Run hostile clients in a process of their own."""
    if not is_on:
        yield
        return
    command = [sys.executable, str(Path(__file__).with_name("hostile.py")), place, *(only or [])]
    with subprocess.Popen(command) as run:
        try:
            time.sleep(2)
            yield
        finally:
            run.terminate()


def bounds(options: argparse.Namespace, folder: Path) -> None:
    """Fill a server with the largest files that it takes, in several shapes, and print what it takes itself."""
    for name, content in awkward_files():
        with running() as server, watching(server) as peaks:
            start = server.memory()
            statuses = asyncio.run(fill(server.place, content))
            time.sleep(0.5)
            print(
                f"{name:31} +{(peaks[0] - start) / 1e6:6.0f} MB memory, {peaks[1] / 1e6:6.0f} MB disk  {statuses}",
                flush=True,
            )


def awkward_files() -> Iterator[tuple[str, bytes]]:
    size = 50 << 20

    def repeated(line: bytes) -> bytes:
        return line * (size // len(line))

    sets = (b",".join(b'"%d"' % (25 * at + k) for k in range(25)) for at in range(13_000))
    yield "3.9 million different pairs", b"".join(b'{"text":"","labels":[%s]}\n' % labels for labels in sets)
    yield "20,000 labels in a set", b'{"text":"","labels":[%s]}\n' % b",".join(b'"%d"' % at for at in range(20_000))
    yield "long texts", repeated(b'{"text":"%s","labels":["a","b"]}\n' % (b"x" * 5000))
    yield "texts with an emoji", repeated(b'{"text":"\xf0\x9f\x8e\xbe%s","labels":["a","b"]}\n' % (b"x" * 500))
    yield "other fields", repeated(b'{"text":"","labels":[],"x":[%s0]}\n' % (b"{}," * 100_000))
    yield "different labels", b"".join(b'{"text":"","labels":["%d"]}\n' % at for at in range(1_600_000))
    yield "empty examples", repeated(b'{"text":"","labels":[]}\n')


async def fill(place: str, content: bytes) -> Counter[str]:
    """Upload a file from several addresses at once, and ask for all that can be computed about it."""
    statuses: Counter[str] = Counter()

    async def one(address: str) -> None:
        with suppress(OSError, EOFError):
            async with Client(place, address) as client:
                status, answer = await client.ask("/api/datasets", content)
                statuses[f"upload {status}"] += 1
                if status != 201:
                    return
                path = f"/api/datasets/{json.loads(answer)['id']}"
                for what in ("graph", "statistics?diagnosis=false", "augment?orders=20"):
                    status, _ = await client.ask(f"{path}/{what}")
                    statuses[f"{what.split('?')[0]} {status}"] += 1

    await asyncio.gather(*(one(f"127.2.0.{at}") for at in range(1, 4)))
    return statuses


def make_examples(n_labels: int, n_examples: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Give sets of two Zipf-distributed labels and most of those above each: 760 is a kind of 76, that of 7."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_labels + 1) ** 0.9
    names = rng.permutation(n_labels)
    for at, pair in enumerate(names[rng.choice(n_labels, (n_examples, 2), p=share / share.sum())].tolist()):
        above = [number // 10**up for number in pair for up in range(1, len(str(number)))]
        told = [number for number, lot in zip(above, rng.random(len(above)), strict=True) if lot < 0.72]
        yield {"text": f"example {at}", "labels": [f"label {number}" for number in dict.fromkeys(pair + told)]}


def labels(options: argparse.Namespace, folder: Path) -> None:
    file = folder / "many.jsonl"
    with file.open("w") as stream:
        for row in make_examples(options.labels, options.examples):
            stream.write(json.dumps(row) + "\n")
    print(f"{options.examples:,} examples, {options.labels:,} labels, {file.stat().st_size / 1e6:.1f} MB")
    start = time.perf_counter()
    with serving("--data", str(file)) as place:
        print(f"{'start':31} {time.perf_counter() - start:8.2f} s")
        look(place)
        asyncio.run(ask_in_turn(place))


def look(place: str) -> None:
    """Time what a person sees, in a browser; "will order help?" is being measured at the same time."""
    chromium = shutil.which("chromium")
    if chromium is None or find_spec("playwright") is None:
        print("(no browser: no times of the page)")
        return
    from playwright.sync_api import sync_playwright

    def timed(name: str, act: Callable[[], object]) -> None:
        start = time.perf_counter()
        act()
        print(f"{'page: ' + name:31} {1000 * (time.perf_counter() - start):8.0f} ms", flush=True)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)

        def search() -> None:
            page.fill("#search", page.locator("#graph g.label title").nth(3).text_content() or "")
            page.press("#search", "Enter")
            page.wait_for_selector("#graph [aria-current]")

        def slide() -> None:
            before = page.get_attribute("[data-name=n_edges]", "data-value")
            page.focus("#ratio")
            page.keyboard.press("ArrowRight")
            page.wait_for_selector(f"[data-name=n_edges]:not([data-value='{before}'])")

        timed("first graph", lambda: (page.goto(f"http://{place}/"), page.wait_for_selector("#graph g.label")))
        timed("all numbers", lambda: page.wait_for_selector("[data-name=n_edges]"))
        timed("a label searched for", search)
        print(f"{'page: labels in the picture':31} {page.locator('#graph g.label').count():8}")
        timed("numbers, slider moved", slide)
        browser.close()


async def ask_in_turn(place: str) -> None:
    async with Client(place) as client:
        found = json.loads((await client.ask("/api/health"))[1])["dataset"]["id"]
        label = json.loads((await client.ask(f"/api/datasets/{found}/labels?limit=30"))[1])["labels"][-1]["label"]
        for name, path, queries in (
            ("numbers, slider moved", "statistics", [{"min_ratio": 2 + at, "diagnosis": "false"} for at in range(5)]),
            ("graph, slider moved", "graph", [{"min_ratio": 2 + at} for at in range(5)]),
            ("graph around a label", "graph", [{"min_ratio": 2 + at, "around": label} for at in range(5)]),
            ("search for a label", "labels", [{"search": text} for text in "12345"]),
            ("examples with a label", "examples", [{"label": label, "offset": 10 * at} for at in range(5)]),
            ("will order help?", "statistics", [{}]),
        ):
            times = []
            for query in queries:
                start = time.perf_counter()
                status, _ = await client.ask(f"/api/datasets/{found}/{path}?{urlencode(query)}")
                times.append(time.perf_counter() - start)
                if status != 200:
                    sys.exit(f"{path}: {status}")
            print(f"{name:31} {1000 * statistics.median(times):8.0f} ms  (at most {1000 * max(times):.0f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("load")
    command.add_argument("--seconds", type=float, default=10.0)
    command.add_argument("--clients", nargs="*", type=int, default=[1, 8, 64])
    command = commands.add_parser("labels")
    command.add_argument("--labels", type=int, default=10_000)
    command.add_argument("--examples", type=int, default=100_000)
    command = commands.add_parser("attack")
    command.add_argument("--seconds", type=float, default=60.0)
    command.add_argument("--clients", type=int, default=64)
    command.add_argument("--rounds", type=int, default=1)
    command.add_argument("--only", nargs="*", help="kinds of hostile clients; see hostile.py")
    commands.add_parser("bounds")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        {"load": load, "labels": labels, "attack": attack, "bounds": bounds}[options.command](options, Path(folder))


if __name__ == "__main__":
    main()
