"""A model folder: the files of transformers, ``setaug.json``, the label statistics and a model card.

An ensemble has its members in it: ``member-1`` and so on, model folders or files of TF-IDF classifiers.

``setaug.json`` is written last, so a folder that has it is complete. Folders from others are checked: regular files
only, and weights in the folder itself. Nothing here needs torch.
"""

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from setaug.errors import FileError, ModelError, SetAugError
from setaug.examples import Columns, shown
from setaug.models.model_card import MODEL_CARD, make_model_card
from setaug.storage import locked, open_output, sync_folder, sync_tree

if TYPE_CHECKING:
    from setaug.orders.statistics import LabelStatistics

CARD = "setaug.json"
STATISTICS = "statistics.json"
MEMBER = "member-"
"""What the names of the members of an ensemble begin with."""
_RUN = "run.json"
_BESIDE = ".saving-"
COMPANION = "companion.tfidf"
"""The file of a companion. It does not end with .safetensors: vLLM and others load all such files as the model's."""
METRICS = "metrics.jsonl"
"""The file of a run with the losses and the dev scores of its training."""
HEAD = "label-head.tensors"
"""The file of a label head."""
_INDEX = "model.safetensors.index.json"
TENSORBOARD = "tensorboard"
"""The folder of TensorBoard's files in that of a run."""
MARK = "complete"
"""The file that marks a checkpoint as complete."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that models depend on."""
    packages = ("setaug", "torch", "transformers", "tokenizers", "accelerate", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def save_model(
    folder: str | Path,
    *,
    model: Any,
    tokenizer: Any,
    statistics: "LabelStatistics",
    card: dict[str, Any],
    weights: dict[str, Any] | None = None,
    extra: Callable[[Path], None] | None = None,
) -> None:
    """Write a model folder; existing files are replaced once all new ones are complete.

    Parameters
    ----------
    weights
        The weights to write; by default the model's own.
    extra
        Writes further files into a folder.

    """

    def fill(beside: Path) -> None:
        model.save_pretrained(beside, state_dict=weights)
        tokenizer.save_pretrained(beside)
        if extra is not None:
            extra(beside)
        statistics.save(beside / STATISTICS)
        (beside / MODEL_CARD).write_text(make_model_card(card, statistics), encoding="utf-8")

    save_folder(folder, card, fill)


def save_folder(folder: str | Path, card: dict[str, Any], fill: Callable[[Path], None]) -> None:
    """Write ``setaug.json`` and what `fill` writes; existing files are replaced once all new ones are complete."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for left in target.glob(f"{_BESIDE}*"):  # from a run that was killed while saving
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=_BESIDE) as beside:
        with writing(target):
            fill(Path(beside))
        _use_default_mode(Path(beside))
        sync_tree(beside)
        (target / CARD).unlink(missing_ok=True)
        sync_folder(target)
        for path in Path(beside).iterdir():
            if (target / path.name).is_dir():
                shutil.rmtree(target / path.name)
            os.replace(path, target / path.name)
        sync_folder(target)
    with open_output(target / CARD) as stream:
        stream.write(orjson.dumps(card, option=orjson.OPT_INDENT_2))


def _use_default_mode(folder: Path) -> None:
    """Set the modes that the umask allows; safetensors creates files that only their owner can read."""
    os.umask(umask := os.umask(0))
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o666 & ~umask)


def is_whole(folder: str | Path) -> bool:
    """Return whether a folder has a complete model."""
    return (Path(folder) / CARD).is_file()


def read_card(folder: str | Path) -> dict[str, Any]:
    """Read ``setaug.json``."""
    path = Path(folder)
    if not path.is_dir():
        raise ModelError(f"there is no model folder {folder}.")
    check_contents(path)
    if not (path / CARD).exists():
        hint = "; its training run is not finished (setaug train --resume)" if has_run(path) else ""
        raise ModelError(f"the folder {folder} is not a setaug model: {CARD} is missing{hint}.")
    card = _read_json(path / CARD)
    if not isinstance(card.get("kind"), str):
        raise ModelError(f"{path / CARD} is not a valid setaug file: it has no kind of model.")
    return card


def saved_columns(card: dict[str, Any]) -> Columns:
    """Return the names of the text and label columns that a model was trained with; folders may have none."""
    saved = card.get("columns", {})
    is_valid = isinstance(saved, dict) and saved.keys() <= {"text", "labels", "delimiter", "names"}
    names = saved.get("names") if is_valid else None
    texts = [value for name, value in saved.items() if name != "names"] if is_valid else [None]
    if not all(isinstance(value, str) and value for value in texts) or not (names is None or isinstance(names, list)):
        raise ModelError(f"{CARD} is not a valid setaug file: its columns are {shown(saved)}.")
    return Columns(**saved)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from None
    if not isinstance(read, dict):
        raise ModelError(f"{path} is not a valid setaug file: it is not a JSON object.")
    return read


def has_run(folder: Path) -> bool:
    """Return whether a run has begun in a folder."""
    return (folder / _RUN).exists()


@contextmanager
def locked_run(folder: Path) -> Iterator[None]:
    """Create and lock the folder of a run; raise if another run uses it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"cannot write to {folder}: {error.strerror}.") from None
    try:
        with locked(folder / "run", folder):
            yield
    finally:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


