"""Servers that mean harm: they redirect, repeat the key, and nest their JSON; no model answers here."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from setaug.cli import main
from setaug.prompting import endpoint as asking
from setaug.sample import sample_examples
from tests.conftest import write_examples
from tests.prompting.server import ModelServer, Relay

KEY = "sk-very-secret"


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.01)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Relay(ModelServer(Path("none"))).running() as found:
        yield found


@pytest.fixture
def command(relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)
    examples = list(sample_examples(12))
    write_examples(tmp_path / "train.jsonl", examples[:8])
    write_examples(tmp_path / "test.jsonl", examples[8:])
    files = ["--train", "train.jsonl", "test.jsonl", "--model", "any", "-o", "out.jsonl"]
    return ["prompt", *files, "--base-url", relay.url, "--shots", "2", "--retries", "1"]


def told(command: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    assert main(command) == 2
    err = capfd.readouterr().err.splitlines()
    assert all(line.startswith("waiting ") for line in err[:-1]), err
    assert KEY not in "".join(err)
    return err[-1]


def says(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_prompts_are_not_redirected(
    status: int, relay: Relay, command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with Relay(ModelServer(Path("none"))).running() as other:
        other.trouble = lambda n, body: (200, {}, says("1 | joy"))
        relay.trouble = lambda n, body: (status, {"Location": f"{other.url}/chat/completions"}, {})
        assert f"redirects to {other.url}/chat/completions, but redirects are not followed" in told(command, capfd)
        assert relay.asked
        assert not other.asked


def test_a_key_that_is_repeated_is_not_kept(relay: Relay, command: list[str], tmp_path: Path) -> None:
    relay.trouble = lambda n, body: (200, {}, says(f"2 | Bearer {KEY} | joy"))
    assert main(command) == 0
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["labels"] for row in rows] == [["Bearer ...", "joy"]] * 4
    for path in tmp_path.iterdir():
        assert KEY not in path.read_text()


def test_a_word_that_stands_for_no_key_is_kept(
    relay: Relay, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    relay.trouble = lambda n, body: (200, {}, says("1 | none"))
    assert main(command) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])["labels"] == ["none"]


@pytest.mark.parametrize("status", [200, 400, 401, 500])
@pytest.mark.parametrize("depth", [500, 900, 3_000, 200_000])
@pytest.mark.parametrize("around", ["{}", '{{"error": {}}}', '{{"choices": [{}]}}', '{{"choices": {0}, "usage": {0}}}'])
def test_json_that_is_nested_too_deeply(
    status: int, depth: int, around: str, relay: Relay, command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    body = around.format("[" * depth + "]" * depth).encode()
    relay.trouble = lambda n, asked: (status, {}, body)
    told(command, capfd)
