"""Two processes: the same examples and the same loss as one, one word and one writer, and an end if one dies."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from setaug.cli import main
from setaug.models import load_model
from setaug.models.model_folder import last_checkpoint
from setaug.models.neural import pretrained
from setaug.models.neural.batches import Shares
from setaug.sample import sample_examples
from tests.conftest import write_examples
from tests.models.runs import command, rows
from tests.models.together import Note, Spread, fit_in_no_folder, give_other_scores, read_notes, run_together

TRAIN = list(sample_examples(41, seed=3))  # one is left for the last batch, so a process gets none
DEV = list(sample_examples(6, seed=4))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    write_examples(place / "train.jsonl", TRAIN)
    write_examples(place / "dev.jsonl", DEV)
    return place


# --- the same as one --------------------------------------------------------------------------------------------------


def test_each_batch_is_dealt_out():
    parts = [list(Shares(range(10), 2, n_processes=3, process=rank)) for rank in range(3)]
    assert parts == [[[0, 3], [6, 9]], [[1, 4], [7]], [[2, 5], [8]]]
    assert [len(Shares(range(10), 2, n_processes=3, process=rank)) for rank in range(3)] == [2, 2, 2]


@pytest.mark.parametrize(
    "options",
    [  # without dropout, which would differ
        ("--model", "mini", "--fresh-orders", "--label-head"),
        ("--model", "mini-causal", "--accumulate", "2"),
        ("--model", "mini", "--method", "classifier"),
        ("--model", "mini", "--objective", "iwelbo"),
    ],
    ids=["encoder-decoder", "causal", "classifier", "bound"],
)
def test_two_processes_see_the_examples_of_one_and_reach_its_loss(options, place, tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "notes").mkdir(parents=True)
    with monkeypatch.context() as patch:
        from setaug.models.neural.training.trainer import SetTrainer

        patch.setattr(SetTrainer, "compute_loss", SetTrainer.compute_loss)
        Note(one / "notes")()
        assert main(command(place, one / "run", *options, "--epochs", "2", "--batch-size", "8")) == 0
    arguments = command(place, two / "run", *options, "--epochs", "2", "--batch-size", "4")
    main_one, other = run_together(arguments, tmp_path, begin=Note(two / "notes"))
    assert (main_one.code, other.code) == (0, 0)
    assert "updates in" in main_one.error
    assert other.error == ""

    wanted, found = read_notes(one / "notes"), read_notes(two / "notes")
    assert len(wanted) == (6 if "--accumulate" in options else 12)
    assert {step: seen for step, (seen, _) in found.items()} == {step: seen for step, (seen, _) in wanted.items()}
    assert [loss for _, loss in found.values()] == pytest.approx([loss for _, loss in wanted.values()], rel=1e-4)

    assert {path.name for path in (one / "run").iterdir()} == {path.name for path in (two / "run").iterdir()}
    for row, other_row in zip(rows(one / "run"), rows(two / "run"), strict=True):
        scores = {name: value for name, value in row.items() if name.startswith("eval")}
        assert {name: other_row[name] for name in scores} == scores
        assert other_row == pytest.approx(row, rel=1e-3)
    records = [load_model(folder / "run").record_ for folder in (one, two)]
    assert [record["processes"] for record in records] == [1, 2]
    assert records[0]["best_f1"] == records[1]["best_f1"]


# --- one dies ---------------------------------------------------------------------------------------------------------

STEPS = ("--model", "tiny", "--epochs", "2", "--fresh-orders", "--checkpoint-every", "4", "--batch-size", "4")


@pytest.fixture(scope="module")
def whole_run(place):
    folder = place / "whole"
    assert [ended.code for ended in run_together(command(place, folder, *STEPS), place)] == [0, 0]
    return folder


def test_after_one_was_killed_both_end_and_the_next_run_ends_the_same(place, whole_run, tmp_path):
    folder = tmp_path / "killed"
    arguments = [*command(place, folder, *STEPS), "--resume"]
    for moments, checkpoint in [(("never", "step 6"), 4), (("in-checkpoint 8", "never"), 4)]:
        ended = run_together(arguments, tmp_path, moments=moments)
        killed = [one.code == -signal.SIGKILL for one in ended]
        assert killed == [moment != "never" for moment in moments]
        assert all(one.code for one in ended)
        assert last_checkpoint(folder / "checkpoints").name == f"checkpoint-{checkpoint}"
    assert [ended.code for ended in run_together(arguments, tmp_path)] == [0, 0]
    assert (folder / "model.safetensors").read_bytes() == (whole_run / "model.safetensors").read_bytes()
    assert (folder / "metrics.jsonl").read_text() == (whole_run / "metrics.jsonl").read_text()
    assert load_model(folder).record_["resumed_from"] == 4


def test_a_finished_run_is_just_loaded(place, whole_run, tmp_path):
    before = {path.name: path.stat().st_mtime_ns for path in whole_run.iterdir()}
    ended = run_together([*command(place, whole_run, *STEPS), "--resume"], tmp_path)
    assert [one.code for one in ended] == [0, 0]
    assert "12 updates" in ended[0].error
    assert {path.name: path.stat().st_mtime_ns for path in whole_run.iterdir()} == before


def test_another_number_of_processes_cannot_go_on(place, whole_run, capfd):
    assert main([*command(place, whole_run, *STEPS), "--resume"]) == 2
    assert "was started with different settings: processes 2 (now 1)." in capfd.readouterr().err


# --- all agree --------------------------------------------------------------------------------------------------------


def test_the_main_process_decides_which_checkpoint_is_best_and_when_to_stop(place, tmp_path):
    options = ("--model", "mini", "--epochs", "5", "--batch-size", "8", "--patience", "2")
    ended = run_together(command(place, tmp_path / "run", *options), tmp_path, begin=give_other_scores)
    assert [one.code for one in ended] == [0, 0]
    assert [row["eval_f1"] for row in rows(tmp_path / "run") if "eval_f1" in row] == [0.1, 0.5, 0.3, 0.2]
    assert load_model(tmp_path / "run").record_["best_step"] == 6


def test_without_a_folder_all_load_the_best_checkpoint_of_the_main_process(tmp_path):
    ended = run_together([], tmp_path, begin=fit_in_no_folder)
    assert [one.code for one in ended] == [0, 0]
    assert ended[0].error == ended[1].error
    assert ended[0].error.endswith(" 2\n")


@pytest.fixture(scope="module")
def t5(place):
    """A small T5 without dropout: its encoder, decoder and output share their embeddings."""
    from transformers import T5Config, T5ForConditionalGeneration

    from setaug.models.neural.scratch import train_tokenizer

    tokenizer = train_tokenizer([text for one in TRAIN for text in (one.text, " | ".join(one.labels))])
    ids = {"pad_token_id": tokenizer.pad_token_id, "decoder_start_token_id": tokenizer.pad_token_id}
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0}
    torch.manual_seed(0)
    config = T5Config(vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id, **ids, **sizes)
    T5ForConditionalGeneration(config).save_pretrained(place / "t5")
    tokenizer.save_pretrained(place / "t5")
    return str(place / "t5")


@pytest.mark.parametrize(
    ("model", "options", "tolerance"),
    [
        ("mini-causal", (), 1e-3),
        ("mini", (), 1e-3),
        ("t5", (), 1e-3),
        ("t5", ("--weights", "bfloat16", "--lora", "4", "--gradient-checkpointing"), 0.01),  # 8 bits of precision
    ],
    ids=["causal", "BART", "T5", "T5 with all that saves memory"],
)
def test_weights_that_are_spread_over_processes_are_saved_whole(
    model, options, tolerance, place, t5, tmp_path, monkeypatch
):
    monkeypatch.setattr(pretrained, "LORA_DROPOUT", 0.0)  # it draws other masks in each process; `Spread` does the same
    options = (
        "--model",
        t5 if model == "t5" else model,
        "--epochs",
        "2",
        "--learning-rate",
        "1e-3",
        "--no-label-head",
        *options,
    )
    assert main(command(place, tmp_path / "one", *options, "--batch-size", "8")) == 0
    arguments = command(place, tmp_path / "two", *options, "--batch-size", "4")
    ended = run_together(arguments, tmp_path, begin=Spread(2))
    assert [one.code for one in ended] == [0, 0], ended[0].error
    for row, other_row in zip(rows(tmp_path / "one"), rows(tmp_path / "two"), strict=True):
        assert other_row == pytest.approx(row, rel=tolerance)
    weights, other = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert {name: values.dtype for name, values in other.items()} == {n: v.dtype for n, v in weights.items()}
    for name, values in weights.items():
        if name.endswith("k_proj.bias"):  # attention does not depend on it: its gradient is all rounding
            continue
        assert torch.allclose(values.float(), other[name].float(), atol=1e-2 if "--lora" in options else 1e-4), name
    if "--lora" in options:
        return
    one, two = (load_model(tmp_path / name) for name in ("one", "two"))
    ours, theirs = ([found.labels for found in model.predict(TRAIN, choose="written")] for model in (one, two))
    assert ours == theirs


def test_what_cannot_be_spread_is_told(place, tmp_path):
    ended = run_together(command(place, tmp_path / "run", "--model", "mini"), tmp_path, begin=Spread(1))
    assert [one.code for one in ended] == [2, 2]
    assert ended[0].error.endswith("FSDP 1 is not supported; set fsdp_version to 2 in accelerate's configuration.\n")
    assert not (tmp_path / "run").exists()


# --- one word ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": '{"text": "a", "labels": 3}\n'}, 'line 1 of train.jsonl: "labels" must be'),
        ({"run": True}, "contains an earlier run; resume it (--resume), or choose another folder."),
        ({"options": ["--epochs", "0"]}, "epochs must be an integer of at least 1, got 0."),
        ({"options": ["--epochs", "many"]}, "argument --epochs: invalid int value: 'many'"),
        ({"options": ["--dev", "-"]}, "several processes cannot share the stream -; use a file."),
    ],
    ids=["data", "folder", "value", "option", "stream"],
)
def test_what_is_wrong_is_said_once_and_both_end(change, message, tmp_path):
    train = write_examples(tmp_path / "train.jsonl", TRAIN[:8])
    train.write_text(change.get("data", "") + train.read_text())
    if "run" in change:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "run.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    command = ["train", str(train), "--model", "tiny", "-o", str(tmp_path / "run")]
    ended = run_together([*command, *change.get("options", ())], tmp_path)
    assert [one.code for one in ended] == [2, 2]
    assert message in ended[0].error
    assert ended[1].error == ""
    assert [path for path in sorted(tmp_path.rglob("*")) if not path.name.startswith("log-")] == before


# --- accelerate itself ------------------------------------------------------------------------------------------------


def launch(*arguments):
    program = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    return subprocess.run(
        [*program, "--main_process_port", "0", "-m", "setaug", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_accelerate_launches_the_same_run(place, whole_run, tmp_path):
    done = launch(*command(place, tmp_path / "run", *STEPS))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("12 updates in") == 1
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == (whole_run / "metrics.jsonl").read_text()
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (whole_run / "model.safetensors").read_bytes()


@pytest.mark.minutes
def test_what_is_wrong_is_said_once_under_accelerate(place, whole_run):
    done = launch(*command(place, whole_run, *STEPS))
    assert done.returncode == 1
    assert done.stderr.count("contains an earlier run; resume it (--resume)") == 1


@pytest.mark.parametrize("kind", ["fsdp", "deepspeed"])
def test_accelerate_reads_the_configurations_in_the_documents(kind, tmp_path):
    from accelerate.commands.config import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    document = Path(__file__).parents[2] / "docs" / "distributed.md"
    (written,) = re.findall(rf"^```yaml\n# {kind}.yaml\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "config.yaml").write_text(written)
    config = load_config_from_file(str(tmp_path / "config.yaml"))
    assert config.distributed_type.value == kind.upper()
    options = {action.dest for action in launch_command_parser()._actions}
    chosen = getattr(config, f"{kind}_config")
    assert chosen
    assert chosen.keys() <= options
