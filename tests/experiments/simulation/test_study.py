"""Findings as pages, tables and plots: from stored results, and of tiny models."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from math import log
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from setaug.cli import main
from setaug.errors import FileError, MissingExtraError
from setaug.experiments import plots
from setaug.experiments.cells import CELLS, Results
from setaug.experiments.page import panel_table
from setaug.experiments.plots import Panel, Series, spread
from setaug.experiments.runner import run_cells
from setaug.experiments.simulation import study
from setaug.experiments.simulation.design import (
    DECODINGS,
    PROPOSALS,
    SAMPLES,
    SCALES,
    SHUFFLES,
    TENTHS,
    Check,
    verdict,
)
from setaug.experiments.simulation.findings import FINDINGS
from setaug.experiments.simulation.processes import paired_symbols
from setaug.experiments.simulation.set_overlap import paired_cell
from setaug.experiments.simulation.simulated_run import _curve, simulate
from setaug.experiments.simulation.study import Study, run_finding
from setaug.orders import LabelStatistics, OrderGraph, Thresholds
from setaug.settings import SEEDS
from tests.experiments.conftest import STUDIES, TINY
from tests.experiments.emotions import store

Result = dict[str, Any]
TinyStudies = tuple[Path, str, str]


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
    jaccard = (0.7 if is_good else 0.35) * noise + cell["orders"]["n_orders"] / 50
    decoded = {"jaccard": jaccard, "right_size": jaccard, "size": 3.0, "repeated": 0.0}
    objective = cell["training"].get("objective", "plain")
    bits = (6 if is_good else 7) * noise - (objective == "iwelbo") / 10
    gaps = {"topological": 0.1, "uniform": 0.4}
    return {
        "train_perplexity": (4 if is_good else 5) * noise,
        "train_floor": 3.0,
        "curve": {str(tenth): (4 if is_good else 5) * noise + 100 / tenth for tenth in TENTHS},
        "decodings": {before + way: decoded for way in DECODINGS for before in ("", "constrained ")},
        "likelihood": {
            "truth": 5.0,
            "exact": bits,
            "allowed": {name: bits + gaps[name] / 100 for name in PROPOSALS},
            "bound": {name: {str(k): bits + gaps[name] / k for k in SAMPLES} for name in PROPOSALS},
        },
    }


def turned_round(cell: dict[str, Any]) -> Result:
    """Make the same up the other way round: no claim holds."""

    def turn(value: Any) -> Any:
        return {name: turn(each) for name, each in value.items()} if isinstance(value, dict) else 100 - value

    found: Result = turn(as_the_paper_says(cell))
    return found


def report(name: str, folder: Path, make_result: Callable[[dict[str, Any]], Result], scale: str = "quick") -> Study:
    """Store results of all cells, and write the page of a finding."""
    store(folder, (cell for seed in SEEDS for cell in FINDINGS[name].cells(SCALES[scale], seed)), make_result)
    before = (folder / CELLS).read_bytes()
    found = run_finding(name, folder, scale=scale)
    assert (folder / CELLS).read_bytes() == before
    return found


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip plots, which take a second each; other tests draw lines and bars."""
    monkeypatch.setattr(study, "draw_panels", lambda *args: [])


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_holds_where_results_are_as_the_paper_says(tmp_path: Path, name: str, scale: str) -> None:
    found = report(name, tmp_path, as_the_paper_says, scale)
    assert found.verdict == "holds", found.checks
    page = (tmp_path / f"{name}-{scale}.md").read_text()
    assert FINDINGS[name].claim in page
    assert "## Here the finding holds\n" in page
    assert "nan" not in page


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_does_not_hold_where_results_are_the_other_way_round(tmp_path: Path, name: str) -> None:
    found = report(name, tmp_path, turned_round, "small")
    assert found.verdict != "holds"
    assert "| no |" in found.page.as_markdown()
    assert not [check.claim for check in found.checks if check.holds]


@pytest.mark.usefixtures("without_plots")
def test_one_seed_that_disagrees_is_enough(tmp_path: Path) -> None:
    def mostly(cell: dict[str, Any]) -> Result:
        return (turned_round if cell["seed"] == SEEDS[1] else as_the_paper_says)(cell)

    assert report("finding-5", tmp_path, mostly).verdict == "does not hold"


def test_the_same_results_give_the_same_files(tmp_path: Path) -> None:
    one, other = (report("finding-4", tmp_path / folder, as_the_paper_says).paths for folder in "ab")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_a_plot_names_its_axes_and_what_it_shows(tmp_path: Path) -> None:
    report("finding-6", tmp_path, as_the_paper_says)
    svg = (tmp_path / "finding-6-quick.svg").read_text()
    ElementTree.fromstring(svg)
    for text in ("decoding", "share of outputs of the right length", "with the size", "paper", "3 seeds"):
        assert f"<!-- {text}" in svg or text in svg
    assert (tmp_path / "finding-6-quick.png").read_bytes().startswith(b"\x89PNG")


