"""A model folder: what transformers writes, and beside it ``setaug.json`` and the label statistics.

``setaug.json`` is written last, so that a folder that has it is whole.
"""

import os
import platform
import shutil
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from setaug.errors import ModelError
from setaug.files import open_output
from setaug.orders.statistics import LabelStatistics

CARD = "setaug.json"
_STATISTICS = "statistics.json"
_RUN = "run.json"
_BESIDE = ".saving-"
MARK = "complete"
"""A checkpoint without this file was being written when the run ended."""


def versions() -> dict[str, str]:
    """Name the versions that a model was made with."""
    packages = ("setaug", "torch", "transformers", "tokenizers", "accelerate", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def save_model(
    folder: str | Path,
    *,
    model: Any,
    tokenizer: Any,
    statistics: LabelStatistics,
    card: dict[str, Any],
    weights: dict[str, Any] | None = None,
) -> None:
    """Write a model folder; files of that name in it are replaced once all new ones are there.

    Parameters
    ----------
    weights
        Those to write, where they are not the model's own.

    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for left in target.glob(f"{_BESIDE}*"):  # by a run that was killed while it saved
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=_BESIDE) as beside:
        model.save_pretrained(beside, state_dict=weights)
        tokenizer.save_pretrained(beside)
        statistics.save(Path(beside) / _STATISTICS)
        (target / CARD).unlink(missing_ok=True)
        for path in Path(beside).iterdir():
            os.replace(path, target / path.name)
    with open_output(target / CARD) as stream:
        stream.write(orjson.dumps(card, option=orjson.OPT_INDENT_2))


def is_whole(folder: str | Path) -> bool:
    """Tell whether a folder holds a model that was saved to its end."""
    return (Path(folder) / CARD).is_file()


def read_card(folder: str | Path) -> dict[str, Any]:
    """Read ``setaug.json``."""
    path = Path(folder)
    if not path.is_dir():
        raise ModelError(f"there is no model folder {folder}.")
    if not (path / CARD).exists():
        hint = "; the run that writes it was not finished (setaug train --resume)" if has_run(path) else ""
        raise ModelError(f"the folder {folder} holds no model of setaug: {CARD} is missing{hint}.")
    card = _read_json(path / CARD)
    if not isinstance(card.get("kind"), str):
        raise ModelError(f"{path / CARD} is not what setaug writes: it names no kind of model.")
    return card


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from None
    if not isinstance(read, dict):
        raise ModelError(f"{path} is not what setaug writes: it holds no JSON object.")
    return read


def read_statistics(folder: str | Path) -> LabelStatistics:
    """Read the label statistics."""
    return LabelStatistics.load(Path(folder) / _STATISTICS)


def has_run(folder: Path) -> bool:
    """Tell whether a run has begun here."""
    return (folder / _RUN).exists()


def begin_run(folder: Path, settings: dict[str, Any], *, resume: bool) -> None:
    """Note the settings of a run, or check that a run that goes on has the same ones."""
    path = folder / _RUN
    settings = orjson.loads(orjson.dumps(settings))
    if resume and path.exists():
        before, now = _flat(_read_json(path)), _flat(settings)
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            was = ", ".join(f"{name} {before.get(name)!r} (now {now[name]!r})" for name in changed)
            raise ModelError(f"the run in {folder} was begun with other settings: {was}.")
        return
    if has_run(folder) or is_whole(folder):
        raise ModelError(f"{folder} holds an earlier run; go on with it (--resume), or choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with open_output(path) as stream:
        stream.write(orjson.dumps(settings, option=orjson.OPT_INDENT_2))


def last_checkpoint(folder: Path) -> Path | None:
    """Find the newest checkpoint that was written to its end."""
    whole = [path for path in folder.glob("checkpoint-*") if (path / MARK).exists()]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Name settings within settings one by one."""
    parts = [
        {f"{name}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {name: value}
        for name, value in settings.items()
    ]
    return {name: value for part in parts for name, value in part.items()}


def forget_run(folder: Path) -> None:
    """Remove what a run that failed has left, unless it can be resumed from a checkpoint."""
    if last_checkpoint(folder / "checkpoints") is None:
        end_run(folder)
        for name in (_RUN, "metrics.jsonl"):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # other files are in it
            folder.rmdir()


def end_run(folder: Path) -> None:
    """Remove the checkpoints of a run whose model is saved."""
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
