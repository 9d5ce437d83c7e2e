"""What a run reports while it trains: metrics as JSON lines, progress, and metrics for experiment trackers."""

import json
import os
from collections.abc import Sequence
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from transformers import TrainerCallback
from transformers.integrations.integration_utils import get_reporting_integration_callbacks

from setaug.models.model_folder import TENSORBOARD
from setaug.settings import Progress
from setaug.storage import open_output


class Recorder(TrainerCallback):
    """Write the metrics as JSON lines, show progress, and point to checkpoints where they are now."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._path, self._progress = path, progress
        self._loss: float | None = None
        self._f1: float | None = None
        self._n_sets, self._seconds = 0, 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Drop what an earlier run wrote after the checkpoint from which this one goes on."""
        find_best(state, args.output_dir)
        if state.is_world_process_zero:
            kept = [line for line in _lines(self._path) if _step(line) <= state.global_step]
            with open_output(self._path) as stream:
                stream.write("".join(f"{line}\n" for line in kept).encode())

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Write one line."""
        if state.is_world_process_zero and logs and "train_runtime" not in logs:
            row = {"step": state.global_step, **logs}
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
            self._loss, self._f1 = logs.get("loss", self._loss), logs.get("eval_f1", self._f1)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock: the time for dev data and checkpoints is not that of training."""
        self._began = monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Show progress; log at each checkpoint, or a resumed run would forget the losses before it."""
        control.should_log = control.should_log or control.should_save
        self._n_sets += args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        self._seconds += monotonic() - self._began
        if self._progress is not None and state.is_world_process_zero:
            self._progress(self._stage(), state.global_step, state.max_steps)

    def _stage(self) -> str:
        """Return the stage with the newest numbers; sets are examples, each with all of its orders."""
        parts = [] if self._loss is None else [f"loss {self._loss:.3f}"]
        parts += [] if self._f1 is None else [f"dev F1 {self._f1:.3f}"]
        return f"training: {', '.join([*parts, f'{self._n_sets / max(self._seconds, 1e-9):,.1f} sets/s'])}"

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log at each checkpoint."""
        control.should_log = control.should_log or control.should_save


def reporters(names: Sequence[str], folder: Path) -> list[TrainerCallback]:
    """Return transformers' callbacks for experiment trackers; the files of TensorBoard go into the run's folder."""
    found = []
    for name in names:
        (make,) = get_reporting_integration_callbacks([name])
        reporter = make()
        if name == "tensorboard" and reporter.logging_dir is None:
            reporter.logging_dir = str(folder / TENSORBOARD)
        found.append(reporter)
    return found


def find_best(state: Any, folder: str) -> None:
    """Look for the best checkpoint beside the others: the folder may have been moved."""
    if state.best_global_step:
        state.best_model_checkpoint = os.path.join(folder, f"checkpoint-{state.best_global_step}")


def _step(line: str) -> float:
    """Return the step of a line of metrics; of one that is damaged, a step that no run reaches."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return inf


def _lines(path: Path) -> list[str]:
    """Return the complete lines of a file; the last one may be truncated."""
    if not path.exists():
        return []
    return [line for line in path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] if line]
