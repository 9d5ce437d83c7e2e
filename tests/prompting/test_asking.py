"""A real server answers; then it, or what stands in front of it, makes trouble."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from setaug.errors import EndpointError
from setaug.prompting import Endpoint, PromptedSetModel
from setaug.prompting import endpoint as asking
from setaug.sample import sample_examples
from tests.ports import free_port
from tests.prompting.server import TRICKLE, ModelServer, Relay, Trouble

TRAIN = list(sample_examples(60))
TEXTS = [example.text for example in sample_examples(72)][60:]
BUSY = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.01)


def make(relay: Relay, folder: Path, **options: Any) -> PromptedSetModel:
    endpoint = Endpoint(base_url=relay.url, **{"concurrency": 4, "timeout": 60.0, **options.pop("endpoint", {})})
    given = {"shots": 3, "max_tokens": 12, **options}
    return PromptedSetModel(str(folder), endpoint=endpoint, **given).fit(TRAIN)


def answers_of(server: ModelServer, model: PromptedSetModel, text: str) -> dict[str, Any]:
    path = "/v1/chat/completions" if model.kind == "chat" else "/v1/completions"
    return dict(json.loads(server.answer(path, json.dumps(model.request(text)).encode())))


@pytest.mark.parametrize("kind", ["chat", "completion"])
def test_sets_are_what_the_model_says(kind: str, server: ModelServer, relay: Relay, tiny_model: Path) -> None:
    model = make(relay, tiny_model, kind=kind)
    predictions = model.predict(TEXTS)
    expected = [answers_of(server, model, text) for text in TEXTS]
    choices = [answer["choices"][0] for answer in expected]
    said = [choice["message"]["content"] if kind == "chat" else choice["text"] for choice in choices]
    assert [found.generation for found in predictions] == said
    assert len(set(said)) > 1, "the server says the same about every text, so nothing is tested"
    assert [found.labels for found in predictions] == [model._reader().read(text).prediction.labels for text in said]
    assert model.report_.n_new == len(TEXTS)
    assert model.report_.prompt_tokens == sum(answer["usage"]["prompt_tokens"] for answer in expected)
    assert model.report_.completion_tokens == sum(answer["usage"]["completion_tokens"] for answer in expected)
    assert model.report_.n_cut_off == sum(choice["finish_reason"] == "length" for choice in choices)


def test_each_text_is_asked_once_and_exactly_as_shown(relay: Relay, tiny_model: Path, tmp_path: Path) -> None:
    model = make(relay, tiny_model)
    answers = tmp_path / "answers.jsonl"
    first = model.predict([*TEXTS, TEXTS[0]], answers=answers)
    assert sorted(map(json.dumps, relay.asked)) == sorted(json.dumps(model.request(text)) for text in TEXTS)
    assert first[-1] == first[0]
    assert model.predict([*TEXTS, TEXTS[0]], answers=answers) == first
    assert len(relay.asked) == len(TEXTS)
    assert (model.report_.n_new, model.report_.n_answers) == (0, len(TEXTS))
    assert model.predict(TEXTS[:1], answers=answers, temperature=0.5)  # another request
    assert len(relay.asked) == len(TEXTS) + 1


def test_a_model_remembers_what_was_answered(relay: Relay, tiny_model: Path) -> None:
    relay.trouble = lambda n_asked, body: None if n_asked <= 5 else (401, {}, {"error": {"message": "no more"}})
    model = make(relay, tiny_model)
    with pytest.raises(EndpointError, match="no more"):
        model.predict(TEXTS)
    assert model.report_.n_new == 5
    relay.trouble = lambda n_asked, body: None
    assert len(model.predict(TEXTS)) == len(TEXTS)
    answered = [json.dumps(body) for body in relay.answered]
    assert len(answered) == len(set(answered)) == len(TEXTS)


def test_another_prompt_is_asked_anew(relay: Relay, tiny_model: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    make(relay, tiny_model).predict(TEXTS[:1], answers=answers)
    make(relay, tiny_model, shots=2).predict(TEXTS[:1], answers=answers)
    assert len(relay.asked) == 2


def test_trouble_costs_time_and_nothing_else(relay: Relay, tiny_model: Path, tmp_path: Path) -> None:
    def trouble(n_asked: int, body: dict[str, Any]) -> Trouble:
        if n_asked % 5 == 1:
            return 429, {"Retry-After": "0.2"}, BUSY
        if n_asked % 5 == 2:
            return 500, {}, {"error": {"message": "oops"}}
        return 3.0 if n_asked == 8 else None

    model = make(relay, tiny_model, endpoint={"timeout": 1.5})
    expected = model.predict(TEXTS)
    before = len(relay.answered)
    relay.trouble = trouble
    relay.asked.clear()
    told: list[str] = []
    found = model.predict(TEXTS, answers=tmp_path / "answers.jsonl", tell=told.append)
    assert found == expected
    answered = [json.dumps(body) for body in relay.answered[before:]]
    assert len(answered) == len(set(answered)) == len(TEXTS)
    assert any("429: slow down" in line for line in told)
    assert any("500: oops" in line for line in told)
    assert any("no answer within 1.5 s" in line for line in told)


def test_all_requests_wait_as_long_as_the_server_asks(relay: Relay, tiny_model: Path) -> None:
    relay.trouble = lambda n_asked, body: (429, {"retry-after-ms": "800"}, BUSY) if n_asked == 1 else None
    make(relay, tiny_model, endpoint={"concurrency": 1}).predict(TEXTS[:3])
    assert relay.times[1] - relay.times[0] >= 0.8
    assert len(relay.asked) == 4


def test_a_date_to_wait_for_is_understood(relay: Relay, tiny_model: Path) -> None:
    from datetime import UTC, datetime, timedelta
    from email.utils import format_datetime

    until = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    relay.trouble = lambda n_asked, body: (503, {"Retry-After": until}, BUSY)
    with pytest.raises(EndpointError, match=r"asks to wait for 3[56]\d\d s, which is too long"):
        make(relay, tiny_model).predict(TEXTS[:1])
    assert len(relay.asked) == 1


def test_what_is_answered_stays_when_the_server_fails_for_good(relay: Relay, tiny_model: Path, tmp_path: Path) -> None:
    relay.trouble = lambda n_asked, body: None if n_asked <= 5 else (500, {}, {"detail": "out of memory"})
    model = make(relay, tiny_model, endpoint={"max_retries": 2})
    answers = tmp_path / "answers.jsonl"
    with pytest.raises(
        EndpointError, match=r"gave up after 3 tries: the server returned 500: out of memory. \(5 of 12"
    ):
        model.predict(TEXTS, answers=answers)
    assert len(answers.read_bytes().splitlines()) == 5
    relay.trouble = lambda n_asked, body: None
    model.predict(TEXTS, answers=answers)
    answered = [json.dumps(body) for body in relay.answered]
    assert len(answered) == len(set(answered)) == len(TEXTS)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ((401, {}, {"error": {"message": "wrong key sk-very-secret"}}), r"401: wrong key \.\.\."),
        ((404, {}, {"error": {"message": "no such model"}}), "404: no such model"),
        ((429, {}, {"error": {"message": "pay", "code": "insufficient_quota"}}), "429: pay"),
        ((400, {}, {"error": {"message": "too\nlong"}}), r"text \d+: the server returned 400: too long"),
        ((200, {}, {"hello": "world"}), "has no choices; is this the URL of an OpenAI-compatible server"),
    ],
)
def test_what_cannot_get_better_is_not_tried_again(
    trouble: Trouble, message: str, relay: Relay, tiny_model: Path, tmp_path: Path
) -> None:
    relay.trouble = lambda n_asked, body: trouble
    with pytest.raises(EndpointError, match=message) as caught:
        make(relay, tiny_model, endpoint={"concurrency": 1}).predict(TEXTS, answers=tmp_path / "answers.jsonl")
    assert len(relay.asked) == 1
    assert "secret" not in str(caught.value)


def test_the_key_is_sent_and_kept_nowhere(relay: Relay, tiny_model: Path, tmp_path: Path) -> None:
    model = make(relay, tiny_model)
    model.predict(TEXTS[:2], answers=tmp_path / "answers.jsonl")
    assert set(relay.keys) == {"Bearer sk-very-secret"}
    assert "secret" not in (tmp_path / "answers.jsonl").read_text()
    assert "secret" not in repr(model)


def test_refused_texts_can_be_left_without_labels(relay: Relay, tiny_model: Path) -> None:
    def trouble(n_asked: int, body: dict[str, Any]) -> Trouble:
        is_bad = body["messages"][-1]["content"] == TEXTS[3]
        return (413, {}, {"detail": "too long"}) if is_bad else None

    relay.trouble = trouble
    model = make(relay, tiny_model, skip_refused=True)
    found = model.predict(TEXTS)
    assert found[3].labels == ()
    assert found[3].generation is None
    assert all(prediction.generation is not None for at, prediction in enumerate(found) if at != 3)
    assert model.report_.n_refused == 1
    assert model.report_.first_refusal == "the server returned 413: too long"


@pytest.mark.parametrize("refuses_n", [False, True])
def test_samples_are_asked_for_until_there_are_enough(refuses_n: bool, relay: Relay, tiny_model: Path) -> None:
    if refuses_n:
        relay.trouble = lambda n_asked, body: (400, {}, {"detail": "one at a time"}) if "n" in body else None
    model = make(relay, tiny_model, samples=3, endpoint={"concurrency": 1})
    found = model.predict(TEXTS[:2])
    assert model.report_.n_answers == 6  # this server takes no notice of n, and gives one answer at a time
    assert sorted(body["seed"] for body in relay.answered) == [0, 0, 1, 1, 2, 2]
    assert all(0 < share <= 1 for one in found for share in (one.probabilities or {}).values())
    assert all(one.sizes is not None and sum(one.sizes.values()) == pytest.approx(1) for one in found)


def test_a_server_that_gives_several_answers_is_asked_once(relay: Relay, tiny_model: Path) -> None:
    choices = [{"index": at, "finish_reason": "stop", "message": {"content": text}} for at, text in enumerate("abb")]
    body = {"choices": choices, "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    relay.trouble = lambda n_asked, body_asked: (200, {}, body)
    model = make(relay, tiny_model, samples=3, vocabulary="open")
    (found,) = model.predict(TEXTS[:1])
    assert [body["n"] for body in relay.asked] == [3]
    assert found.probabilities == {"b": pytest.approx(2 / 3), "a": pytest.approx(1 / 3)}
    assert (model.report_.prompt_tokens, model.report_.n_answers) == (7, 3)


def test_no_server_is_said_soon(tiny_model: Path) -> None:
    endpoint = Endpoint(base_url=f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(EndpointError, match=r"gave up after 3 tries: cannot reach the server: .*\(0 of 2 texts"):
        PromptedSetModel("any", endpoint=endpoint).fit(TRAIN).predict(TEXTS[:2])


def test_a_key_is_asked_for_where_the_server_is_a_hosted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(EndpointError, match="set the environment variable OPENAI_API_KEY"):
        PromptedSetModel("any").fit(TRAIN).predict(TEXTS[:1])


def test_predicting_works_where_a_loop_runs_already(relay: Relay, tiny_model: Path) -> None:
    model = make(relay, tiny_model)

    async def in_a_notebook() -> int:
        return len(model.predict(TEXTS[:2]))

    assert asyncio.run(in_a_notebook()) == 2


@pytest.fixture
def can_be_interrupted() -> Iterator[None]:
    """Hear of interrupts, which are ignored where tests run unattended."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("can_be_interrupted")
