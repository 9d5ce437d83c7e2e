"""Studies and experiments of tiny models, each run once."""

import contextlib
import io
from dataclasses import replace
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.experiments.simulation import design, study
from setaug.experiments.simulation.design import SCALES
from tests.experiments.emotions import write_emotions

TINY = replace(
    SCALES["quick"],
    model="tiny",
    n_train=dict.fromkeys(SCALES["quick"].n_train, 16),
    n_test=4,
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
def tiny_studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A study of each process, by the command: the folder, and what was printed."""
    folder = tmp_path_factory.mktemp("simulation")
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(design.SCALES, "quick", TINY)
        patch.setattr(study, "SEEDS", study.SEEDS[:1])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for name in STUDIES:
                assert main(["simulate", name, "-o", str(folder), "--workers", "1"]) == 0
    return folder, out.getvalue(), err.getvalue()


@pytest.fixture(scope="session")
def emotions_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small data set."""
    return write_emotions(tmp_path_factory.mktemp("data") / "data")


def reproduce_call(data: Path, out: Path) -> list[str]:
    """Return the arguments of a run of tiny models."""
    settings = ["--model", "tiny", "--encoder", "tiny", "--epochs", "1", "--seeds", "7", "--samples", "2"]
    place = ["--no-verify", "--data-dir", str(data), "--data", "go-emotions[min2]", "-o", str(out)]
    return ["reproduce", "main", *settings, *place, "--workers", "1", "--rows", *ROWS]


@pytest.fixture(scope="session")
def tiny_run(emotions_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rows of the main table, by the command."""
    out = tmp_path_factory.mktemp("results")
    assert main(reproduce_call(emotions_folder, out)) == 0
    return out
