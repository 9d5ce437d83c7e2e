"""LoRA: train small adapters instead of all weights."""

import warnings
from typing import Any

from setaug.errors import MissingExtraError


def add_adapters(model: Any, rank: int) -> Any:
    """Put adapters of this rank beside all linear layers; only they are trained."""
    try:
        from peft import LoraConfig, TaskType, get_peft_model
    except ImportError:
        raise MissingExtraError("Training adapters", "train") from None
    task = TaskType.SEQ_2_SEQ_LM if model.config.is_encoder_decoder else TaskType.CAUSAL_LM
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules="all-linear", task_type=task)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")  # GPT-2; peft sees to it itself
        return get_peft_model(model, config)
