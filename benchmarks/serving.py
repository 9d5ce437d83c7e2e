"""Measure a server with a tiny model on this machine: requests a second, how long each takes, and that none is wrong.

    OMP_NUM_THREADS=1 python benchmarks/serving.py load [--seconds 10] [--clients 1 8 64]
    OMP_NUM_THREADS=1 python benchmarks/serving.py labels [--labels 10000] [--examples 100000]

``load`` asks for sets of single texts, compares each answer with the model's own, and then asks more than the server
lets wait: it has to turn requests away, stay up, and recover. ``labels`` times what the page asks for where there
are many labels. Clients and server share the machine.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from setaug.sample import sample_examples

TEXTS = [example.text for example in sample_examples(200, seed=5)]


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Run a server on a free port; give its address."""
    command = [sys.executable, "-m", "setaug", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            line = server.stderr.readline() if server.stderr else ""
            found = re.match(r"http://(\S+)/", line)
            if found is None:
                sys.exit(line)
            yield found[1]
        finally:
            server.send_signal(signal.SIGTERM)


class Client:
    """Ask one thing after the other over one connection."""

    def __init__(self, place: str) -> None:
        self.place = urlsplit(f"//{place}")

    async def __aenter__(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection(self.place.hostname, self.place.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        """Send a request; give status and content."""
        content = b"" if body is None else json.dumps(body).encode()
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
    tally, numbers = Tally(), count()
    until = time.perf_counter() + seconds

    async def one() -> None:
        async with Client(place) as client:
            while time.perf_counter() < until:
                first = next(numbers)
                texts = [TEXTS[(first + at) % len(TEXTS)] for at in range(n_texts)]
                start = time.perf_counter()
                status, content = await client.ask("/api/predict", {"texts": texts})
                took = time.perf_counter() - start
                if status == 503:
                    tally.outcomes["turned away"] += 1
                    await asyncio.sleep(0.02)
                elif status == 200 and json.loads(content)["predictions"] == [expected[text] for text in texts]:
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


def load(options: argparse.Namespace, folder: Path) -> None:
    from setaug.models import SetGenerator, TrainingSettings, load_model

    model = folder / "tiny"
    SetGenerator("tiny", training=TrainingSettings(epochs=2, seed=1)).fit(list(sample_examples(200)), folder=model)
    own = load_model(model)
    expected: dict[str, object] = {text: own.predict([text])[0].as_row() for text in TEXTS}
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
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        {"load": load, "labels": labels}[options.command](options, Path(folder))


if __name__ == "__main__":
    main()
