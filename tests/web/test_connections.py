"""Clients that hold connections without using them, send slowly or do not read."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from setaug.web import Limits
from tests.web.serving import Server, serving

LINE = json.dumps({"text": "x" * 1000, "labels": ["a", "b"]}).encode() + b"\n"
LIMITS = Limits(connections=20, per_address=8, head_seconds=0.6, body_seconds=0.6, downloads=4)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(limits=LIMITS) as found:
        yield found


def connect(server: Server, address: str = "127.0.0.1") -> socket.socket:
    """Connect from an address of this machine."""
    place = urlsplit(server.url)
    assert place.hostname
    assert place.port
    return socket.create_connection((place.hostname, place.port), timeout=600, source_address=(address, 0))


def send(server: Server, content: bytes, address: str = "127.0.0.1") -> socket.socket:
    found = connect(server, address)
    found.sendall(content)
    return found


def read_all(connection: socket.socket) -> bytes:
    content = b""
    try:
        while part := connection.recv(1 << 16):
            content += part
    except ConnectionResetError:
        pass
    return content


def wait_until(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + 300  # a busy machine is slow, not wrong
    while time.monotonic() < until:
        if is_true():
            return
        time.sleep(0.05)
    pytest.fail("it did not become true")


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def answered(content: bytes) -> tuple[int, str]:
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


@pytest.mark.parametrize("start", [b"", b"G", b"GET /api/health HTTP/1.1\r\nHost: loc"])
def test_a_head_that_does_not_come_is_not_waited_for(start: bytes, server: Server) -> None:
    with send(server, start) as connection:
        assert answered(read_all(connection)) == (408, "the request headers were sent too slowly.")


def test_a_head_that_comes_byte_by_byte_is_cut(server: Server) -> None:
    begun = time.monotonic()
    with connect(server) as connection, suppress(ConnectionError):
        for byte in get("/api/health") * 10:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)
    assert time.monotonic() - begun < 30  # to send all of it takes longer


def test_the_head_of_a_second_request_has_the_same_time(server: Server) -> None:
    with send(server, get("/api/health/live") + b"GET /") as connection:
        content = read_all(connection)
    assert content.count(b"HTTP/1.1 200") == 1
    with send(server, get("/api/health/live")) as connection:
        connection.recv(1 << 16)
        connection.sendall(b"GET /")
        assert answered(read_all(connection))[0] == 408


def test_silent_connections_make_room_for_others(server: Server) -> None:
    with ExitStack() as stack:
        for at in range(40):
            stack.enter_context(connect(server, f"127.0.0.{2 + at // 20}"))
        for address in ("127.0.0.1", "127.0.0.2"):
            with send(server, get("/nothing"), address) as connection:
                assert b"404 Not Found" in connection.recv(1 << 16)


def test_connections_over_the_bound_of_an_address_are_refused_in_json() -> None:
    with serving(limits=replace(LIMITS, head_seconds=60)) as server, ExitStack() as stack:
        used = [stack.enter_context(send(server, get("/api/health/live"))) for _ in range(8)]
        assert all(b"200 OK" in one.recv(1 << 16) for one in used)
        status, content = server.ask("/api/health/live")
        assert (status, json.loads(content)) == (503, {"error": "too many connections; try again later."})
        assert server.headers("/api/health/live")["retry-after"] == "2"
        with send(server, get("/nothing"), "127.0.0.9") as connection:
            assert b"404 Not Found" in connection.recv(1 << 16)
        for one in used:
            one.close()
        wait_until(lambda: server.ask("/api/health/live") == (200, b'{"status":"ok"}'))


def test_what_is_no_http_is_refused_in_json(server: Server) -> None:
    with send(server, b"\x16\x03\x01 hello\r\n\r\n") as connection:
        assert answered(read_all(connection)) == (400, "invalid HTTP request.")


def test_a_body_that_comes_byte_by_byte_is_cut(server: Server) -> None:
    begun = time.monotonic()
    head = b"POST /api/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    with send(server, head) as connection:
        for _ in range(4):
            connection.sendall(b"x")
            time.sleep(0.1)
        assert answered(read_all(connection)) == (408, "the body was sent too slowly.")
    assert time.monotonic() - begun < 30


def test_a_download_that_is_not_read_is_cut_and_its_file_removed() -> None:
    with serving(limits=replace(LIMITS, body_seconds=3)) as server:  # time enough to ask for another one
        key = server.json("/api/datasets", LINE * 1000)["id"]
        path = f"/api/datasets/{key}/augment"
        with ExitStack() as stack:
            stalled = stack.enter_context(send(server, get(f"{path}?orders=20")))
            assert stalled.recv(1)  # a quarter of all: one address gets no more
            assert "try again later" in server.refused(503, path)
            with send(server, get(f"{path}?orders=0"), "127.0.0.9") as other:
                assert b"200 OK" in other.recv(1 << 10)
            wait_until(lambda: server.ask(path, orders=0)[1].count(b"\n") == 1000)
            wait_until(lambda: [one.name for one in server.folder.iterdir()] == [key])


def test_a_slow_reader_is_cut_though_it_reads(server: Server) -> None:
    key = server.json("/api/datasets", LINE * 1000)["id"]
    place = urlsplit(server.url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(180)
        connection.connect((place.hostname, place.port))
        connection.sendall(get(f"/api/datasets/{key}/augment?orders=20"))
        begun, n_read = time.monotonic(), 0
        with suppress(ConnectionResetError):
            while time.monotonic() - begun < 20:
                n_read += len(connection.recv(1000))
                time.sleep(0.05)
    assert n_read < 400_000
    assert time.monotonic() - begun < 20
