"""Models on the Hub: the real client of the Hub, against a hub on this machine."""

import json
import re
import socket
from pathlib import Path

import pytest
import yaml

from setaug import Example, SetGenerator, TfidfClassifier, TrainingSettings, load_model
from setaug.cli import main
from setaug.errors import ModelError
from setaug.models.ensemble import SetEnsemble
from setaug.models.hub import find_model, push_model
from setaug.models.model_card import make_model_card
from setaug.models.neural.generator import MEMBERS
from setaug.orders.statistics import LabelStatistics
from tests.conftest import DEV, EXAMPLES
from tests.models.hub_server import Hub, Repository, running_hub

constants = pytest.importorskip("huggingface_hub.constants")
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=")  # the client's own way to upload a large file
TEXTS = ["On Monday: Lorries must take the long way round.", "She broke serve twice."]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with running_hub() as hub:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # its storage has a protocol of its own
        monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", hub.address)
        monkeypatch.setenv("HF_TOKEN", hub.token)
        yield hub


def test_a_model_is_pushed_and_loaded_by_its_name(hub: Hub, generator, generator_folder: Path, tmp_path, capfd):
    assert main(["push", str(generator_folder), "org/topics", "--private", "--message", "First"]) == 0
    assert capfd.readouterr().err == f"pushed {generator_folder} to {hub.address}/org/topics\n"
    pushed = hub.repositories["org/topics"]
    assert (pushed.private, pushed.messages) == (True, ["initial commit", "First"])
    files = pushed.files("main")
    assert {"README.md", "model.safetensors", "setaug.json", "statistics.json", "config.json"} <= files.keys()
    assert not {"run.json", "metrics.jsonl", "run.lock"} & files.keys()
    assert files["model.safetensors"] == (generator_folder / "model.safetensors").read_bytes()
    assert b'load_model("org/topics")' in files["README.md"]

    again = load_model("org/topics")
    assert [found.labels for found in again.predict(TEXTS)] == [found.labels for found in generator.predict(TEXTS)]
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": TEXTS[0]}) + "\n")
    assert main(["predict", "org/topics", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["labels"] == list(again.predict(TEXTS[:1])[0].labels)


def test_a_label_head_and_a_companion_are_pushed_with_their_model(hub: Hub) -> None:
    training = TrainingSettings(epochs=1, seed=1, label_head=True)
    model = SetGenerator("tiny", training=training).fit(EXAMPLES[:40], dev=DEV, progress=False)
    assert model.members_ == MEMBERS
    model.push_to_hub("org/whole")
    assert load_model("org/whole").predict(TEXTS) == model.predict(TEXTS)


def test_an_ensemble_is_pushed_with_its_members(hub: Hub, classifier, tmp_path: Path) -> None:
    baseline = TfidfClassifier(candidates=[("svm", 1.0)]).fit(EXAMPLES)
    ensemble = SetEnsemble([baseline, classifier]).fit(DEV)
    ensemble.save(tmp_path / "both")
    (tmp_path / "both" / "members").mkdir()
    (tmp_path / "both" / "members" / "config.json").write_text("{}")
    push_model(tmp_path / "both", "org/both")
    files = hub.repositories["org/both"].files("main")
    assert {"setaug.json", "member-1.safetensors", "member-2/setaug.json", "member-2/model.safetensors"} <= files.keys()
    assert "members/config.json" not in files
    assert b'load_model("org/both")' in files["README.md"]
    assert load_model("org/both").predict(TEXTS) == ensemble.predict(TEXTS)


def test_revisions_are_pushed_to_and_loaded(hub: Hub, generator) -> None:
    assert generator.push_to_hub("org/topics") == f"{hub.address}/org/topics"
    repository = hub.repositories["org/topics"]
    first = repository.sha("main")
    assert first is not None
    repository.names["v2"] = first
    generator.push_to_hub("org/topics", revision="v2", message="Second")
    assert repository.sha("main") == first != repository.sha("v2")
    for name, revision, sha in [
        ("org/topics", None, first),
        ("org/topics", "v2", repository.sha("v2")),
        ("org/topics@v2", None, repository.sha("v2")),
        ("org/topics", first, first),
    ]:
        assert find_model(name, revision).name == sha
    assert SetGenerator.from_pretrained("org/topics", revision="v2").labels_ == generator.labels_
    with pytest.raises(ModelError, match=r"cannot load org/topics: .* the Hub has no revision 'v3'\.$"):
        load_model("org/topics", revision="v3")


def test_a_model_in_the_cache_is_loaded_without_the_hub(hub: Hub, generator_folder: Path, monkeypatch) -> None:
    push_model(generator_folder, "org/topics")
    folder = find_model("org/topics")
    hub.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert find_model("org/topics") == folder
    assert hub.asked == []
    with pytest.raises(ModelError, match=r"\(HF_HUB_OFFLINE is set\), and the model is not in the cache\.$"):
        find_model("org/others")
    with pytest.raises(ModelError, match=r"^cannot push .* to org/topics: the Hub is disabled \(HF_HUB"):
        push_model(generator_folder, "org/topics")


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_mistakes_are_one_line(hub: Hub, generator_folder: Path, tmp_path, monkeypatch, capfd) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    folder = str(generator_folder)
    hub.repositories["org/other"] = other = Repository()
    other.commit("main", {"config.json": b"{}", "pytorch_model.bin": b"pickle"}, "not ours")
    for command, problem in {
        ("predict", "org/nothing", str(tmp_path / "in.jsonl")): "the Hub has no such repository; if",
        ("serve", "org/nothing"): "the Hub has no such repository; if it is private, log in (hf auth login)",
        ("predict", "org/other", str(tmp_path / "in.jsonl")): "is not a setaug model: setaug.json is missing.",
        ("push", folder, "topics"): "a name on the Hub must be org/name, got 'topics'.",
        ("push", folder, "org/topics@v1"): "a name on the Hub must be org/name, got 'org/topics@v1'.",
        ("push", folder, "org/topics", "--revision", "v9"): "the Hub has no revision 'v9'.",
        ("push", str(tmp_path / "empty"), "org/topics"): "is not a setaug model: setaug.json is missing.",
        ("push", str(tmp_path / "none"), "org/topics"): "there is no model folder",
    }.items():
        assert main(list(command)) == 2
        error = capfd.readouterr().err
        assert error.startswith(f"setaug {command[0]}: ")
        assert problem in error
        assert error.count("\n") == 1
    assert not list(Path(constants.HF_HUB_CACHE).rglob("pytorch_model.bin"))
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert main(["push", folder, "org/topics"]) == 2
    assert "the Hub refuses access (401); log in (hf auth login) or set HF_TOKEN" in capfd.readouterr().err


def test_a_folder_is_no_name_and_needs_no_hub(hub: Hub, generator_folder: Path, tmp_path, monkeypatch) -> None:
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "topics").symlink_to(generator_folder)
    monkeypatch.chdir(tmp_path)
    assert load_model("org/topics").labels_
    assert hub.asked == []
    with pytest.raises(ValueError, match="a revision requires a model on the Hub; org/topics is a folder"):
        load_model("org/topics", revision="v1")


def test_folders_of_the_hub_are_checked_like_others(hub: Hub, generator_folder: Path) -> None:
    push_model(generator_folder, "org/topics")
    index = json.dumps({"weight_map": {"a": "../../secret.safetensors"}}).encode()
    hub.repositories["org/topics"].commit("main", {"model.safetensors.index.json": index}, "worse")
    with pytest.raises(ModelError, match=r"names '\.\./\.\./secret\.safetensors', which is not a weights file"):
        load_model("org/topics")


def test_a_hub_that_is_not_there_or_fails(hub: Hub, generator_folder: Path, monkeypatch) -> None:
    hub.fails_with = 418
    with pytest.raises(ModelError, match=r"the Hub answered 418, and the model is not in the cache\.$"):
        load_model("org/topics")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ModelError, match=r"the Hub cannot be reached \(.*\), and the model is not in the cache\.$"):
            load_model("org/topics")


