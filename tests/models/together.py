"""Start two processes that train one model, as ``accelerate launch`` does, and note what each of them learns from."""

import json
import multiprocessing
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.models.killed import PRELOAD, die_at
from tests.ports import free_port
from tests.power_loss import do_not_sync

N = 2


@dataclass
class Ended:
    """Say how a process ended."""

    code: int | None
    error: str
    """What it wrote to standard error, without what torch says there."""


def run_together(
    arguments: list[str], place: Path, *, moments: tuple[str, str] = ("never", "never"), begin: Any = None
) -> list[Ended]:
    """Run a command in two processes, each of which may be killed at a moment.

    Parameters
    ----------
    begin
        Is called in each process first.

    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    port = free_port()
    logs = [place / f"log-{rank}" for rank in range(N)]
    processes = []
    for rank, log in enumerate(logs):
        log.unlink(missing_ok=True)
        process = context.Process(target=_run, args=(rank, port, arguments, moments[rank], str(log), begin))
        process.start()
        processes.append(process)
    for process in processes:
        process.join(900)
        if process.exitcode is None:
            process.kill()
    return [Ended(process.exitcode, _said(log)) for process, log in zip(processes, logs, strict=True)]


def _said(log: Path) -> str:
    lines = log.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("[rank") and line != "loading the model\n")


def _run(rank: int, port: int, arguments: list[str], moment: str, log: str, begin: Callable[[], None] | None) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(N), LOCAL_WORLD_SIZE=str(N))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.fsync = do_not_sync
    from setaug.cli import main

    if begin is not None:
        begin()
    die_at(moment)
    sys.exit(main(arguments))


# --- what to call first -----------------------------------------------------------------------------------------------


@dataclass
class Note:
    """Write down what each step learns from, and its loss."""

    folder: Path

    def __call__(self) -> None:
        """Listen."""
        from setaug.models.neural.training.trainer import SetTrainer

        compute = SetTrainer.compute_loss
        path = self.folder / f"seen-{os.environ.get('RANK', '0')}"

        def noting(trainer: Any, model: Any, inputs: Any, **options: Any) -> Any:
            rows = _learnt(inputs) if inputs["n_learnt"] else []
            loss = compute(trainer, model, inputs, **options)
            with path.open("a") as lines:
                lines.write(json.dumps({"step": trainer.state.global_step, "rows": rows, "loss": loss.item()}) + "\n")
            return loss

        SetTrainer.compute_loss = noting  # type: ignore[method-assign]


def _learnt(inputs: Any) -> list[str]:
    """Give the text and the labels of each example of a batch, without what fills them up."""
    labels = inputs["labels"].tolist()
    if "n_targets" in inputs and len(labels) > len(inputs["input_ids"]):  # of an encoder-decoder: a row per target
        parts = iter(labels)
        labels = [[next(parts) for _ in range(n)] for n in inputs["n_targets"].tolist()]
        labels = [[[token for token in row if token != -100] for row in rows] for rows in labels]
    elif "n_targets" in inputs:
        labels = [[token for token in row if token != -100] for row in labels]
    texts = [[token for token in row if token != 1] for row in inputs["input_ids"].tolist()]
    return [json.dumps(pair) for pair in zip(texts, labels, strict=True)]


def read_notes(folder: Path) -> dict[int, tuple[list[str], float]]:
    """Give what each update learnt from, in all processes together, and its loss."""
    rows, losses = defaultdict(list), defaultdict(float)
    paths = sorted(folder.glob("seen-*"))
    for path in paths:
        for line in map(json.loads, path.read_text().splitlines()):
            rows[line["step"]] += line["rows"]
            losses[line["step"]] += line["loss"] / len(paths)
    return {step: (sorted(rows[step]), losses[step]) for step in rows}


def give_other_scores() -> None:
    """Let the second process come to scores of its own: better and better ones."""
    from setaug.models.neural.model import SetModel

    seen = []

    def scores(model: Any, dev: Any, progress: Any = None) -> dict[str, float]:
        seen.append(0)
        return {"f1": [0.1, 0.5, 0.3, 0.2, 0.2][len(seen) - 1] if os.environ["RANK"] == "0" else 0.1 * len(seen)}

    SetModel._dev_scores = scores  # type: ignore[method-assign]


def fit_in_no_folder() -> None:
    """Fit in Python, with checkpoints that nobody named a folder for, and end."""
    from setaug import SetGenerator, TrainingSettings
    from setaug.sample import sample_examples

    data = list(sample_examples(20, seed=3))
    model = SetGenerator("mini", training=TrainingSettings(epochs=2, batch_size=4)).fit(data[:16], dev=data[16:])
    weights = sum(values.double().sum().item() for values in model.model_.state_dict().values())
    sys.stderr.write(f"{weights} {model.record_['best_step']} {model.record_['processes']}\n")
    sys.exit(0)


@dataclass
class Spread:
    """Spread the weights over the processes; accelerate does that on GPUs alone, so let it take these for GPUs.

    Adapters have no dropout, whose masks would differ from those of one process.
    """

    version: int

    def __call__(self) -> None:
        """Set what ``accelerate launch`` sets for FSDP, and connect."""
        options = {"VERSION": str(self.version), "STATE_DICT_TYPE": "FULL_STATE_DICT", "RESHARD_AFTER_FORWARD": "true"}
        options |= {"AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP", "CPU_RAM_EFFICIENT_LOADING": "false"}
        os.environ.update({f"FSDP_{name}": value for name, value in options.items()})
        os.environ.update(ACCELERATE_USE_FSDP="true", ACCELERATE_TORCH_DEVICE="cpu")
        import torch.distributed
        from accelerate import PartialState
        from accelerate.utils import DistributedType

        from setaug.models.neural import pretrained

        pretrained.LORA_DROPOUT = 0.0
        PartialState._prepare_backend = lambda *args, **kwargs: ("gloo", DistributedType.MULTI_GPU)
        torch.distributed.init_process_group("gloo")
