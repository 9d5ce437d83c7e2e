"""The examples in README and docs run, one document after the other, each in a folder of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import setaug
from setaug import inspect_examples
from setaug.reporting.graph_pictures import to_svg
from setaug.sample import sample_examples

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TRAINING = {"README.md", "distributed.md", "hub.md", "likelihood.md", "models.md", "serve.md", "trainers.md"}
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNER = """
import contextlib, io, json, subprocess, sys

names = {"__name__": "__main__"}
for language, code in json.loads(sys.argv[1]):
    said = io.StringIO()
    if language == "bash":
        subprocess.run(["bash", "-euc", code], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    else:  # a block may use what the ones before it made
        with contextlib.redirect_stdout(said):
            exec(compile(code, "a block of the document", "exec"), names)
    sys.stdout.write(json.dumps(said.getvalue()) + "\\n")
"""


def blocks(document: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(document.read_text())


def documents() -> list[Any]:
    """List the documents with examples; some train for minutes."""
    return [
        pytest.param(path, id=path.name, marks=[pytest.mark.minutes] if path.name in TRAINING else [])
        for path in DOCUMENTS
        if blocks(path)
    ]


@pytest.mark.parametrize("document", documents())
def test_examples_run(document: Path, tmp_path: Path) -> None:
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": programs, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    found = blocks(document)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER, json.dumps(found)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"{found[len(said)][1]}\n{run.stderr}"
    for (_, code), output in zip(found, said, strict=True):
        for line, wanted in re.findall(r"^(print\(.*\))  # (.*)$", code, re.MULTILINE):
            assert wanted in output, f"{line} did not print {wanted}"


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*DOCUMENTS, ROOT / "CONTRIBUTING.md"]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", document.read_text().replace("\n", " ")):
            path = document.parent / target.strip() if target else document
            assert path.exists(), f"{document.name} links to {target}"
            assert not anchor or anchor in anchors(path), f"{document.name} links to {target}#{anchor}"


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document: its headings, as GitHub names them, and its ids."""
    text = document.read_text()
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | {
        *re.findall(r'id="([^"]+)"', text)
    }


def test_the_picture_of_the_label_graph_is_as_setaug_draws_it() -> None:
    labels = [
        "tennis",
        "football",
        "match",
        "opera",
        "jazz",
        "concert",
        "event",
        "volcano",
        "lighthouse",
        "island",
        "place",
        "crowd",
    ]
    graph = inspect_examples(sample_examples()).graph(labels)
    assert (ROOT / "docs" / "label-graph.svg").read_text().strip() == to_svg(graph).strip()


def test_the_api_reference_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    listed = re.findall(r"^::: setaug\.(\w+)$", page, re.MULTILINE)
    assert set(setaug.__all__) <= {*listed, "SetAugError"}
    assert "::: setaug.errors" in page


def test_readme_quotes_the_results_page_and_that_quotes_the_stored_results() -> None:
    stored = {row[0]: plain(row) for row in table_rows(ROOT / "results" / "defaults.md", n_columns=7)}
    results = {row[0]: plain(row) for row in table_rows(ROOT / "docs" / "results.md", n_columns=7)}
    assert {name: results[name] for name in DEFAULTS} == {name: stored[row] for name, row in DEFAULTS.items()}
    quoted = {row[0]: plain(row) for row in table_rows(ROOT / "README.md", n_columns=7) if row[0]}
    assert len(quoted) == 6
    assert quoted == {name: results[name] for name in quoted}


def plain(row: list[str]) -> list[str]:
    """Return the values of a row without emphasis."""
    return [value.replace("**", "") for value in row[1:]]


DEFAULTS = {
    "`setaug train`, `setaug predict`": "setaug train, setaug predict",
    "seq2seq as text (the paper's baseline)": "seq2seq",
    "seq2seq with the constraint": "seq2seq, constrained",
    "set search, with calibration and expected F1": "set search",
    "a classifier on an encoder (MiniLM, 22M weights)": "classifier, encoder",
    "TF-IDF, linear classifier with the words of labels (`TfidfClassifier`)": "TF-IDF, linear, and the words of labels",
    "TF-IDF without the words of labels": "TF-IDF, linear",
    "the most frequent labels": "the most frequent labels, whatever the text",
    "the default without the label head": "setaug, without the label head",
    "the default without the decoder's probabilities": "setaug, without the decoder",
    "the default without the TF-IDF companion": "setaug, without the companion",
    "the default without calibration": "setaug, without calibration",
    "the default, but the set as written (constrained)": "setaug, as written",
    "the default, but the set as text (SETAUG as in the paper)": "setaug, as text",
    "one random order and no size (seq2seq) with all of `setaug predict` but the label head": (
        "seq2seq, setaug predict without the label head"
    ),
}


def table_rows(document: Path, n_columns: int) -> list[list[str]]:
    """Return the rows of the tables of a document that have so many columns."""
    lines = [line for line in document.read_text().splitlines() if line.startswith("|") and "---" not in line]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if len(row) == n_columns]
