"""No command replaces what it reads, and no two commands write one thing at the same time."""

import stat
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.models.model_folder import locked_run
from setaug.sample import sample_examples
from setaug.storage import open_output
from tests.conftest import write_examples


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("train.jsonl", "dev.jsonl", "test.jsonl", "labels.html"):
        write_examples(tmp_path / name, sample_examples(5, seed=1))
    (tmp_path / "link.jsonl").symlink_to("dev.jsonl")
    model = tmp_path / "run"
    model.mkdir()
    for name in ("metrics.jsonl", "setaug.json", "model.safetensors", "tokenizer.json", "generation_config.json"):
        (model / name).write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "augment train.jsonl -o file://{0}/train.jsonl",
        "augment train.jsonl dev.jsonl -o link.jsonl",
        "predict run dev.jsonl -o dev.jsonl",
        "predict run dev.jsonl -o ./run/../dev.jsonl",
        "predict run link.jsonl -o dev.jsonl",
        "predict run dev.jsonl -o test.jsonl --calibrate test.jsonl",
        "predict run dev.jsonl -o run/setaug.json",
        "predict run dev.jsonl -o run/model.safetensors",
        "score run dev.jsonl -o file://{0}/dev.jsonl",
        "prompt dev.jsonl --train train.jsonl --model m -o train.jsonl",
        "prompt dev.jsonl --train train.jsonl --model m -o out.jsonl --answers dev.jsonl",
        "inspect labels.html --input-kind jsonl --html labels.html",
        "evaluate labels.html test.jsonl --html labels.html",
        "train train.jsonl --dev dev.jsonl -o dev.jsonl",
        "train train.jsonl --dev run/metrics.jsonl -o run",
        "train ./run/metrics.jsonl -o file://{0}/run --resume",
    ],
)
def test_an_output_never_replaces_an_input(command: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert main(command.format(place).split()) == 2
    error = capsys.readouterr().err
    assert "the output would replace the input" in error
    assert error.count("\n") == 1
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("shards", [[], ["--shards", "2"]])
def test_a_second_command_that_writes_the_same_output_is_refused(
    shards: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_output("pairs.jsonl") as stream:
        assert main(["augment", "train.jsonl", "-o", "pairs.jsonl", *shards]) == 2
        assert "another run is writing to pairs.jsonl; wait for it, or choose another name." in capsys.readouterr().err
        stream.write(b"first")
    assert Path("pairs.jsonl").read_bytes() == b"first"
    assert not list(place.glob("pairs-*"))


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_second_run_in_a_training_folder_is_refused(
    resume: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = place / "new"
    with locked_run(folder):
        assert main(["train", "train.jsonl", "--model", "tiny", "-o", "new", "--epochs", "1", *resume]) == 2
        assert capsys.readouterr().err.endswith(
            "setaug train: another run is writing to new; wait for it, or choose another name.\n"
        )
        assert [path.name for path in folder.iterdir()] == [".run.lock"]
    assert not folder.exists()


@pytest.mark.slow
def test_the_files_of_a_model_have_the_usual_mode(place: Path) -> None:
    assert main(["train", "train.jsonl", "--model", "tiny", "-o", "new", "--epochs", "1"]) == 0
    usual = stat.S_IMODE((place / "dev.jsonl").stat().st_mode)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (place / "new").iterdir() if path.is_file()} == {usual}
