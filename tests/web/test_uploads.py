"""What uploads may take of memory and disk, and that nothing of them is left."""

import json
import resource
import socket
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tracemalloc import get_traced_memory, start, stop

import pytest

from setaug.examples import Columns
from setaug.orders.statistics import LabelStatistics
from setaug.web import Limits
from setaug.web.data.questions import read_bounded
from setaug.web.folder import own_folder
from setaug.web.limits import Budget, Refusal
from tests.web.serving import Server, serving
from tests.web.test_connections import answered, read_all, send, wait_until

LINE = b'{"text": "x", "labels": ["a"]}\n'


def row(n_labels: int, first: int = 0) -> bytes:
    labels = [f"{first + at}" for at in range(n_labels)]
    return json.dumps({"text": "x", "labels": labels}).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (row(257), "too many labels in set 1; the limit is 256"),
        (LINE + row(20_000), "too many labels in set 2; the limit is 256"),
        (row(200) * 5, "too many label pairs over all sets; the limit is 35,000"),
        (LINE * 9000, "too many bytes of memory; the limit is 1,000,000"),
        (b'{"text": "' + b"x" * 250_001 + b'", "labels": []}', "a line is too long; the limit is 250,000"),
        (b'{"text": 3}\n', "line 1 of data.jsonl"),
        (b"", "contains no examples"),
    ],
)
def test_uploads_are_bounded_and_removed(content: bytes, sentence: str) -> None:
    limits = Limits(label_pairs=35_000, held_memory=2_000_000, line_bytes=250_000)
    with serving(limits=limits) as server:
        status, answer = server.ask("/api/datasets", content)
        assert status in (400, 413)
        assert sentence in json.loads(answer)["error"]
        assert list(server.folder.iterdir()) == []
        assert server.json("/api/datasets", row(256))["n_examples"] == 1


def test_twenty_thousand_labels_take_no_memory() -> None:
    with serving() as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        server.refused(413, "/api/datasets", row(20_000))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KB; all pairs take 8 GB


@pytest.mark.parametrize(
    "content",
    [
        LINE * 20_000,
        "".join(json.dumps({"text": f"é🎾{at}" * 9, "labels": []}) + "\n" for at in range(9000)).encode(),
        b"".join(row(3, 3 * at) for at in range(9000)),
        b"".join(row(40, 40 * at) for at in range(300)),
        b'{"text": "", "labels": [], "more": {"a": [1, 2, 3], "b": "text"}}\n' * 9000,
    ],
    ids=["tiny", "wide", "labels", "pairs", "fields"],
)
def test_the_memory_of_a_data_set_is_what_is_counted(content: bytes) -> None:
    stream = BytesIO(content)
    start()
    try:
        examples, counted = read_bounded(stream, "a", "jsonl", Columns(), None)
        statistics = LabelStatistics().update(example.labels for example in examples)
        statistics.pair_count("1", "2")  # adds them up
        taken, _ = get_traced_memory()
    finally:
        stop()
    assert counted / 3 < taken < 1.1 * counted


def test_held_data_sets_are_bounded_in_memory_too() -> None:
    with serving(limits=Limits(held_memory=2_000_000)) as server:
        keys = [server.json("/api/datasets", LINE * 4000)["id"] for _ in range(4)]
        assert [server.ask(f"/api/datasets/{key}/labels")[0] for key in keys] == [404, 404, 200, 200]
        assert sorted(path.name for path in server.folder.iterdir()) == sorted(keys[2:])


def test_a_download_is_bounded_in_bytes() -> None:
    line = json.dumps({"text": "x" * 1000, "labels": ["a", "b"]}).encode() + b"\n"
    with serving(limits=Limits(download_bytes=20_000_000)) as server:
        key = server.json("/api/datasets", line * 8000)["id"]
        path = f"/api/datasets/{key}/augment"
        assert "the pairs exceed 20,000,000 bytes; use fewer orders" in server.refused(413, path, orders=20)
        assert [found.name for found in server.folder.iterdir()] == [key]
        assert server.ask(path, orders=0)[1].count(b"\n") == 8000


def test_an_upload_that_is_broken_off_leaves_nothing() -> None:
    head = b"POST /api/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    with serving() as server:
        with send(server, head + LINE):
            wait_until(lambda: len(list(server.folder.iterdir())) == 1)
        wait_until(lambda: not list(server.folder.iterdir()))


def upload(server: Server, address: str) -> socket.socket:
    """Begin an upload, and leave it at that."""
    head = b"POST /api/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    return send(server, head + LINE, address)


def test_only_so_many_uploads_are_under_way_and_of_one_address_a_quarter() -> None:
    whole = b"POST /api/datasets HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 31\r\n\r\n" + LINE
    with serving(limits=Limits(uploads=8, body_seconds=60)) as server:
        opened = [upload(server, f"127.0.0.{at}") for at in (2, 2, 3, 3, 4, 4, 5)]
        wait_until(lambda: len(list(server.folder.iterdir())) == 7)
        with send(server, whole, "127.0.0.2") as refused:  # the gate is in front of the body
            assert answered(read_all(refused))[0] == 503
        with send(server, whole, "127.0.0.6") as taken:
            assert b"201 Created" in read_all(taken)
        opened.append(upload(server, "127.0.0.5"))
        wait_until(lambda: len(list(server.folder.iterdir())) == 9)
        with send(server, whole, "127.0.0.6") as refused:
            assert answered(read_all(refused))[0] == 503
        for connection in opened:
            connection.close()
        wait_until(lambda: len(list(server.folder.iterdir())) == 1)


def test_bodies_in_memory_are_bounded() -> None:
    head = b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    with serving(limits=Limits(bodies_bytes=100_000, body_seconds=60)) as server:

        def is_refused(address: str) -> bool:
            with send(server, head % 40_000 + b" " * 40_000, address) as connection:
                return b"503 Service Unavailable" in connection.recv(1 << 16)

        def hold(address: str) -> socket.socket:
            return send(server, head % 60_000 + b" " * 45_000, address)

        assert not is_refused("127.0.0.2")
        with hold("127.0.0.2"):
            wait_until(lambda: is_refused("127.0.0.2"))  # its share is half
            assert not is_refused("127.0.0.4")
            with hold("127.0.0.3"):
                wait_until(lambda: is_refused("127.0.0.4"))


def test_a_budget_is_shared() -> None:
    budget = Budget(4, 2)
    with budget.taking("a", 2):
        with pytest.raises(Refusal):
            budget.take("a")
        with budget.taking("b", 2), pytest.raises(Refusal):
            budget.take("c")
    assert budget.taken == 0
    budget.take("a", 2)


def test_folders_of_servers_that_were_killed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import sys, tempfile, time\nfrom setaug.web.folder import own_folder\ntempfile.tempdir = sys.argv[1]\n"
        "with own_folder() as folder:\n    (folder / 'upload').touch()\n"
        "    print(folder, flush=True)\n    time.sleep(60)"
    )
    others = tmp_path / "setaug-serve-link"
    (tmp_path / "mine").mkdir()
    others.symlink_to(tmp_path / "mine")
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        left = Path(run.stdout.readline().strip())
        try:
            with own_folder() as folder:
                assert folder.exists()
                assert (left / "upload").exists()  # its server runs
            assert not folder.exists()
        finally:
            run.kill()
    assert (left / "upload").exists()
    with own_folder():
        assert not left.exists()
    assert (tmp_path / "mine").exists()
