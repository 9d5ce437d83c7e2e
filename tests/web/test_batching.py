"""Texts of many requests share batches; too many are turned away, and the rest is answered rightly."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from setaug.predictions import Prediction
from setaug.web.batching import Predictor
from setaug.web.limits import Limits, Refusal


class Slow:
    """A model that takes its time, and notes what it is asked."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds = seconds
        self.batches: list[tuple[list[str], dict[str, Any]]] = []

    def predict(self, texts: Sequence[str], **options: Any) -> list[Prediction]:
        self.batches.append((list(texts), options))
        time.sleep(self.seconds)
        if "bad" in texts:
            raise ValueError("bad text")
        if "worse" in texts:
            raise RuntimeError("secret detail")
        return [Prediction(labels=(text,)) for text in texts]


async def ask_all(predictor: Predictor, questions: list[tuple[list[str], dict[str, Any]]]) -> list[Any]:
    worker = asyncio.create_task(predictor.run())
    asked = [predictor.predict(texts, options) for texts, options in questions]
    found = await asyncio.gather(*asked, return_exceptions=True)
    worker.cancel()
    return list(found)


def labels(found: list[Prediction]) -> list[str]:
    return [one.labels[0] for one in found]


def test_requests_share_batches_and_get_their_own_answers() -> None:
    model = Slow()
    questions = [([f"{at}", f"{at}!"], {"samples": at % 2}) for at in range(20)]
    found = asyncio.run(ask_all(Predictor(model, Limits(batch_size=8)), questions))
    assert [labels(one) for one in found] == [texts for texts, _ in questions]
    assert max(len(texts) for texts, _ in model.batches) == 8
    assert len(model.batches) < len(questions)
    for texts, options in model.batches:
        assert all(int(text.rstrip("!")) % 2 == options["samples"] for text in texts)


def test_too_many_are_turned_away_and_later_ones_are_taken_again() -> None:
    model = Slow()
    predictor = Predictor(model, Limits(waiting_texts=10, batch_size=4))

    async def twice() -> tuple[list[Any], list[Any]]:
        return await ask_all(predictor, [([f"{at}"], {}) for at in range(30)]), await ask_all(predictor, [(["a"], {})])

    first, second = asyncio.run(twice())
    refused = [one for one in first if isinstance(one, Refusal)]
    answered = [one for one in first if isinstance(one, list)]
    assert len(refused) == 20
    assert len(answered) == 10
    assert {one.status for one in refused} == {503}
    assert labels(second[0]) == ["a"]


def test_one_bad_batch_does_not_end_the_server() -> None:
    model = Slow(0.0)
    found = asyncio.run(ask_all(Predictor(model, Limits(batch_size=1)), [(["bad"], {}), (["worse"], {}), (["a"], {})]))
    assert [(one.status, one.sentence) for one in found[:2]] == [
        (422, "bad text"),
        (500, "the model failed: RuntimeError."),
    ]
    assert labels(found[2]) == ["a"]


def test_a_request_does_not_wait_forever_and_is_forgotten() -> None:
    model = Slow(0.5)
    predictor = Predictor(model, Limits(predict_seconds=0.1, batch_size=1))
    found = asyncio.run(ask_all(predictor, [(["a"], {}), (["b"], {})]))
    assert [one.status for one in found] == [504, 504]
    assert [texts for texts, _ in model.batches] == [["a"]]  # nobody waits for b any more
    assert labels(asyncio.run(_later(predictor))) == ["c"]


async def _later(predictor: Predictor) -> list[Prediction]:
    predictor._limits = Limits(predict_seconds=10)
    predictor._has_jobs = asyncio.Event()
    (found,) = await ask_all(predictor, [(["c"], {})])
    return list(found)
