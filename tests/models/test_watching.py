"""What a run reports while it trains: TensorBoard's files, and trackers that are not there."""

import os
from pathlib import Path

import pytest

from setaug import SetGenerator, TrainingSettings
from setaug.cli import main
from setaug.models.model_folder import is_whole
from tests.conftest import DEV, EXAMPLES, write_examples
from tests.models.runs import command, rows


@pytest.fixture(autouse=True)
def no_place_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR", raising=False)


def test_tensorboard_reads_the_loss_and_the_dev_scores_of_a_run(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    write_examples(tmp_path / "train.jsonl", EXAMPLES)
    write_examples(tmp_path / "dev.jsonl", DEV)
    options = ("--model", "mini", "--epochs", "2", "--batch-size", "24", "--report-to", "tensorboard")
    assert main(command(tmp_path, tmp_path / "run", *options)) == 0
    found = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    found.Reload()
    wanted = {
        ("eval/" + name.removeprefix("eval_") if name.startswith("eval_") else f"train/{name}", row["step"]): value
        for row in rows(tmp_path / "run")
        for name, value in row.items()
        if name in ("loss", "eval_f1", "eval_micro_f1")
    }
    assert len(wanted) == 6
    for (name, step), value in wanted.items():
        read = {event.step: event.value for event in found.Scalars(name)}
        assert read[step] == pytest.approx(value, rel=1e-6), name


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_tracker_that_is_not_installed_is_one_line(name: str, tmp_path: Path, capfd) -> None:  # type: ignore[no-untyped-def]
    from importlib.util import find_spec

    if find_spec(name) is not None:
        pytest.skip(f"{name} is installed")
    write_examples(tmp_path / "train.jsonl", EXAMPLES[:4])
    arguments = ["train", str(tmp_path / "train.jsonl"), "-o", str(tmp_path / "run"), "--model", "mini"]
    assert main([*arguments, "--report-to", name]) == 2
    assert capfd.readouterr().err == f"setaug train: reporting to {name} needs its package: pip install {name}\n"
    assert os.listdir(tmp_path) == ["train.jsonl"]


@pytest.mark.parametrize(
    ("trackers", "folder", "problem"),
    [
        ("tensorboard", None, r"report_to='tensorboard' writes files, so it requires a folder"),
        (["paper"], "run", r"report_to must be one of tensorboard, wandb, mlflow, got 'paper'\."),
    ],
)
def test_trackers_are_checked_before_anything_is_done(trackers, folder, problem, tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = SetGenerator("mini", training=TrainingSettings(epochs=1))
    with pytest.raises(ValueError, match=problem):
        model.fit(EXAMPLES[:4], folder=None if folder is None else tmp_path / folder, report_to=trackers)
    assert not is_whole(tmp_path / "run")
