"""Sets from ``transformers serve``: a request that names labels is answered with a set.

transformers replaces a model's ``generate`` by that of ``custom_generate/generate.py`` in its folder, if the server is
started with ``--trust-remote-code``. One line there is enough: ``from setaug.serving.custom_generate import generate``.
The server takes no other parameters of ours than a ``generation_config``, as JSON, so they are read from it.
"""

from functools import lru_cache, partial
from typing import Any

from transformers import LogitsProcessorList

from setaug.decoding.set_request import SetRequest
from setaug.models.neural.constraint import SetConstraint
from setaug.serving.request_constraint import make_constraint


def generate(model: Any, **options: Any) -> Any:
    """Generate as the model's class does; with ``set_labels`` in the generation config, write nothing but a set."""
    config, tokenizer = options.get("generation_config"), options.get("tokenizer")
    try:
        request = None if config is None else SetRequest.read(vars(config))
        constraint = None if request is None else _constraint(model, tokenizer, request)
    except ValueError as error:
        from starlette.exceptions import HTTPException

        raise HTTPException(400, str(error)) from None  # any other error would be the server's fault, and asked again
    if constraint is not None and config is not None:
        if not model.config.is_encoder_decoder:
            constraint.start = options["input_ids"].shape[1]
        if config.max_new_tokens is None:
            config.max_new_tokens = constraint.max_new_tokens
        options["logits_processor"] = LogitsProcessorList([*(options.get("logits_processor") or ()), constraint])
    return type(model).generate(model, **options)


def _constraint(model: Any, tokenizer: Any, request: SetRequest) -> SetConstraint:
    """Make a constraint; the model keeps the last ones, so that they end with it."""
    make = partial(make_constraint, tokenizer=getattr(tokenizer, "tokenizer", tokenizer), model=model)
    kept = vars(model).setdefault("_set_constraints", lru_cache(maxsize=64)(make))
    found: SetConstraint = kept(request)
    return found
