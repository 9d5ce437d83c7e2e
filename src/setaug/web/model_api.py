"""The API of a model: prediction of sets."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from setaug.web.batching import Predictor
from setaug.web.bodies import address_of
from setaug.web.limits import Limits, Refusal
from setaug.web.schemas import Predictions, Text, problems, reply


class PredictQuestion(BaseModel):
    """Texts whose sets to predict."""

    model_config = ConfigDict(extra="forbid", strict=True)
    texts: Annotated[list[Text], Field(min_length=1)]
    constrained: bool = Field(True, description="whether to constrain the output to sets")
    samples: int = Field(0, ge=0, le=32, description="number of sets to sample and vote over, for probabilities")
    size_is: int | None = Field(None, ge=0, le=100, description="force this size for every set")


class ModelApi:
    """Predictions of a model."""

    def __init__(self, predictor: Predictor | None, limits: Limits) -> None:
        self._predictor, self._limits = predictor, limits

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter()
        refusals = problems(400, 404, 500, 503, 504)
        router.add_api_route("/predict", self.predict, methods=["POST"], response_model=Predictions, responses=refusals)
        return router

    async def predict(self, request: Request, question: PredictQuestion) -> Response:
        """Return the set of each text."""
        if self._predictor is None:
            raise Refusal(404, "no model is loaded; start the server with a model folder.")
        if len(question.texts) > self._limits.texts:
            raise Refusal(422, f"texts: at most {self._limits.texts} per request.")
        if any(len(text) > self._limits.text_length for text in question.texts):
            raise Refusal(422, f"texts: at most {self._limits.text_length:,} characters each.")
        options = _options(question, self._predictor.model)
        found = await self._predictor.predict(question.texts, options, address_of(request.scope))
        return reply({"predictions": [one.to_dict() for one in found]})


def _options(question: PredictQuestion, model: Any) -> dict[str, Any]:
    """Return the options for a model, or raise a `Refusal` if it does not support them."""
    chosen = {name: value for name in ("samples", "size_is") if (value := getattr(question, name)) is not None}
    if not question.samples:
        del chosen["samples"]
    kind = getattr(model, "kind", "generator")
    takes = {"generator": ("samples", "size_is"), "classifier": ("size_is",), "ensemble": ("size_is",)}
    if refused := [name for name in chosen if name not in takes.get(kind, ())]:
        raise Refusal(422, f"{', '.join(refused)}: not supported by a {kind}.")
    decoding = getattr(model, "decoding", None)
    if decoding is None:  # only of models that write sets; set search can be constrained, too
        return chosen | ({"constrained": question.constrained} if hasattr(model, "constrained") else {})
    chosen["constrained"] = question.constrained
    try:
        replace(decoding, **chosen)
    except ValueError as error:
        raise Refusal(422, str(error)) from None
    return chosen
