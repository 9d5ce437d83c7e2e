"""``setaug prompt`` from the command line: a real server, crashes of either side, and calls that make no sense."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.sample import sample_examples
from tests.cli.refusals import assert_refused
from tests.conftest import write_examples
from tests.experiments.emotions import write_emotions
from tests.prompting.server import ModelServer, Relay, save_tiny_model, serving

N_TEXTS = 12


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    with serving(save_tiny_model(tmp_path_factory.mktemp("llama"))) as found:
        yield found


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    examples = list(sample_examples(40 + N_TEXTS))
    write_examples(tmp_path / "train.jsonl", examples[:40])
    write_examples(tmp_path / "test.jsonl", examples[40:])
    return tmp_path


def call(url: str, model: Path, *options: str) -> list[str]:
    given = ["--train", "train.jsonl", "test.jsonl", "--model", str(model), "--base-url", url]
    return ["prompt", *given, "--shots", "3", "--max-tokens", "12", "--concurrency", "1", *options]


def started(arguments: list[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "setaug", *arguments]
    return subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=os.environ,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),  # ignored where tests run unattended
    )


def wait_for_answers(path: Path, n: int) -> None:
    until = time.monotonic() + 600
    while not path.exists() or path.read_bytes().count(b"\n") < n:
        assert time.monotonic() < until
        time.sleep(0.02)


def assert_nothing_was_asked_twice(relay: Relay, n_texts: int = N_TEXTS) -> None:
    answered = [json.dumps(body) for body in relay.answered]
    assert len(answered) == len(set(answered)) == n_texts


def test_a_run_whose_server_is_killed_goes_on(
    server: ModelServer, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = files / "out.jsonl.answers.jsonl"
    with Relay(server).running() as relay:
        killed = threading.Event()
        relay.trouble = lambda n_asked, body: None if n_asked <= 4 or killed.wait(600) else 0.0
        run = started(call(relay.url, server.folder, "-o", "out.jsonl", "--retries", "1"))
        wait_for_answers(answers, 4)
        server.kill()
        killed.set()
        _, told = run.communicate(timeout=600)
        assert run.returncode == 2
        assert "cannot reach the server" in told
        assert f"of {N_TEXTS} texts are done" in told
        assert "Traceback" not in told
        assert "secret" not in told
        assert not (files / "out.jsonl").exists()
        n_kept = answers.read_bytes().count(b"\n")
        assert 4 <= n_kept < N_TEXTS
        server.start()
        relay.trouble = lambda n_asked, body: None
        assert main(call(relay.url, server.folder, "-o", "out.jsonl")) == 0
        assert_nothing_was_asked_twice(relay)
        assert f"{N_TEXTS} answers, {n_kept} of them cached" in capfd.readouterr().err
    with Relay(server).running() as relay:
        assert main(call(relay.url, server.folder, "-o", "undisturbed.jsonl")) == 0
    assert (files / "out.jsonl").read_bytes() == (files / "undisturbed.jsonl").read_bytes()


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_run_that_is_stopped_goes_on(how: signal.Signals, code: int, server: ModelServer, files: Path) -> None:
    answers = files / "out.jsonl.answers.jsonl"
    with Relay(server).running() as relay:
        relay.trouble = lambda n_asked, body: None if n_asked <= 3 else 60.0
        run = started(call(relay.url, server.folder, "-o", "out.jsonl"))
        wait_for_answers(answers, 3)
        run.send_signal(how)
        _, told = run.communicate(timeout=600)
        assert run.returncode == code
        assert "Traceback" not in told
        if how == signal.SIGINT:
            assert "received answers are kept" in told
        assert not (files / "out.jsonl").exists()
        relay.trouble = lambda n_asked, body: None
        assert main(call(relay.url, server.folder, "-o", "out.jsonl", "-q")) == 0
        assert_nothing_was_asked_twice(relay)
    lines = [json.loads(line) for line in (files / "out.jsonl").read_text().splitlines()]
    assert len(lines) == N_TEXTS


def test_many_files_are_one_input_and_are_resumed(server: ModelServer, files: Path) -> None:
    lines = (files / "test.jsonl").read_text().splitlines(keepends=True)
    (files / "parts").mkdir()
    (files / "parts" / "a.jsonl").write_text("".join(lines[:2]))
    (files / "parts" / "b.jsonl").write_text("".join(lines[2:5]))
    (files / "rest.jsonl").write_text("".join(lines[5:]))
    with Relay(server).running() as relay:
        many = [name for name in call(relay.url, server.folder, "-o", "out.jsonl", "-q") if name != "test.jsonl"]
        relay.trouble = lambda n_asked, body: None if n_asked <= 4 else (401, {}, {"error": {"message": "no"}})
        assert main([*many, "--", "parts", "rest.jsonl"]) == 2
        assert not (files / "out.jsonl").exists()
        relay.trouble = lambda n_asked, body: None
        assert main([*many, "--", "parts", "rest.jsonl"]) == 0
        assert_nothing_was_asked_twice(relay)
        answers = str(files / "out.jsonl.answers.jsonl")
        assert main(call(relay.url, server.folder, "-o", "single.jsonl", "--answers", answers)) == 0
        assert_nothing_was_asked_twice(relay)
    assert (files / "out.jsonl").read_bytes() == (files / "single.jsonl").read_bytes()


def test_predictions_can_be_evaluated(server: ModelServer, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Relay(server).running() as relay:
        options = ("--endpoint", "completion", "--unknown", "drop", "-o", "out.jsonl")
        assert main(call(relay.url, server.folder, *options)) == 0
        told = capfd.readouterr().err
        assert f"{N_TEXTS} texts, {N_TEXTS} answers; " in told
        assert "prompt tokens and" in told
        assert "unknown (" in told
        assert "dropped)" in told
        assert main(call(relay.url, server.folder, "--samples", "2", "-o", "votes.jsonl")) == 0
    assert main(["evaluate", "out.jsonl", "test.jsonl"]) == 0
    assert main(["compare", "out.jsonl", "votes.jsonl", "test.jsonl", "--rounds", "50"]) == 0
    assert "probabilities" in json.loads((files / "votes.jsonl").read_text().splitlines()[0])


def test_a_dry_run_prints_what_is_sent(server: ModelServer, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Relay(server).running() as relay:
        for endpoint in ("chat", "completion"):
            arguments = call(relay.url, server.folder, "--endpoint", endpoint)
            assert main([*arguments, "--dry-run"]) == 0
            shown = capfd.readouterr().out
            assert relay.asked == []
            assert main([*arguments, "-q"]) == 0
            sent = relay.asked[0]
            assert (json.loads(shown) == sent) if endpoint == "chat" else (shown == sent["prompt"] + "\n")
            capfd.readouterr()
            relay.asked.clear()


def test_orders_in_prompts_are_compared_by_the_runner_of_experiments(
    server: ModelServer, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = write_emotions(files / "data")
    call = ["reproduce", "few-shot", "--data-dir", str(data), "--no-verify", "--data", "go-emotions[test3]"]
    options = ["--shots", "4", "--max-tokens", "8", "--seeds", "0", "1", "-o", "out"]
    with Relay(server).running() as relay:
        call += ["--llm", str(server.folder), "--base-url", relay.url, *options]
        relay.trouble = lambda n_asked, body: None if n_asked <= 5 else (401, {}, {"error": {"message": "no more"}})
        assert main(call) == 2
        assert "no more" in capfd.readouterr().err
        relay.trouble = lambda n_asked, body: None
        assert main(call) == 0
        bodies = [json.dumps(body) for body in relay.answered]
        assert len(bodies) == 3 * 4 * 2  # texts, rows, seeds
        assert main(call) == 0
        assert len(relay.answered) == len(bodies)
    page = (files / "out" / "few-shot.md").read_text()
    assert "| topological orders + size |" in page
    assert "4 examples, chat, at most 8 tokens" in page
    assert str(files) not in page


@pytest.mark.parametrize("output", [[], ["-o", "/dev/null"], ["-o", "/dev/stdout"], ["-o", "memory://sets.jsonl"]])
def test_answers_are_kept_also_where_the_output_is_no_file(
    output: list[str], server: ModelServer, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Relay(server).running() as relay:
        relay.trouble = lambda n_asked, body: None if n_asked <= 5 else (401, {}, {"error": {"message": "no more"}})
        assert main(call(relay.url, server.folder, *output)) == 2
        relay.trouble = lambda n_asked, body: None
        assert main(call(relay.url, server.folder, *output)) == 0
        assert_nothing_was_asked_twice(relay)
    is_shown = output in ([], ["-o", "/dev/stdout"])
    assert len(capfd.readouterr().out.splitlines()) == (N_TEXTS if is_shown else 0)
    assert (files / "setaug-answers.jsonl").read_bytes().count(b"\n") == N_TEXTS


def test_answers_lie_beside_an_output_that_is_named_by_an_address(server: ModelServer, files: Path) -> None:
    with Relay(server).running() as relay:
        assert main(call(relay.url, server.folder, "-o", f"file://{files}/sets.jsonl")) == 0
    assert (files / "sets.jsonl").exists()
    assert (files / "sets.jsonl.answers.jsonl").read_bytes().count(b"\n") == N_TEXTS
    assert not (files / "file:").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shots", "-1"], "shots must be an integer of at least 0"),
        (["--request", "[1]"], "--request must be a JSON object"),
        (["--request", "{"], "--request must be a JSON object"),
        (["--request", '{"messages": []}'], 'the field "messages" of a request cannot be set'),
        (["--vocabulary", "missing.txt"], "there is no file missing.txt"),
        (["--template", "no text"], "template must contain {text} exactly once"),
        (["--base-url", "localhost"], "base_url must be a URL"),
        (["--concurrency", "0"], "concurrency must be"),
        (["-o", "sets.tsv.gz"], "the output is JSON lines, but sets.tsv.gz has the suffix of another format"),
        (["--train", "missing.jsonl"], "cannot read missing.jsonl"),
        (["--train", "empty.jsonl"], "empty.jsonl contains no examples"),
        (["--answers", "train.jsonl"], "the output would replace the input train.jsonl"),
        (["--answers", "out.jsonl"], "out.jsonl would be written twice"),
        (["--answers", "-"], "--answers must be a separate local file, got -."),
        (["--answers", "/dev/stdout"], "--answers must be a separate local file, got /dev/stdout."),
        (["--answers", "memory://a"], "--answers must be a separate local file, got memory://a."),
        (["--answers", "notes.txt"], "line 1 of notes.txt was not written by this command"),
    ],
)
def test_calls_that_make_no_sense_are_refused(
    options: list[str], message: str, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (files / "empty.jsonl").write_text("")
    (files / "notes.txt").write_text("keep me")
    (files / "out.jsonl.answers.jsonl").write_text("")
    arguments = ["--train", "train.jsonl", "test.jsonl", "--model", "any", "--base-url", "http://127.0.0.1:9/v1"]
    assert_refused("prompt", [*arguments, *options], message, files, capfd)
