"""Label graphs of the data sets."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from setaug.cli import main
from setaug.experiments.reproduction import graphs
from setaug.experiments.reproduction.experiment import GRAPHS, read_table
from setaug.experiments.reproduction.graphs import draw_graphs
from setaug.experiments.reproduction.training_cells import Setup
from tests.datasets.made_up import write_all
from tests.experiments.emotions import write_emotions


def test_graphs_are_drawn_and_named_edges_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = {"go-emotions": [["volleyball", "event"], ["event", "volleyball"], ["joy", "event"], ["nurse", "harbour"]]}
    monkeypatch.setattr(graphs, "read_table", lambda name: {**read_table(GRAPHS), "edges": edges})
    setup = Setup(data_dir=str(write_emotions(tmp_path / "data")), verify=False)
    told: list[tuple[str, int, int | None]] = []
    page, paths = draw_graphs(
        setup, tmp_path / "out", data=["go-emotions"], command="setaug ...", progress=lambda *each: told.append(each)
    )
    assert [path.name for path in paths] == ["graphs-go-emotions.svg", "graphs.md", "graphs.html"]
    assert ElementTree.parse(paths[0]).getroot().tag.endswith("svg")
    named = [line.cells[3] for line in page.tables[1].lines]
    assert named == ["yes", "no", "not among the labels", "no"]
    assert page.tables[1].lines[3].cells[5] == "never together"
    assert told == [("graphs", 1, 1)]
    assert "![go-emotions: " in paths[1].read_text()


def test_all_four_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_all(tmp_path / "data")
    names = ["go-emotions", "ufet", "reuters", "kp20k", "go-emotions[min2]"]
    call = [
        "reproduce",
        "graphs",
        "--data-dir",
        str(data),
        "--no-verify",
        "-o",
        str(tmp_path / "out"),
        "--data",
        *names,
    ]
    assert main(call) == 0
    listed = capsys.readouterr().out.split()
    assert [Path(path).name for path in listed] == [
        *(f"graphs-{name}.svg" for name in names[:4]),
        "graphs-go-emotions-min2.svg",
        "graphs.md",
        "graphs.html",
    ]
    assert str(tmp_path) not in (tmp_path / "out" / "graphs.md").read_text()
