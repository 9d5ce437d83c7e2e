"""The progress bar is for terminals; elsewhere only the summary is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")


def test_a_terminal_sees_a_bar_and_then_the_summary(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a", "labels": ["x", "y"]}\n' * 1000)
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "setaug", "augment", str(source), "-o", str(tmp_path / "out.jsonl")]
    process = subprocess.Popen(command, stderr=follower, env=os.environ | {"TERM": "xterm"})
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
    assert process.wait() == 0
    assert b"1000/1000" in seen
    assert b"1,000 examples" in seen