def test_an_interrupt_in_a_notebook_ends_the_asking(relay: Relay, tiny_model: Path) -> None:
    def interrupt(n_asked: int, body: dict[str, Any]) -> Trouble:
        if n_asked == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        return None

    relay.trouble = interrupt
    model = make(relay, tiny_model, endpoint={"concurrency": 1})

    async def in_a_notebook() -> None:
        model.predict(TEXTS)

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(in_a_notebook())
    finally:
        loop.close()
    n_asked = len(relay.asked)
    time.sleep(0.7)
    assert len(relay.asked) == n_asked < len(TEXTS)
    assert len(model.answers_.responses) <= n_asked


def test_a_server_that_only_keeps_the_connection_alive_has_not_answered(relay: Relay, tiny_model: Path) -> None:
    relay.trouble = lambda n_asked, body: TRICKLE
    with pytest.raises(EndpointError, match=r"gave up after 2 tries: no answer within 0.5 s"):
        make(relay, tiny_model, endpoint={"timeout": 0.5, "max_retries": 1}).predict(TEXTS[:1])


@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {"retry-after-ms": "nan"}, {"Retry-After": "soon"}])
def test_pauses_grow_whatever_the_server_says(
    headers: dict[str, str], relay: Relay, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.1)
    relay.trouble = lambda n_asked, body: (429, headers, BUSY)
    with pytest.raises(EndpointError, match="gave up after 4 tries"):
        make(relay, tiny_model, endpoint={"max_retries": 3}).predict(TEXTS[:1])
    gaps = [later - earlier for earlier, later in pairwise(relay.times)]
    assert [gap >= least for gap, least in zip(gaps, (0.075, 0.15, 0.3), strict=True)] == [True] * 3


