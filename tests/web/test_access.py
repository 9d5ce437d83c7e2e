"""Who may ask, and how much; what a request can reach."""

import http.client
import json
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from setaug.web import Limits
from tests.web.serving import Server, serving

MINE = {"Authorization": "Bearer sesame"}
LINE = b'{"text": "x", "labels": ["a"]}\n'


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    limits = Limits(upload_bytes=1 << 20, body_bytes=1000, body_seconds=1, datasets=3, held_bytes=1000)
    with serving(limits=limits, key="sesame") as found:
        yield found


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example", ""]
)
@pytest.mark.parametrize("path", ["/api/health", "/", "/openapi.json"])
def test_another_name_that_leads_here_is_not_served(host: str, path: str, server: Server) -> None:
    assert "only localhost is allowed" in server.refused(403, path, headers={"Host": host})


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:1", "[::1]:8765"])
def test_all_names_of_this_machine_are_served(host: str, server: Server) -> None:
    assert server.json("/api/health", headers={"Host": host})["status"] == "ok"


def test_pages_of_other_sites_cannot_ask(server: Server) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert "cross-site requests" in server.refused(403, "/api/sample", b"", headers=headers)
    assert server.json("/api/health", headers={"Origin": server.url})["status"] == "ok"
    assert server.ask("/", headers={"Sec-Fetch-Site": "cross-site"})[0] == 200  # somebody follows a link


def test_no_answer_may_be_read_elsewhere_or_run_as_something_else(server: Server) -> None:
    for path in ("/", "/app.js", "/api/health", "/nothing", "/api/nothing", "/openapi.json"):
        headers = server.headers(path)
        assert "access-control-allow-origin" not in headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "http" not in policy
        assert "unsafe" not in policy


def test_the_page_holds_no_script_of_its_own_and_names_no_other_site(server: Server) -> None:
    _, page = server.ask("/")
    assert page.count(b"<script") == 1
    assert b'<script type="module" src="app.js">' in page
    for path in ("/", "/app.js", "/style.css"):
        _, content = server.ask(path)
        assert b"://" not in content


def test_a_key_is_asked_for(guarded: Server) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer no"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic sesame"},
    ):
        assert "key is missing or wrong" in guarded.refused(401, "/api/health", headers=headers)
    assert "key is missing or wrong" in guarded.refused(401, "/api/datasets", LINE * 10_000)
    assert guarded.json("/api/health", headers={**MINE, "Host": "sets.example"})["model"] is None
    assert "no model is loaded" in guarded.refused(404, "/api/predict", {"texts": ["a"]}, headers=MINE)
    assert guarded.ask("/")[0] == 200  # the page asks for the key
    schemes = guarded.json("/openapi.json")["components"]["securitySchemes"]
    assert schemes == {"HTTPBearer": {"type": "http", "scheme": "bearer"}}


def test_the_scheme_of_the_key_is_named_and_may_be_spelt_in_any_case(guarded: Server) -> None:
    assert guarded.headers("/api/health")["www-authenticate"] == "Bearer"
    for scheme in ("bearer", "BEARER", "Bearer"):
        assert guarded.json("/api/health", headers={"Authorization": f"{scheme} sesame"})["status"] == "ok"


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/health", "/openapi.json", "/metrics"])
def test_head_is_answered_where_get_is(path: str, server: Server) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)
    connection.request("HEAD", path)
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    assert int(response.headers["Content-Length"]) > 0
    connection.close()


def test_large_bodies_are_refused_whether_they_say_so_or_not(guarded: Server) -> None:
    for body in (b"x" * (1 << 21), iter([b"x" * (1 << 16)] * 32)):  # the second is sent in chunks
        assert "the limit is 1,048,576 bytes" in guarded.refused(413, "/api/datasets", body, headers=MINE)
    for body in (b"x" * 1001, iter([b"x"] * 1001)):
        assert "the limit is 1,000 bytes" in guarded.refused(413, "/api/predict", body, headers=MINE)
    assert guarded.json("/api/datasets", iter([LINE] * 10), headers=MINE)["n_examples"] == 10


def test_a_body_that_does_not_come_is_not_waited_for(guarded: Server) -> None:
    connection = http.client.HTTPConnection(urlsplit(guarded.url).netloc, timeout=600)
    start = time.monotonic()
    connection.putrequest("POST", "/api/datasets")
    for name, value in {**MINE, "Content-Length": "100"}.items():
        connection.putheader(name, value)
    connection.endheaders(b"half")
    response = connection.getresponse()
    assert response.status == 408
    assert time.monotonic() - start < 20
    connection.close()


def test_only_so_many_files_are_held_and_the_sample_stays(guarded: Server) -> None:
    sample = guarded.json("/api/sample", b"", headers=MINE)["id"]
    keys = [guarded.json("/api/datasets", LINE, headers=MINE)["id"] for _ in range(4)]
    assert "no such dataset" in guarded.refused(404, f"/api/datasets/{keys[0]}/graph", headers=MINE)
    assert guarded.json(f"/api/datasets/{keys[1]}/graph", headers=MINE)["labels"] == []
    guarded.json("/api/datasets", LINE * 32, headers=MINE)  # 992 bytes: there is room for no other
    guarded.refused(404, f"/api/datasets/{keys[3]}/graph", headers=MINE)
    assert guarded.json("/api/sample", b"", headers=MINE)["id"] == sample
    assert guarded.json(f"/api/datasets/{sample}/graph", headers=MINE)["labels"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/../app.py",
        "/..%2fapp.py",
        "/%2e%2e/app.py",
        "/..%5capp.py",
        "//etc/passwd",
        "/page/index.html",
        "/api/datasets/..%2f..%2fetc%2fpasswd/examples",
        "/api/datasets/../../etc/passwd",
        "/app.js%00.css",
    ],
)
def test_no_path_of_the_disk_can_be_reached(path: str, server: Server) -> None:
    status, content = server.ask(path)
    assert status == 404
    assert b"root:" not in content
    assert json.loads(content)["error"]


@pytest.mark.parametrize(
    "name", ["../../x.jsonl", "/etc/x.jsonl", "a/b.jsonl", "..\\x.jsonl", "\x00.jsonl", "é\n.jsonl"]
)
def test_the_name_of_a_file_is_shown_and_is_never_a_path(name: str, server: Server) -> None:
    found = server.json("/api/datasets", LINE, name=name)
    assert found["name"] == name
    assert server.json(f"/api/datasets/{found['id']}/statistics")["n_sets"] == 1
