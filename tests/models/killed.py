"""Run ``setaug`` in a process that is killed (kill -9) at a moment that is named."""

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.power_loss import do_not_sync

PRELOAD = [  # what a run imports, in part when it needs it
    "setaug.cli.train",
    "setaug.metrics.sets",
    "setaug.models.neural.classifier",
    "setaug.models.neural.generator",
    "setaug.models.methods",
    "setaug.models.neural.training.trainer",
    "setaug.orders.kernels",
    "sklearn.metrics",
    "numba.np.arrayobj",
    "numba.np.npyimpl",
]


def run_killed(arguments: list[str], moment: str, log: Path) -> int | None:
    """Run a command, to be killed at a moment (``step 3``, say, or ``never``); give the exit code."""
    # A server that has imported everything is forked for each run: importing takes longer than the training itself.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    process = context.Process(target=_run, args=(arguments, moment, str(log)))
    process.start()
    process.join(900)
    return process.exitcode


def _run(arguments: list[str], moment: str, log: str) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.fsync = do_not_sync
    from setaug.cli import main

    die_at(moment)
    sys.exit(main(arguments))


def die_at(moment: str) -> None:
    """Let this process be killed at a moment."""
    if moment != "never":
        what, _, number = moment.partition(" ")
        _HOOKS[what](int(number or 0))


def _die(*args: Any, **kwargs: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _at_step(number: int) -> None:
    from setaug.models.neural.training.watching import Recorder

    record = Recorder.on_step_end

    def on_step_end(self: Any, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        record(self, args, state, control, **kwargs)
        if state.global_step == number:
            _die()

    Recorder.on_step_end = on_step_end  # type: ignore[method-assign]


def _in_checkpoint(number: int) -> None:
    """The weights are written, the rest is not."""
    from transformers import Trainer

    save = Trainer._save_optimizer_and_scheduler

    def half(self: Any, *args: Any) -> None:
        if self.state.global_step == number:
            _die()
        save(self, *args)

    Trainer._save_optimizer_and_scheduler = half


def _after_checkpoint(number: int) -> None:
    from setaug.models.neural.training.trainer import SetTrainer

    save = SetTrainer._save_checkpoint

    def whole(self: Any, *args: Any) -> None:
        save(self, *args)
        if self.state.global_step == number:
            _die()

    SetTrainer._save_checkpoint = whole  # type: ignore[method-assign]


def _while_saving(number: int) -> None:
    from setaug.orders import LabelStatistics

    LabelStatistics.save = _die  # type: ignore[method-assign]


def _before_cleaning(number: int) -> None:
    from setaug.models.neural import model

    model.end_run = _die


def _without_room(number: int) -> None:
    """No file can grow beyond so many bytes, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))


_HOOKS: dict[str, Callable[[int], None]] = {
    "step": _at_step,
    "in-checkpoint": _in_checkpoint,
    "after-checkpoint": _after_checkpoint,
    "while-saving": _while_saving,
    "before-cleaning": _before_cleaning,
    "room": _without_room,
}
