"""The examples in README and docs run, one document after the other, each in a folder of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(document.read_text())


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if blocks(path)], ids=lambda path: path.name)
def test_examples_run(document: Path, tmp_path: Path) -> None:
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": programs, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    before = ""
    for language, code in blocks(document):
        command = ["bash", "-euc", code]
        if language == "python":  # a block may use what the ones before it made
            command = [sys.executable, "-W", "error", "-c", before + code]
            before += code
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert run.returncode == 0, f"{code}\n{run.stdout}\n{run.stderr}"
        for line, wanted in re.findall(r"^(print\(.*\))  # (.*)$", code, re.MULTILINE):
            assert wanted in run.stdout, f"{line} did not print {wanted}"


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*DOCUMENTS, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text().replace("\n", " ")):
            assert (document.parent / target.strip()).exists(), f"{document.name} links to {target}"
