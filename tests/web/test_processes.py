"""Processes that read data sets: errors travel, work stops, and a process that dies is started again."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from setaug.errors import DataError
from setaug.web import Limits
from setaug.web.data.datasets import Datasets
from setaug.web.data.processes import Stopped, Worker, stop_if_asked
from setaug.web.limits import Refusal
from tests.web.serving import serving
from tests.web.test_connections import get, send, wait_until

LINE = b'{"text": "x", "labels": ["a", "b"]}\n'


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker(niceness=5)
    yield found
    found.end()


def fail(kind: str) -> None:
    if kind == "data":
        raise DataError("it is empty.", source="a.csv", line=3)
    if kind == "refusal":
        raise Refusal(413, "too much.", headers={"Retry-After": "2"})
    raise LookupError(kind)


def unsendable() -> object:
    return lambda: None


def work_for_ever() -> None:
    while True:
        stop_if_asked()
        time.sleep(0.01)


def test_results_and_errors_travel(worker: Worker) -> None:
    assert worker.call(os.getpriority, os.PRIO_PROCESS, 0) == os.getpriority(os.PRIO_PROCESS, 0) + 5
    with pytest.raises(DataError, match=r"^line 3 of a.csv: it is empty\.$"):
        worker.call(fail, "data")
    with pytest.raises(Refusal) as caught:
        worker.call(fail, "refusal")
    assert (caught.value.status, caught.value.headers) == (413, {"Retry-After": "2"})
    with pytest.raises(LookupError, match="else") as failed:
        worker.call(fail, "else")
    assert "in fail" in failed.value.__notes__[0]  # the traceback, for the log
    with pytest.raises(RuntimeError, match="cannot be sent"):
        worker.call(unsendable)


def test_work_that_nobody_waits_for_is_stopped(worker: Worker) -> None:
    checks = iter([None, None, ZeroDivisionError])

    def check() -> None:
        if (error := next(checks)) is not None:
            raise error

    with pytest.raises(ZeroDivisionError):
        worker.call(work_for_ever, check=check)
    pid = worker.pid
    assert worker.call(os.getpid) == pid  # it is free again
    stop_if_asked()  # nothing happens in a process that is no worker
    assert issubclass(Stopped, Exception)


def test_a_process_that_dies_is_started_again(worker: Worker) -> None:
    first = worker.call(os.getpid)
    with pytest.raises(Refusal, match="has ended; try again"):
        worker.call(os._exit, 1)
    assert worker.call(os.getpid) not in (first, os.getpid())
    assert worker.memory() > 1e6
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and the worker does not know
    assert worker.call(abs, -1) == 1


def test_data_sets_survive_the_death_of_their_process(tmp_path: Path) -> None:
    limits = Limits()
    datasets = Datasets(tmp_path, limits)
    with serving(datasets=datasets, limits=limits) as server:
        key = server.json("/api/datasets", LINE * 3)["id"]
        pid = datasets.workers.small.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: server.ask(f"/api/datasets/{key}/labels")[0] == 200)
        assert server.json(f"/api/datasets/{key}/labels")["n"] == 2
        assert datasets.workers.small.pid != pid


def test_small_data_sets_do_not_wait_for_large_ones(tmp_path: Path) -> None:
    limits = Limits(small_bytes=1000)
    datasets = Datasets(tmp_path, limits)
    with serving(datasets=datasets, limits=limits) as server:
        small, large, many_pairs = (
            server.json("/api/datasets", content)["id"]
            for content in (
                LINE * 2,
                LINE * 100,
                b'{"text": "", "labels": [%s"z"]}' % b"".join(b'"%d",' % n for n in range(40)),
            )
        )
        assert [datasets.get(key).is_large for key in (small, large, many_pairs)] == [False, True, True]
        worker = datasets.workers.large
        worker.call(abs, 1)
        os.kill(worker.pid or 0, signal.SIGSTOP)
        try:
            with send(server, get(f"/api/datasets/{large}/labels")):
                assert server.json(f"/api/datasets/{small}/labels")["n"] == 2
        finally:
            os.kill(worker.pid or 0, signal.SIGCONT)
        assert server.json(f"/api/datasets/{large}/labels")["n"] == 2


def test_processes_end_with_the_server(tmp_path: Path) -> None:
    datasets = Datasets(tmp_path, Limits())
    with serving(datasets=datasets) as server:
        server.json("/api/datasets", LINE)
        pid = datasets.workers.small.pid
        assert pid is not None
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
