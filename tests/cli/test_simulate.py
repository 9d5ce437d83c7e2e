"""``setaug simulate``: data for any tool, and what it refuses. The studies themselves are in tests/experiments."""

import json
import re
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.cli.simulate import _PROCESSES, EXAMPLES
from setaug.examples import read_examples
from setaug.experiments.simulation.findings import FINDINGS
from setaug.experiments.simulation.processes import PROCESSES, block_symbols


def test_help_names_all_studies_and_processes() -> None:
    assert all(f"  {name:14}{finding.help}\n" in EXAMPLES for name, finding in FINDINGS.items())
    assert _PROCESSES.keys() == PROCESSES.keys()


@pytest.mark.parametrize("process", PROCESSES)
def test_data_is_what_the_process_gives(tmp_path: Path, process: str) -> None:
    path = tmp_path / "data.jsonl"
    assert main(["simulate", "data", "--process", process, "--examples", "20", "--seed", "3", "-o", str(path)]) == 0
    found, expected = list(read_examples(path)), list(PROCESSES[process](20, seed=3))
    assert [(one.id, one.text, one.labels) for one in found] == [(one.id, one.text, one.labels) for one in expected]


def test_data_goes_to_standard_output_with_all_that_is_asked_for(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    options = ["--symbols", "12", "--blocks", "2", "--block-size", "3", "--noise", "0", "--words", "9"]
    options += ["--concentration", "1", "--no-sort-prefix", "--shuffle-text", "--with-input", "--examples", "3"]
    assert main(["simulate", "data", *options]) == 0
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    settings = {"n_symbols": 12, "n_blocks": 2, "block_size": 3, "noise": 0.0, "n_words": 9, "concentration": 1.0}
    expected = block_symbols(3, **settings, sort_prefix=False, shuffle_text=True, with_input=True)
    assert [(row["text"], tuple(row["labels"]), row["x"]) for row in rows] == [
        (one.text, one.labels, one.fields["x"]) for one in expected
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "--scale", "small"], "--scale is for studies, not for data."),
        (["data", "--workers", "2"], "--workers is for studies, not for data."),
        (["finding-1", "--symbols", "5"], "--symbols is for data; the studies have their own data."),
        (["finding-1", "--shuffle-text"], "--shuffle-text is for data; the studies have their own data."),
        (["all", "--process", "sizes"], "--process is for data; the studies have their own data."),
        (["data", "--process", "sizes", "--words", "9"], "--words does not apply to the process sizes."),
        (["data", "--process", "partners", "--noise", "0"], "--noise does not apply to the process partners."),
        (["data", "--max-size", "9"], "--max-size does not apply to the process blocks."),
        (["data", "--examples", "-1"], "--examples must not be negative, got -1."),
        (["data", "--noise", "2"], "noise must be a probability from 0 to 1, got 2.0."),
        (["data", "--symbols", "3"], "6 blocks of 2 need more than 3 symbols."),
        (["data", "--seed", "-1"], "seed must be a non-negative integer, got -1."),
        (["finding-1", "--workers", "0"], "workers must be a positive integer, got 0."),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *arguments, "-o", "out"]) == 2
    assert capsys.readouterr().err == f"setaug simulate: {message}\n"
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["simulate", "finding-6", "-o", str(tmp_path / "file")]) == 2
    assert re.fullmatch(r"setaug simulate: cannot write .*cells.jsonl: .*\.\n", capsys.readouterr().err)


def test_an_unknown_study_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", "finding-7"])
    assert stopped.value.code == 2
    assert "invalid choice: 'finding-7'" in capsys.readouterr().err
