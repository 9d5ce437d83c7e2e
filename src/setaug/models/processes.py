"""Several processes that train one model (``accelerate launch``): one of them writes, and all agree."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch

from setaug.errors import SetAugError

Outcome = TypeVar("Outcome")

_PATIENCE = timedelta(minutes=30)
"""How long a process waits for the others; as long as transformers' Trainer lets it."""


def n_processes() -> int:
    """Ask the launcher, since torch knows only once the processes are connected."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Tell whether this process is the one that writes files and tells how it goes."""
    return n_processes() == 1 or os.environ.get("RANK", "0") == "0"


def by_main(do: Callable[[], Outcome]) -> Outcome:
    """Wait for all processes; let the main one do something, and give all its outcome, or raise its error in all."""
    if n_processes() == 1:
        return do()
    _connect().wait_for_everyone()
    outcome, error = from_main(_try(do) if is_main_process() else (None, None))
    if error is not None:
        raise error
    return outcome  # type: ignore[return-value]


def from_main(value: Outcome) -> Outcome:
    """Give what the main process has; each may have come to something a little different."""
    if n_processes() == 1:
        return value
    from accelerate.utils import broadcast_object_list

    _connect()
    values: list[Outcome] = broadcast_object_list([value])
    return values[0]


def whole_weights(model: Any) -> dict[str, Any] | None:
    """Put the weights of a model together that are spread over the processes (FSDP); None where each has them all."""
    if n_processes() == 1:
        return None
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.tensor import DTensor

    if not any(isinstance(weights, DTensor) for weights in model.parameters()):
        return None
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def _connect() -> Any:
    from accelerate import PartialState

    return PartialState(cpu=not torch.accelerator.is_available(), timeout=_PATIENCE)


def _try(do: Callable[[], Outcome]) -> tuple[Outcome | None, SetAugError | OSError | None]:
    try:
        return do(), None
    except (SetAugError, OSError) as error:
        return None, error
