"""Labels as bytes: many of them, long ones, and several spellings of one."""

import json
import pickle
from pathlib import Path

import pytest

from setaug import SetAugmenter, augment_files
from setaug.analysis.inspection import inspect_file
from setaug.engines import count_files
from setaug.engines.fast.label_table import LabelTable


def write(path: Path, sets: list[list[str]], *, ascii_only: bool = False) -> Path:
    rows = [json.dumps({"text": str(n), "labels": labels}, ensure_ascii=ascii_only) for n, labels in enumerate(sets)]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_table_grows_with_the_labels(tmp_path: Path) -> None:
    sets = [[f"label {n}", f"label {n // 2}", "x" * (n % 300 + 1)] for n in range(20_000)]
    with count_files(write(tmp_path / "in.jsonl", sets)) as counted:
        assert counted.table.n_labels == len({label for labels in sets for label in labels})
        statistics = counted.statistics()
    assert statistics.count("label 7") == 3
    assert statistics.count("x" * 300) == 66


def test_row_numbers_may_start_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setaug.engines.fast.label_table._MAX_ROW", 25)
    monkeypatch.setattr("setaug.engines.fast.blocks.BLOCK_SIZE", 200)
    sets = [["a", "b", "a"] for _ in range(100)]
    with count_files(write(tmp_path / "in.jsonl", sets)) as counted:
        assert counted.n_repeated == 100
        assert counted.statistics().count("a") == 100


@pytest.mark.parametrize("order", ["epe", "pep", "ppe"])
def test_one_label_has_one_number_however_it_is_spelt(order: str, tmp_path: Path) -> None:
    spellings = {"p": '["café","a\\/b","x"]', "e": '["caf\\u00e9","a/b","\\u0078"]'}
    lines = [f'{{"text":"t","labels":{spellings[which]}}}\n' for which in order]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    found = inspect_file(tmp_path / "in.jsonl", with_diagnosis=False)
    assert (found.n_labels, found.n_pairs, sorted(found.top_labels)) == (3, 3, [("a/b", 3), ("café", 3), ("x", 3)])
    with count_files(tmp_path / "in.jsonl") as counted:
        statistics = counted.statistics()
        assert counted.table.n_labels == 3
    assert [statistics.count(label) for label in ("café", "a/b", "x")] == [3, 3, 3]
    assert statistics.pair_count("café", "a/b") == 3


def test_spellings_of_one_label_within_a_set_are_repeats(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text":"t","labels":["é","\\u00e9","\\u00E9"]}\n')
    report = augment_files(tmp_path / "in.jsonl", tmp_path / "out.jsonl", SetAugmenter(n_orders=0))
    assert (report.n_labels, report.n_repeated) == (1, 2)
    assert json.loads((tmp_path / "out.jsonl").read_text())["completion"] == "1 | é"


def test_labels_are_hashed_with_a_secret_that_changes_no_number(tmp_path: Path) -> None:
    """Nobody can choose labels that share a slot, and yet the output is the same each time."""
    source = write(tmp_path / "in.jsonl", [[f"label {n}"] for n in range(3000)])
    with count_files(source) as one, count_files(source) as other:
        assert (one.table._secret != other.table._secret).all()
        assert one.table.labels() == other.table.labels() == [f"label {n}" for n in range(3000)]
    first, second = LabelTable(), LabelTable()
    for table in (first, second):
        table.add_counts(*other.table.spelt())
    assert (first._slots != second._slots).any()
    assert pickle.loads(pickle.dumps(first)).find(second, 0).tolist() == list(range(3000))
