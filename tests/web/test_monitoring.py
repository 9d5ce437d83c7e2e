"""Logs, metrics, readiness; what fails has an id; nothing is computed for those who left."""

import json
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from setaug.predictions import Prediction
from setaug.settings import Decoding
from setaug.web import Limits
from setaug.web.data.datasets import Datasets
from setaug.web.monitoring import _Json, _Text
from tests.web.serving import Server, serving
from tests.web.test_connections import send, wait_until

LINE = b'{"text": "x", "labels": ["a", "b"]}\n'


class Model:
    """A model that takes its time, and fails, or hangs until it is released, where it is told to."""

    kind = "generator"
    decoding = Decoding()

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.released = threading.Event()

    def predict(self, texts: Sequence[str], **_: Any) -> list[Prediction]:
        self.seen += texts
        time.sleep(0.05)
        if "hang" in texts:
            assert self.released.wait(600)
        if "fail" in texts:
            raise ValueError("secret detail")
        return [Prediction(labels=(text,)) for text in texts]


def metrics(server: Server) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(server.ask("/metrics")[1].decode()):
        for one in family.samples:
            found[one.name + "".join(f" {value}" for _, value in sorted(one.labels.items()))] = one.value
    return found


def test_an_error_of_ours_is_logged_with_the_id_of_the_answer(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Datasets, key: str) -> None:
        raise ValueError("secret detail")

    with serving(model=Model()) as server, caplog.at_level(logging.INFO, "setaug.web"):
        monkeypatch.setattr(Datasets, "get", fail)
        for path, body in (("/api/datasets/x/graph", None), ("/api/predict", {"texts": ["fail"]})):
            caplog.clear()
            status, content = server.ask(path, body)
            told = json.loads(content)
            assert status == 500
            assert "ValueError" in told["error"]
            assert "secret" not in told["error"]
            (failure,) = [record for record in caplog.records if record.exc_info]
            assert failure.__dict__["id"] == told["id"]
        assert server.json("/api/health/ready") == {"status": "ok"}


def test_one_line_a_request(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server, caplog.at_level(logging.INFO, "setaug.web"):
        server.ask("/api/health/live", secret="sesame")
        server.ask("/a%0Ab")
        wait_until(lambda: len(caplog.records) == 2)
    first, second = caplog.records
    written = _Text("%(message)s%(shown_id)s").format(first)
    assert written.startswith("127.0.0.1 GET /api/health/live 200 15 bytes 0.")
    told = json.loads(_Json().format(second))
    assert (told["path"], told["status"], told["method"], told["level"]) == ("/a%0Ab", 404, "GET", "info")
    assert "sesame" not in written


def test_an_upload_that_is_broken_off_is_one_line_without_traceback(caplog: pytest.LogCaptureFixture) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
    with serving(model=Model()) as server, caplog.at_level(logging.INFO):
        for path in (b"/api/datasets", b"/api/predict"):
            caplog.clear()
            with send(server, head % path):
                time.sleep(0.3)
            wait_until(lambda: len(caplog.records) > 0)
            time.sleep(0.2)
            (record,) = caplog.records
            assert record.__dict__["status"] == 499
            assert record.exc_info is None


def test_nothing_is_predicted_for_clients_that_left() -> None:
    model = Model()
    body = json.dumps({"texts": ["hang"] * 64, "samples": 8}).encode()
    head = b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with serving(model=model, limits=Limits(batch_size=16)) as server:
        opened = [send(server, request) for _ in range(2)]
        wait_until(lambda: "hang" in model.seen)
        for connection in opened:
            connection.close()
        wait_until(lambda: metrics(server)["setaug_texts_waiting"] == 0)
        model.released.set()
        assert server.json("/api/predict", {"texts": ["a"]})["predictions"][0]["labels"] == ["a"]
        assert model.seen.count("hang") == 2  # of 128: the first batch


def test_a_model_that_hangs_makes_the_server_not_ready_but_live() -> None:
    model = Model()
    with serving(model=model, limits=Limits(predict_seconds=0.3)) as server:
        assert server.json("/api/health/ready") == {"status": "ok"}
        assert "took more than 0.3 s" in server.refused(504, "/api/predict", {"texts": ["hang"]})
        wait_until(lambda: server.ask("/api/health/ready")[0] == 503)
        assert "busy with one batch" in server.refused(503, "/api/health/ready")
        assert server.json("/api/health")["status"] == "failing"
        assert server.json("/api/health/live") == {"status": "ok"}
        assert metrics(server)["setaug_ready"] == 0
        model.released.set()
        wait_until(lambda: server.ask("/api/health/ready")[0] == 200)
        wait_until(lambda: server.ask("/api/predict", {"texts": ["a"]})[0] == 200)


def test_metrics_count_what_happens() -> None:
    with serving(model=Model()) as server:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda at: server.json("/api/predict", {"texts": [f"{at}"]}), range(16)))
        server.json("/api/datasets", LINE)
        server.ask("/nothing")
        found = metrics(server)
    assert found["setaug_requests_total POST predict 200"] == 16
    assert found["setaug_requests_total POST upload 201"] == 1
    assert found["setaug_requests_total GET other 404"] == 1
    assert found["setaug_request_seconds_count predict"] == 16
    assert found["setaug_batch_texts"] == 16
    assert 1 < found["setaug_batches"] <= 16
    assert (found["setaug_datasets"], found["setaug_disk_bytes"]) == (1, len(LINE))
    assert found["setaug_connections"] >= 1
    assert found["process_resident_memory_bytes"] > 1e7


def test_metrics_are_for_those_who_may_ask() -> None:
    with serving(key="sesame") as server:
        server.refused(401, "/metrics")
        assert server.ask("/metrics", headers={"Authorization": "Bearer sesame"})[0] == 200
    with serving() as server:
        server.refused(403, "/metrics", headers={"Host": "evil.example"})
