"""Training: runs that were killed and go on to the same end, the best checkpoint, patience, adapters, precision."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from setaug import SetAugmenter
from setaug.cli import main
from setaug.errors import ModelError
from setaug.models import SetClassifier, SetGenerator, TrainingSettings, load_model, make_model
from setaug.models.model_folder import MARK, is_whole, last_checkpoint
from setaug.models.neural.training.trainer import SetTrainer
from setaug.sample import sample_examples
from tests.conftest import write_examples
from tests.models.killed import run_killed
from tests.models.runs import command, rows

TRAIN = list(sample_examples(40, seed=3))
DEV = list(sample_examples(6, seed=4))
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    write_examples(place / "train.jsonl", TRAIN)
    write_examples(place / "dev.jsonl", DEV)
    return place


def files(folder):
    return {path.name for path in folder.iterdir()}


def check_same(folder, other):
    assert (folder / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    assert (folder / "metrics.jsonl").read_text() == (other / "metrics.jsonl").read_text()
    assert files(folder) == files(other)
    one, two = (json.loads((one / "setaug.json").read_bytes()) for one in (folder, other))
    for card in (one, two):
        del card["record"]["seconds"], card["record"]["resumed_from"]
    assert one == two


# --- killed and resumed -----------------------------------------------------------------------------------------------

STEPS = ("--epochs", "3", "--fresh-orders", "--checkpoint-every", "4", "--batch-size", "8")  # 5 updates per epoch


@pytest.fixture(scope="module")
def whole_run(place):
    folder = place / "whole"
    assert main(command(place, folder, *STEPS)) == 0
    return folder


def test_a_run_that_is_killed_again_and_again_ends_the_same(place, whole_run):
    folder, log = place / "killed", place / "log"
    begin = command(place, folder, *STEPS)
    assert run_killed(begin, "step 3", log) == KILLED
    assert last_checkpoint(folder / "checkpoints") is None
    for moment, checkpoint in [
        ("step 6", 4),  # within the second epoch
        ("after-checkpoint 8", 8),
        ("in-checkpoint 12", 8),
        ("while-saving", 15),
        ("before-cleaning", 15),
    ]:
        assert run_killed([*begin, "--resume"], moment, log) == KILLED, moment
        newest = last_checkpoint(folder / "checkpoints")
        assert newest is not None
        assert newest.name == f"checkpoint-{checkpoint}"
        assert is_whole(folder) == (moment == "before-cleaning")
        if moment == "in-checkpoint 12":
            half = folder / "checkpoints" / "checkpoint-12"
            assert (half / "model.safetensors").exists()
            assert not (half / MARK).exists()
    assert main([*begin, "--resume"]) == 0
    check_same(folder, whole_run)
    assert {"run.json", "setaug.json", "metrics.jsonl"} < files(folder)
    assert not [name for name in files(folder) if name.startswith((".", "checkpoint"))]


def test_a_program_that_is_killed_from_outside_goes_on(place, whole_run):
    folder = place / "outside"
    begin = [sys.executable, "-m", "setaug", *command(place, folder, *STEPS)]
    for _ in range(5):  # on a busy machine the kill may come too late
        with subprocess.Popen(begin, stderr=subprocess.DEVNULL) as process:
            while last_checkpoint(folder / "checkpoints") is None and process.poll() is None:
                time.sleep(0.01)
            process.kill()
        if process.returncode == KILLED and not is_whole(folder):
            break
        shutil.rmtree(folder)
    assert process.returncode == KILLED
    assert not is_whole(folder)
    with pytest.raises(ModelError, match=r"setaug.json is missing; its training run is not finished"):
        load_model(folder)
    assert main([*begin[3:], "--resume"]) == 0
    check_same(folder, whole_run)


@pytest.mark.parametrize(
    ("options", "moments"),
    [
        (("--method", "classifier", "--epochs", "2"), ["step 7"]),
        (("--lora", "4", "--epochs", "2", "--accumulate", "2"), ["step 4"]),
        # With such a rate nothing gets better: patience runs out at the third evaluation.
        (("--learning-rate", "1e-12", "--epochs", "9", "--patience", "2"), ["step 12", "after-checkpoint 15"]),
    ],
    ids=["classifier", "adapters", "patience"],
)
def test_other_runs_end_the_same_too(options, moments, place, tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for moment in moments:
        assert run_killed(command(place, killed, *options, "--resume"), moment, tmp_path / "log") == KILLED
    assert main(command(place, killed, *options, "--resume")) == 0
    assert main(command(place, whole, *options)) == 0
    check_same(killed, whole)
    if "--patience" in options:
        assert [row["step"] for row in rows(whole) if "eval_f1" in row] == [5, 10, 15]
        assert load_model(whole).record_["best_step"] == 15  # of equal ones, the last


def test_by_default_training_goes_on_to_the_end_and_the_last_of_equal_checkpoints_is_kept():
    few = list(sample_examples(24))
    training = TrainingSettings(learning_rate=1e-12, epochs=8)  # so F1 is always the same
    model = SetGenerator("mini", training=training, companion=False).fit(few[:16], dev=few[16:], progress=False)
    assert (model.record_["epochs"], model.record_["n_updates"], model.record_["best_step"]) == (8, 16, 16)


def test_a_finished_run_is_just_loaded(place, whole_run, capsys, monkeypatch):
    before = {path.name: path.stat().st_mtime_ns for path in whole_run.iterdir()}
    monkeypatch.setattr(SetTrainer, "train", None)
    assert main([*command(place, whole_run, *STEPS), "--resume"]) == 0
    assert "15 updates" in capsys.readouterr().err
    assert {path.name: path.stat().st_mtime_ns for path in whole_run.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (STEPS, "contains an earlier run; resume it (--resume), or choose another folder."),
        (
            (*STEPS, "--resume", "--epochs", "4", "--orders", "1"),
            "was started with different settings: augmenter.n_orders 2 (now 1), training.epochs 3 (now 4).",
        ),
        ((*STEPS, "--resume", "--dev", "train.jsonl"), "was started with different settings: dev '6 examples, "),
        ((*STEPS, "--resume", "--method", "classifier"), "a classifier has no orders"),
    ],
    ids=["again", "settings", "data", "method"],
)
def test_another_run_in_the_same_folder_is_refused(options, message, place, whole_run, capfd, monkeypatch):
    monkeypatch.chdir(place)
    before = (whole_run / "setaug.json").read_bytes()
    assert main(command(place, whole_run, *options)) == 2
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert (whole_run / "setaug.json").read_bytes() == before


def test_a_broken_record_of_a_run_is_told(tmp_path, capfd):
    train = write_examples(tmp_path / "train.jsonl", TRAIN[:4])
    (tmp_path / "run").mkdir()
    for broken in ("{", "[]"):
        (tmp_path / "run" / "run.json").write_text(broken)
        assert main(["train", str(train), "--model", "tiny", "-o", str(tmp_path / "run"), "--resume"]) == 2
        error = capfd.readouterr().err
        assert "run.json" in error
        assert error.count("\n") == 1


# --- the record -------------------------------------------------------------------------------------------------------


def test_the_metrics_are_json_lines_that_say_how_it_went(whole_run):
    found = rows(whole_run)
    losses = [row for row in found if "loss" in row]
    scores = [row for row in found if "eval_f1" in row]
    assert [row["step"] for row in losses] == [4, 8, 10, 12, 15]
    assert [row["step"] for row in scores] == [4, 8, 12, 15]
    assert losses[-1]["loss"] < losses[0]["loss"]
    assert all(0 <= row["eval_f1"] <= 1 and row["epoch"] == pytest.approx(row["step"] / 5) for row in scores)
    record = load_model(whole_run).record_
    assert record["best_f1"] == max(row["eval_f1"] for row in scores)
    assert record["n_updates"] == 15
    assert record["n_pairs_per_epoch"] == 120


def test_the_checkpoint_with_the_best_sets_is_the_one_that_remains(tmp_path, monkeypatch):
    """The scores are made up, so that the second of four is the best; its weights are noted on the way."""
    seen = []

    def scores(self, dev, progress=None):
        seen.append({name: values.clone() for name, values in self.model_.state_dict().items()})
        return {"f1": [0.1, 0.5, 0.3, 0.2][len(seen) - 1]}

    monkeypatch.setattr(SetGenerator, "_dev_scores", scores)
    told = []
    model = SetGenerator(training=TrainingSettings(epochs=4, batch_size=20))
    model.fit(TRAIN, dev=DEV, folder=tmp_path / "run", progress=lambda *told_now: told.append(told_now))
    assert len(seen) == 4
    assert all(torch.equal(values, seen[1][name]) for name, values in model.model_.state_dict().items())
    assert not torch.equal(seen[1]["lm_head.weight"], seen[3]["lm_head.weight"])
    assert (model.record_["best_f1"], model.record_["best_step"], model.record_["n_updates"]) == (0.5, 4, 8)
    assert [(stage.partition(":")[0], *counts) for stage, *counts in told] == [
        ("training", step, 8) for step in range(1, 9)
    ]
    assert re.fullmatch(r"training: loss \d+\.\d{3}, dev F1 0\.300, [\d,.]+ sets/s", told[-1][0])
    saved = load_file(tmp_path / "run" / "model.safetensors")
    assert torch.equal(saved["model.shared.weight"], seen[1]["model.shared.weight"])


def test_the_best_checkpoint_is_found_where_a_folder_was_moved_to(tmp_path, monkeypatch):
    seen = []

    def scores(self, dev, progress=None):
        seen.append({name: values.clone() for name, values in self.model_.state_dict().items()})
        return {"f1": 1 / len(seen)}

    def stop(self, folder, weights):
        raise KeyboardInterrupt

    monkeypatch.setattr(SetGenerator, "_dev_scores", scores)
    settings = TrainingSettings(epochs=3, batch_size=20)
    with monkeypatch.context() as patch:
        patch.setattr(SetGenerator, "_save", stop)
        with pytest.raises(KeyboardInterrupt):
            SetGenerator(training=settings).fit(TRAIN, dev=DEV, folder=tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "moved")
    model = SetGenerator(training=settings).fit(TRAIN, dev=DEV, folder=tmp_path / "moved", resume=True)
    assert (model.record_["best_step"], model.record_["resumed_from"], len(seen)) == (2, 6, 3)
    assert all(torch.equal(values, seen[0][name]) for name, values in model.model_.state_dict().items())


def test_without_dev_data_the_last_weights_remain_and_without_a_folder_nothing_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = SetGenerator(training=TrainingSettings(epochs=1)).fit(TRAIN[:16])
    assert model.record_["best_f1"] is None
    assert model.record_["best_step"] is None
    assert not os.listdir(tmp_path)


def test_the_same_seed_gives_the_same_model_and_another_one_another():
    one, two, other = (
        make_model("random", "tiny", training=TrainingSettings(epochs=1, seed=seed)).fit(TRAIN[:16]).model_.state_dict()
        for seed in (1, 1, 2)
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["lm_head.weight"], other["lm_head.weight"])


# --- batches, precision, adapters -------------------------------------------------------------------------------------


def losses_of(model_class, examples, folder, **settings):
    """Train without dropout; give the inputs of each step, the mean loss, and the gradients of each update."""
    seen, gradients = [], []

    class Noting(model_class):
        def _learn(self, examples, dev, train):
            def noting(model, *args, **options):
                self.without_dropout(model)
                return train(model, *args, **options)

            return super()._learn(examples, dev, noting)

        def without_dropout(self, model):
            for module in model.modules():
                if hasattr(module, "dropout") and isinstance(module.dropout, float):
                    module.dropout = 0.0
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
            model.get_encoder().register_forward_pre_hook(
                lambda module, args, kwargs: seen.append(kwargs["input_ids"].tolist()), with_kwargs=True
            )

    head = {"label_head": True} if model_class is SetGenerator else {}
    model = Noting(training=TrainingSettings(epochs=1, **head, **settings))
    step = torch.optim.AdamW.step

    def noting(self, *args, **kwargs):
        gradients.append(torch.cat([w.grad.flatten() for group in self.param_groups for w in group["params"]]))
        return step(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", noting)
        model.fit(examples, folder=folder)
    return seen, rows(folder)[-1]["loss"], gradients


@pytest.mark.parametrize("kind", [SetGenerator, SetClassifier])
def test_two_steps_of_two_see_the_data_of_one_of_four_and_average_it(kind, tmp_path):
    seen, loss, gradients = losses_of(kind, TRAIN[:16], tmp_path / "one", batch_size=4)
    parts, mean, accumulated = losses_of(kind, TRAIN[:16], tmp_path / "two", batch_size=2, accumulate=2)
    assert len(gradients) == len(accumulated) == 4
    assert mean == pytest.approx(loss, rel=1e-3)

    def bare(batches):
        return [[token for token in row if token != 1] for batch in batches for row in batch]

    assert bare(seen) == bare(parts)
    torch.testing.assert_close(gradients[0], accumulated[0], rtol=1e-3, atol=1e-5)


def test_mixed_precision_runs_and_saves_plain_weights(tmp_path):
    model = SetGenerator(training=TrainingSettings(epochs=1, precision="bfloat16"))
    model.fit(TRAIN[:16], dev=DEV[:2], folder=tmp_path / "run")
    weights = load_file(tmp_path / "run" / "model.safetensors")
    assert {values.dtype for values in weights.values()} == {torch.float32}
    assert all(values.isfinite().all() for values in weights.values())


@pytest.mark.parametrize("kind", [SetGenerator, SetClassifier])
def test_after_mixed_precision_a_model_predicts_as_its_folder_does(kind, tmp_path):
    model = kind(training=TrainingSettings(epochs=1, precision="bfloat16"))
    model.fit(TRAIN[:16], dev=DEV[:2], folder=tmp_path / "run")
    texts = [example.text for example in DEV]
    np.testing.assert_allclose(
        model.predict_proba(texts), kind.from_pretrained(tmp_path / "run").predict_proba(texts), atol=1e-6
    )


def test_adapters_alone_are_trained_and_the_folder_holds_a_plain_model(tmp_path):
    trained = []

    class Noting(SetGenerator):
        def _learn(self, examples, dev, train):
            def noting(model, *args, **options):
                trained.extend(name for name, weights in model.named_parameters() if weights.requires_grad)
                self.before_ = {name: values.clone() for name, values in model.state_dict().items()}
                return train(model, *args, **options)

            return super()._learn(examples, dev, noting)

    settings = TrainingSettings(epochs=2, lora_rank=4, learning_rate=0.01)
    model = Noting(training=settings).fit(TRAIN[:24], dev=DEV, folder=tmp_path / "run")
    assert trained
    assert all("lora_" in name for name in trained)
    assert not any("lora_" in name or "base_layer" in name for name in model.model_.state_dict())
    shared = model.model_.state_dict()["model.shared.weight"]
    assert torch.equal(shared, model.before_["base_model.model.model.shared.weight"])
    query = "model.encoder.layers.0.self_attn.q_proj"
    assert not torch.equal(
        model.model_.state_dict()[f"{query}.weight"], model.before_[f"base_model.model.{query}.base_layer.weight"]
    )
    assert not any("adapter" in name for name in files(tmp_path / "run"))
    again = load_model(tmp_path / "run")
    assert again.predict(DEV) == model.predict(DEV)


def test_orders_of_an_epoch_are_the_same_in_a_resumed_one(tmp_path, monkeypatch):
    """The tokens that the model is trained on, per update: in one go, and after a stop within an epoch."""
    seen = []
    compute = SetTrainer.compute_loss

    def noting(self, model, inputs, *args, **kwargs):
        seen.append((self.state.global_step, inputs["labels"].tolist()))
        return compute(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(SetTrainer, "compute_loss", noting)

    def stop(stage, step, total):
        if step == 7:
            raise KeyboardInterrupt

    def fit(folder, **options):
        settings = TrainingSettings(epochs=2, batch_size=8, fresh_orders=True, checkpoint_every=3)
        SetGenerator(augmenter=SetAugmenter(ordering="random"), training=settings).fit(TRAIN, folder=folder, **options)

    fit(tmp_path / "whole")
    wanted = dict(seen)
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "stopped", progress=stop)
    fit(tmp_path / "stopped", resume=True)
    assert [step for step, _ in seen] == [*range(7), *range(6, 10)]
    epochs = [sorted(str(row) for step in steps for row in wanted[step]) for steps in (range(5), range(5, 10))]
    assert epochs[0] != epochs[1]
    assert all(labels == wanted[step] for step, labels in seen)


def test_what_fails_before_the_first_checkpoint_leaves_nothing(tmp_path):
    def fail(*told):
        raise RuntimeError("on purpose")

    folder = tmp_path / "new" / "run"
    for _ in range(2):  # so the second time is not refused
        with pytest.raises(RuntimeError, match="on purpose"):
            SetGenerator().fit(TRAIN[:8], folder=folder, progress=fail)
        assert not folder.exists()
    (folder).mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(RuntimeError, match="on purpose"):
        SetGenerator().fit(TRAIN[:8], folder=folder, progress=fail)
    assert files(folder) == {"notes.txt"}
