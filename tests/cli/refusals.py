"""What a command does when it is called wrongly."""

from pathlib import Path

import pytest

from setaug.cli import main


def assert_refused(
    command: str, arguments: list[str], message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Check that there is one clear line, and that the files in the working folder stay as they were."""
    (folder / "out.jsonl").write_text("from before")
    before = sorted(folder.iterdir())
    assert main([command, "-o", "out.jsonl", *arguments]) == 2
    output = capfd.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"setaug {command}: ")
    assert message in output.err
    assert output.err.count("\n") == 1
    assert (folder / "out.jsonl").read_text() == "from before"
    assert sorted(folder.iterdir()) == before
