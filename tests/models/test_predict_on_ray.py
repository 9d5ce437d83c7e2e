"""Actors on Ray predict what one machine predicts, whatever dies on the way."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from setaug import load_model, read_predictions
from setaug.cli import main
from setaug.errors import DataError
from setaug.models.predict_files import predict_files
from setaug.models.predict_on_ray import Actors, predict_on_ray
from setaug.sample import sample_examples

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'setaug[ray]'")
psutil = pytest.importorskip("psutil")
pytestmark = [
    pytest.mark.minutes,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # it warns of its own doings
]
TWO = Actors(workers=2)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": one.id, "text": one.text}) + "\n" for one in sample_examples(60, seed=3)]
    Path("in.jsonl").write_text("".join(rows))
    return tmp_path


def shards(name: str) -> list[Any]:
    return [one for path in sorted(Path().glob(f"{name}-*.jsonl")) for one in read_predictions(path)]


@pytest.mark.parametrize("changes", [{}, {"samples": 3, "seed": 7}])
def test_actors_predict_what_one_machine_predicts(generator_folder: Path, changes: dict[str, Any]) -> None:
    report = predict_on_ray(generator_folder, "in.jsonl", "out.jsonl", shards=5, actors=TWO, **changes)
    assert report.n_sets == 60
    predict_files(load_model(generator_folder), "in.jsonl", "local.jsonl", **changes)
    expected = list(read_predictions("local.jsonl"))
    assert [(one.id, one.labels, one.generation) for one in shards("out")] == [
        (one.id, one.labels, one.generation) for one in expected
    ]


def kill_an_actor(killed: list[int]) -> None:
    """Kill an actor of this cluster once it runs."""
    began = time.monotonic()
    while not killed and time.monotonic() < began + 120:
        for child in psutil.Process().children(recursive=True):
            if child.name().startswith("ray::_Actor"):
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)
                return
        time.sleep(0.05)


def test_an_actor_that_dies_is_started_again(generator_folder: Path) -> None:
    killed: list[int] = []
    killer = Thread(target=kill_an_actor, args=[killed])
    killer.start()
    predict_on_ray(generator_folder, "in.jsonl", "out.jsonl", shards=4, actors=TWO)
    killer.join()
    assert killed
    predict_files(load_model(generator_folder), "in.jsonl", "local.jsonl")
    assert shards("out") == list(read_predictions("local.jsonl"))
    assert not list(Path().glob(".*"))


def test_a_bad_line_is_told_as_on_one_machine(generator_folder: Path) -> None:
    lines = Path("in.jsonl").read_text().splitlines()
    lines[50] = "{"
    Path("bad.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"line 51 of bad\.jsonl: not valid JSON"):
        predict_on_ray(generator_folder, "bad.jsonl", "out.jsonl", shards=3)
    arguments = ["bad.jsonl", "-o", "cli.jsonl", "--engine", "ray", "--shards", "3", "--skip-bad"]
    assert main(["predict", str(generator_folder), *arguments]) == 0
    assert len(shards("cli")) == 59