def test_tables_stand_beside_the_values_of_the_paper() -> None:
    series = Series("ours", {"a": [1.0, 3.0], "b": [2.0]}, paper={"a": 2.5})
    panel = Panel(title="Title", x="position", y="value", series=[series, Series("other", {"b": [0.5]})])
    assert panel_table(panel).as_markdown().splitlines() == [
        "## Title: value",
        "",
        "| position | ours | ours, paper | other |",
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
        ({"workers": 0}, "workers must be a positive integer, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_finding(**{"name": "finding-1", "folder": tmp_path, **settings})


@pytest.mark.usefixtures("without_plots")
def test_results_of_another_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="a result has no perplexity / 0: it was written by another version of setaug"):
        report("finding-1", tmp_path, lambda cell: {"perplexity": None})


def test_a_training_that_failed_to_learn_is_shown_and_does_not_hold(tmp_path: Path) -> None:
    def diverged(cell: dict[str, Any]) -> Result:
        nothing = dict.fromkeys(map(str, SHUFFLES), float("nan"))
        return {"perplexity": nothing} if cell["seed"] == SEEDS[0] else as_the_paper_says(cell)

    found = report("finding-1", tmp_path, diverged)
    assert found.verdict == "does not hold"
    assert "nan ± nan" in found.page.as_markdown()


@pytest.mark.parametrize("scale", ["quick", "small"])
def test_each_partner_has_an_edge_to_its_symbol_and_nothing_else_has(scale: str) -> None:
    for seed in SEEDS if scale == "quick" else SEEDS[:1]:
        cell = paired_cell(SCALES[scale], seed, "topological", 2)
        data = dict(cell["data"])
        n_train, _ = data.pop("n_train"), data.pop("n_test")
        statistics = LabelStatistics().update(one.labels for one in paired_symbols(n_train, seed=seed, **data))
        graph = OrderGraph.of_space(statistics, Thresholds(min_ratio=cell["orders"]["min_ratio"]))
        assert {(edge.before, edge.after) for edge in graph.edges} == {
            (f"p{symbol}", f"s{symbol}") for symbol in range(data["n_symbols"])
        }


def test_a_training_perplexity_is_stored_for_each_tenth_of_the_updates(tiny_studies: TinyStudies) -> None:
    results = Results(tiny_studies[0] / CELLS)
    cell = paired_cell(TINY, SEEDS[0], "topological", 2, positions=False)
    curve = results.value(cell, "curve")
    assert list(curve) == [str(tenth) for tenth in TENTHS]
    assert all(value > 1 for value in curve.values() if value != float("inf"))


def test_losses_are_averaged_over_the_updates_that_they_are_of() -> None:
    assert _curve([(10, 0.0), (20, log(4))]) == pytest.approx([1] * 5 + [4] * 5)
    assert _curve([(5, 0.0), (10, log(4))])[4:6] == pytest.approx([1, 4])


def test_without_matplotlib_it_says_so_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'setaug[experiments]'")):
        run_finding("finding-1", tmp_path)
    assert not list(tmp_path.iterdir())


def assert_complete(names: Iterable[str], folder: Path, out: str, err: str) -> None:
    for name in names:
        assert f"# {name}: {FINDINGS[name].title}" in out
        paths = [folder / f"{name}-quick.{suffix}" for suffix in ("md", "html", "svg", "png")]
        assert "wrote " + ", ".join(map(str, paths)) + "\n" in err
        assert all(path.stat().st_size for path in paths)
        assert f"({name}-quick.svg)" in paths[0].read_text()


def test_studies_of_all_processes_run(tiny_studies: TinyStudies) -> None:
    folder, out, err = tiny_studies
    assert_complete(STUDIES, folder, out, err)
    assert out.count("Here the finding ") == len(STUDIES)


@pytest.mark.usefixtures("tiny_scale")
def test_findings_share_cells_which_are_not_run_again(
    tiny_studies: TinyStudies, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original, out, _ = tiny_studies
    folder = shutil.copytree(original, tmp_path / "copy")
    before = (folder / CELLS).read_bytes()
    for name in ("finding-2", "no-positions"):
        assert main(["simulate", name, "-o", str(folder)]) == 0
    assert (folder / CELLS).read_bytes() == before
    assert capsys.readouterr().out.partition("# no-positions")[2] in out


@pytest.mark.minutes
@pytest.mark.usefixtures("tiny_scale")
def test_all_findings_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "all", "-o", str(tmp_path), "--workers", "1"]) == 0
    assert_complete(FINDINGS, tmp_path, *capsys.readouterr())
    cells = [cell for finding in FINDINGS.values() for cell in finding.cells(TINY, SEEDS[0])]
    lines = (tmp_path / CELLS).read_text().splitlines()
    assert len(lines) == len({json.dumps(cell) for cell in cells}) < len(cells)


@pytest.mark.minutes
@pytest.mark.skipif(sys.platform == "win32", reason="processes are told to stop in another way there")
def test_several_workers_find_the_same(tiny_studies: TinyStudies, tmp_path: Path) -> None:
    cells = FINDINGS["finding-6"].cells(TINY, SEEDS[0])
    found = run_cells([[cell] for cell in cells], simulate, tmp_path / CELLS, workers=2)
    alone = Results(tiny_studies[0] / CELLS)
    assert [found.value(cell) for cell in cells] == [alone.value(cell) for cell in cells]


@pytest.mark.minutes
def test_the_quick_scale_shows_the_first_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "SEEDS", SEEDS[:1])  # three take three times as long, and show no more
    run_finding("finding-1", tmp_path, workers=2)
    results = Results(tmp_path / CELLS)
    cells = {cell["data"]["block_size"]: cell for cell in FINDINGS["finding-1"].cells(SCALES["quick"], SEEDS[0])[:4]}
    ratios = {
        size: results.value(cell, "perplexity", "100") / results.value(cell, "perplexity", "0")
        for size, cell in cells.items()
    }
    assert ratios[2] > 3
    assert abs(ratios[1] - 1) < 0.1
