"""docs/paper.md: each row of a claim has a verdict of four, a reason where nothing was run, and commands that exist."""

import re
from pathlib import Path

from setaug.cli.reproduce import NAMES
from setaug.experiments.simulation.findings import FINDINGS

PAGE = Path(__file__).parent.parent / "docs" / "paper.md"
HEADER = ["claim", "command", "here", "verdict"]
VERDICT = re.compile(r"\*(holds|holds in part|does not hold|not run)\*")


def claims() -> list[list[str]]:
    """Return the cells of all rows in tables of claims."""
    rows, is_open = [], False
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        is_open = bool(cells) and (is_open or cells == HEADER)
        if is_open and cells != HEADER and set(line) - set("|-"):
            rows.append(cells)
    return rows


def test_each_claim_has_one_verdict() -> None:
    found = claims()
    assert len(found) > 80
    for row in found:
        assert len(row) == len(HEADER), row
        assert VERDICT.match(row[3]), row
        if row[3].startswith("*not run*"):
            assert len(row[3]) > len("*not run*: "), row
        else:
            assert row[1] != "none" or row[3].startswith("*does not hold* within the paper"), row


def test_the_commands_exist() -> None:
    commands = " ".join(row[1] for row in claims())
    assert set(re.findall(r"reproduce ([a-z][a-z-]*)", commands)) <= NAMES.keys()
    studies = {
        *re.findall(r"simulate ([a-z][a-z0-9-]*)", commands),
        *re.findall(r"`(finding-[0-9]|larger-blocks)`", commands),
    }
    assert studies - {"data"} == FINDINGS.keys()
    for test in re.findall(r"`(tests/[^`]*)`", commands):
        assert (PAGE.parent.parent / test).exists(), test
