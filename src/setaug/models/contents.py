"""Checks of model folders from others: regular files only, and weights in the folder itself."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setaug.errors import FileError, ModelError, SetAugError

_INDEX = "model.safetensors.index.json"


def check_contents(folder: Path) -> None:
    """Raise if a folder has a device or a pipe, or an index that names other files than its own weights."""
    for path in folder.iterdir():
        if not path.is_file() and not path.is_dir():
            raise ModelError(f"{path} is no file (a device, a pipe, or a link to nothing); remove it.")
    index = folder / _INDEX
    if index.is_file():
        names = _names(index)
        for name in names:
            if Path(name).name != name or not name.endswith(".safetensors") or not (folder / name).is_file():
                raise ModelError(f"{index} names {name!r}, which is no file of weights (.safetensors) in its folder.")


def _names(index: Path) -> set[str]:
    try:
        names = set(json.loads(index.read_bytes())["weight_map"].values())
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError("it names no files")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(f"{index} cannot be read: {first_line(error)}.") from None
    return names


def first_line(error: BaseException) -> str:
    """Return what an error says in its first line, and in the next one where that is only a heading."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (" ".join(lines[:2]) if lines[0].endswith(":") else lines[0]).removesuffix(".")


@contextmanager
def reading_checkpoint(path: Path) -> Iterator[None]:
    """Report whatever goes wrong in here as a damaged checkpoint."""
    try:
        yield
    except SetAugError:
        raise
    except Exception as error:  # libraries raise all kinds on bytes that they did not write
        raise ModelError(
            f"the checkpoint {path} is damaged ({type(error).__name__}: {first_line(error)}); remove it to go on from "
            "the one before, or begin again in another folder."
        ) from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Report whatever goes wrong in here as a failed write: of a full disk, each library says so in its own way."""
    try:
        yield
    except (SetAugError, OSError):
        raise
    except Exception as error:
        raise FileError(f"cannot write to {path}: {first_line(error)}; is there room on the disk?") from None