def test_once_a_run_ends_nobody_waits_or_asks_for_more(relay: Relay, tiny_model: Path) -> None:
    def trouble(n_asked: int, body: dict[str, Any]) -> Trouble:
        if body["messages"][-1]["content"] == TEXTS[0]:
            return 429, {"Retry-After": "60"}, BUSY
        time.sleep(0.3)
        return 401, {}, {"error": {"message": "no key"}}

    relay.trouble = trouble
    began = time.monotonic()
    with pytest.raises(EndpointError, match="no key"):
        make(relay, tiny_model, samples=5, endpoint={"concurrency": 2}).predict(TEXTS)
    assert time.monotonic() - began < 50
    assert len(relay.asked) == 2


def test_a_refused_text_does_not_change_how_others_are_asked(relay: Relay, tiny_model: Path) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "1 | a"}}

    def trouble(n_asked: int, body: dict[str, Any]) -> Trouble:
        if body["messages"][-1]["content"] == TEXTS[0]:
            return 400, {}, {"detail": "too long"}
        return 200, {}, {"choices": [choice] * body.get("n", 1), "usage": None}

    relay.trouble = trouble
    model = make(relay, tiny_model, samples=4, skip_refused=True, endpoint={"concurrency": 1})
    model.predict(TEXTS[:4])
    assert [body.get("n") for body in relay.asked] == [4, None, 4, 4, 4]
    assert model.report_.n_refused == 1


