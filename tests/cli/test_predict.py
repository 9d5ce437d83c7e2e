"""``setaug predict``: what it writes, and what it refuses in one line."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.models import SetClassifier, SetGenerator
from setaug.predictions import Prediction, read_predictions
from setaug.settings import DECODINGS, WAYS, DecodingMethod
from tests.cli.refusals import assert_refused
from tests.conftest import DEV, write_examples


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("setaug.progress.PATIENCE", 600)  # how long models take to load is another matter
    write_examples(tmp_path / "dev.jsonl", DEV)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": one.text}) + "\n" for one in DEV))
    return tmp_path


def predicted(text: str) -> list[Prediction]:
    return [Prediction.from_dict(json.loads(line)) for line in text.splitlines()]


def test_texts_need_no_labels_and_the_output_is_the_models(
    folder: Path, generator_folder: Path, generator: SetGenerator, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(generator_folder), "texts.jsonl"]) == 0
    output = capfd.readouterr()
    assert predicted(output.out) == generator.predict([one.text for one in DEV])
    assert output.err.startswith("12 sets with ")
    assert output.err.count("\n") == 1
    assert main(["predict", str(generator_folder), "dev.jsonl", "-o", "out.jsonl.gz", "-q"]) == 0
    assert capfd.readouterr() == ("", "")
    assert list(read_predictions("out.jsonl.gz")) == generator.predict(DEV)


def test_standard_input_is_read(
    folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "We won!", "id": 7}\n')))
    assert main(["predict", str(generator_folder), "-", "-q"]) == 0
    (found,) = predicted(capfd.readouterr().out)
    assert found.id == 7
    assert found.size == len(found.labels)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [("--size-is 2", 2, 2), ("--min-size 4", 4, None), ("--max-size 1", 0, 1), ("--min-size 2 --max-size 3", 2, 3)],
)
def test_a_size_that_is_asked_for_is_kept_by_every_way_of_choosing(
    way: str,
    asked: str,
    least: int,
    most: int | None,
    folder: Path,
    generator_folder: Path,
    generator: SetGenerator,
) -> None:
    extreme = {"threshold": ["--threshold", "0"], "top-k": ["--k", "1"]}.get(way, [])
    options = ["--samples", "4", "--choose", way, *extreme, *asked.split(), "-q", "-o", "out.jsonl"]
    assert main(["predict", str(generator_folder), "texts.jsonl", *options]) == 0
    found = list(read_predictions("out.jsonl"))
    assert len(found) == len(DEV)
    if most is None:
        most = 9 if way == "top-k" else max(generator.largest_, least)
    assert all(least <= len(one.labels) <= most for one in found), [len(one.labels) for one in found]


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ("--size-is 2", {"size_is": 2}),
        ("--min-size 2 --max-size 3", {"min_size": 2, "max_size": 3}),
        ("--decoding beam --beams 3", {"name": "beam", "n_beams": 3}),
        (
            "--decoding top-k --top-k 5 --temperature 2 --seed 3",
            {"name": "top-k", "top_k": 5, "temperature": 2.0, "seed": 3},
        ),
        ("--decoding nucleus --top-p 0.5 --batch-size 4", {"name": "nucleus", "top_p": 0.5, "batch_size": 4}),
        ("--no-constrain", {"constrained": False}),
        ("--samples 4 --choose threshold --threshold 0.25", {"samples": 4, "choose": "threshold", "threshold": 0.25}),
        ("--samples 4 --choose size", {"samples": 4, "choose": "size"}),
    ],
)
def test_options_are_those_of_the_decoding(
    options: str,
    changes: dict[str, object],
    folder: Path,
    generator_folder: Path,
    generator: SetGenerator,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["predict", str(generator_folder), "dev.jsonl", "-q", *options.split()]) == 0
    assert predicted(capfd.readouterr().out) == generator.predict(DEV, **changes)


def test_samples_are_calibrated_and_can_be_scored(
    folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--samples", "9", "--calibrate", "dev.jsonl", "-o", "out.jsonl"]
    assert main(["predict", str(generator_folder), "dev.jsonl", *options]) == 0
    calibrated = SetGenerator.from_pretrained(generator_folder).calibrate(DEV, samples=9)
    assert list(read_predictions("out.jsonl")) == calibrated.predict(DEV, samples=9)
    assert main(["evaluate", "out.jsonl", "dev.jsonl"]) == 0
    assert "12 examples" in capfd.readouterr().out


def test_a_classifier_chooses_by_the_same_names(
    folder: Path, classifier_folder: Path, classifier: SetClassifier, capfd: pytest.CaptureFixture[str]
) -> None:
    for options, changes in (
        ("", {}),
        ("--choose threshold --threshold 0.25", {"choose": "threshold", "threshold": 0.25}),
        ("--choose top-k --k 3", {"choose": "top-k", "k": 3}),
        ("--choose oracle-k", {"choose": "oracle-k"}),
        ("--size-is 2", {"size_is": 2}),
    ):
        assert main(["predict", str(classifier_folder), "dev.jsonl", "-q", *options.split()]) == 0
        assert predicted(capfd.readouterr().out) == classifier.predict(DEV, **changes)


def test_no_text_gives_no_prediction(
    folder: Path, generator_folder: Path, classifier_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.jsonl").write_text("")
    for model in (generator_folder, classifier_folder):
        assert main(["predict", str(model), "empty.jsonl", "-o", "out.jsonl"]) == 0
        assert Path("out.jsonl").read_bytes() == b""
        assert capfd.readouterr().err == "no texts\n"


def test_bad_lines_can_be_left_out(folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "some.jsonl").write_text('{"text": 1}\n{"text": "We won!"}\n')
    assert main(["predict", str(generator_folder), "some.jsonl", "--skip-bad"]) == 0
    output = capfd.readouterr()
    assert len(predicted(output.out)) == 1
    assert "skipped 1 bad line:" in output.err


MISTAKES = [
    ("missing dev.jsonl", "there is no model folder missing."),
    (". dev.jsonl", "the folder . is not a setaug model: setaug.json is missing."),
    ("{generator} missing.jsonl", "cannot read missing.jsonl"),
    ("{generator} bad.jsonl", 'line 1 of bad.jsonl: field "text" is missing'),
    ("{generator} dev.jsonl --size-is 99", "too few for a set of 99"),
    ("{generator} dev.jsonl -o sets.txt", "sets.txt: cannot infer the file format from the name"),
    ("{generator} dev.jsonl --carry typo", 'rows has the field "typo", which is to be carried; the first has "text"'),
    ("{generator} dev.jsonl --carry labels", 'the field "labels" cannot be carried'),
    ("{generator} dev.jsonl --shards 0", "shards must be a positive integer, got 0"),
    ("{generator} dev.jsonl --workers 2", "--workers and --gpus are for --engine ray"),
    ("{generator} dev.jsonl --engine ray", "--engine ray writes shards; add --shards 16"),
    ("{generator} dev.jsonl --size-is -1", "size_is must be an integer of at least 0, got -1."),
    ("{generator} dev.jsonl --min-size 3 --max-size 2", "max_size 2 is below min_size 3."),
    ("{generator} dev.jsonl --no-constrain --size-is 2", "size_is, min_size and max_size require the constraint."),
    ("{generator} dev.jsonl --temperature 0", "temperature must be from 0.001 to 1000, got 0.0."),
    ("{generator} dev.jsonl --samples -1", "samples must be"),
    ("{generator} dev.jsonl --top-p 2", "top_p must be above 0 and at most 1, got 2.0."),
    ("{generator} dev.jsonl --seed 99999999999999999999", "seed must be an integer"),
    ("{generator} dev.jsonl --batch-size 0", "batch_size must be"),
    ("{generator} dev.jsonl --k 3", "k is for choose='top-k', and choose is 'written'."),
    ("{generator} dev.jsonl --threshold 0.3", "threshold is for choose='threshold', and choose is 'written'."),
    ("{generator} dev.jsonl --calibrate dev.jsonl", "--calibrate needs samples; add --samples 16, for example."),
    ("{generator} dev.jsonl --samples 2 --calibrate empty.jsonl", "the calibration data is empty."),
    ("{generator} dev.jsonl --samples 2 --calibrate texts.jsonl", 'field "labels" is missing'),
    ("{classifier} dev.jsonl --size-is 99", "labels are known, too few for a set of 99."),
    ("{classifier} dev.jsonl --choose written", "choose must be one of best, expected-f1,"),
    ("{classifier} dev.jsonl --threshold 0.3", "threshold is for choose='threshold', and choose is 'best'."),
    (
        "{search} dev.jsonl --choose written --size-is 3",
        "size_is needs label probabilities; give choose='expected-f1', say.",
    ),
    ("{classifier} dev.jsonl --batch-size 0", "batch_size must be an integer of at least 1, got 0."),
    ("{classifier} dev.jsonl --decoding beam", "a model that scores labels takes no decoding name."),
    ("{classifier} dev.jsonl --samples 3", "a model that scores labels takes no samples."),
    ("{classifier} dev.jsonl --samples 3 --calibrate dev.jsonl", "only generative models can be calibrated"),
    ("{classifier} texts.jsonl --choose oracle-k", 'field "labels" is missing'),
    ("{search} dev.jsonl --samples 3", "set search takes no samples."),
    ("{search} dev.jsonl --decoding greedy", "set search takes no decoding name."),
    ("{search} dev.jsonl --samples 3 --calibrate dev.jsonl", "only generative models can be calibrated"),
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
    (folder / "empty.jsonl").write_text("")
    (folder / "bad.jsonl").write_text('{"body": "a"}\n')
    folders = {"generator": generator_folder, "classifier": classifier_folder, "search": search_folder}
    assert_refused("predict", arguments.format(**folders).split(), message, folder, capfd)


def test_a_decoding_is_added_by_one_entry(
    folder: Path, generator_folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    toy = DecodingMethod(help="a toy", fixed={"do_sample": False}, reads={"top_k": "num_beams"})
    monkeypatch.setitem(DECODINGS, "toy", toy)
    assert main(["predict", str(generator_folder), "texts.jsonl", "--decoding", "toy", "--top-k", "3", "-q"]) == 0
    by_toy = capfd.readouterr().out
    assert main(["predict", str(generator_folder), "texts.jsonl", "--decoding", "beam", "--beams", "3", "-q"]) == 0
    assert by_toy == capfd.readouterr().out
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    assert "toy: a toy" in " ".join(capfd.readouterr().out.split())


def test_the_suffix_decides_what_is_written_and_fields_are_carried(folder: Path, generator_folder: Path) -> None:
    assert main(["predict", str(generator_folder), "dev.jsonl", "-o", "out.csv", "-q"]) == 0
    header, first, *_ = (folder / "out.csv").read_text().splitlines()
    assert header.startswith("id,text,labels,size,")
    assert first.startswith(f"{DEV[0].id},{DEV[0].text},")
    assert main(["predict", str(generator_folder), "dev.jsonl", "-o", "out.jsonl", "-q", "--carry", "text"]) == 0
    assert json.loads((folder / "out.jsonl").read_text().splitlines()[0])["text"] == DEV[0].text


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "parquet"])
def test_predictions_are_read_in_every_format_that_is_written(
    suffix: str, folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scores = []
    for name in ("out.jsonl", f"out.{suffix}"):
        assert main(["predict", str(generator_folder), "dev.jsonl", "-o", name, "-q"]) == 0
        capfd.readouterr()
        assert main(["evaluate", name, "dev.jsonl", "--json"]) == 0
        scores.append(capfd.readouterr().out)
    assert scores[0] == scores[1]
    written, read = (list(read_predictions(name)) for name in ("out.jsonl", f"out.{suffix}"))
    assert [replace(one, id=str(one.id)) for one in read] == [replace(one, id=str(one.id)) for one in written]


def test_field_names_are_given_once(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{one.text.replace(',', '')},{'|'.join(one.labels)}\n" for one in DEV)
    (folder / "train.csv").write_text("body,tags\n" + rows)
    fields = "--text-field body --labels-field tags --delimiter |"
    assert main(f"train train.csv --model tiny --epochs 1 -o run {fields}".split()) == 0
    assert main(["predict", "run", "train.csv", "-o", "out.csv", "-q"]) == 0
    assert (folder / "out.csv").read_text().startswith("id,body,labels,")
    assert main(["score", "run", "train.csv", "-o", "scores.jsonl", "-q", "--max-exact", "0", "--samples", "1"]) == 0
    assert main(["predict", "run", "train.csv", "-o", "out.jsonl", "-q"]) == 0
    capfd.readouterr()
    assert main(["evaluate", "out.jsonl", "train.csv", "--model", "run", "--json"]) == 0
    remembered = capfd.readouterr().out
    assert main(f"evaluate out.jsonl train.csv {fields} --json".split()) == 0
    assert capfd.readouterr().out == remembered
    assert main(["predict", "run", "dev.jsonl", "-o", "other.jsonl"]) == 2
    assert 'field "body" is missing; the row has' in capfd.readouterr().err
    assert main(["predict", "run", "dev.jsonl", "-o", "other.jsonl", "--text-field", "text", "-q"]) == 0
    assert main(["evaluate", "out.jsonl", "train.csv", "--model", "nowhere"]) == 2
    assert "there is no model folder nowhere" in capfd.readouterr().err


def test_the_most_probable_labels_are_kept(
    folder: Path, generator_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(generator_folder), "dev.jsonl", "-q", "--choose", "expected-f1", "--top", "3"]) == 0
    found = predicted(capfd.readouterr().out)
    for one in found:
        assert set(one.labels) <= set(one.probabilities or ())
        assert 3 <= len(one.probabilities or ()) <= max(3, len(one.labels))
    assert main(["predict", str(generator_folder), "dev.jsonl", "-q", "--top", "0"]) == 2
    assert main(["predict", str(generator_folder), "dev.jsonl", "-q", "--top", "3"]) == 2
    assert "top requires probabilities" in capfd.readouterr().err
