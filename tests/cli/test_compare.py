"""``setaug compare``: what it prints, and what it refuses."""

import json
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import get_args

import pytest

from setaug.cli import main
from setaug.cli.compare import METRICS
from setaug.cli.shared.scoring import MACRO_OVER
from setaug.metrics import compare_sets
from setaug.metrics.sets import MacroOver
from setaug.metrics.significance import Metric

RNG = Random(0)
GOLD = [RNG.sample("abcdef", RNG.randint(1, 4)) for _ in range(60)]
WEAK, STRONG = ([[y for y in labels if RNG.random() < chance] for labels in GOLD] for chance in (0.4, 0.8))


def write(path: Path, sets: list[list[str]], *, reverse: bool = False) -> None:
    rows = [{"id": i, "text": f"text {i}", "labels": labels} for i, labels in enumerate(sets)]
    path.write_text("".join(json.dumps(row) + "\n" for row in (rows[::-1] if reverse else rows)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "weak.jsonl", WEAK, reverse=True)
    write(tmp_path / "strong.jsonl", STRONG)
    write(tmp_path / "gold.jsonl", GOLD)
    (tmp_path / "labels.txt").write_text("a\nb\nq\n")
    return tmp_path


def test_it_prints_a_table_and_a_conclusion(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "weak.jsonl", "strong.jsonl", "gold.jsonl", "--rounds", "500", "--seed", "1"]) == 0
    output = capsys.readouterr()
    wanted = compare_sets(GOLD, WEAK, STRONG, n_rounds=500, seed=1)
    assert output.err == ""
    assert output.out.endswith(f"\n{wanted.sentence}\n")
    assert "The second is better by" in wanted.sentence
    assert "samples_f1 on 60 examples" in output.out
    assert f"  first        {wanted.first:8.4f}" in output.out
    assert f"{wanted.bootstrap.low:+.4f} to {wanted.bootstrap.high:+.4f}" in output.out
    assert "500 random permutations" in output.out
    assert "two proportions" not in output.out


@pytest.mark.parametrize("metric", METRICS)
def test_json_has_everything(metric: Metric, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--metric", metric, "--rounds", "50", "--macro-over", "vocabulary", "--labels", "labels.txt", "--json"]
    assert main(["compare", "weak.jsonl", "strong.jsonl", "gold.jsonl", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = compare_sets(
        GOLD, WEAK, STRONG, metric=metric, macro_over="vocabulary", vocabulary=["a", "b", "q"], n_rounds=50
    )
    assert found == {**asdict(wanted), "sentence": wanted.sentence}


def test_proportions_and_macro_labels_are_named_in_the_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "weak.jsonl", "strong.jsonl", "gold.jsonl", "--metric", "exact_match"]) == 0
    assert "two proportions" in capsys.readouterr().out
    assert main(["compare", "weak.jsonl", "weak.jsonl", "gold.jsonl", "--metric", "macro_f1"]) == 0
    shown = capsys.readouterr().out
    assert "macro_f1 on 60 examples, averaged over the labels: gold" in shown
    assert "all 1 permutations" in shown
    assert shown.endswith("The two are equal in macro_f1.\n")


def test_the_choices_are_those_of_the_functions() -> None:
    assert get_args(Metric) == METRICS
    assert get_args(MacroOver) == MACRO_OVER


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "-", "gold.jsonl"], "only one of the inputs can be standard input."),
        (["-", "weak.jsonl", "-"], "only one of the inputs can be standard input."),
        (["weak.jsonl", "missing.jsonl", "gold.jsonl"], "cannot read missing.jsonl: No such file or directory."),
        (["weak.jsonl", "strong.jsonl", "gold.jsonl", "--rounds", "0"], "n_rounds must be at least 1, got 0."),
        (["weak.jsonl", "strong.jsonl", "gold.jsonl", "--seed", "-1"], "seed must not be negative, got -1."),
        (["weak.jsonl", "strong.jsonl", "gold.jsonl", "--macro-over", "vocabulary"], "needs --labels FILE."),
        (["weak.jsonl", "few.jsonl", "gold.jsonl"], "few.jsonl: example 60, with the id 59, has no prediction."),
        (["bad.jsonl", "weak.jsonl", "gold.jsonl"], 'line 1 of bad.jsonl: field "labels" is missing.'),
        (["weak.jsonl", "strong.jsonl", "empty.jsonl"], "empty.jsonl: no examples to score."),
    ],
)
def test_mistakes_get_one_clear_line_and_exit_code_2(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "few.jsonl", STRONG[:-1])
    (folder / "bad.jsonl").write_text("{}\n")
    (folder / "empty.jsonl").write_text("")
    assert main(["compare", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("setaug compare: ")
    assert message in output.err
    assert output.err.count("\n") == 1
