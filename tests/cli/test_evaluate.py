"""``setaug evaluate``: what it prints, and what it refuses."""

import json
import sys
from pathlib import Path

import pytest

from setaug import read_examples
from setaug.cli import main
from setaug.metrics import evaluate
from setaug.predictions import read_predictions
from tests.reporting.reading import Page

GOLD = [
    {"id": 1, "text": "a red apple", "labels": ["apple", "fruit"]},
    {"id": 2, "text": "two green pears", "labels": ["pear", "fruit"]},
    {"id": 3, "text": "nothing", "labels": []},
]
PREDICTIONS = [
    {"id": 3, "labels": [], "size": 0, "repeated": []},
    {"id": 1, "labels": ["apple", "plum"], "size": 2, "repeated": ["apple"]},
    {"id": 2, "labels": ["pear"], "size": 2, "repeated": []},
]


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.jsonl").write_text(lines(GOLD))
    (tmp_path / "predictions.jsonl").write_text(lines(PREDICTIONS))
    (tmp_path / "labels.txt").write_bytes("\ufeffapple\r\nfruit\n\npear\nquince".encode())
    return tmp_path


def test_it_prints_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "predictions.jsonl", "gold.jsonl"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out == evaluate(read_examples("gold.jsonl"), read_predictions("predictions.jsonl")).table() + "\n"
    assert "3 examples, 1.33 labels each; 1.00 predicted" in output.out
    assert "macro is averaged over the 3 labels in the true sets" in output.out


def test_json_has_everything(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        "--json --macro-over vocabulary --labels labels.txt --keyphrases --keyphrase-average documents --per-label"
    )
    assert main(["evaluate", "predictions.jsonl", "gold.jsonl", *options.split()]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = evaluate(
        read_examples("gold.jsonl"),
        read_predictions("predictions.jsonl"),
        macro_over="vocabulary",
        vocabulary=["apple", "fruit", "pear", "quince"],
        keyphrases="documents",
        per_label=True,
    )
    assert found == wanted.to_dict()
    assert found["sets"]["n_macro_labels"] == 4
    assert found["sizes"]["unknown"] == pytest.approx(1 / 3)
    assert found["sizes"]["repeated"] == pytest.approx(1 / 3)
    assert found["keyphrases"]["present"]["f1_at_m"] == pytest.approx(1.0)
    assert [row["label"] for row in found["labels"]] == ["fruit", "apple", "pear", "plum"]


def test_true_sets_are_read_in_other_formats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "gold.data").write_text('id,body,tags\n2,x,"pear,fruit"\n1,y,"apple,fruit"\n3,z,\n')
    options = ["--input-kind", "csv", "--text-field", "body", "--labels-field", "tags", "--delimiter", ",", "--json"]
    assert main(["evaluate", "predictions.jsonl", "gold.data", *options]) == 0
    from_csv = capsys.readouterr().out
    assert main(["evaluate", "predictions.jsonl", "gold.jsonl", "--json"]) == 0
    assert from_csv == capsys.readouterr().out


@pytest.mark.parametrize("piped", ["predictions", "gold", "labels"])
def test_one_input_may_be_standard_input(
    piped: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"predictions": "predictions.jsonl", "gold": "gold.jsonl", "labels": "labels.txt"}
    printed = []
    for names in (files, files | {piped: "-"}):
        with (folder / files[piped]).open() as stdin, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", stdin)
            assert main(["evaluate", names["predictions"], names["gold"], "--labels", names["labels"]]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "-"], "only one of the inputs can be standard input."),
        (["predictions.jsonl", "-", "--labels", "-"], "only one of the inputs can be standard input."),
        (["missing.jsonl", "gold.jsonl"], "cannot read missing.jsonl: No such file or directory."),
        (["predictions.jsonl", "gold.txt"], "cannot infer the file format from the name"),
        (["predictions.jsonl", "gold.jsonl", "--macro-over", "vocabulary"], "--macro-over vocabulary needs --labels"),
        (["predictions.jsonl", "gold.jsonl", "--labels", "bad.txt"], "line 2 of bad.txt: invalid UTF-8: b'\\xff'."),
        (["predictions.jsonl", "gold.jsonl", "--labels", "bad.txt.gz"], "bad.txt.gz is damaged"),
        (["predictions.jsonl", "gold.jsonl", "--text-field", "body"], 'line 1 of gold.jsonl: field "body" is missing'),
        (["predictions.jsonl", "gold.jsonl", "--delimiter", ""], "--delimiter must not be empty."),
        (["gold.jsonl", "predictions.jsonl"], "pass --text-field. Predictions come first, then the true sets."),
        (["gold.jsonl", "empty.jsonl"], "empty.jsonl: no examples to score."),
        (["empty.jsonl", "gold.jsonl"], "0 predictions for 3 examples, and no ids to match them."),
        (["bad.jsonl", "gold.jsonl"], 'line 1 of bad.jsonl: "size" must be an integer, got -1.'),
        (["other.jsonl", "gold.jsonl"], "prediction 1 has the id 9, which no example has."),
    ],
)
def test_mistakes_get_one_clear_line_and_exit_code_2(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.jsonl").write_text("\n")
    (folder / "gold.txt").write_text("")
    (folder / "bad.txt").write_bytes(b"ok\n\xff\n")
    (folder / "bad.txt.gz").write_bytes(b"ok\n")
    (folder / "bad.jsonl").write_text('{"labels": [], "size": -1}\n')
    (folder / "other.jsonl").write_text('{"labels": [], "id": 9}\n')
    assert main(["evaluate", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("setaug evaluate: ")
    assert message in output.err
    assert output.err.count("\n") == 1


def test_without_nltk_the_pip_line_is_shown(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    assert main(["evaluate", "predictions.jsonl", "gold.jsonl", "--keyphrases"]) == 2
    assert "pip install 'setaug[keyphrases]'" in capsys.readouterr().err


def test_a_page_is_written_beside_the_scores(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "predictions.jsonl", "gold.jsonl", "--json", "--html", "page.html", "--worst", "1"]) == 0
    output = capsys.readouterr()
    assert output.err == "wrote page.html; open it in a browser\n"
    sets = json.loads(output.out)["sets"]
    page = Page((folder / "page.html").read_text())
    assert page.table("Scores in percent").rows[0][1:] == [
        f"{100 * sets[f'micro_{name}']:.2f}" for name in ("precision", "recall", "f1")
    ]
    assert "Predicted sets: predictions.jsonl against gold.jsonl" in page.seen
    assert "Example 1, id 1" in page.seen  # matched by id: line 2 of the predictions
    assert "extra: plum" in page.seen


def test_a_page_may_go_to_standard_output(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["evaluate", "predictions.jsonl", "gold.jsonl", "--html", "-", "--labels", "labels.txt"]) == 0
    page = Page(capsysbinary.readouterr().out.decode())
    assert page.table("with format errors").rows[1][1] == "plum (1)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "-", "--json"], "--html - and --json both write to standard output."),
        (["--html", "page.jsonl"], "--html must be a .html file (optionally .gz) or -, got 'page.jsonl'."),
        (["--html", "gold.jsonl"], "the output would replace the input gold.jsonl"),
        (["--html", "none/page.html"], "cannot write none/page.html: No such file or directory."),
        (["--html", "page.html", "--text-field", "body"], 'field "body" is missing'),
    ],
)
def test_no_page_is_left_after_a_mistake(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["evaluate", "predictions.jsonl", "gold.jsonl", *arguments]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