def mark_whole(checkpoint: Path) -> None:
    """Sync a checkpoint to disk, then mark it as complete."""
    sync_tree(checkpoint)
    with open_output(checkpoint / MARK):
        pass


def begin_run(folder: Path, settings: dict[str, Any], *, resume: bool) -> None:
    """Write the settings of a run, or check that a resumed run has the same ones."""
    path = folder / _RUN
    settings = orjson.loads(orjson.dumps(settings))
    if resume and path.exists():
        before, now = _flat(_read_json(path)), _flat(settings)
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            was = ", ".join(f"{name} {before.get(name)!r} (now {now[name]!r})" for name in changed)
            raise ModelError(f"the run in {folder} was started with different settings: {was}.")
        return
    if has_run(folder) or is_whole(folder):
        raise ModelError(f"{folder} contains an earlier run; resume it (--resume), or choose another folder.")
    with open_output(path) as stream:
        stream.write(orjson.dumps(settings, option=orjson.OPT_INDENT_2))


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint, if any."""
    whole = [path for path in folder.glob("checkpoint-*") if (path / MARK).exists() and path.name[11:].isdecimal()]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Flatten nested settings, with dotted names."""
    parts = [
        {f"{name}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {name: value}
        for name, value in settings.items()
    ]
    return {name: value for part in parts for name, value in part.items()}


def forget_run(folder: Path) -> None:
    """Remove the files of a failed run, unless it can be resumed from a checkpoint."""
    if last_checkpoint(folder / "checkpoints") is None:
        end_run(folder)
        shutil.rmtree(folder / TENSORBOARD, ignore_errors=True)
        for name in (_RUN, METRICS):
            (folder / name).unlink(missing_ok=True)


def end_run(folder: Path) -> None:
    """Remove the checkpoints of a run whose model is saved."""
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def check_contents(folder: Path) -> None:
    """Raise if a folder has a device or a pipe, or an index that lists files other than its own weights."""
    for path in folder.iterdir():
        if not path.is_file() and not path.is_dir():
            raise ModelError(f"{path} is not a regular file (a device, a pipe, or a broken link); remove it.")
    index = folder / _INDEX
    if index.is_file():
        names = _names(index)
        for name in names:
            if Path(name).name != name or not name.endswith(".safetensors") or not (folder / name).is_file():
                raise ModelError(f"{index} names {name!r}, which is not a weights file (.safetensors) in its folder.")


def _names(index: Path) -> set[str]:
    try:
        names = set(json.loads(index.read_bytes())["weight_map"].values())
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError("it lists no files")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(f"{index} cannot be read: {first_line(error)}.") from None
    return names


def first_line(error: BaseException) -> str:
    """Return the first line of an error message, and the next one if the first is only a heading."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (" ".join(lines[:2]) if lines[0].endswith(":") else lines[0]).removesuffix(".")


@contextmanager
def reading_checkpoint(path: Path) -> Iterator[None]:
    """Convert any error into that of a damaged checkpoint."""
    try:
        yield
    except SetAugError:
        raise
    except Exception as error:  # libraries raise errors of many types for damaged files
        raise ModelError(
            f"the checkpoint {path} is damaged ({type(error).__name__}: {first_line(error)}); remove it to resume from "
            "the previous one, or start over in another folder."
        ) from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert any error into that of a failed write: each library reports a full disk in its own way."""
    try:
        yield
    except (SetAugError, OSError):
        raise
    except Exception as error:
        raise FileError(f"cannot write to {path}: {first_line(error)}; is the disk full?") from None
