"""Texts of many requests share batches; too many are turned away, and the rest is answered rightly."""

import asyncio
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from setaug.errors import ModelError
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


class Held(Slow):
    """A model whose first batch lasts until it is released."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.released = threading.Event()

    def predict(self, texts: Sequence[str], **options: Any) -> list[Prediction]:
        found = super().predict(texts, **options)
        assert self.released.wait(600)
        return found


async def ask_all(predictor: Predictor, questions: list[tuple[list[str], dict[str, Any]]]) -> list[Any]:
    predictor.start()
    asked = [predictor.predict(texts, options) for texts, options in questions]
    found = await asyncio.gather(*asked, return_exceptions=True)
    await predictor.stop()
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
    predictor = Predictor(model, Limits(waiting_texts=10, batch_size=4, per_address=0))

    async def twice() -> tuple[list[Any], list[Any]]:
        return await ask_all(predictor, [([f"{at}"], {}) for at in range(30)]), await ask_all(predictor, [(["a"], {})])

    first, second = asyncio.run(twice())
    refused = [one for one in first if isinstance(one, Refusal)]
    answered = [one for one in first if isinstance(one, list)]
    assert len(refused) == 20
    assert len(answered) == 10
    assert {one.status for one in refused} == {503}
    assert labels(second[0]) == ["a"]


def test_of_a_batch_that_fails_only_the_request_at_fault_fails(caplog: pytest.LogCaptureFixture) -> None:
    model = Slow(0.0)
    questions = [([f"{at}"], {}) for at in range(20)]
    questions[7], questions[13] = (["bad"], {}), (["worse"], {})
    found = asyncio.run(ask_all(Predictor(model, Limits()), questions))
    assert [at for at, one in enumerate(found) if isinstance(one, Refusal)] == [7, 13]
    assert all(labels(one) == texts for one, (texts, _) in zip(found, questions, strict=True) if isinstance(one, list))
    assert [(one.status, one.sentence) for one in (found[7], found[13])] == [
        (500, "the model failed: ValueError."),  # it is the model's, as the request was checked before
        (500, "the model failed: RuntimeError."),
    ]
    assert [record.__dict__["id"] for record in caplog.records] == [found[7].id, found[13].id]
    assert "secret detail" in caplog.text


def test_what_a_model_refuses_on_purpose_is_told() -> None:
    class Refusing:
        def predict(self, texts: Sequence[str]) -> list[Prediction]:
            raise ModelError("there is no such set.")

    (found,) = asyncio.run(ask_all(Predictor(Refusing(), Limits()), [(["a"], {})]))
    assert (found.status, found.sentence, found.id) == (400, "there is no such set.", "")


class Panic(BaseException):
    """What extension modules raise: no `Exception`."""


@pytest.mark.parametrize("error", [Panic("in Rust"), StopIteration(), SystemExit(3), MemoryError()])
def test_no_error_of_a_model_ends_the_predictor(error: BaseException) -> None:
    class Broken(Slow):
        def predict(self, texts: Sequence[str], **options: Any) -> list[Prediction]:
            if "panic" in texts:
                raise error
            return super().predict(texts, **options)

    predictor = Predictor(Broken(0.0), Limits(predict_seconds=5))

    async def ask() -> list[Any]:
        first = await ask_all(predictor, [(["panic"], {})])
        predictor.start()
        assert predictor.problem() is None
        return [*first, await predictor.predict(["a"], {})]

    failed, answered = asyncio.run(ask())
    assert (failed.status, len(failed.id)) == (500, 16)
    assert labels(answered) == ["a"]


def test_a_predictor_that_died_or_hangs_is_not_ready() -> None:
    model = Held()
    predictor = Predictor(model, Limits(predict_seconds=0.1))

    async def states() -> list[str | None]:
        found = [predictor.problem()]
        predictor.start()
        found.append(predictor.problem())
        with pytest.raises(Refusal):
            await predictor.predict(["a"], {})
        while (problem := predictor.problem()) is None:  # the batch may have begun later than the request
            await asyncio.sleep(0.01)
        found.append(problem)
        model.released.set()
        await predictor.stop()
        return [*found, predictor.problem()]

    before, running, hanging, stopped = asyncio.run(states())
    assert before == stopped == "the predictor does not run."
    assert running is None
    assert hanging is not None
    assert "busy with one batch" in hanging


def test_an_error_of_the_predictor_itself_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(Slow(0.0), Limits())
    next_batch, failures = predictor._next_batch, [KeyError("once"), KeyError("twice")]

    def sometimes() -> Any:
        if failures:
            raise failures.pop()
        return next_batch()

    monkeypatch.setattr(predictor, "_next_batch", sometimes)
    (found,) = asyncio.run(ask_all(predictor, [(["a"], {})]))
    assert labels(found) == ["a"]
    assert predictor.n_failures == 2


def test_large_jobs_are_cut_and_clients_take_turns() -> None:
    model = Slow(0.0)
    predictor = Predictor(model, Limits(batch_size=8))

    async def ask() -> list[Any]:
        predictor.start()
        large = [predictor.predict([f"{name}{at}" for at in range(40)], {}, "greedy") for name in "ab"]
        small = [predictor.predict([f"c{at}"], {}, f"modest {at}") for at in range(3)]
        found = await asyncio.gather(*large, *small)
        await predictor.stop()
        return found

    found = asyncio.run(ask())
    assert [labels(one) for one in found[:2]] == [[f"{name}{at}" for at in range(40)] for name in "ab"]
    assert max(len(texts) for texts, _ in model.batches) == 8
    assert {"c0", "c1", "c2"} <= set(model.batches[0][0])  # they wait for no batch of the others


def test_the_time_of_the_model_is_shared_not_the_number_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Costly(Slow):
        def predict(self, texts: Sequence[str], **options: Any) -> list[Prediction]:
            nonlocal now
            now += 0.1 if "samples" in options else 0.01
            return super().predict(texts, **options)

    monkeypatch.setattr("setaug.web.batching.time", SimpleNamespace(monotonic=lambda: now))
    model = Costly(0.0)
    predictor = Predictor(model, Limits(batch_size=4))

    async def ask() -> None:
        async def modest(address: str) -> None:
            for at in range(30):
                await predictor.predict([f"{at}" + "!" * (address == "b")], {"constrained": address == "a"}, address)

        predictor.start()
        costly = asyncio.create_task(predictor.predict(["costly"] * 40, {"samples": 4}, "greedy"))
        await asyncio.gather(modest("a"), modest("b"))
        costly.cancel()
        await predictor.stop()

    asyncio.run(ask())
    assert sum(texts == ["costly"] for texts, _ in model.batches) <= 15  # the 60 answers take as long as six of them


def test_samples_and_long_texts_make_batches_smaller() -> None:
    model = Slow(0.0)
    questions = [(["a", "b", "c"], {"samples": 16}), (["d" * 3000] * 6, {}), (["e"] * 9, {})]
    found = asyncio.run(ask_all(Predictor(model, Limits(batch_size=32)), questions))
    assert [len(one) for one in found] == [3, 6, 9]
    sizes = {texts[0][0]: len(texts) for texts, _ in model.batches}
    assert sizes == {"a": 2, "c": 1, "d": 2, "e": 9}


def test_one_address_fills_half_of_the_queue_only() -> None:
    predictor = Predictor(Slow(), Limits(waiting_texts=10, batch_size=4))

    async def ask() -> list[Any]:
        predictor.start()
        greedy = [predictor.predict([f"{at}"], {}, "greedy") for at in range(20)]
        found = await asyncio.gather(*greedy, predictor.predict(["a"], {}, "modest"), return_exceptions=True)
        await predictor.stop()
        return list(found)

    found = asyncio.run(ask())
    assert [getattr(one, "status", 200) for one in found] == [200] * 5 + [503] * 15 + [200]
    assert predictor.n_waiting == 0


def test_nothing_is_computed_for_those_who_left() -> None:
    model = Held()
    predictor = Predictor(model, Limits(batch_size=4))

    async def ask() -> None:
        predictor.start()
        left = [asyncio.create_task(predictor.predict(["left"] * 40, {})) for _ in range(3)]
        while not model.batches:
            await asyncio.sleep(0.01)
        for task in left:
            task.cancel()
        await asyncio.wait(left)
        model.released.set()
        assert labels(await predictor.predict(["a"], {})) == ["a"]
        await predictor.stop()

    asyncio.run(ask())
    assert sum(texts.count("left") for texts, _ in model.batches) == 4
    assert predictor.n_waiting == 0


def test_a_request_does_not_wait_forever_and_is_forgotten() -> None:
    model = Held()
    predictor = Predictor(model, Limits(predict_seconds=0.1, batch_size=1))

    async def ask() -> list[Any]:
        predictor.start()
        found = await asyncio.gather(*(predictor.predict([text], {}) for text in "ab"), return_exceptions=True)
        model.released.set()
        await asyncio.sleep(0.4)
        await predictor.stop()
        return list(found)

    assert [one.status for one in asyncio.run(ask())] == [504, 504]
    assert [texts for texts, _ in model.batches] == [["a"]]  # nobody waits for b any more
