"""The set constraint of a request to a server."""

from typing import Any

from setaug.decoding.set_request import SetRequest
from setaug.examples import shown
from setaug.models.neural.constraint import SetConstraint


def make_constraint(
    request: SetRequest, tokenizer: Any, *, model: Any | None = None, end: int | None = None
) -> SetConstraint:
    """Make the constraint; raise `ValueError` if the tokenizer cannot write its labels so that a client can read them.

    Parameters
    ----------
    model
        The model to fit; see `SetConstraint.for_model`.
    end
        The token that ends the output; by default the model's or the tokenizer's.

    """
    options: dict[str, Any] = {"codec": request.codec, "sizes": request.sizes} | ({} if end is None else {"end": end})
    if model is None:
        constraint = SetConstraint(tokenizer, request.labels, **options)
    else:
        constraint = SetConstraint.for_model(model, tokenizer, request.labels, **options)
    if unreadable := constraint.unreadable():
        raise ValueError(
            f"the model's tokenizer cannot write {len(unreadable)} of the labels so that they can be read back, "
            f"such as {shown(unreadable[0])}; remove or rename them."
        )
    return constraint
