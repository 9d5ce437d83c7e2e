"""What can be asked of a model: the sets of texts."""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from setaug.web.answers import Predictions, problems
from setaug.web.batching import Predictor
from setaug.web.limits import Limits, Refusal
from setaug.web.replies import reply


class PredictQuestion(BaseModel):
    """Ask the model for sets."""

    model_config = ConfigDict(extra="forbid")
    texts: Annotated[list[str], Field(min_length=1)]
    constrained: bool = Field(True, description="let the model write nothing but sets")
    samples: int = Field(0, ge=0, le=32, description="draw so many sets, vote, and give probabilities")
    size_is: int | None = Field(None, ge=0, le=100, description="ask for sets of this size")


class ModelApi:
    """Answer questions with a model."""

    def __init__(self, predictor: Predictor | None, limits: Limits) -> None:
        self._predictor, self._limits = predictor, limits

    def router(self) -> APIRouter:
        """Give the routes."""
        router = APIRouter()
        refusals = problems(400, 404, 503, 504)
        router.add_api_route("/predict", self.predict, methods=["POST"], response_model=Predictions, responses=refusals)
        return router

    async def predict(self, question: PredictQuestion) -> Response:
        """Give the set of each text."""
        if self._predictor is None:
            raise Refusal(404, "no model is loaded; start the server with the folder of one.")
        if len(question.texts) > self._limits.texts:
            raise Refusal(422, f"texts: at most {self._limits.texts} in one request.")
        if any(len(text) > self._limits.text_length for text in question.texts):
            raise Refusal(422, f"texts: at most {self._limits.text_length:,} characters each.")
        found = await self._predictor.predict(question.texts, _options(question, self._predictor.model))
        return reply({"predictions": [one.as_row() for one in found]})


def _options(question: PredictQuestion, model: Any) -> dict[str, Any]:
    """Say what is asked of the model; one that classifies has nothing to choose, and says so where it is asked to."""
    chosen = {"samples": question.samples or None, "size_is": question.size_is}
    chosen["constrained"] = question.constrained if hasattr(model, "decoding") else None
    return {name: value for name, value in chosen.items() if value is not None}
