"""`setaug prompt --constrain`: sets from a server that knows how, and a refusal from one that does not."""

import json

import pytest

pytest.importorskip("openai")

from setaug.cli import main
from setaug.errors import EndpointError
from setaug.prompting import PromptedSetModel
from setaug.settings import Endpoint
from tests.conftest import EXAMPLES
from tests.web.serving import serving


@pytest.fixture(scope="module")
def server():
    from setaug.models import SetGenerator, TrainingSettings

    causal = SetGenerator("tiny-causal", training=TrainingSettings(epochs=1, seed=1)).fit(EXAMPLES)
    with serving(model=causal, model_name="small") as found:
        yield found


def prompted(url, **options):
    endpoint = Endpoint(base_url=f"{url}/v1", max_retries=0)
    return PromptedSetModel("small", shots=2, max_listed=0, endpoint=endpoint, **options).fit(EXAMPLES)


def test_answers_are_sets_of_known_labels(server):
    model = prompted(server.url, constrain=True)
    for found in model.predict(["The ferry was late.", "x"]):
        assert set(found.labels) <= set(model.labels_)
        assert found.size == len(found.labels)
        assert not found.unknown
        assert not found.repeated


def test_samples_are_sets_in_each_form(server):
    from setaug import SetAugmenter

    for augmenter in (SetAugmenter(written_as="json"), SetAugmenter(separator=" ; ", with_size=False)):
        model = prompted(server.url, constrain=True, augmenter=augmenter, samples=4)
        (found,) = model.predict(["The ferry was late."])
        assert found.probabilities
        assert set(found.probabilities) <= set(model.labels_)
        assert (model.report_.n_unknown, model.report_.n_repeated) == (0, 0)


def test_a_server_that_does_not_know_sets_is_found_out(server, monkeypatch):
    def as_others_do(parameters):
        return None

    monkeypatch.setattr("setaug.web.completions_api.SetRequest.read", as_others_do)
    model = prompted(server.url, constrain=True)
    with pytest.raises(EndpointError, match="does not support set_labels"):
        model.predict(["x"])
    assert prompted(server.url).predict(["x"])


def test_the_command_asks_for_sets(server, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = "".join(json.dumps({"text": one.text, "labels": list(one.labels)}) + "\n" for one in EXAMPLES)
    (tmp_path / "train.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "texts.jsonl").write_text('{"text": "The ferry was late."}\n', encoding="utf-8")
    arguments = ["--model", "small", "--base-url", f"{server.url}/v1", "--shots", "2", "--constrain", "-o", "out.jsonl"]
    assert main(["prompt", "texts.jsonl", "--train", "train.jsonl", *arguments]) == 0
    known = {label for one in EXAMPLES for label in one.labels}
    (found,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert set(found["labels"]) <= known
    assert "0 unknown" in capfd.readouterr().err
