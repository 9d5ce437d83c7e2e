"""OpenAI's completions of `setaug serve`: sets with the labels and sizes of the request."""

import json

import pytest

from setaug import SetCodec
from tests.conftest import EXAMPLES
from tests.web.serving import serving

LABELS = ["joy", "love", "fear", "New York", "a|b"]


@pytest.fixture(scope="module")
def causal():
    from setaug.models import SetGenerator, TrainingSettings

    return SetGenerator("tiny-causal", training=TrainingSettings(epochs=1, seed=1)).fit(EXAMPLES)


@pytest.fixture(scope="module")
def server(causal):
    with serving(model=causal, model_name="small") as found:
        yield found


def chat(text, **fields):
    return {"model": "small", "messages": [{"role": "user", "content": text}], "temperature": 0, **fields}


@pytest.mark.parametrize("form", ["separated", "json"])
def test_an_answer_is_a_set_of_the_labels_and_the_size_asked_for(server, form):
    for sizes in (1, 3, [2, 4]):
        xargs = {"set_labels": LABELS, "set_sizes": sizes, "set_form": form}
        found = server.json("/v1/chat/completions", chat("The ferry was late.", vllm_xargs=xargs))
        (choice,) = found["choices"]
        read = SetCodec(written_as=form).decode(choice["message"]["content"])
        assert set(read.labels) <= set(LABELS)
        assert len(read.labels) == read.size
        assert read.size in ([sizes] if isinstance(sizes, int) else sizes)
        assert (choice["finish_reason"], found["object"], found["model"]) == ("stop", "chat.completion", "small")
        assert found["usage"]["total_tokens"] == sum(list(found["usage"].values())[:2])


def test_without_labels_the_answer_is_what_the_model_writes(server, causal):
    text = EXAMPLES[0].text
    (predicted,) = causal.predict([text], choose="written")
    found = server.json("/v1/completions", {"prompt": f"{text}\n", "temperature": 0})
    assert found["choices"][0]["text"] == predicted.generation
    found = server.json("/v1/chat/completions", chat(text))  # without a chat template, a line break ends a message
    assert found["choices"][0]["message"]["content"] == predicted.generation


def test_several_prompts_and_answers_come_in_order(server):
    body = {"prompt": ["one", "two"], "n": 3, "seed": 5, "vllm_xargs": {"set_labels": LABELS, "set_sizes": "1-3"}}
    found = server.json("/v1/completions", body)["choices"]
    assert [one["index"] for one in found] == list(range(6))
    assert found == server.json("/v1/completions", body)["choices"]
    alone = server.json("/v1/completions", {**body, "prompt": "two"})["choices"]
    assert [one["text"] for one in alone] == [one["text"] for one in found[3:]]


def test_a_stream_has_the_same_answer(server):
    whole = server.json("/v1/chat/completions", chat("x", vllm_xargs={"set_labels": LABELS}))
    _, content = server.ask("/v1/chat/completions", chat("x", vllm_xargs={"set_labels": LABELS}, stream=True))
    first, last = content.decode().strip().split("\n\n")
    assert last == "data: [DONE]"
    chunk = json.loads(first.removeprefix("data: "))
    assert chunk["choices"][0]["delta"] == whole["choices"][0]["message"]


