"""The progress bars on a terminal."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")


def on_a_terminal(command: list[str]) -> tuple[int, bytes]:
    """Run a command whose standard error is a terminal; return its exit code, and what it wrote there."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(command, stderr=follower, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"})
    os.close(follower)
    seen = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # how Linux reports that the other end was closed
            break
        if not piece:
            break
        seen += piece
    os.close(leader)
    return process.wait(), seen


def test_a_terminal_sees_a_bar_and_then_the_summary(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a", "labels": ["x", "y"]}\n' * 1000)
    command = [sys.executable, "-m", "setaug", "augment", str(source), "-o", str(tmp_path / "out.jsonl")]
    code, seen = on_a_terminal(command)
    assert code == 0
    assert b"1000/1000" in seen
    assert b"1,000 examples" in seen


def test_a_training_is_watched_on_a_terminal(tmp_path: Path) -> None:
    """A bar each for training and dev data; in Python, too, without asking for it."""
    code = (
        "from setaug import SetGenerator, TrainingSettings; from setaug.sample import sample_examples\n"
        "data = list(sample_examples(400)); training = TrainingSettings(epochs=2, batch_size=16)\n"
        "SetGenerator('tiny', training=training).fit(data[:360], dev=data[360:])"
    )
    code_seen, seen = on_a_terminal([sys.executable, "-c", code])
    assert code_seen == 0
    drawn = seen.decode()
    for pattern in (
        r"training: loss \d\.\d{3}, [\d.]+ sets/s",
        r"training: loss \d\.\d{3}, dev F1 0\.\d{3}, [\d.]+ sets/s",
        r"dev data",
        r"\d+/46",
        r"\d:\d\d",
    ):
        assert re.search(pattern, drawn), pattern
