"""Folders and checkpoints that are damaged or made to do harm, and disks that are full: one line, exit code 2."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from setaug.cli import main
from setaug.models import SetGenerator, load_model
from setaug.models.neural.pretrained import load_for_classification, load_for_generation
from setaug.sample import sample_examples
from tests.conftest import write_examples
from tests.models.killed import run_killed
from tests.models.runs import command
from tests.tiny import make_model, make_tokenizer

STEPS = ("--epochs", "2", "--batch-size", "4", "--checkpoint-every", "2", "--orders", "1", "--seed", "5")
INDEX = "model.safetensors.index.json"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)  # how long models take to load is another matter


@pytest.fixture
def folder(tmp_path: Path, generator_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.jsonl").write_text('{"text": "We won!"}\n')
    return Path(shutil.copytree(generator_folder, tmp_path / "model"))


def assert_told_in_one_line(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"setaug {arguments[0]}: ")
    assert err.count("\n") == 1, err
    return err


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


# --- model folders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("config.json", {"d_model": "x"}),
        ("config.json", {"d_model": []}),
        ("config.json", {"eos_token_id": "x"}),
        ("config.json", {"vocab_size": -1}),
        ("config.json", {"encoder_attention_heads": 0}),
        ("config.json", {"quantization_config": {"quant_method": "gptq"}}),
        ("setaug.json", {"labels": 3}),
        ("setaug.json", {"labels": [3]}),
        ("setaug.json", {"max_label_tokens": "x"}),
        ("setaug.json", {"largest": None}),
        ("setaug.json", {"settings": []}),
        ("setaug.json", {"calibration": []}),
        ("tokenizer_config.json", {"tokenizer_class": 3}),
        ("generation_config.json", {"eos_token_id": {}}),
    ],
)
def test_values_that_make_no_sense(
    name: str, values: dict[str, Any], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change(folder / name, **values)
    assert "model" in assert_told_in_one_line(["predict", "model", "texts.jsonl"], capfd)


@pytest.mark.parametrize("name", ["config.json", "setaug.json", "tokenizer.json", "statistics.json"])
def test_json_that_is_nested_too_deeply(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / name).write_text("[" * 200_000)
    assert_told_in_one_line(["predict", "model", "texts.jsonl"], capfd)


@pytest.mark.parametrize(
    "weights",
    [
        "/etc/hostname",
        "../other.safetensors",
        "pickled.bin",
        "config.json",
        "missing.safetensors",
        "sub/other.safetensors",
        3,
    ],
)
def test_an_index_that_names_other_files(weights: Any, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Weights that are no safetensors would be read as pickles."""
    found = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "sub").mkdir()
    for other in (folder.parent, folder / "sub"):
        save_file(found, other / "other.safetensors", metadata={"format": "pt"})
    torch.save(found, folder / "pickled.bin")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(found, weights)}
    (folder / INDEX).write_text(json.dumps(index))
    assert INDEX in assert_told_in_one_line(["predict", "model", "texts.jsonl"], capfd)


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": 3}', "[" * 200_000, "{"])
def test_an_index_that_is_none(content: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "model.safetensors").unlink()
    (folder / INDEX).write_text(content)
    assert INDEX in assert_told_in_one_line(["predict", "model", "texts.jsonl"], capfd)


def test_an_index_of_its_own_files_is_read(folder: Path, generator: SetGenerator) -> None:
    found = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(found, "model-00001-of-00001.safetensors")}
    (folder / INDEX).write_text(json.dumps(index))
    assert load_model(folder).predict(["We won!"]) == generator.predict(["We won!"])


@pytest.mark.parametrize("name", ["setaug.json", "config.json", "model.safetensors", "tokenizer.json", "vocab.txt"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_devices_and_pipes_are_not_read(kind: str, name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    assert "is not a regular file" in assert_told_in_one_line(["predict", "model", "texts.jsonl"], capfd)


# --- attention --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["kernels-community/any", "somebody/code", "flash_attention_2", "paged|eager", 3])
@pytest.mark.parametrize("field", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("kind", ["bart", "t5", "gpt2", "llama"])
def test_a_folder_does_not_choose_how_to_attend(kind: str, field: str, asked: Any, tmp_path: Path) -> None:
    make_model(kind).save_pretrained(tmp_path)
    make_tokenizer("bytes").save_pretrained(tmp_path)
    change(tmp_path / "config.json", **{field: asked})
    loaded, _ = load_for_generation(str(tmp_path))
    attends = [loaded, *(part for part in loaded.modules() if hasattr(part, "config"))]
    assert {part.config._attn_implementation for part in attends} == {"sdpa"}
    if kind == "bart":
        classifier, _ = load_for_classification(str(tmp_path), ["a"])
        assert classifier.config._attn_implementation == "sdpa"


def test_a_model_without_that_attention_has_the_plain_one(tmp_path: Path) -> None:
    from transformers import BloomConfig, BloomForCausalLM

    assert not BloomForCausalLM._supports_sdpa
    BloomForCausalLM(BloomConfig(vocab_size=400, hidden_size=16, n_layer=1, n_head=2)).save_pretrained(tmp_path)
    make_tokenizer("bytes").save_pretrained(tmp_path)
    assert load_for_generation(str(tmp_path))[0].config._attn_implementation == "eager"


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Examples, and a run that was killed after a checkpoint."""
    place = tmp_path_factory.mktemp("hostile")
    write_examples(place / "train.jsonl", list(sample_examples(16)))
    write_examples(place / "dev.jsonl", list(sample_examples(4, seed=1)))
    run_killed(command(place, place / "run", *STEPS), "after-checkpoint 4", place / "log")
    assert (place / "run" / "checkpoints" / "checkpoint-4" / "complete").exists()
    return place


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trainer_state.json", "model.safetensors", "optimizer.pt"])
def test_a_full_disk(name: str, place: Path, tmp_path: Path) -> None:
    """Each library has an error of its own for it."""
    log = tmp_path / "log"
    room = (place / "run" / "checkpoints" / "checkpoint-4" / name).stat().st_size - 1
    assert run_killed(command(place, tmp_path / "run", *STEPS), f"room {room}", log) == 2, log.read_text()
    told = log.read_text().removeprefix("loading the model\n")
    assert told.startswith("setaug train: ")
    assert told.count("\n") == 1, told
    assert not (tmp_path / "run" / "setaug.json").exists()
    assert main([*command(place, tmp_path / "run", *STEPS), "--resume"]) == 0


DAMAGES: dict[str, tuple[str, bytes | int]] = {
    "weights cut off": ("model.safetensors", 1000),
    "weights of another kind": ("model.safetensors", b"\x08\0\0\0\0\0\0\0{}      "),
    "optimizer cut off": ("optimizer.pt", 1000),
    "optimizer is text": ("optimizer.pt", b"{}"),
    "scheduler is empty": ("scheduler.pt", b""),
    "random state cut off": ("rng_state.pth", 100),
    "state cut off": ("trainer_state.json", 100),
    "state is a list": ("trainer_state.json", b"[]"),
    "state is empty": ("trainer_state.json", b"{}"),
    "state counts words": ("trainer_state.json", b'{"global_step": "x", "max_steps": 1, "num_train_epochs": 1}'),
    "state is nested": ("trainer_state.json", b"[" * 200_000),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint(
    name: str, place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)  # how long models take to load is another matter
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    file, content = DAMAGES[name]
    path = run / "checkpoints" / "checkpoint-4" / file
    path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    capfd.readouterr()
    told = assert_told_in_one_line([*command(place, run, *STEPS), "--resume"], capfd)
    assert "checkpoint-4 is damaged (" in told


def test_damaged_metrics_are_left_out(place: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(place / "run", tmp_path / "run"))
    with (run / "metrics.jsonl").open("ab") as lines:
        lines.write(b'\xff\n{}\n[]\n{"step": "x"}\n')
    (run / "checkpoints" / "checkpoint-x").mkdir()
    (run / "checkpoints" / "checkpoint-x" / "complete").touch()
    assert main([*command(place, run, *STEPS), "--resume"]) == 0
    for line in (run / "metrics.jsonl").read_text().splitlines():
        assert isinstance(json.loads(line)["step"], int)