def test_an_answer_that_is_cut_off_says_so(server):
    xargs = {"set_labels": LABELS, "set_sizes": 5}
    found = server.json("/v1/chat/completions", chat("x", vllm_xargs=xargs, max_tokens=3))
    assert found["choices"][0]["finish_reason"] == "length"
    assert found["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("xargs", "message"),
    [
        ({"set_labels": []}, "must not be empty"),
        ({"set_labels": ["x", " "]}, "blank label"),
        ({"set_labels": "absent"}, "no list of labels named"),
        ({"set_labels": ["x"], "set_sizes": 2}, "there are only 1"),
        ({"set_labels": ["x"], "set_sizes": "few"}, "set_sizes must be"),
        ({"set_labels": ["x"], "set_form": "xml"}, "set_form must be one of separated, json"),
        ({"set_labels": ["x"], "set_separator": 1}, "set_separator must be a string"),
        ({"set_labels": ["x"], "set_with_size": 3}, "set_with_size must be 1 or 0"),
        ({"set_labels": ["x"], "set_colour": 1}, "unknown parameter set_colour"),
        ({"set_sizes": 2}, "set_labels is missing"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(server, xargs, message):
    assert message in server.refused(400, "/v1/chat/completions", chat("x", vllm_xargs=xargs))


def test_what_the_server_cannot_do_is_refused(server):
    assert "unknown model 'other'" in server.refused(404, "/v1/completions", {"model": "other", "prompt": "x"})
    assert "at most 64 answers" in server.refused(400, "/v1/completions", {"prompt": ["x"] * 5, "n": 16})
    assert "characters" in server.refused(400, "/v1/completions", {"prompt": "x" * 30_000})
    assert "places for" in server.refused(400, "/v1/completions", {"prompt": "x y z " * 3_000})


def test_a_key_guards_completions_too(causal):
    with serving(model=causal, model_name="small", key="secret") as guarded:
        assert guarded.json("/api/health", headers={"Authorization": "Bearer secret"})["model"]["name"] == "small"
        assert "key" in guarded.refused(401, "/v1/completions", {"prompt": "x"})
        bearer = {"Authorization": "Bearer secret"}
        assert guarded.json("/v1/models", headers=bearer)["data"][0]["id"] == "small"


def test_a_list_of_the_server_is_used_by_name(server, tmp_path, monkeypatch):
    (tmp_path / "moods.txt").write_text("joy\nlove\n\n", encoding="utf-8")
    monkeypatch.setenv("SETAUG_LABELS", str(tmp_path))
    xargs = {"set_labels": "moods", "set_sizes": 2}
    found = server.json("/v1/chat/completions", chat("x", vllm_xargs=xargs))["choices"][0]["message"]["content"]
    assert set(SetCodec().decode(found).labels) == {"joy", "love"}


def test_the_openai_client_gets_sets(server):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        found = client.chat.completions.create(
            **chat("x"), extra_body={"vllm_xargs": {"set_labels": LABELS, "set_sizes": 2}}
        )
        assert len(SetCodec().decode(found.choices[0].message.content).labels) == 2
        with pytest.raises(openai.BadRequestError, match="set_labels must not be empty"):
            client.chat.completions.create(**chat("x"), extra_body={"vllm_xargs": {"set_labels": []}})


@pytest.mark.parametrize(
    ("name", "value"),
    [("response_format", {"type": "json_object"}), ("logit_bias", {"5": -100}), ("min_tokens", 9), ("logprobs", True)],
)
def test_parameters_that_would_change_the_answer_are_refused_if_the_server_has_them_not(server, name, value):
    assert f"{name} is not supported" in server.refused(400, "/v1/chat/completions", chat("x", **{name: value}))
    neutral = {"response_format": {"type": "text"}, "logit_bias": {}, "min_tokens": 0, "logprobs": False, "user": "me"}
    assert server.json("/v1/chat/completions", chat("x", **neutral))["choices"][0]["finish_reason"] == "stop"


def test_both_names_of_the_limit_are_read(server):
    found = server.json("/v1/chat/completions", chat("x", vllm_xargs={"set_labels": LABELS}, max_completion_tokens=2))
    assert (found["choices"][0]["finish_reason"], found["usage"]["completion_tokens"]) == ("length", 2)


@pytest.mark.parametrize("stop", [" |", ["no such text", " |", ""]])
def test_a_stop_text_ends_the_answer(server, stop):
    xargs = {"set_labels": LABELS, "set_sizes": 3}
    (choice,) = server.json("/v1/chat/completions", chat("x", vllm_xargs=xargs, stop=stop))["choices"]
    assert (choice["message"]["content"].strip(), choice["finish_reason"]) == ("3", "stop")


def test_a_stream_of_several_answers_can_end_with_the_usage(server):
    fields = {"vllm_xargs": {"set_labels": LABELS, "set_sizes": 2}, "n": 3, "temperature": 1, "seed": 1}
    whole = server.json("/v1/chat/completions", chat("x", **fields))
    options = {"stream": True, "stream_options": {"include_usage": True}}
    _, content = server.ask("/v1/chat/completions", chat("x", **fields, **options))
    *events, last = [event.removeprefix("data: ") for event in content.decode().strip().split("\n\n")]
    *chunks, usage = map(json.loads, events)
    assert last == "[DONE]"
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [one["message"] for one in whole["choices"]]
    assert (usage["choices"], usage["usage"]) == ([], whole["usage"])


def test_labels_that_the_tokenizer_changes_are_refused(server):
    def ask(labels):
        return chat("x", vllm_xargs={"set_labels": labels, "set_form": "json", "set_sizes": 1})

    assert "1 of the labels" in server.refused(400, "/v1/chat/completions", ask(["joy", "joy<pad>"]))
    found = server.json("/v1/chat/completions", ask(["joy\n", 'a "b"']))["choices"][0]["message"]["content"]
    assert json.loads(found)["labels"][0] in ("joy\n", 'a "b"')
