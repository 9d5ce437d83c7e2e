"""The pages in results/ are those that the stored cells give."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from setaug.cli import main

RESULTS = Path(__file__).parents[2] / "results"
DATA = Path(os.environ.get("SETAUG_DATA", "../shared/data"))
PAGES = sorted(
    path.relative_to(RESULTS).with_suffix("").as_posix()
    for folder in (RESULTS, RESULTS / "120-tokens")
    for path in folder.glob("*.md")
    if path.stem != "README"
)
STUDIES = sorted(path.stem for path in (RESULTS / "simulation").glob("*.md"))


def command_of(page: str) -> list[str]:
    """Return the arguments of the command that a page names."""
    found = re.search(r"^`setaug (reproduce .*)`$", (RESULTS / f"{page}.md").read_text(), re.MULTILINE)
    assert found, page
    return shlex.split(found[1])


@pytest.mark.skipif(not RESULTS.is_dir(), reason="an installed package has no stored results")
def test_each_page_names_its_command() -> None:
    assert len(PAGES) >= 8
    for page in PAGES:
        assert command_of(page)[:2] == ["reproduce", Path(page).name]


@pytest.mark.minutes
@pytest.mark.skipif(not DATA.is_dir(), reason="the paper's data sets are not here; name their folder in SETAUG_DATA")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_rebuilt_from_its_cells(page: str, tmp_path: Path) -> None:
    out = tmp_path / "results"
    shutil.copytree(RESULTS, out)
    (out / f"{page}.md").unlink()
    call = [str(DATA) if part == "DIR" else part for part in command_of(page)]
    assert main([*call, "--report", "-o", str((out / page).parent)]) == 0
    for suffix in (".md", ".html"):
        assert (out / f"{page}{suffix}").read_text() == (RESULTS / f"{page}{suffix}").read_text()


@pytest.mark.parametrize("page", STUDIES)
def test_a_study_is_rebuilt_from_its_cells(page: str, tmp_path: Path) -> None:
    shutil.copy(RESULTS / "simulation" / "cells.jsonl", tmp_path)
    finding, _, scale = page.rpartition("-")
    assert main(["simulate", finding, "--scale", scale, "-o", str(tmp_path)]) == 0
    assert (tmp_path / "cells.jsonl").read_text() == (RESULTS / "simulation" / "cells.jsonl").read_text()
    for suffix in (".md", ".html"):
        assert (tmp_path / f"{page}{suffix}").read_text() == (RESULTS / "simulation" / f"{page}{suffix}").read_text()