# --- the model card ---------------------------------------------------------------------------------------------------


def test_every_model_folder_has_a_card_with_metadata(generator_folder: Path, classifier_folder: Path, search_folder):
    for folder in (generator_folder, classifier_folder, search_folder):
        text = (folder / "README.md").read_text()
        record = json.loads((folder / "setaug.json").read_text())["record"]
        head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
        assert head is not None
        data = yaml.safe_load(head[1])
        assert (data["library_name"], data["pipeline_tag"]) == ("setaug", "text-classification")
        assert "base_model" not in data  # it begins from scratch
        if record["best_f1"] is not None:
            (metric,) = data["model-index"][0]["results"][0]["metrics"]
            assert metric["value"] == pytest.approx(record["best_f1"], abs=1e-4)
        assert f"| training examples | {record['n_examples']} |" in text
        for heading in ("How to use it", "Training data", "Scores", "Labels", "Settings", "Versions"):
            assert f"\n## {heading}\n" in text
        assert re.search(r"^\| place \| \d+ \|$", text, re.MULTILINE)


def test_labels_cannot_write_markup(hub: Hub) -> None:
    labels = ["<script>", "a|b", "[x](y)", "two\nlines", "`*_"]
    examples = [Example("a", labels), Example("b", [f"label {number}" for number in range(80)])]
    statistics = LabelStatistics().update(example.labels for example in examples)
    card = {"kind": "generator", "largest": 80, "record": {"best_f1": 0.51239}, "labels": labels}
    text = make_model_card({**card, "settings": {"model": "org/base", "training": {"epochs": 3}}}, statistics)
    assert "base_model: org/base\n" in text
    assert "| training.epochs | 3 |" in text.replace("&#46;", ".")
    assert "35 more are in statistics.json" in text
    for markup in ("<script", "a|b", "[x]", "`*_"):
        assert markup not in text
    assert "value: 0.5124" in text
