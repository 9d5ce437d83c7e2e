"""``setaug train``: what it writes and says, and what it refuses in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import BertConfig

from setaug import Example
from setaug.cli import main
from setaug.models import SetClassifier, SetSearch, load_model
from setaug.models.neural.scratch import SHAPES
from tests.conftest import DEV, EXAMPLES, write_examples
from tests.tiny import make_model, make_tokenizer

QUICK = ("--epochs", "1", "--batch-size", "24", "--model", "tiny")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)  # how long models take to load is another matter
    write_examples(tmp_path / "train.jsonl", EXAMPLES)
    write_examples(tmp_path / "dev.jsonl", DEV)
    return tmp_path


def test_it_trains_and_says_what_it_did(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    unseen = Example("new", ["never seen", "nor this"])
    write_examples(folder / "dev.jsonl", [*DEV, unseen])
    options = ["--max-source-length", "18", "--max-target-length", "20", "--orders", "3", *QUICK]
    assert main(["train", "train.jsonl", "--dev", "dev.jsonl", "-o", "run", *options]) == 0
    output = capfd.readouterr()
    assert output.out == ""
    record = load_model("run").record_
    n_new = record["dev_labels_unseen_in_training"]
    assert n_new >= 2
    assert 0 < record["dev_examples_with_unseen_labels"] <= 13
    assert record["n_pairs_per_epoch"] == 4 * (48 - record["left_out_targets_too_long"])
    assert output.err.splitlines()[1:] == [
        f"mean F1 of the sets on the dev data: {record['chosen']['f1']:.3f}; "
        f"{record['best_f1']:.3f} before sets were tuned",
        f"{record['texts_cut_off']} texts were truncated at --max-source-length",
        f"{n_new} labels of the dev data are not in the training data; they can be predicted, but were not trained on",
    ]
    assert output.err.startswith("run: 48 examples, 192 pairs per epoch, 2 updates in ")


@pytest.mark.parametrize(
    ("method", "kind"), [("classifier", SetClassifier), ("set-search", SetSearch)], ids=["classifier", "set-search"]
)
def test_the_baselines_have_models_of_their_own(method: str, kind: type, folder: Path) -> None:
    assert main(["train", "train.jsonl", "-o", "run", "--method", method, *QUICK]) == 0
    assert type(load_model("run")) is kind


def test_each_seed_has_a_folder_and_a_vocabulary_may_be_a_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "labels.txt").write_bytes("\ufeffbrand new\r\n\nplace\n".encode())
    write_examples(folder / "train.jsonl", EXAMPLES[:8])
    command = ["train", "train.jsonl", "-o", "runs", "--seeds", "1", "2", "1", "--vocabulary", "labels.txt", *QUICK]
    assert main(command) == 0
    assert sorted(os.listdir("runs")) == ["seed-1", "seed-2"]
    one, two = (load_model(f"runs/seed-{seed}") for seed in (1, 2))
    assert one.labels_[-1] == "brand new"
    assert (one.training.seed, one.augmenter.random_state) == (1, 1)
    assert not torch.equal(one.model_.lm_head.weight, two.model_.lm_head.weight)
    lines = capfd.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines if line.startswith("runs/")] == ["runs/seed-1", "runs/seed-2"]


def test_other_formats_and_bad_lines(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [f'"{example.text}","{", ".join(example.labels)}"' for example in EXAMPLES[:6]]
    (folder / "train.data").write_text("\n".join(["body,tags", *lines, '"bad",",,"']) + "\n")
    options = ["--input-kind", "csv", "--text-field", "body", "--labels-field", "tags", "--delimiter", ","]
    assert main(["train", "train.data", "-o", "run", *options, "--skip-bad", *QUICK]) == 0
    assert "skipped 1 bad line:\n  line 8 of train.data" in capfd.readouterr().err
    assert load_model("run").record_["n_examples"] == 6


# --- mistakes ---------------------------------------------------------------------------------------------------------


def make_broken(folder: Path) -> None:
    """Write files and folders with something wrong about them."""
    (folder / "empty.jsonl").write_text("\n")
    (folder / "bad.jsonl").write_text('{"text": "a", "labels": 3}\n')
    write_examples(folder / "unlabelled.jsonl", [Example("a", ()), Example("b", ())])
    (folder / "blank.txt").write_bytes(b"\xff\n")
    (folder / "nothing").mkdir()
    for name in ("truncated", "pickled", "config", "tokens"):
        make_model("t5").save_pretrained(folder / name)
        make_tokenizer("unigram").save_pretrained(folder / name)
    weights = folder / "truncated" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    (folder / "pickled" / "model.safetensors").unlink()
    torch.save(make_model("t5").state_dict(), folder / "pickled" / "pytorch_model.bin")
    (folder / "config" / "config.json").write_text("{")
    (folder / "tokens" / "tokenizer.json").write_text("{")
    BertConfig(vocab_size=400).save_pretrained(folder / "encoder")
    (folder / "file").write_text("in the way")


MISTAKES = {
    "missing.jsonl": "cannot read missing.jsonl: No such file or directory.",
    "empty.jsonl": "empty.jsonl contains no examples.",
    "bad.jsonl": 'line 1 of bad.jsonl: "labels" must be a list of strings, got 3.',
    "unlabelled.jsonl": "no training example has a label.",
    "train.jsonl --dev empty.jsonl": "empty.jsonl contains no examples.",
    "train.jsonl --dev missing.jsonl": "cannot read missing.jsonl",
    "train.jsonl --model ./nowhere": "there is no model folder ./nowhere.",
    "train.jsonl --model nothing": "the folder nothing is not a model: config.json is missing.",
    "train.jsonl --model config": "config.json cannot be read",
    "train.jsonl --model truncated": "cannot load truncated: ",
    "train.jsonl --model tokens": "cannot load tokens: ",
    "train.jsonl --model pickled": "cannot load pickled: ",
    "train.jsonl --model encoder": "encoder is neither an encoder-decoder nor a causal language model (its",
    "train.jsonl --model tiny-causal --method classifier": "tiny-causal is a causal model and cannot be a classifier",
    "train.jsonl --model some/model": "cannot load some/model: ",
    "train.jsonl --model some/model --method classifier": "cannot load some/model: ",
    "train.jsonl --max-target-length 1": "no example with labels can be trained on",
    "train.jsonl --epochs 0": "epochs must be an integer of at least 1, got 0.",
    "train.jsonl --learning-rate -1": "learning_rate must be above 0",
    "train.jsonl --learning-rate nan": "learning_rate must be above 0",
    "train.jsonl --batch-size 0": "batch_size must be",
    "train.jsonl --accumulate 0": "accumulate must be",
    "train.jsonl --checkpoint-every 0": "checkpoint_every must be",
    "train.jsonl --lora 0": "lora_rank must be",
    "train.jsonl --seeds -1": "seed must be an integer below 2**32, got -1.",
    "train.jsonl --orders -1": "n_orders must be from 0 to",
    "train.jsonl --min-pmi nan": "min_pmi",
    "train.jsonl --min-ratio 0.5": "min_ratio must be at least 1, got 0.5.",
    "train.jsonl --separator a": "separator must not start with a letter",
    "train.jsonl --template text": "template must contain {text} exactly once, got 'text'.",
    "train.jsonl --delimiter=": "--delimiter must not be empty.",
    "train.jsonl --patience 2 --held-out 0": "patience requires dev data",
    "train.jsonl --vocabulary missing.txt": "there is no file missing.txt.",
    "train.jsonl --vocabulary blank.txt": "line 1 of blank.txt: invalid UTF-8",
    "train.jsonl --method classifier --size": "the method classifier does not write sizes.",
    "train.jsonl --method classifier --vocabulary open": "vocabulary must be closed.",
    "train.jsonl --method classifier --fresh-orders": "a classifier has no orders",
    "train.jsonl --method set-search --fresh-orders": "set search has no orders",
    "train.jsonl --method seq2seq --fresh-orders": "fresh_orders requires sampled orders",
    "train.jsonl --method classifier --objective elbo": "a classifier has no orders, so its objective is plain.",
    "train.jsonl --method set-search --objective elbo": "set search has no orders, so its objective is plain.",
    "train.jsonl --method seq2seq --objective iwelbo": "the objective iwelbo requires sampled orders",
    "train.jsonl -o file": "file",
    "train.jsonl -o file/run": "Not a directory",
}


def test_mistakes_get_one_clear_line_and_leave_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    make_broken(folder)
    capfd.readouterr()
    before = sorted(folder.rglob("*"))
    for arguments, message in MISTAKES.items():
        assert main(["train", "-o", "run", *QUICK, *arguments.split()]) == 2, arguments
        output = capfd.readouterr()
        assert output.out == "", arguments
        assert output.err.startswith("setaug train: "), arguments
        assert message in output.err, (arguments, output.err)
        assert output.err.count("\n") == 1, (arguments, output.err)
        assert sorted(folder.rglob("*")) == before, arguments


@pytest.mark.parametrize("arguments", [["--precision", "int8"], ["--method", "magic"], ["--epochs", "many"], []])
def test_options_that_are_none_show_the_usage(
    arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "train.jsonl", *arguments])
    assert "setaug train: error:" in capfd.readouterr().err
    assert not Path("run").exists()


def test_a_model_must_be_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "train.jsonl", "-o", "run"]) == 2
    told = capfd.readouterr().err
    assert told.startswith("setaug train: --model is missing; ")
    assert "facebook/bart-base" in told
    assert told.count("\n") == 1
    assert not Path("run").exists()
    for name in told.rpartition(": ")[2].rstrip(".\n").split(", "):
        assert name in SHAPES


def test_without_torch_the_pip_line_is_shown(folder: Path) -> None:
    code = "import sys\nsys.modules['torch'] = None\nfrom setaug.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    for command in (["train", "train.jsonl", "--model", "tiny", "-o", "run"], ["predict", "run", "dev.jsonl"]):
        result = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, timeout=600, check=False
        )
        assert result.returncode == 2
        assert result.stderr == (
            f"setaug {command[0]}: Training and running models needs an optional dependency: "
            "pip install 'setaug[train]'\n"
        )
    assert not Path("run").exists()


def test_the_module_runs_as_a_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "setaug", "--help"], capture_output=True, text=True, timeout=600, check=True
    )
    assert "train a model that writes sets" in result.stdout
    assert result.stderr == ""


def test_what_is_written_says_how_it_was_made(folder: Path) -> None:
    write_examples(folder / "train.jsonl", EXAMPLES[:8])
    command = ["train", "train.jsonl", "-o", "new/run", "--template", "Topics: {text}", "--no-size", *QUICK]
    assert main(command) == 0
    card = json.loads(Path("new/run/setaug.json").read_bytes())
    assert card["settings"]["augmenter"]["template"] == "Topics: {text}"
    assert card["settings"]["augmenter"]["with_size"] is False
    assert card["record"]["versions"]["torch"] == torch.__version__
    assert card["record"]["seconds"] >= 0
