"""Whole files are predicted: streamed, resumed, carried, divided; the bytes are the same."""

import csv
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from setaug import Columns, Example, Prediction, SetGenerator, TfidfClassifier, read_predictions
from setaug.errors import DataError, FileError
from setaug.models import predict_files as module
from setaug.models.predict_files import folder_state, predict_files
from setaug.sample import sample_examples

EXAMPLES = list(sample_examples(50, seed=3))
MODEL = TfidfClassifier(candidates=(("svm", 1.0),)).fit(EXAMPLES)
EXPECTED = MODEL.predict(EXAMPLES)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "WINDOW", 8)
    rows = [{"id": one.id, "text": one.text, "who": f"n{at}"} for at, one in enumerate(EXAMPLES)]
    lines = [json.dumps(row) + "\n" for row in rows]
    Path("in.jsonl").write_text("".join(lines))
    Path("parts").mkdir()
    Path("parts/a.jsonl").write_text("".join(lines[:20]))
    Path("parts/b.jsonl").write_text("".join(lines[20:]))
    return tmp_path


class Stopping:
    """A model that stops after some windows."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.n_predicted = 0

    def predict(self, data: list[Example], **_: Any) -> list[Prediction]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.n_predicted += len(data)
        return MODEL.predict(data)


def hidden() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if path.name.startswith("."))


def test_rows_are_predicted_in_order_whatever_the_files() -> None:
    report = predict_files(MODEL, "in.jsonl", "out.jsonl")
    assert list(read_predictions("out.jsonl")) == EXPECTED
    assert (report.n_sets, report.n_labels) == (50, sum(len(one.labels) for one in EXPECTED))
    predict_files(MODEL, "parts", "folder.jsonl")
    predict_files(MODEL, ["parts/a.jsonl", "parts/b.jsonl"], "several.jsonl.zst")
    assert Path("folder.jsonl").read_bytes() == Path("out.jsonl").read_bytes()
    assert list(read_predictions("several.jsonl.zst")) == EXPECTED
    assert hidden() == []


@pytest.mark.parametrize("after", [0, 1, 3, 6])
@pytest.mark.parametrize("target", ["out.jsonl", "out.csv", "out.parquet"])
def test_an_interrupted_run_goes_on_where_it_stopped(after: int, target: str) -> None:
    predict_files(MODEL, "in.jsonl", f"whole-{target}", state="m")
    with pytest.raises(KeyboardInterrupt):
        predict_files(Stopping(after), "in.jsonl", target, state="m")
    assert not Path(target).exists()
    assert len(hidden()) == (after > 0)
    rest = Stopping(100)
    report = predict_files(rest, "in.jsonl", target, state="m")
    assert rest.n_predicted == 50 - 8 * after
    assert (report.n_sets, report.n_resumed) == (50, 8 * after)
    assert Path(target).read_bytes() == Path(f"whole-{target}").read_bytes()
    assert hidden() == []


def test_what_depends_on_something_else_is_not_resumed() -> None:
    for change in ({"state": "other"}, {"state": "m", "carry": ["who"]}, {"state": "m", "skip_bad": True}):
        with pytest.raises(KeyboardInterrupt):
            predict_files(Stopping(2), "in.jsonl", "out.jsonl", state="m")
        model = Stopping(100)
        assert predict_files(model, "in.jsonl", "out.jsonl", **change).n_resumed == 0  # type: ignore[arg-type]
        assert model.n_predicted == 50
        assert hidden() == []
    with pytest.raises(KeyboardInterrupt):
        predict_files(Stopping(2), "in.jsonl", "out.jsonl", state="m")
    with Path("in.jsonl").open("a") as stream:
        stream.write('{"text": "one more"}\n')
    assert predict_files(Stopping(100), "in.jsonl", "out.jsonl", state="m").n_resumed == 0


def test_half_a_window_in_the_journal_is_dropped() -> None:
    predict_files(MODEL, "in.jsonl", "whole.jsonl")
    with pytest.raises(KeyboardInterrupt):
        predict_files(Stopping(2), "in.jsonl", "out.jsonl", state="m")
    (journal,) = hidden()
    with Path(journal).open("ab") as stream:
        stream.write(b'{"id": 16, "labels": []}\n{"id": 1')
    predict_files(MODEL, "in.jsonl", "out.jsonl", state="m")
    assert Path("out.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


def test_a_killed_run_goes_on_where_it_stopped() -> None:
    predict_files(MODEL, "in.jsonl", "whole.jsonl")

    class Slow:
        def predict(self, data: list[Example], **_: Any) -> list[Prediction]:
            time.sleep(0.2)
            return MODEL.predict(data)

    child = os.fork()
    if child == 0:
        predict_files(Slow(), "in.jsonl", "out.jsonl", state="m")
        os._exit(0)
    began = time.monotonic()
    while time.monotonic() < began + 60 and not any(
        path.stat().st_size for path in Path().glob(".out.jsonl.*.unfinished")
    ):
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not Path("out.jsonl").exists()
    report = predict_files(MODEL, "in.jsonl", "out.jsonl", state="m")
    assert report.n_resumed > 0
    assert Path("out.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
    assert hidden() == []


@pytest.mark.parametrize("n_shards", [1, 3, 7])
def test_shards_are_the_single_file_and_finished_ones_are_kept(n_shards: int) -> None:
    predict_files(MODEL, "in.jsonl", "whole.jsonl", carry=["who"])
    options: dict[str, Any] = {"carry": ["who"], "shards": n_shards, "state": "m"}
    model = Stopping(3)
    with pytest.raises(KeyboardInterrupt):
        predict_files(model, "in.jsonl", "out.jsonl", **options)
    report = predict_files(MODEL, "in.jsonl", "out.jsonl", **options)
    assert report.n_sets == 50
    assert report.n_resumed <= model.n_predicted
    assert n_shards < 7 or report.n_resumed > 0
    shards = sorted(Path().glob("out-*-of-*.jsonl"))
    assert len(shards) == n_shards
    assert b"".join(path.read_bytes() for path in shards) == Path("whole.jsonl").read_bytes()
    assert hidden() == []


def test_a_table_has_the_text_and_other_fields_are_carried() -> None:
    pandas = pytest.importorskip("pandas")
    predict_files(MODEL, "in.jsonl", "out.csv")
    with Path("out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["text"] for row in rows] == [one.text for one in EXAMPLES]
    assert [row["labels"] for row in rows] == [";".join(one.labels) for one in EXPECTED]
    assert [json.loads(row["probabilities"]) for row in rows] == [dict(one.probabilities or {}) for one in EXPECTED]
    predict_files(MODEL, "in.jsonl", "out.parquet", carry=["who", "id"])
    frame = pandas.read_parquet("out.parquet")
    assert list(frame.columns[:3]) == ["id", "who", "labels"]
    assert frame["who"].tolist() == [f"n{at}" for at in range(50)]
    assert [tuple(labels) for labels in frame["labels"]] == [one.labels for one in EXPECTED]
    assert [dict(shares) for shares in frame["probabilities"]] == [dict(one.probabilities or {}) for one in EXPECTED]
    predict_files(MODEL, "out.csv", "again.jsonl", carry=["text"])
    again = [json.loads(line)["text"] for line in Path("again.jsonl").read_text().splitlines()]
    assert again == [one.text for one in EXAMPLES]


def test_an_empty_file_gives_an_empty_table() -> None:
    pandas = pytest.importorskip("pandas")
    Path("empty.jsonl").write_text("")
    assert predict_files(MODEL, "empty.jsonl", "out.parquet", state="m").n_sets == 0
    assert hidden() == []
    assert "labels" in pandas.read_parquet("out.parquet").columns


@pytest.mark.parametrize("shards", [None, 2])
def test_a_field_that_no_row_has_is_refused_before_anything_is_predicted(shards: int | None) -> None:
    model = Stopping(0)
    with pytest.raises(DataError, match='rows has the field "whom", which is to be carried; the first has "text",'):
        predict_files(model, "in.jsonl", "out.jsonl", carry=["whom"], shards=shards)
    with pytest.raises(ValueError, match='the field "labels" cannot be carried'):
        predict_files(model, "in.jsonl", "out.jsonl", carry=["labels"])
    assert hidden() == []


def test_labels_that_do_not_fit_into_a_cell_are_refused() -> None:
    model = TfidfClassifier(candidates=(("svm", 1.0),)).fit(["a b", "a c"] * 3, [["x;y"], ["x;y", "z"]] * 3)
    with pytest.raises(FileError, match=r'the label "x;y" does not fit into a cell with the delimiter \';\'; write'):
        predict_files(model, "in.jsonl", "out.csv")
    assert not Path("out.csv").exists()
    predict_files(model, "in.jsonl", "out.csv", columns=Columns(delimiter="|"))
    assert "x;y" in Path("out.csv").read_text()


@pytest.mark.parametrize("shards", [None, 4])
def test_bad_lines_are_told_with_their_line_in_the_file(shards: int | None) -> None:
    lines = Path("in.jsonl").read_text().splitlines()
    lines[40] = '{"text": 3}'
    Path("bad.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r'line 41 of bad.jsonl: "text" must be a string, got 3'):
        predict_files(MODEL, "bad.jsonl", "out.jsonl", shards=shards)
    report = predict_files(MODEL, "bad.jsonl", "out2.jsonl", shards=shards, skip_bad=True)
    assert (report.n_sets, report.skipped.count) == (49, 1)
    assert report.skipped.first == ['line 41 of bad.jsonl: "text" must be a string, got 3.']


@pytest.mark.parametrize("changes", [{}, {"samples": 4}, {"name": "random", "constrained": False, "seed": 5}])
def test_what_is_sampled_depends_on_the_text_not_on_the_batch(
    generator: SetGenerator, generator_folder: Path, changes: dict[str, Any]
) -> None:
    texts = [one.text for one in EXAMPLES[:9]]
    together = generator.predict(texts, **changes)
    alone = [generator.predict([text], **changes)[0] for text in reversed(texts)][::-1]
    assert [one.labels for one in together] == [one.labels for one in alone]
    assert [one.probabilities for one in together] == [one.probabilities for one in alone]
    assert len({one.labels for one in together}) > 1
    assert folder_state(generator_folder) == folder_state(str(generator_folder))


def test_other_seeds_draw_other_sets(generator: SetGenerator) -> None:
    texts = [one.text for one in EXAMPLES]
    free = {"name": "random", "constrained": False}
    assert generator.predict(texts, **free, seed=1) == generator.predict(texts, **free, seed=1)
    assert generator.predict(texts, **free, seed=1) != generator.predict(texts, **free, seed=2)
