"""The registry of orderings: one entry and one function are all that a new ordering needs."""

import json
import subprocess
import sys
from inspect import signature
from pathlib import Path
from random import Random

import numpy as np
import pytest

import setaug
from setaug import Example, SetAugmenter, diagnose
from setaug.analysis.likelihood import set_likelihoods
from setaug.cli import main
from setaug.orders import LabelStatistics, Ordering, OrderingInputs
from setaug.orders.orderings import FixedOrdering
from setaug.registry import DEFAULT_ORDERING, DEFAULT_SAMPLER, ORDERINGS, SAMPLERS, OrderingEntry, describe, proposals

SETS = [["pear", "fig", "apple"], ["fig"], ["kiwi", "apple"]] * 4


def by_name(inputs: OrderingInputs) -> Ordering:
    """Make a toy: labels in alphabetical order."""
    ranks = np.empty(len(inputs.labels), np.int64)
    ranks[sorted(range(len(ranks)), key=inputs.labels.__getitem__)] = np.arange(len(ranks))
    return FixedOrdering(ranks)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = OrderingEntry("labels by name", by_name, is_deterministic=True, is_diagnosed=True, proposal="by-name")
    monkeypatch.setitem(ORDERINGS, "toy", entry)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({"text": "t", "labels": labels}) + "\n" for labels in SETS))
    return path


@pytest.mark.usefixtures("toy")
def test_a_new_ordering_works_from_the_command_line(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["augment", str(source), "--ordering", "toy", "--orders", "1", "-q"]) == 0
    written = [json.loads(line)["completion"] for line in capsys.readouterr().out.splitlines()]
    assert written[:2] == ["3 | pear | fig | apple", "3 | apple | fig | pear"]
    assert written[5] == "2 | apple | kiwi"


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("command", ["augment", "prompt"])
def test_a_new_ordering_is_in_the_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "toy: labels by name" in shown
    assert f"[{DEFAULT_ORDERING}]" in shown


def test_an_unknown_ordering_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["augment", "-", "--ordering", "toy"])
    complaint = capsys.readouterr().err
    assert all(name in complaint for name in ORDERINGS)


@pytest.mark.usefixtures("toy")
def test_a_new_ordering_is_diagnosed(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = Random(0)
    assert "toy" in diagnose(draw.sample("abcdefgh", 3) for _ in range(100)).scores
    rows = [{"text": "t", "labels": draw.sample("abcdefgh", 3)} for _ in range(100)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["inspect", str(source), "--json"]) == 0
    assert "toy" in json.loads(capsys.readouterr().out)["diagnosis"]["scores"]


@pytest.mark.usefixtures("toy")
def test_a_new_ordering_is_a_proposal_under_its_own_name() -> None:
    statistics = LabelStatistics().update(SETS)
    asked = []

    def score(examples: object, orders: list[list[tuple[str, ...]]]) -> list[list[float]]:
        asked.extend(orders[0])
        return [[-1.0] * len(each) for each in orders]

    found = set_likelihoods(
        [Example("t", ["pear", "fig"])], score, statistics=statistics, proposals=["by-name"], max_exact=0
    )
    assert next(found)["by-name"].bound == -1.0
    assert asked == [("fig", "pear")]


def test_entries_have_makers_that_can_be_loaded_and_defaults_are_known() -> None:
    assert all(callable(entry.load()) for entry in ORDERINGS.values())
    assert DEFAULT_ORDERING in ORDERINGS
    assert DEFAULT_SAMPLER in SAMPLERS
    assert proposals() == {
        "topological": "topological",
        "reversed": "reversed",
        "uniform": "random",
        "frequency": "frequency",
        "given": "given",
    }
    defaults = {name: parameter.default for name, parameter in signature(SetAugmenter).parameters.items()}
    assert (defaults["ordering"], defaults["sampler"]) == (DEFAULT_ORDERING, DEFAULT_SAMPLER)
    assert describe(SAMPLERS, default="quick").endswith("not uniform [quick]")


def test_names_are_listed_in_the_registry_alone() -> None:
    root = Path(setaug.__file__).parent
    listing = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if '"topological"' in path.read_text() and "experiments" not in path.parts  # designs name what they compare
    }
    assert listing == {"registry.py", "settings.py"}  # a training method names the ordering that it uses


def test_the_options_are_made_without_heavy_imports() -> None:
    code = (
        "import argparse, sys\n"
        "from setaug.cli import augment\n"
        "augment.add_arguments(argparse.ArgumentParser())\n"
        "sys.exit(str({'numpy', 'numba', 'sklearn'} & set(sys.modules) or ''))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stderr.strip() == ""
