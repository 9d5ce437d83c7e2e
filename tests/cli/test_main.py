"""The command line as a whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from setaug import __version__
from setaug.cli import COMMANDS, main


def exit_code(arguments: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code


def test_help_lists_the_commands_and_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in COMMANDS)
    assert "setaug demo" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"examples:\n  setaug {name}" in text


def test_the_version_and_wrong_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--version"]) == 0
    assert capsys.readouterr().out == f"setaug {__version__}\n"
    assert exit_code(["fly"]) == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err
    assert exit_code([]) == 2


def test_the_demo_runs_and_leaves_what_it_shows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "demo"
    assert main(["demo", str(folder), "--examples", "300", "--no-train"]) == 0
    assert sorted(os.listdir(folder)) == ["examples.jsonl", "labels.svg", "pairs.jsonl"]
    shown = capfd.readouterr().out
    assert "Will order help?" in shown
    assert '"completion":"' in shown
    assert len((folder / "pairs.jsonl").read_text().splitlines()) == 900


@pytest.mark.minutes
def test_the_demo_trains_two_models_and_compares_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", str(tmp_path), "--examples", "50", "--epochs", "1"]) == 0
    shown = capfd.readouterr().out
    for method in ("seq2seq", "setaug"):
        assert f"{method} " in shown.partition("decoded as")[2]
        assert (tmp_path / method / "model.safetensors").exists()
        assert len((tmp_path / f"{method}-constrained.jsonl").read_text().splitlines()) == 300
    for way in ("text", "constrained"):
        assert f"$ setaug compare {tmp_path}/seq2seq-{way}.jsonl {tmp_path}/setaug-{way}.jsonl " in shown
    assert "Summary (Jaccard; one seed, so small differences are not meaningful):" in shown


def test_help_needs_none_of_the_heavy_imports() -> None:
    code = (
        "import sys, setaug.cli\n"
        "try: setaug.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'torch', 'transformers', 'pyarrow', 'rich', 'sklearn', 'scipy'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
