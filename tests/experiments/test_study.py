"""Findings as pages, tables and pictures; with made-up results, and for real at the quick scale."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from setaug import LabelStatistics, OrderGraph, Thresholds
from setaug.cli import main
from setaug.errors import FileError, MissingExtraError
from setaug.experiments import design, pictures, study
from setaug.experiments.cells import cell_key, read_results
from setaug.experiments.design import SCALES
from setaug.experiments.findings import FINDINGS
from setaug.experiments.report import Check, Panel, Series, panel_table, spread, verdict
from setaug.experiments.set_overlap import paired_cell
from setaug.experiments.study import run_finding
from setaug.experiments.trial import DECODINGS, PROPOSED, SAMPLES, SHUFFLES
from setaug.models.settings import SEEDS
from setaug.simulation import paired_symbols

Result = dict[str, Any]


def as_the_paper_says(cell: dict[str, Any]) -> Result:
    """Make a result up in which all that is claimed holds."""
    if cell["model"] == "ideal":
        return {f"greedy {share:.2f}": 0.5 + share / 10 for share in cell["data"]["shares"]} | {
            "best": 1,
            "random": 0.4,
        }
    noise = 1 + SEEDS.index(cell["seed"]) / 1000
    if cell["process"] == "blocks":
        size, added = cell["data"]["block_size"], cell["orders"]["n_orders"]
        steepness = {1: 0.0, 2: 1.0, 3: 0.5, 4: 0.3}[size] * (1 - added / 4.5)
        if "no-positions" in cell["model"] or not cell["data"]["sort_prefix"]:
            steepness /= 1.2
        return {"perplexity": {str(share): 3 * noise * (1 + steepness * share / 10) for share in SHUFFLES}}
    is_good = cell["orders"]["ordering"] == "topological" or cell["orders"]["size"]
    jaccard = (0.7 if is_good else 0.35) * noise
    decoded = {"jaccard": jaccard, "right_size": jaccard, "size": 3.0, "repeated": 0.0}
    objective = cell["training"].get("objective", "plain")
    bits = (6 if is_good else 7) * noise - (objective == "iwelbo") / 10
    gaps = {"topological": 0.1, "uniform": 0.4}
    return {
        "train_perplexity": (4 if is_good else 5) * noise,
        "train_floor": 3.0,
        "decodings": {before + way: decoded for way in DECODINGS for before in ("", "constrained ")},
        "likelihood": {
            "truth": 5.0,
            "exact": bits,
            "allowed": {name: bits + gaps[name] / 100 for name in PROPOSED},
            "bound": {name: {str(k): bits + gaps[name] / k for k in SAMPLES} for name in PROPOSED},
        },
    }


def turned_round(cell: dict[str, Any]) -> Result:
    """Make the same up the other way round: no claim holds."""

    def turn(value: Any) -> Any:
        return {name: turn(each) for name, each in value.items()} if isinstance(value, dict) else 100 - value

    found: Result = turn(as_the_paper_says(cell))
    return found


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[dict[str, Any]], Result]], None]:
    return lambda make: monkeypatch.setattr(study, "run_cell", make)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_holds_where_results_are_as_the_paper_says(
    tmp_path: Path, made_up: Any, monkeypatch: pytest.MonkeyPatch, name: str, scale: str
) -> None:
    made_up(as_the_paper_says)
    if scale != "small":
        monkeypatch.setattr(study, "draw_panels", lambda *args: [])  # once is enough, and takes a while
    found = run_finding(name, tmp_path, scale=scale)
    assert found.verdict == "holds", found.checks
    page = (tmp_path / f"{name}-{scale}.md").read_text()
    assert FINDINGS[name].claim in page
    assert "Here it holds:" in page
    assert "nan" not in page
    assert all(path.stat().st_size for path in found.paths)
    if scale == "small":
        assert {path.suffix for path in found.paths} == {".md", ".svg", ".png"}


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_does_not_hold_where_results_are_the_other_way_round(tmp_path: Path, made_up: Any, name: str) -> None:
    made_up(turned_round)
    found = run_finding(name, tmp_path, scale="small")
    assert found.verdict != "holds"
    assert "| no |" in found.as_markdown()
    kept = [check.statement for check in found.checks if check.holds]
    assert not kept


def test_one_seed_that_disagrees_is_enough(tmp_path: Path, made_up: Any) -> None:
    def mostly(cell: dict[str, Any]) -> Result:
        return (turned_round if cell["seed"] == SEEDS[1] else as_the_paper_says)(cell)

    made_up(mostly)
    assert run_finding("finding-5", tmp_path).verdict == "does not hold"


def test_findings_share_the_cells_that_they_have_in_common(
    tmp_path: Path, made_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "draw_panels", lambda *args: [])
    ran: list[str] = []

    def counted(cell: dict[str, Any]) -> Result:
        ran.append(cell_key(cell))
        return as_the_paper_says(cell)

    made_up(counted)
    for name in FINDINGS:
        run_finding(name, tmp_path)
    assert len(ran) == len(set(ran)) == len(read_results(tmp_path / "cells.jsonl"))
    assert len(ran) < sum(len(finding.all_cells(SCALES["quick"])) for finding in FINDINGS.values())


def test_the_same_results_give_the_same_files(tmp_path: Path, made_up: Any) -> None:
    made_up(as_the_paper_says)
    one, other = (run_finding("finding-1", tmp_path / folder).paths for folder in "ab")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_a_picture_names_its_axes_and_what_it_shows(tmp_path: Path, made_up: Any) -> None:
    made_up(as_the_paper_says)
    run_finding("finding-6", tmp_path)
    svg = (tmp_path / "finding-6-quick.svg").read_text()
    ElementTree.fromstring(svg)
    for text in ("decoding", "share of outputs of the right length", "with the size", "paper", "3 seeds"):
        assert f"<!-- {text}" in svg or text in svg
    assert (tmp_path / "finding-6-quick.png").read_bytes().startswith(b"\x89PNG")


def test_tables_stand_beside_the_values_of_the_paper() -> None:
    series = Series("ours", {"a": [1.0, 3.0], "b": [2.0]}, paper={"a": 2.5})
    panel = Panel(title="", x="place", y="value", series=[series, Series("other", {"b": [0.5]})])
    assert panel_table(panel).splitlines() == [
        "| place | ours | ours, paper | other |",
        "|---|---|---|---|",
        "| a | 2.00 ± 1.41 | 2.50 |  |",
        "| b | 2.00 |  | 0.50 |",
    ]


@pytest.mark.parametrize(
    ("holds", "expected"),
    [([True, True], "holds"), ([True, False], "holds in part"), ([False, False], "does not hold")],
)
def test_checks_are_summed_up(holds: list[bool], expected: str) -> None:
    assert verdict([Check("", each, "") for each in holds]) == expected
    assert spread([0.5]) == "0.50"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "finding-7"}, "finding must be one of finding-1, .*, got 'finding-7'"),
        ({"scale": "huge"}, "scale must be one of quick, small, paper, got 'huge'"),
        ({"workers": 0}, "workers must be a whole number from 1 on, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_finding(**{"name": "finding-1", "folder": tmp_path, **settings})


def test_results_of_another_version_are_refused(tmp_path: Path, made_up: Any) -> None:
    made_up(lambda cell: {"perplexity": None})
    with pytest.raises(FileError, match="a result has no perplexity / 0: another version of setaug wrote it"):
        run_finding("finding-1", tmp_path)


def test_a_training_that_failed_to_learn_is_shown_and_does_not_hold(tmp_path: Path, made_up: Any) -> None:
    def diverged(cell: dict[str, Any]) -> Result:
        nothing = dict.fromkeys(map(str, SHUFFLES), float("nan"))
        return {"perplexity": nothing} if cell["seed"] == SEEDS[0] else as_the_paper_says(cell)

    made_up(diverged)
    found = run_finding("finding-1", tmp_path)
    assert found.verdict == "does not hold"
    assert "nan ± nan" in found.as_markdown()


@pytest.mark.parametrize("scale", ["quick", "small"])
def test_each_partner_has_an_edge_to_its_symbol_and_nothing_else_has(scale: str) -> None:
    for seed in SEEDS:
        cell = paired_cell(SCALES[scale], seed, "topological", 2)
        data = dict(cell["data"])
        n_train, _ = data.pop("n_train"), data.pop("n_test")
        statistics = LabelStatistics().update(one.labels for one in paired_symbols(n_train, seed=seed, **data))
        graph = OrderGraph.of_space(statistics, Thresholds(min_ratio=cell["orders"]["min_ratio"]))
        assert {(edge.before, edge.after) for edge in graph.edges} == {
            (f"p{symbol}", f"s{symbol}") for symbol in range(data["n_symbols"])
        }


def test_without_matplotlib_it_says_so_before_training(
    tmp_path: Path, made_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    made_up(lambda cell: pytest.fail("it trained"))
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'setaug[experiments]'")):
        run_finding("finding-1", tmp_path)


def test_all_findings_run_at_the_quick_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(design, "SEEDS", SEEDS[:1])  # three take three times as long, and show no more
    folder = tmp_path / "simulation"
    assert main(["simulate", "all", "--scale", "quick", "-o", str(folder), "--workers", "1"]) == 0
    printed = capsys.readouterr()
    for name, finding in FINDINGS.items():
        assert f"# {name}: {finding.title}" in printed.out
        assert (folder / f"{name}-quick.md").exists()
        assert f"{name}-quick.png" in printed.err
    assert printed.out.count("Here it ") == len(FINDINGS)
    results = read_results(folder / "cells.jsonl")
    perplexities = {
        (cell["data"]["block_size"], cell["seed"]): found["perplexity"]
        for cell, found in ((json.loads(key), found) for key, found in results.items())
        if cell["process"] == "blocks" and cell["orders"]["n_orders"] == 0 and "no-pos" not in cell["model"]
    }
    # Even a minute of training shows the first finding.
    for seed in SEEDS[:1]:
        assert perplexities[2, seed]["100"] > 3 * perplexities[2, seed]["0"]
        assert abs(perplexities[1, seed]["100"] / perplexities[1, seed]["0"] - 1) < 0.1
    # What is finished is not run again.
    before = (folder / "cells.jsonl").read_bytes()
    assert main(["simulate", "finding-4", "-o", str(folder)]) == 0
    assert (folder / "cells.jsonl").read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="processes are told to stop in another way there")
def test_several_workers_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    small = replace(SCALES["quick"], n_train={"sizes": 32}, n_test=8, training={"epochs": 1, "batch_size": 16})
    monkeypatch.setitem(SCALES, "quick", small)
    found = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        run_finding("finding-6", folder, workers=workers)
        found[workers] = read_results(folder / "cells.jsonl")
    assert found[1] == found[2]
