"""``setaug serve`` starts, says where, and ends when it is told to."""

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.web.data.datasets import sample_file
from tests.web.serving import process
from tests.web.test_connections import wait_until


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "needs a key: set the environment variable SETAUG_API_KEY"),
        (["--host", "::"], "needs a key: set the environment variable SETAUG_API_KEY"),
        (["--host", ""], "needs a key: set the environment variable SETAUG_API_KEY"),
        (["--port", "99999"], "cannot listen"),
        (["--host", "nowhere.invalid", "--key-variable", "MY_KEY"], "cannot listen"),
        (["--data", "missing.jsonl"], "missing.jsonl"),
        (["--data", "bad.jsonl"], "line 1 of bad.jsonl"),
        (["missing/"], "there is no model folder missing"),
        (["--max-upload", "0"], "must be above 0"),
        (["--max-per-address", "-1"], "--max-per-address must not be negative, got -1"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "sesame")
    monkeypatch.delenv("SETAUG_API_KEY", raising=False)
    Path("bad.jsonl").write_text("[]\n")
    assert main(["serve", *arguments]) == 2
    said = capfd.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("missing", ["fastapi", "prometheus_client", "uvicorn"])
def test_without_the_extra_the_pip_line_is_shown(missing: str) -> None:
    code = f"import sys\nsys.modules['{missing}'] = None\nfrom setaug.cli import main\nsys.exit(main(['serve']))\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 2
    assert run.stderr == "setaug serve: Serving needs an optional dependency: pip install 'setaug[serve]'\n"


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_server_starts_with_a_file_and_ends_when_told(signum: int, code: int, tmp_path: Path) -> None:
    file = tmp_path / "sample.jsonl.gz"
    file.write_bytes(gzip.compress(sample_file()))
    with process("--data", str(file), environment={"TMPDIR": str(tmp_path), "SETAUG_API_KEY": ""}) as (server, run):
        found = server.json("/api/health")
        assert found["dataset"]["name"] == "sample.jsonl.gz"
        assert server.json(f"/api/datasets/{found['dataset']['id']}/graph")["labels"]
        run.send_signal(signum)
        assert run.wait(600) == code
        lines = server.log.read_text().splitlines()
    assert [line.split()[3:7] for line in lines[1:3]] == [
        ["127.0.0.1", "GET", "/api/health", "200"],
        ["127.0.0.1", "GET", f"/api/datasets/{found['dataset']['id']}/graph", "200"],
    ]
    assert len(lines) <= 4
    assert [path.name for path in tmp_path.iterdir()] == ["sample.jsonl.gz"]  # nothing is left behind


def test_the_log_can_be_json_and_what_a_killed_server_left_is_removed(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path), "SETAUG_API_KEY": ""}
    with process("--log-format", "json", environment=environment) as (server, run):
        server.json("/api/sample", b"")
        wait_until(lambda: server.log.read_text().count("\n") == 2)
        run.kill()
        run.wait(600)
        told = json.loads(server.log.read_text().splitlines()[1])
    assert (told["method"], told["path"], told["status"]) == ("POST", "/api/sample", 201)
    (left,) = tmp_path.iterdir()
    with process(environment=environment) as (server, run):
        assert server.json("/api/health/ready") == {"status": "ok"}
        assert not left.exists()


def test_a_proxy_that_is_named_names_the_clients(tmp_path: Path) -> None:
    for arguments, address in (((), "127.0.0.1"), (("--proxy", "127.0.0.1"), "192.0.2.7")):
        with process(*arguments, environment={"SETAUG_API_KEY": ""}) as (server, _):
            server.json("/api/health/live", headers={"X-Forwarded-For": "192.0.2.7"})
            wait_until(lambda: server.log.read_text().count("\n") == 2)  # it is written after the answer
            assert server.log.read_text().splitlines()[1].split()[3] == address


def test_another_host_is_served_with_a_key(tmp_path: Path) -> None:
    with process("--host", "0.0.0.0", environment={"SETAUG_API_KEY": "sesame"}) as (server, _):
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        server.url = url
        assert "key is missing" in server.refused(401, "/api/health")
        assert server.json("/api/health", headers={"Authorization": "Bearer sesame"})["status"] == "ok"
