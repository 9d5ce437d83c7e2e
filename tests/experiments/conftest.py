"""Studies and experiments of tiny models, each run once."""

import contextlib
import io
from dataclasses import replace
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.experiments.simulation import design, study
from setaug.experiments.simulation.design import SCALES
from tests.conftest import MakeOnce
from tests.experiments.emotions import write_emotions

TINY = replace(
    SCALES["quick"],
    model="tiny",
    n_train=dict.fromkeys(SCALES["quick"].n_train, 16),
    n_test=2,
    n_words=8,
    training={"epochs": 1, "batch_size": 16, "learning_rate": 3e-3},
)
"""A scale at which a training takes a second."""
STUDIES = ("finding-3", "no-positions", "finding-6")
ROWS = {
    "setaug + size": "setaug",
    "setaug + size, vote over samples": "setaug",
    "set search": "set-search",
    "multi-label, encoder": "classifier",
    "TF-IDF, linear": "tf-idf",
}
"""Rows of the main table, with their methods."""


@pytest.fixture
def tiny_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the quick scale tiny, with one seed."""
    monkeypatch.setitem(design.SCALES, "quick", TINY)
    monkeypatch.setattr(study, "SEEDS", study.SEEDS[:1])


@pytest.fixture(scope="session")
def tiny_studies(make_once: MakeOnce) -> tuple[Path, str, str]:
    """A study of each process, by the command: the folder, and what was printed."""

    def run(folder: Path) -> None:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(design.SCALES, "quick", TINY)
            patch.setattr(study, "SEEDS", study.SEEDS[:1])
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                for name in STUDIES:
                    assert main(["simulate", name, "-o", str(folder), "--workers", "1"]) == 0
        (folder / "out.txt").write_text(out.getvalue())
        (folder / "err.txt").write_text(err.getvalue())

    folder = make_once("simulation", run)
    return folder, (folder / "out.txt").read_text(), (folder / "err.txt").read_text()


@pytest.fixture(scope="session")
def emotions_folder(make_once: MakeOnce) -> Path:
    """The folder of a small data set."""
    return make_once("emotions", write_emotions)


def reproduce_call(data: Path, out: Path) -> list[str]:
    """Return the arguments of a run of tiny models."""
    settings = ["--model", "tiny", "--encoder", "tiny", "--epochs", "1", "--seeds", "7", "--samples", "2"]
    place = ["--no-verify", "--data-dir", str(data), "--data", "go-emotions[min2]", "-o", str(out)]
    return ["reproduce", "main", *settings, *place, "--workers", "1", "--rows", *ROWS]


@pytest.fixture(scope="session")
def tiny_run(emotions_folder: Path, make_once: MakeOnce) -> Path:
    """Some rows of the main table, by the command."""

    def run(out: Path) -> None:
        assert main(reproduce_call(emotions_folder, out)) == 0

    return make_once("results", run)
