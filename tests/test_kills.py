"""Commands that are killed leave whole files or none, and can be called again."""

from pathlib import Path

import pytest

from tests.kills import COMMANDS, try_commands


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("augment") or name == "inspect"])
def test_what_a_killed_command_leaves_is_whole(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(try_commands([name], 3, 5000, "no model is needed"))
