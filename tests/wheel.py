"""Try a wheel in an empty environment, without the repository: ``python -m tests.wheel dist/*.whl``.

With ``--train``, models are installed too, and the first Python example of README is run and timed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--train", action="store_true")
    options = parser.parse_args()
    extras = "serve,train" if options.train else "serve"
    with TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        python, setaug = place / "env/bin/python", str(place / "env/bin/setaug")
        wheel = f"{options.wheel.resolve()}[{extras}]"
        pandas = ["pandas"] if options.train else []
        limits = ["-c", str(ROOT / "constraints.txt")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *limits, wheel, *pandas], check=True)
        work = place / "work"
        work.mkdir()
        code = "import setaug; print(setaug.__file__)"
        home = run(work, str(python), "-c", code).stdout
        assert home.startswith(str(place / "env")), f"not the wheel: {home}"
        try_commands(work, setaug)
        try_page(work, setaug)
        if options.train:
            time_readme(work, str(python))
    print(f"{options.wheel.name} works without the repository")  # noqa: T201


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done


def try_commands(work: Path, setaug: str) -> None:
    run(work, setaug, "demo", "--no-train")
    for name in ("examples.jsonl", "pairs.jsonl", "labels.svg"):
        assert (work / "demo" / name).stat().st_size > 1000
    said = run(work, setaug, "inspect", "demo/examples.jsonl", "--html", "report.html").stdout
    assert "2,000" in said
    assert "<svg" in (work / "report.html").read_text()
    run(work, setaug, "augment", "demo/examples.jsonl", "-o", "pairs.csv", "--orders", "1")
    assert len((work / "pairs.csv").read_text().splitlines()) == 4001


def try_page(work: Path, setaug: str) -> None:
    """Serve the page, and fetch it, its files and the data set's graph."""
    command = [setaug, "serve", "--data", "demo/examples.jsonl", "--port", "0"]
    with subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            lines = iter(server.stderr.readline, "")
            address = next(found[0] for line in lines if (found := re.search(r"http://[\d.]+:\d+", line)))
            page = get(f"{address}/")
            for name in re.findall(r'(?:src|href)="/?([\w./-]+\.(?:js|css|svg))"', page):
                assert get(f"{address}/{name}"), name
            assert json.loads(get(f"{address}/api/health"))["dataset"]["n_examples"] == 2000
        finally:
            server.terminate()


def get(address: str) -> str:
    with urlopen(address, timeout=30) as reply:
        return str(reply.read().decode())


def time_readme(work: Path, python: str) -> None:
    first = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    began = time.monotonic()
    said = run(work, python, "-c", first).stdout
    lines = [line for line in first.splitlines() if line]
    print(f"{len(lines)} lines of README in {time.monotonic() - began:.0f} s:\n{said}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
