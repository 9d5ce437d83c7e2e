"""Load pretrained models by hub name or folder: safetensors only, no remote code, one clear sentence on failure."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    GenerationConfig,
)

from setaug.errors import ModelError

_FAILURES = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError, SafetensorError)
"""What transformers raises for a model that is missing, broken or of another kind."""

_WEIGHTS = {"use_safetensors": True, "dtype": torch.float32}
"""No pickles; and full precision, which training needs, however the weights are stored."""


def load_for_generation(name: str) -> tuple[Any, Any]:
    """Load an encoder-decoder or a causal model, and its tokenizer."""
    kind = _kind(name, _load(name, AutoConfig))
    model, tokenizer = _load_whole(name, kind), load_tokenizer(name)
    _settle(name, model, tokenizer)
    return model, tokenizer


def _kind(name: str, config: Any) -> Any:
    """Find out what a model is; transformers would also take encoders for causal models."""
    if getattr(config, "is_encoder_decoder", False):
        return AutoModelForSeq2SeqLM
    is_encoder = type(config) in AutoModelForMaskedLM._model_mapping and not getattr(config, "is_decoder", False)
    if is_encoder or type(config) not in AutoModelForCausalLM._model_mapping:
        raise ModelError(
            f"{name} is neither an encoder-decoder nor a causal language model (it is of the kind "
            f"{config.model_type!r}); BART and T5, GPT-2 and Llama and their like are."
        )
    return AutoModelForCausalLM


def _settle(name: str, model: Any, tokenizer: Any) -> None:
    """Settle which tokens start, end and fill a target, and drop settings of another task (a summary's length, say)."""
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
            raise ModelError(f"{name} names no {kind}, without which it cannot be trained to write.")
        setattr(config, kind, token)
    model.generation_config = GenerationConfig(**tokens, forced_bos_token_id=settings.forced_bos_token_id)


def _first(token: int | None, config: Any, name: str, *others: int | None) -> int | None:
    return next((one for one in (token, getattr(config, name, None), *others) if one is not None), None)


def load_for_classification(name: str, labels: list[str]) -> tuple[Any, Any]:
    """Load an encoder or encoder-decoder with a new head that scores each label, and its tokenizer."""
    options = {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: at for at, label in enumerate(labels)},
        "problem_type": "multi_label_classification",
        "ignore_mismatched_sizes": True,
    }
    return _load(name, AutoModelForSequenceClassification, **_WEIGHTS, **options), load_tokenizer(name)


def load_saved_classifier(folder: str) -> tuple[Any, Any]:
    """Load a model that scores labels, with its head."""
    return _load_whole(folder, AutoModelForSequenceClassification), load_tokenizer(folder)


def load_tokenizer(name: str) -> Any:
    """Load a tokenizer."""
    return _load(name, AutoTokenizer)


def _load_whole(name: str, kind: Any) -> Any:
    """Load a model; where weights are missing, transformers would draw them at random."""
    model, told = _load(name, kind, output_loading_info=True, **_WEIGHTS)
    if missing := sorted(told["missing_keys"]):
        raise ModelError(f"cannot load {name}: {len(missing)} weights are missing, such as {missing[0]}.")
    return model


def _load(name: str, kind: Any, **options: Any) -> Any:
    folder = Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"the folder {name} holds no model: config.json is missing.")
        _check_config(folder / "config.json")
    elif folder.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"there is no model folder {name}.")
    try:
        return kind.from_pretrained(name, trust_remote_code=False, **options)
    except _FAILURES as error:
        first_line = str(error).strip().partition("\n")[0]
        raise ModelError(f"cannot load {name}: {first_line or type(error).__name__}") from None


def _check_config(path: Path) -> None:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}.") from None
    if not isinstance(config, dict) or "model_type" not in config:
        raise ModelError(f"{path} names no model_type, so it is no model of transformers.")
