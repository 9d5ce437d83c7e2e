"""``setaug inspect``: what it says, draws and prints as JSON."""

import json
from itertools import combinations
from math import factorial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from setaug import Example
from setaug.analysis.inspection import inspect_examples, inspect_file
from setaug.cli import main
from setaug.orders import Thresholds
from setaug.sample import sample_examples
from tests.reporting.reading import Page

SAMPLE = list(sample_examples(600))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("inspect") / "train.jsonl"
    rows = [{"id": e.id, "text": e.text, "labels": e.labels} for e in SAMPLE]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_report_names_labels_edges_and_the_verdict(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", source]) == 0
    report = capsys.readouterr().out
    assert "600 sets, 54 distinct labels" in report
    assert "scientist -> person:" in report
    assert "Will order help?" in report


def test_the_same_is_found_in_a_file_and_in_python(source: str) -> None:
    from_file, from_python = inspect_file(source), inspect_examples(SAMPLE)
    assert from_file.to_dict() == from_python.to_dict()


def test_the_numbers_add_up() -> None:
    found = inspect_examples(SAMPLE, with_diagnosis=False)
    assert sum(found.sizes.values()) == found.n_sets == len(SAMPLE)
    assert found.mean_size == pytest.approx(sum(len(e.labels) for e in SAMPLE) / len(SAMPLE))
    graphs = [found.graph(example.labels) for example in SAMPLE]
    assert found.n_constrained_pairs == sum(len(graph.edges) for graph in graphs)
    assert found.n_constrained_sets == sum(bool(graph.edges) for graph in graphs)
    assert found.mean_log2_orders == pytest.approx(sum(graph.log2_orders or 0 for graph in graphs) / len(graphs))
    assert found.n_set_pairs == sum(len(e.labels) * (len(e.labels) - 1) // 2 for e in SAMPLE)
    assert found.top_labels[0][1] == max(found.statistics.counts)
    assert found.graph().edges[: len(found.top_edges)] == tuple(found.top_edges)


def test_example_sets_are_those_whose_order_is_decided_most() -> None:
    found = inspect_examples(SAMPLE, with_diagnosis=False)
    small = [example.labels for example in SAMPLE if 1 < len(example.labels) <= 6]
    shares = [(found.graph(labels).n_orders or 0) / factorial(len(labels)) for labels in small]
    assert found.example_sets[0] == small[shares.index(min(shares))]
    assert set(found.example_sets) <= set(small)
    for one, other in combinations(found.example_sets, 2):
        assert 3 * len({*one} & {*other}) <= len(other)


def test_sets_that_come_again_and_again_are_one_example() -> None:
    examples = [("x", "y")] * 300 + [("z", "y")] * 5 + [("y",)] * 2000 + [()] * 9000
    found = inspect_examples([Example("", labels) for labels in examples], with_diagnosis=False)
    assert found.example_sets == [("x", "y")]


def test_json_has_everything(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", source, "--json", "--min-ratio", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_sets"] == 600
    assert found["thresholds"] == {"min_pmi": 1.0, "min_ratio": 2.0}
    assert found["diagnosis"]["verdict"]
    assert found["top_edges"][0].keys() == {"before", "after", "n_both", "pmi", "ratio"}


@pytest.mark.parametrize("name", ["graph.svg", "graph.dot", "graph.mmd"])
def test_pictures_are_drawn_by_suffix(name: str, source: str, tmp_path: Path) -> None:
    assert main(["inspect", source, "--graph", str(tmp_path / name), "--no-diagnosis", "--top", "12"]) == 0
    text = (tmp_path / name).read_text()
    assert "event" in text
    if name.endswith("svg"):
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_one_set_is_shown_with_its_edges_and_orders(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", source, "--set", "event", "tennis", "crowd", "unheard"]) == 0
    shown = capsys.readouterr().out
    assert "tennis -> event:" in shown
    assert "12 allowed orders (log2 3.58)" in shown
    assert "not in the data, so without edges: unheard" in shown
    assert main(["inspect", source, "--set", "event", "tennis", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["set"]["n_orders"] == "1"


def test_mistakes_get_one_clear_line_and_exit_code_2(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ([source, "--graph", "graph.png"], "--graph writes .svg, .dot, .gv, .mmd, .mermaid; got 'graph.png'."),
        ([source, "--min-ratio", "0"], "min_ratio must be at least 1, got 0.0."),
        ([source + "x"], "cannot infer the file format"),
    ):
        assert main(["inspect", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_file_without_examples_and_one_with_single_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.csv"
    path.write_text("text,labels\n")
    assert main(["inspect", str(path)]) == 2
    assert capsys.readouterr().err == "setaug inspect: few.csv contains no examples.\n"
    path.write_text('text,labels\na,"x,y"\nb,"x,z"\nc,a;;b\n')
    assert main(["inspect", str(path), "--skip-bad"]) == 0
    output = capsys.readouterr()
    assert "Check --delimiter and --labels-field." in output.out
    assert "skipped 1 bad line:" in output.err


def test_independent_labels_and_loose_thresholds_are_inspected_too() -> None:
    found = inspect_examples([], thresholds=Thresholds(min_pmi=-5, min_ratio=1))
    assert (found.n_sets, found.n_edges, found.mean_log2_orders) == (0, 0, 0.0)
    assert json.dumps(found.to_dict())


def test_a_page_is_written_beside_the_report(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", source, "--html", str(tmp_path / "report.html"), "--json", "--top", "12"]) == 0
    output = capsys.readouterr()
    assert output.err == f"wrote {tmp_path / 'report.html'}; open it in a browser\n"
    found = json.loads(output.out)
    page = Page((tmp_path / "report.html").read_text())
    assert "Label sets of train.jsonl" in page.seen
    assert found["diagnosis"]["sentence"] in page.seen
    assert [row[:2] for row in page.table("The most frequent labels").rows][:10] == [
        [label, f"{n:,}"] for label, n in found["top_labels"]
    ]
    assert page.tags.count("article") == len(found["example_sets"]) > 1


def test_a_page_may_go_to_standard_output(source: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["inspect", source, "--html", "-", "--no-diagnosis"]) == 0
    output = capsysbinary.readouterr()
    assert "Will order help?" not in Page(output.out.decode()).seen
    assert output.err == b""


def test_no_page_is_left_after_a_mistake(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "a", "labels": 3}\n')
    for arguments, message in (
        ([str(bad), "--html", str(tmp_path / "page.html")], '"labels" must be a list of strings, got 3.'),
        ([source, "--html", str(tmp_path / "none" / "page.html"), "--no-diagnosis"], "cannot write"),
        ([source, "--html", "page.jsonl"], "--html must be a .html file (optionally .gz) or -, got"),
        ([source, "--html", "-", "--json"], "--html - and --json both write to standard output."),
        ([source, "--html", "page.html", "--set", "event"], "--html shows all the data, --set one set"),
    ):
        assert main(["inspect", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
