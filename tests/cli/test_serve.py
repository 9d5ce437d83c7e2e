"""``setaug serve`` starts, says where, and ends when it is told to."""

import gzip
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.web.datasets import sample_file
from tests.web.serving import process


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "set a key: the environment variable SETAUG_API_KEY"),
        (["--host", "::"], "set a key: the environment variable SETAUG_API_KEY"),
        (["--host", ""], "set a key: the environment variable SETAUG_API_KEY"),
        (["--port", "99999"], "cannot listen"),
        (["--host", "nowhere.invalid", "--key-variable", "MY_KEY"], "cannot listen"),
        (["--data", "missing.jsonl"], "missing.jsonl"),
        (["--data", "bad.jsonl"], "line 1 of bad.jsonl"),
        (["missing/"], "there is no model folder missing/"),
        (["--max-upload", "0"], "must be above 0"),
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


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_without_the_extra_the_pip_line_is_shown(missing: str) -> None:
    code = f"import sys\nsys.modules['{missing}'] = None\nfrom setaug.cli import main\nsys.exit(main(['serve']))\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
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
        assert run.wait(30) == code
        assert run.stderr is not None
        said = run.stderr.read()
        assert said.count("\n") <= 1
        assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["sample.jsonl.gz"]  # nothing is left behind


def test_another_host_is_served_with_a_key(tmp_path: Path) -> None:
    with process("--host", "0.0.0.0", environment={"SETAUG_API_KEY": "sesame"}) as (server, _):
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        server.url = url
        assert "key is missing" in server.refused(401, "/api/health")
        assert server.json("/api/health", headers={"Authorization": "Bearer sesame"})["status"] == "ok"
