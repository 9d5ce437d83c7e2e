"""The API says what the command line says, and no in plain words."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.models import load_model
from setaug.sample import sample_examples
from setaug.web.data.datasets import sample_file
from setaug.web.limits import Refusal
from setaug.web.model_api import PredictQuestion, _options
from tests.web.serving import Server

TEXTS = [example.text for example in sample_examples(40)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sample.jsonl"
    path.write_bytes(sample_file())
    return path


def inspected(file: Path, capfd: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert main(["inspect", str(file), "--json", *options]) == 0
    return dict(json.loads(capfd.readouterr().out))


@pytest.mark.parametrize(("pmi", "ratio"), [(1, 3), (2.5, 1.5), (0, 8)])
def test_statistics_are_those_of_the_command(
    pmi: float, ratio: float, server: Server, sample: str, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ("--min-pmi", str(pmi), "--min-ratio", str(ratio))
    found = server.json(f"/api/datasets/{sample}/statistics", min_pmi=pmi, min_ratio=ratio)
    wanted = inspected(file, capfd, *options)
    assert found == wanted | {"command": str(wanted["command"]).replace(str(file), file.name)}
    assert str(found["command"]).startswith("setaug train sample.jsonl --model ")
    assert found["diagnosis"]["advice"]["sentences"]
    without = server.json(f"/api/datasets/{sample}/statistics", min_pmi=pmi, min_ratio=ratio, diagnosis="false")
    assert without == inspected(file, capfd, *options, "--no-diagnosis")


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ({}, []),
        (
            {"orders": 3, "ordering": "random", "seed": 7, "size": "false", "format": "chat"},
            ["--orders", "3", "--ordering", "random", "--seed", "7", "--no-size", "--format", "chat"],
        ),
        ({"min_pmi": 0.5, "min_ratio": 1.25}, ["--min-pmi", "0.5", "--min-ratio", "1.25"]),
        ({"written_as": "json"}, ["--written-as", "json"]),
    ],
)
def test_training_pairs_are_those_of_the_command_byte_for_byte(
    query: dict[str, object], options: list[str], server: Server, sample: str, file: Path, tmp_path: Path
) -> None:
    assert main(["augment", str(file), "-o", str(tmp_path / "pairs.jsonl"), "-q", *options]) == 0
    status, content = server.ask(f"/api/datasets/{sample}/augment", **query)
    assert status == 200
    assert content == (tmp_path / "pairs.jsonl").read_bytes()


def test_orders_of_a_set_are_those_of_the_command(
    server: Server, sample: str, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    labels = ["event", "match", "tennis", "crowd"]
    found = server.json(f"/api/datasets/{sample}/orders", {"labels": labels, "n": 100 // 2})
    told = inspected(file, capfd, "--set", *labels)["set"]
    assert {name: found[name] for name in ("labels", "edges", "n_orders", "log2_orders")} == told
    assert len(found["orders"]) == len({tuple(order) for order in found["orders"]}) == int(found["n_orders"])
    assert found["completions"][0] == " | ".join(["4", *found["orders"][0]])
    found = server.json(f"/api/datasets/{sample}/orders", {"labels": labels, "written_as": "json"})
    assert [json.loads(text)["labels"] for text in found["completions"]] == found["orders"]
    assert found["svg"].startswith("<svg")


def test_the_graph_around_a_label_holds_its_neighbours(server: Server, sample: str) -> None:
    whole = server.json(f"/api/datasets/{sample}/graph")
    assert len(whole["labels"]) <= 30
    around = server.json(f"/api/datasets/{sample}/graph", around="match", top=5)
    assert around["labels"][0] == "match"
    assert len(around["labels"]) <= 5
    assert {edge["before"] for edge in around["edges"] if edge["after"] == "match"}
    assert "zebra" in server.refused(404, f"/api/datasets/{sample}/graph", around="zebra")


def test_labels_and_examples_are_found(server: Server, sample: str) -> None:
    found = server.json(f"/api/datasets/{sample}/labels", search="CH")
    assert [one["label"] for one in found["labels"]][:1] == ["match"]
    assert all("ch" in one["label"] for one in found["labels"])
    with_match = server.json(f"/api/datasets/{sample}/examples", label="match", offset=3, limit=2)
    assert len(with_match["examples"]) == 2
    assert all("match" in example["labels"] for example in with_match["examples"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"text": "x", "labels": ["a", "b"]}\n'),
        ("a.csv", b"text,labels\nx,a;b\n"),
        ("a.tsv", b"text\tlabels\nx\ta;b\n"),
    ],
)
def test_files_can_be_dropped_in(name: str, content: bytes, server: Server) -> None:
    found = server.json("/api/datasets", content, name=name)
    assert (found["name"], found["n_examples"]) == (name, 1)
    examples = server.json(f"/api/datasets/{found['id']}/examples")["examples"]
    assert examples == [{"index": 0, "text": "x", "labels": ["a", "b"]}]


@pytest.mark.parametrize(
    ("name", "content", "status", "sentence"),
    [
        ("a.jsonl", b'{"text": "x", "labels": ["a"]}\n{"text": 3}\n', 400, "line 2 of a.jsonl"),
        ("a.jsonl", b"", 400, "a.jsonl: contains no examples."),
        ("a.jsonl", b"\xff\xfe", 400, "line 1 of a.jsonl"),
        ("a.jsonl", b'{"text": "x", "labels": 3}\n', 400, '"labels" must be a list of strings'),
        ("a.pickle", b"x", 422, "expected a file that ends with .jsonl, .csv, .tsv"),
        ("a.jsonl.gz", b"x", 422, "expected a file that ends with"),
    ],
)
def test_bad_files_are_refused_in_plain_words(
    name: str, content: bytes, status: int, sentence: str, server: Server
) -> None:
    assert sentence in server.refused(status, "/api/datasets", content, name=name)
    assert server.json("/api/health")["status"] == "ok"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/datasets/none/statistics", None, 404),
        ("/api/datasets/..%2F..%2Fetc%2Fpasswd/statistics", None, 404),
        ("/api/datasets/SAMPLE/statistics?min_ratio=0", None, 422),
        ("/api/datasets/SAMPLE/statistics?min_pmi=nan", None, 422),
        ("/api/datasets/SAMPLE/graph?top=100000", None, 422),
        ("/api/datasets/SAMPLE/augment?orders=1000000", None, 422),
        ("/api/datasets/SAMPLE/orders", {"labels": []}, 422),
        ("/api/datasets/SAMPLE/orders", {"labels": ["a"] * 65}, 422),
        ("/api/datasets/SAMPLE/orders", {"labels": ["  "]}, 422),
        ("/api/datasets/SAMPLE/orders", {"labels": ["a"], "what": 1}, 422),
        ("/api/predict", {"texts": []}, 422),
        ("/api/predict", {"texts": ["a"] * 65}, 422),
        ("/api/predict", {"texts": ["a" * 20_001]}, 422),
        ("/api/predict", {"texts": [3]}, 422),
        ("/api/predict", {"texts": ["a"], "samples": 1000}, 422),
        ("/api/predict", {"texts": ["a"], "constrained": False, "size_is": 2}, 422),
        ("/api/predict", {"texts": ["a"], "size_is": 75}, 400),
        ("/api/predict", {"texts": ["a"], "size_is": 75, "samples": 4}, 400),
        ("/api/predict", b"{", 422),
        ("/api/predict", b'{"texts": ["\\ud800"]}', 422),
        ("/api/predict", b'{"texts": ["a", "b \\udc00\\ud800"]}', 422),
        ("/api/predict", {"texts": ["a"], "samples": False}, 422),
        ("/api/predict", {"texts": ["a"], "samples": "3"}, 422),
        ("/api/predict", {"texts": ["a"], "samples": 3.0}, 422),
        ("/api/predict", {"texts": ["a"], "constrained": 1}, 422),
        ("/api/datasets/SAMPLE/orders", b'{"labels": ["\\ud800"]}', 422),
        ("/api/datasets/SAMPLE/orders", {"labels": ["a"], "n": "3"}, 422),
        ("/api/datasets/SAMPLE/orders", {"labels": ["a"], "seed": False}, 422),
        ("/api/predict", b'{"texts": ["' + b"a" * (1 << 20) + b'"]}', 413),
        ("/etc/passwd", None, 404),
        ("/app.py", None, 404),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    path: str, body: object, status: int, server: Server, sample: str
) -> None:
    found, content = server.ask(path.replace("SAMPLE", sample), body, headers={"Content-Type": "application/json"})
    assert found == status, content
    assert server.json("/api/health")["status"] == "ok"


def test_half_a_character_is_refused_in_one_sentence(server: Server) -> None:
    found = server.refused(
        422, "/api/predict", b'{"texts": ["a", "\\ud800"]}', headers={"Content-Type": "application/json"}
    )
    assert found == "texts.1: a lone surrogate is not a valid character; send valid Unicode."
    assert server.json("/api/predict", {"texts": ["a \U0001f3be"]})["predictions"]  # a pair of them is one


def test_whole_numbers_are_taken_for_numbers(server: Server, sample: str) -> None:
    question = {"labels": ["match", "event"], "min_pmi": 1, "min_ratio": 3, "n": 2}
    assert server.json(f"/api/datasets/{sample}/orders", question)["orders"]


def test_predictions_are_those_of_the_model_however_many_ask(server: Server, generator_folder: Path) -> None:
    expected = [found.to_dict() for found in load_model(generator_folder).predict(TEXTS)]

    def one(text: str) -> object:
        return server.json("/api/predict", {"texts": [text]})["predictions"][0]

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, TEXTS)) == expected
    assert server.json("/api/predict", {"texts": TEXTS})["predictions"] == expected


def test_samples_give_probabilities_and_sizes(server: Server) -> None:
    (found,) = server.json("/api/predict", {"texts": TEXTS[:1], "samples": 4})["predictions"]
    assert sum(found["sizes"].values()) == pytest.approx(1)
    assert set(found["labels"]) <= set(found["probabilities"])
    (found,) = server.json("/api/predict", {"texts": TEXTS[:1], "size_is": 2})["predictions"]
    assert len(found["labels"]) == 2


def test_the_page_and_the_description_are_served_with_a_strict_policy(server: Server) -> None:
    import urllib.request

    for path, kind in (("/", "text/html"), ("/app.js", "text/javascript"), ("/style.css", "text/css")):
        with urllib.request.urlopen(server.url + path, timeout=600) as response:
            assert response.headers["Content-Type"].startswith(kind)
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert b"https://" not in response.read()
    paths = server.json("/openapi.json")["paths"]
    assert {"/api/health", "/api/predict", "/api/datasets", "/api/datasets/{key}/graph"} <= paths.keys()


def test_each_kind_of_model_is_asked_only_for_what_it_can_do() -> None:
    from setaug import SetClassifier, SetGenerator, SetSearch

    freely = PredictQuestion(texts=["a"], constrained=False)
    assert _options(freely, SetGenerator()) == _options(freely, SetSearch()) == {"constrained": False}
    assert _options(freely, SetClassifier()) == {}
    two = PredictQuestion(texts=["a"], size_is=2)
    assert _options(two, SetGenerator()) == {"constrained": True, "size_is": 2}
    assert _options(two, SetClassifier()) == {"size_is": 2}
    with pytest.raises(Refusal, match="size_is: not supported by a set-search"):
        _options(two, SetSearch())
    for model in (SetSearch(), SetClassifier()):
        with pytest.raises(Refusal, match=f"samples: not supported by a {model.kind}"):
            _options(PredictQuestion(texts=["a"], samples=2), model)


def test_typed_labels_are_split_at_commas_that_are_not_within_a_label(server: Server) -> None:
    key = server.json("/api/datasets", b'{"text": "x", "labels": ["Smith, John", "person"]}\n')["id"]
    found = server.json(f"/api/datasets/{key}/typed", text="person, smith, john, zebra,,")["labels"]
    assert [(one["label"], one["count"]) for one in found] == [("person", 1), ("Smith, John", 1), ("zebra", 0)]
    assert server.json(f"/api/datasets/{key}/typed")["labels"] == []


@pytest.mark.parametrize(
    ("cell", "joined"),
    [("a;b", None), ("a,b", {"label": "a,b", "separator": ","}), ("[a]", {"label": "[a]", "separator": "["})],
)
def test_labels_that_look_joined_are_told_of(server: Server, cell: str, joined: object) -> None:
    found = server.json("/api/datasets", f'text,labels\nx,"{cell}"\n'.encode(), name="a.csv")
    assert found["joined"] == joined
    assert found["kind"] == "csv"


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "text/plain"])
@pytest.mark.parametrize("path", ["/api/predict", "/api/datasets/SAMPLE/orders"])
def test_json_without_its_content_type_is_refused_with_the_header_to_send(
    server: Server, sample: str, path: str, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    body = b'{"texts": ["We won!"], "labels": ["match"]}'
    sentence = server.refused(415, path.replace("SAMPLE", sample), body, headers=headers)
    assert "Content-Type: application/json" in sentence


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_a_binary_file_is_refused_in_one_sentence(server: Server, name: str) -> None:
    for content in (bytes(range(256)) * 9, b"\x89PNG\r\n\x1a\n\xff\xd8", b"text,labels\n\xff\xfe,\x80\n"):
        assert f" of {name}: " in server.refused(400, "/api/datasets", content, name=name)