@pytest.mark.parametrize(
    "choices",
    [["a"], [{"message": None}], [{}], [{"message": {"content": [{"type": "text", "text": "1 | joy"}]}}]],
)
def test_answers_without_text_make_no_sense(choices: list[Any], relay: Relay, tiny_model: Path) -> None:
    relay.trouble = lambda n_asked, body: (200, {}, {"choices": choices})
    with pytest.raises(EndpointError, match="invalid response: its choices have no text"):
        make(relay, tiny_model, endpoint={"concurrency": 1}).predict(TEXTS[:1])


def test_half_a_character_is_no_reason_to_lose_an_answer(relay: Relay, tiny_model: Path, tmp_path: Path) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "1 | joy\ud83d"}}
    relay.trouble = lambda n_asked, body: (200, {}, {"choices": [choice]})
    model = make(relay, tiny_model, vocabulary="open")
    (found,) = model.predict(TEXTS[:1], answers=tmp_path / "answers.jsonl")
    assert found.labels == ("joy?",)
    assert model.report_.prompt_tokens == 0


@pytest.mark.parametrize("key", ["sk-very-secret\r", " sk-very-secret\n"])
def test_a_key_from_a_file_of_another_system_works(
    key: str, relay: Relay, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    make(relay, tiny_model).predict(TEXTS[:1])
    assert relay.keys == ["Bearer sk-very-secret"]


@pytest.mark.parametrize("key", ["sk-very\rsecret", "sk-ключ"])
def test_a_key_that_cannot_be_one_is_not_shown(key: str, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    model = PromptedSetModel("any", endpoint=Endpoint(base_url=relay.url)).fit(TRAIN)
    with pytest.raises(EndpointError, match="OPENAI_API_KEY is not a valid key") as caught:
        model.predict(TEXTS[:1])
    assert "sk-" not in str(caught.value)
    assert relay.asked == []


def test_another_server_is_asked_anew(server: ModelServer, relay: Relay, tiny_model: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    make(relay, tiny_model).predict(TEXTS[:1], answers=answers)
    with Relay(server).running() as other:
        make(other, tiny_model).predict(TEXTS[:1], answers=answers)
        assert len(other.asked) == 1
    assert len(relay.asked) == 1
    assert len(answers.read_bytes().splitlines()) == 2


def test_score_is_the_mean_f1(relay: Relay, tiny_model: Path) -> None:
    model = make(relay, tiny_model)
    assert 0 <= model.score(TRAIN[:2]) <= 1
