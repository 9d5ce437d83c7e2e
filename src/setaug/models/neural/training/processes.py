"""Training in several processes (``accelerate launch``): the main one writes, and all share its results."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from setaug.errors import SetAugError

Outcome = TypeVar("Outcome")

_PATIENCE = timedelta(minutes=30)
"""How long a process waits for the others; the default of transformers' Trainer."""


def n_processes() -> int:
    """Return the number of processes that the launcher started; torch knows it only once they are connected."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Return whether this is the main process, which writes files and reports progress."""
    return n_processes() == 1 or os.environ.get("RANK", "0") == "0"


def by_main(do: Callable[[], Outcome]) -> Outcome:
    """Wait for all processes, run a function in the main one, and return its result (or raise its error) in all."""
    if n_processes() == 1:
        return do()
    _connect().wait_for_everyone()
    outcome, error = from_main(_try(do) if is_main_process() else (None, None))
    if error is not None:
        raise error
    return outcome  # type: ignore[return-value]


def from_main(value: Outcome) -> Outcome:
    """Return the main process's value in all processes."""
    if n_processes() == 1:
        return value
    from accelerate.utils import broadcast_object_list

    _connect()
    values: list[Outcome] = broadcast_object_list([value])
    return values[0]


def disconnect() -> None:
    """Wait for all processes and close the connection: threads of torch that still run abort a process that exits."""
    if n_processes() > 1:
        state = _connect()
        state.wait_for_everyone()
        state.destroy_process_group()


def shards_weights() -> bool:
    """Return whether training shards the weights over processes (FSDP)."""
    return n_processes() > 1 and os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("1", "true")


def is_sharded(model: Any) -> bool:
    """Return whether a model's weights are sharded over processes (FSDP 2)."""
    if n_processes() == 1:
        return False
    from torch.distributed.tensor import DTensor

    return any(isinstance(weights, DTensor) for weights in model.parameters())


def shard_as_one_group(accelerator: Any, model: Any) -> None:
    """Let accelerate keep shared embeddings in one FSDP group, and ``generate`` gather them.

    accelerate gives input and output embeddings a group of their own. An encoder-decoder has the same weights in its
    encoder and its decoder, too, which torch then refuses as shared between groups. If accelerate sees no embeddings,
    all of them stay in the group of the whole model. ``generate`` calls the encoder by itself, so the weights of that
    group must be gathered when it begins, not only when the whole model is called.
    """
    from torch.distributed.fsdp import register_fsdp_forward_method

    prepare = accelerator.prepare

    def prepare_as_one_group(*args: Any, **options: Any) -> Any:
        model.get_input_embeddings = model.get_output_embeddings = lambda: None
        try:
            prepared = prepare(*args, **options)
        finally:
            del model.get_input_embeddings, model.get_output_embeddings
        register_fsdp_forward_method(model, "generate")
        return prepared

    accelerator.prepare = prepare_as_one_group


def whole_weights(model: Any) -> dict[str, Any] | None:
    """Gather weights that are sharded over processes (FSDP); None if each process has them all."""
    if not is_sharded(model):
        return None
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    tied = getattr(model, "all_tied_weights_keys", {})
    return {name: values for name, values in weights.items() if tied.get(name) not in weights}


def _connect() -> Any:
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.accelerator.is_available(), timeout=_PATIENCE)


def _try(do: Callable[[], Outcome]) -> tuple[Outcome | None, SetAugError | OSError | None]:
    try:
        return do(), None
    except (SetAugError, OSError) as error:
        return None, error
