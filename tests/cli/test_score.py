"""``setaug score``: what it writes, its summary, and what it refuses in one line."""

import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from setaug import Example
from setaug.cli import main
from setaug.models import SetGenerator
from tests.cli.refusals import assert_refused
from tests.conftest import DEV, write_examples


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)  # how long models take to load is another matter
    write_examples(tmp_path / "dev.jsonl", DEV)
    return tmp_path


def rows(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_output_is_the_models_and_the_summary_its_means(
    folder: Path, generator_folder: Path, generator: SetGenerator, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["score", str(generator_folder), "dev.jsonl", "--proposal", "topological", "uniform"]
    assert main([*command, "--samples", "5", "--seed", "3", "--max-exact", "4"]) == 0
    output = capfd.readouterr()
    found = generator.log_likelihoods(DEV, proposals=["topological", "uniform"], samples=5, seed=3, max_exact=4)
    for row, one, example in zip(rows(output.out), found, DEV, strict=True):
        assert (row["id"], row["n_labels"], row["samples"]) == (example.id, len(example.labels), 5)
        assert row.get("exact") == one["uniform"].exact
        assert row["proposals"] == {name: likelihood.to_dict() for name, likelihood in one.items()}
    lines = output.err.splitlines()
    assert lines[0].startswith("12 sets with ")
    assert "5 orders sampled per set and proposal; mean bits per set" in lines[0]
    assert lines[3].split() == [
        "uniform",
        "12",
        *(f"{fmean(getattr(one['uniform'], name) for one in found):.3f}" for name in ("elbo", "bound")),
    ]
    known = [one for one in found if one["uniform"].exact is not None]
    exact = fmean(one["uniform"].exact for one in known)
    assert lines[4] == f"exact likelihood of the {len(known)} sets of up to 4 labels: {exact:.3f}"
    gaps = [one["topological"].gap for one in known]
    means = [fmean(getattr(one["topological"], name) for one in known) for name in ("elbo", "bound", "allowed")]
    error = stdev(gaps) / len(gaps) ** 0.5
    assert lines[6].split() == [
        "topological",
        *(f"{mean:.3f}" for mean in means),
        *f"{fmean(gaps):.3f} ± {error:.3f}".split(),
    ]
    differences = [one["topological"].bound - one["uniform"].bound for one in found]
    n_same = differences.count(0)
    assert 0 < n_same < 12
    assert lines[8].startswith("bound of topological minus bound of uniform, paired over 12 sets (")
    assert f" ({n_same} ties): " in lines[8]
    assert lines[8].endswith(f": {fmean(differences):.3f} ± {stdev(differences) / 12**0.5:.3f}")
    assert len(lines) == 9


def test_a_file_is_written_whole_and_windows_change_nothing(
    folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["score", str(generator_folder), "dev.jsonl", "-q", "--proposal", "uniform"]
    assert main([*command, "-o", "one.jsonl"]) == 0
    monkeypatch.setattr("setaug.cli.score._WINDOW", 5)
    assert main([*command, "-o", "two.jsonl"]) == 0
    assert capfd.readouterr() == ("", "")
    for one, two in zip(rows(Path("one.jsonl").read_text()), rows(Path("two.jsonl").read_text()), strict=True):
        assert one["exact"] == pytest.approx(two["exact"], abs=1e-3)
        assert one["proposals"]["uniform"] == pytest.approx(two["proposals"]["uniform"], abs=1e-3)


def test_bounds_alone_need_no_sum_over_all_orders(
    folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_examples(folder / "one.jsonl", [Example("x", [f"label {n}" for n in range(9)])])
    assert main(["score", str(generator_folder), "one.jsonl", "--max-exact", "0", "--samples", "2"]) == 0
    output = capfd.readouterr()
    (row,) = rows(output.out)
    assert row.keys() == {"n_labels", "samples", "proposals"}
    assert row["proposals"]["topological"].keys() == {"log2_orders", "elbo", "bound"}
    assert len(output.err.splitlines()) == 3


def test_no_example_gives_no_score(folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "empty.jsonl").write_text("")
    assert main(["score", str(generator_folder), "empty.jsonl", "-o", "out.jsonl"]) == 0
    assert Path("out.jsonl").read_bytes() == b""
    assert capfd.readouterr().err == "no sets\n"


def test_bad_lines_and_sets_that_cannot_be_scored_can_be_left_out(
    folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_examples(folder / "long.jsonl", [DEV[0], Example("x", [f"label number {n}" for n in range(300)]), DEV[1]])
    with (folder / "long.jsonl").open("a") as lines:
        lines.write('{"text": "x"}\n')
    assert main(["score", str(generator_folder), "long.jsonl", "--skip-bad"]) == 0
    output = capfd.readouterr()
    assert [row["id"] for row in rows(output.out)] == [DEV[0].id, DEV[1].id]
    assert "skipped 2 bad lines:" in output.err
    assert 'the set ["label number 0", ' in output.err
    assert main(["score", str(generator_folder), "long.jsonl", "-o", "out.jsonl"]) == 2
    assert not Path("out.jsonl").exists()


def test_sets_without_a_bound_are_counted(
    folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setaug.analysis.likelihood.isnan", lambda value: value > 2)
    assert main(["score", str(generator_folder), "dev.jsonl", "--max-exact", "0"]) == 0
    output = capfd.readouterr()
    n_large = sum(not row["proposals"]["topological"] for row in rows(output.out))
    assert 0 < n_large < 12
    assert output.err.endswith(f"{n_large} sets have no bound: too many orders to count\n")


MISTAKES = [
    ("missing dev.jsonl", "there is no model folder missing."),
    ("{generator} missing.jsonl", "cannot read missing.jsonl"),
    ("{generator} texts.jsonl", 'line 1 of texts.jsonl: field "labels" is missing'),
    ("{generator} dev.jsonl --samples 0", "samples must be an integer of at least 1, got 0."),
    (
        "{generator} dev.jsonl -o bits.parquet",
        "the output is JSON lines, but bits.parquet has the suffix of another",
    ),
    ("{generator} dev.jsonl --max-exact 8", "max_exact must be an integer from 0 to 7, got 8."),
    ("{generator} dev.jsonl --seed -1", "seed must be an integer"),
    ("{generator} dev.jsonl --batch-size 0", "batch_size must be"),
    ("{classifier} dev.jsonl", "only models that generate whole sets can be scored; this model is a classifier."),
    ("{search} dev.jsonl", "only models that generate whole sets can be scored; this model is a set-search."),
    ("{generator} dev.jsonl -o no/such/folder/out.jsonl", "cannot write no/such/folder/out.jsonl"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_get_one_clear_line_and_leave_the_output_alone(
    arguments: str,
    message: str,
    folder: Path,
    generator_folder: Path,
    classifier_folder: Path,
    search_folder: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (folder / "texts.jsonl").write_text('{"text": "a"}\n')
    folders = {"generator": generator_folder, "classifier": classifier_folder, "search": search_folder}
    assert_refused("score", arguments.format(**folders).split(), message, folder, capfd)


def test_an_unknown_proposal_shows_the_usage(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["score", "run", "dev.jsonl", "--proposal", "magic"])
    assert "invalid choice: 'magic'" in capfd.readouterr().err
