"""LoRA: train small adapters instead of all weights."""

from typing import Any

from setaug.errors import MissingExtraError


def add_adapters(model: Any, rank: int) -> Any:
    """Put adapters of this rank beside all linear layers; only they are trained."""
    try:
        from peft import LoraConfig, TaskType, get_peft_model
    except ImportError:
        raise MissingExtraError("Training adapters", "train") from None
    config = LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules="all-linear", task_type=TaskType.SEQ_2_SEQ_LM
    )
    return get_peft_model(model, config)
