"""Load pretrained models by hub name or folder: safetensors only, no remote code, one clear sentence on failure."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    GenerationConfig,
)
from transformers.utils import logging

from setaug.errors import MissingExtraError, ModelError
from setaug.models.model_folder import check_contents, first_line
from setaug.models.neural.scratch import SHAPES

_LIKE_T5 = ("t5", "mt5", "umt5", "longt5")
"""Types of models that were pretrained with high learning rates, and need them."""
_WIDE = 512
"""Narrower encoders take a higher learning rate."""
LORA_DROPOUT = 0.05
"""Dropout of the inputs of adapters."""


def load_for_generation(name: str, *, weights: str = "float32") -> tuple[Any, Any]:
    """Load an encoder-decoder or a causal model, and its tokenizer.

    Parameters
    ----------
    weights
        The type of the weights (a name of `setaug.settings.WEIGHTS`), however they are stored.

    """
    config = _load(name, AutoConfig)
    model = _load_whole(name, _kind(name, config), config, dtype=getattr(torch, weights))
    tokenizer = load_tokenizer(name)
    _settle(name, model, tokenizer)
    return model, tokenizer


def _kind(name: str, config: Any) -> Any:
    """Return the class for a model; transformers would also accept encoders as causal models."""
    if getattr(config, "is_encoder_decoder", False):
        return AutoModelForSeq2SeqLM
    if _is_encoder(config) or type(config) not in AutoModelForCausalLM._model_mapping:
        raise ModelError(
            f"{name} is neither an encoder-decoder nor a causal language model (its model_type is "
            f"{config.model_type!r}); use BART, T5, GPT-2, Llama or similar models."
        )
    return AutoModelForCausalLM


def find_kind(name: str) -> str:
    """Return the kind of a pretrained model, as `TrainingSettings.completed` takes it."""
    config = _load(name, AutoConfig)
    if getattr(config, "is_encoder_decoder", False):
        return "t5" if config.model_type in _LIKE_T5 else "encoder-decoder"
    if not _is_encoder(config):
        return "causal"
    return "small-encoder" if getattr(config, "hidden_size", _WIDE) < _WIDE else "encoder"


def _is_encoder(config: Any) -> bool:
    return type(config) in AutoModelForMaskedLM._model_mapping and not getattr(config, "is_decoder", False)


def _settle(name: str, model: Any, tokenizer: Any) -> None:
    """Set the start, end and padding tokens, and drop generation settings of another task (a summary's length, say)."""
    settings, config = model.generation_config, model.config
    ends = settings.eos_token_id
    end = ends[0] if isinstance(ends, list) else ends
    if config.is_encoder_decoder:
        start = _first(settings.decoder_start_token_id, config, "decoder_start_token_id", tokenizer.cls_token_id)
        end = _first(end, config, "eos_token_id", tokenizer.eos_token_id, tokenizer.sep_token_id)
        pad = _first(settings.pad_token_id, config, "pad_token_id", tokenizer.pad_token_id)
        tokens = {"decoder_start_token_id": start, "eos_token_id": end, "pad_token_id": pad}
    else:  # a chat model's own settings name several ends; its tokenizer's is that of an answer
        end = end if tokenizer.eos_token_id is None else tokenizer.eos_token_id
        pad = end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        tokens = {"eos_token_id": end, "pad_token_id": pad}
    for kind, token in tokens.items():
        if token is None:
            raise ModelError(f"{name} defines no {kind}, which is required for generation.")
        setattr(config, kind, token)
    model.generation_config = GenerationConfig(**tokens, forced_bos_token_id=settings.forced_bos_token_id)


def _first(token: int | None, config: Any, name: str, *others: int | None) -> int | None:
    return next((one for one in (token, getattr(config, name, None), *others) if one is not None), None)


def load_for_classification(name: str, labels: list[str]) -> tuple[Any, Any]:
    """Load an encoder or encoder-decoder with a new head that scores each label, and its tokenizer."""
    head = {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: at for at, label in enumerate(labels)},
        "problem_type": "multi_label_classification",
    }
    config = _load(name, AutoConfig, **head)
    model = _load_model(name, AutoModelForSequenceClassification, config, ignore_mismatched_sizes=True)
    return model, load_tokenizer(name)


def load_saved_classifier(folder: str) -> tuple[Any, Any]:
    """Load a model that scores labels, with its head."""
    config = _load(folder, AutoConfig)
    return _load_whole(folder, AutoModelForSequenceClassification, config), load_tokenizer(folder)


def load_tokenizer(name: str) -> Any:
    """Load a tokenizer."""
    return _load(name, AutoTokenizer)


def _load_whole(name: str, kind: Any, config: Any, **options: Any) -> Any:
    """Load a model; raise if weights are missing, which transformers would initialize at random."""
    model, told = _load_model(name, kind, config, output_loading_info=True, **options)
    if missing := sorted(told["missing_keys"]):
        raise ModelError(f"cannot load {name}: {len(missing)} weights are missing, such as {missing[0]}.")
    return model


def _load_model(name: str, kind: Any, config: Any, *, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    """Load a model, without pickles, with a fixed attention implementation; its folder could name code to download."""
    config._attn_implementation = _attention(kind, config)
    return _load(name, kind, config=config, use_safetensors=True, dtype=dtype, **options)


def _attention(kind: Any, config: Any) -> str:
    """Return PyTorch's attention, or the plain one for models without it."""
    found = kind._model_mapping.get(type(config), ())
    classes = found if isinstance(found, tuple) else (found,)
    return "sdpa" if all(one._supports_sdpa for one in classes) else "eager"


def _load(name: str, kind: Any, **options: Any) -> Any:
    folder = Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"the folder {name} is not a model: config.json is missing.")
        check_contents(folder)
        _check_config(folder / "config.json")
    elif folder.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"there is no model folder {name}.")
    try:
        return kind.from_pretrained(name, trust_remote_code=False, **options)
    except Exception as error:  # transformers and what it calls raise all kinds on files that are broken
        close = get_close_matches(name, SHAPES, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ModelError(f"cannot load {name}: {first_line(error)}.{hint}") from None


def _check_config(path: Path) -> None:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from None
    if not isinstance(config, dict) or "model_type" not in config:
        raise ModelError(f"{path} has no model_type, so it is not a transformers model.")


def add_adapters(model: Any, rank: int) -> Any:
    """Add LoRA adapters of this rank to all linear layers; only they are trained."""
    try:
        from peft import LoraConfig, TaskType, get_peft_model
    except ImportError:
        raise MissingExtraError("Training adapters", "train") from None
    task = TaskType.SEQ_2_SEQ_LM if model.config.is_encoder_decoder else TaskType.CAUSAL_LM
    config = LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=LORA_DROPOUT, target_modules="all-linear", task_type=task
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")  # GPT-2; peft sees to it itself
        return get_peft_model(model, config)


@contextmanager
def quiet() -> Iterator[None]:
    """Let transformers log errors only, without progress bars, inside this context."""
    level = logging.get_verbosity()
    had_bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Version v4.12.0 introduces a better way")  # about the loss
            # The blocks of T5 under FSDP 2: nothing changes their output in place.
            warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
            yield
    finally:
        logging.set_verbosity(level)
        if had_bars:
            logging.enable_progress_bar()
