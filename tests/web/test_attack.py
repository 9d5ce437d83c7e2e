"""Good clients beside hostile ones: no request fails, no answer is wrong, memory and disk stay within bounds."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from setaug.models import SetGenerator
from setaug.sample import sample_examples
from tests.web.serving import process

HOSTILE = Path(__file__).parents[2] / "benchmarks" / "hostile.py"
TEXTS = [example.text for example in sample_examples(40, seed=3)]
SECONDS = 2
"""At least; they go on until each kind of hostile client has been seen."""
SIGNS = ("/api/predict 422", "/api/datasets 413", "/api/predict 499")
"""What the log tells of hostile clients, each kind of them."""


@pytest.mark.slow
@pytest.mark.skipif(not HOSTILE.exists(), reason="benchmarks/hostile.py is not here")
def test_hostile_clients_harm_only_themselves(generator_folder: Path, generator: SetGenerator, tmp_path: Path) -> None:
    expected = {text: generator.predict([text])[0].to_dict() for text in TEXTS}
    with process(str(generator_folder), environment={"TMPDIR": str(tmp_path), "SETAUG_API_KEY": ""}) as (server, run):
        until = time.monotonic() + SECONDS

        def memory() -> int:
            main = psutil.Process(run.pid)
            return sum(one.memory_info().rss for one in (main, *main.children(recursive=True)))

        before = memory()

        def missing() -> list[str]:
            log = server.log.read_text()
            return [sign for sign in SIGNS if sign not in log]

        def ask(at: int) -> list[int]:
            statuses = []
            while time.monotonic() < until or (time.monotonic() < until + 120 and missing()):
                text = TEXTS[(at + len(statuses)) % len(TEXTS)]
                status, content = server.ask("/api/predict", {"texts": [text]})
                assert status == 200, content
                assert json.loads(content)["predictions"] == [expected[text]]
                statuses.append(status)
            return statuses

        place = server.url.removeprefix("http://")
        with subprocess.Popen([sys.executable, str(HOSTILE), place]) as hostile, ThreadPoolExecutor(16) as pool:
            try:
                answered = list(pool.map(ask, range(16)))
                status = hostile.poll()
                n_bytes = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
                after = memory()
            finally:
                hostile.terminate()
        assert status is None  # they went on to the end
        assert all(answered)
        assert after - before < 2 << 30
        assert n_bytes < 2 << 30
        assert server.json("/api/health/ready") == {"status": "ok"}
        log = server.log.read_text()
    assert "Traceback" not in log
    assert all(sign in log for sign in SIGNS)  # each kind was there
