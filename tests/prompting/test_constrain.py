"""`setaug prompt --constrain`: sets from a server that knows how, and a refusal from one that does not."""

import json
import shutil

import pytest

pytest.importorskip("openai")

from setaug.cli import main
from setaug.errors import EndpointError
from setaug.prompting import PromptedSetModel
from setaug.settings import Endpoint
from tests.conftest import EXAMPLES
from tests.prompting.server import serving as serving_transformers
from tests.web.serving import serving


@pytest.fixture(scope="module")
def ours():
    from setaug.models import SetGenerator, TrainingSettings

    causal = SetGenerator("tiny-causal", training=TrainingSettings(epochs=1, seed=1)).fit(EXAMPLES)
    with serving(model=causal, model_name="small") as found:
        yield found


def prompted(url, name="small", **options):
    endpoint = Endpoint(base_url=f"{url}/v1", max_retries=0)
    return PromptedSetModel(name, shots=2, max_listed=0, endpoint=endpoint, **options).fit(EXAMPLES)


def test_answers_are_sets_of_known_labels(ours):
    model = prompted(ours.url, constrained=True)
    for found in model.predict(["The ferry was late.", "x"]):
        assert set(found.labels) <= set(model.labels_)
        assert found.size == len(found.labels)
        assert not found.unknown
        assert not found.repeated


def test_samples_are_sets_in_each_form(ours):
    from setaug import SetAugmenter

    for augmenter in (SetAugmenter(written_as="json"), SetAugmenter(separator=" ; ", with_size=False)):
        model = prompted(ours.url, constrained=True, augmenter=augmenter, samples=4)
        (found,) = model.predict(["The ferry was late."])
        assert found.probabilities
        assert set(found.probabilities) <= set(model.labels_)
        assert (model.report_.n_unknown, model.report_.n_repeated) == (0, 0)


def test_a_server_that_does_not_know_sets_is_found_out(ours, monkeypatch):
    def as_others_do(parameters):
        return None

    monkeypatch.setattr("setaug.web.completions_api.SetRequest.read", as_others_do)
    model = prompted(ours.url, constrained=True)
    with pytest.raises(EndpointError, match="does not support set_labels"):
        model.predict(["x"])
    assert prompted(ours.url).predict(["x"])


def test_the_command_asks_for_sets(ours, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = "".join(json.dumps({"text": one.text, "labels": list(one.labels)}) + "\n" for one in EXAMPLES)
    (tmp_path / "train.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "texts.jsonl").write_text('{"text": "The ferry was late."}\n', encoding="utf-8")
    arguments = ["--model", "small", "--base-url", f"{ours.url}/v1", "--shots", "2", "--constrain", "-o", "out.jsonl"]
    assert main(["prompt", "texts.jsonl", "--train", "train.jsonl", *arguments]) == 0
    known = {label for one in EXAMPLES for label in one.labels}
    (found,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert set(found["labels"]) <= known
    assert "0 unknown" in capfd.readouterr().err


@pytest.fixture(scope="module")
def transformers_serve(tiny_model, tmp_path_factory):
    """Serve a copy of the tiny model whose ``generate`` is ours."""
    place = tmp_path_factory.mktemp("custom")
    shutil.copytree(tiny_model, place / "model")
    (place / "model" / "custom_generate").mkdir()
    line = "from setaug.serving.custom_generate import generate\n"
    (place / "model" / "custom_generate" / "generate.py").write_text(line)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_MODULES_CACHE", str(place / "modules"))
        with serving_transformers(place / "model", "--trust-remote-code") as found:
            yield found


def asked(server, **fields):
    from openai import OpenAI

    messages = [{"role": "user", "content": "The ferry was late."}]
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        found = client.chat.completions.create(model=str(server.folder), messages=messages, **fields)
        return list(found) if fields.get("stream") else found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chat", "completion"])
def test_transformers_serve_answers_with_sets(transformers_serve, kind):
    model = prompted(transformers_serve.url, str(transformers_serve.folder), constrained=True, kind=kind)
    predictions = model.predict([one.text for one in EXAMPLES[:6]])
    for found in predictions:
        assert set(found.labels) <= set(model.labels_)
        assert found.size == len(found.labels)
    assert len({found.labels for found in predictions}) > 1
    assert (model.report_.n_unknown, model.report_.n_repeated, model.report_.n_cut_off) == (0, 0, 0)
    (found,) = model.predict(["The ferry was late."], samples=8)
    assert set(found.probabilities) <= set(model.labels_)
    assert any(share < 1 for share in found.probabilities.values()), "nothing is sampled"


@pytest.mark.slow
def test_transformers_serve_knows_all_parameters_and_refuses_bad_ones(transformers_serve):
    from openai import BadRequestError

    def config(**fields):
        return {"extra_body": {"generation_config": json.dumps({"do_sample": False, **fields})}}

    parameters = {"set_labels": ["a", "b", "c"], "set_sizes": 3, "set_form": "json"}
    answer = asked(transformers_serve, **config(**parameters)).choices[0]
    read = json.loads(answer.message.content)
    assert (read["size"], sorted(read["labels"]), answer.finish_reason) == (3, ["a", "b", "c"], "stop")
    chunks = [
        chunk.choices[0].delta.content for chunk in asked(transformers_serve, stream=True, **config(**parameters))
    ]
    assert json.loads("".join(filter(None, chunks))) == read
    with pytest.raises(BadRequestError) as refused:
        asked(transformers_serve, **config(**{**parameters, "set_sizes": 4}))
    assert "set_sizes requires 4 labels, but there are only 3" in refused.value.response.text
    free = asked(transformers_serve, max_tokens=8, temperature=0).choices[0]
    assert free.finish_reason == "length", "a request without labels is constrained, too"


def test_transformers_serve_without_the_constraint_is_found_out(server, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EndpointError, match="does not support set_labels"):
        prompted(server.url, str(server.folder), constrained=True).predict(["x"])
    (tmp_path / "texts.jsonl").write_text('{"text": "x", "labels": ["a"]}\n', encoding="utf-8")
    where = ["--model", str(server.folder), "--base-url", f"{server.url}/v1", "-o", "out.jsonl"]
    assert main(["prompt", "texts.jsonl", "--train", "texts.jsonl", "--constrain", *where]) == 2
    said = capfd.readouterr().err
    assert "the server does not support set_labels, so it cannot be constrained to sets" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()
