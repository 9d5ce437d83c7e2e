"""The registry of written forms: one entry and one class are all that a new form needs."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from setaug import Example, SetAugmenter, SetCodec
from setaug.cli import main
from setaug.forms.form import DecodedSet, WrittenForm, collect
from setaug.models import load_model
from setaug.models.neural.constraint import SetConstraint
from setaug.prompting.prompt import write_instruction
from setaug.registry import DEFAULT_FORM, FORMS, FormEntry
from tests.conftest import EXAMPLES, write_examples
from tests.tiny import make_tokenizer

QUICK = ["--epochs", "1", "--batch-size", "16", "--learning-rate", "0.01"]


@dataclass(frozen=True, kw_only=True)
class Marked(WrittenForm):
    """A toy: ``2: -joy; -love``."""

    @property
    def first(self) -> str:
        return " -" if self.with_size else "-"

    @property
    def before(self) -> str:
        return " -"

    @property
    def after(self) -> str:
        return ";"

    @property
    def last(self) -> str:
        return "."

    @property
    def empty(self) -> str:
        return " none" if self.with_size else "none"

    @property
    def description(self) -> str:
        return "a dash and a label each"

    def size_text(self, size: int) -> str:
        return f"{size}:" if self.with_size else ""

    def escape(self, label: str) -> str:
        return re.sub(r"[;.\\]", lambda found: f"\\x{ord(found.group()):02x}", label)

    def decode(self, text: str) -> DecodedSet:
        size = re.match(r"\s*([0-9]{1,9}):", text) if self.with_size else None
        raws = re.findall(r"-([^;.]*)[;.]", text)
        labels = [re.sub(r"\\x(..)", lambda found: chr(int(found[1], 16)), raw) for raw in raws]
        return collect([(raw, label, True) for raw, label in zip(raws, labels, strict=True)], size and int(size[1]))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMS, "toy", FormEntry("2: -joy; -love.", Marked))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path / "train.jsonl", EXAMPLES)
    return tmp_path


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("is_small", [True, False])
def test_a_new_form_works_from_the_command_line(
    folder: Path, is_small: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not is_small:
        monkeypatch.setattr("setaug.engines.local.SMALL_INPUT", -1)
    sets = [["fig", "a;b", "1984"], [], ["two\nlines", 'say "é"']]
    write_examples(folder / "sets.jsonl", [Example("t", labels) for labels in sets])
    assert main(["augment", "sets.jsonl", "--written-as", "toy", "--orders", "0", "-q"]) == 0
    written = [json.loads(line)["completion"] for line in capsys.readouterr().out.splitlines()]
    assert written == ["3: -fig; -a\\x3bb; -1984.", "0: none", '2: -two\nlines; -say "é".']
    assert main(["augment", "sets.jsonl", "--written-as", "toy", "--orders", "0", "--no-size", "-q"]) == 0
    written = [json.loads(line)["completion"] for line in capsys.readouterr().out.splitlines()]
    assert written == ["-fig; -a\\x3bb; -1984.", "none", '-two\nlines; -say "é".']


@pytest.mark.parametrize("form", ["toy", "json"])
@pytest.mark.parametrize("size", ["--size", "--no-size"])
@pytest.mark.usefixtures("toy")
def test_a_model_is_trained_to_write_a_form_and_remembers_it(
    folder: Path, form: str, size: str, capfd: pytest.CaptureFixture[str]
) -> None:
    written_as = ["--written-as", form, size]
    assert main(["train", "train.jsonl", "-o", "model", "--model", "tiny", *written_as, *QUICK]) == 0
    model = load_model("model")
    assert model.augmenter_.written_as == form
    capfd.readouterr()
    assert main(["predict", "model", "train.jsonl", "--choose", "written", "-q"]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert len(rows) == len(EXAMPLES)
    known = {label for example in EXAMPLES for label in example.labels}
    for row in rows:
        read = model.augmenter_.codec.decode(row["generation"])
        assert (list(read.labels), read.repeated, read.malformed) == (row["labels"], (), ())
        assert read.size == (len(read.labels) if size == "--size" else None)
        assert known.issuperset(read.labels)
    assert main(["score", "model", "train.jsonl", "--samples", "2", "-q"]) == 0


def test_an_open_vocabulary_of_json_is_trained_and_predicted(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--written-as", "json", "--vocabulary", "open", *QUICK]
    assert main(["train", "train.jsonl", "--model", "tiny", "-o", "model", *options]) == 0
    capfd.readouterr()
    assert main(["predict", "model", "train.jsonl", "--max-size", "3", "-q"]) == 0
    for row in map(json.loads, capfd.readouterr().out.splitlines()):
        read = json.loads(row["generation"])
        assert read == {"size": len(row["labels"]), "labels": row["labels"]}


@pytest.mark.usefixtures("toy")
def test_a_new_form_is_in_the_help_and_in_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("augment", "train", "prompt"):
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert "toy: 2: -joy; -love." in shown
        assert f"[{DEFAULT_FORM}]" in shown
    assert write_instruction(SetCodec(written_as="toy"), ["joy", "love"]) == (
        "Label the text: write a dash and a label each. Write nothing else.\nPossible labels: -joy; -love."
    )


@pytest.mark.usefixtures("toy")
def test_the_constraint_writes_a_new_form_in_an_open_vocabulary() -> None:
    tokenizer = make_tokenizer("bytes")
    for size in (True, False):
        codec = SetCodec(written_as="toy", with_size=size)
        constraint = SetConstraint(tokenizer, codec=codec, sizes=range(4))
        for labels in (["event", "match"], ["x"], []):
            tokens = tokenizer(codec.encode(labels), add_special_tokens=False)["input_ids"]
            found = constraint.read([*tokens, tokenizer.eos_token_id])
            assert found == (tuple(labels), len(labels) if size else None)
        repeated = tokenizer(codec.encode(["x", "x"]), add_special_tokens=False)["input_ids"]
        assert constraint.read([*repeated, tokenizer.eos_token_id]) is None


def test_a_form_is_made_without_heavy_imports() -> None:
    code = (
        "import sys\n"
        "from setaug.codec import SetCodec\n"
        "SetCodec(written_as='json').encode(['a'])\n"
        "sys.exit(str({'numpy', 'numba', 'torch'} & set(sys.modules) or ''))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stderr.strip() == ""


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("size", [True, False])
def test_files_are_written_as_json_by_both_loops_as_by_the_codec(
    folder: Path, is_small: bool, size: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not is_small:
        monkeypatch.setattr("setaug.engines.local.SMALL_INPUT", -1)
    sets = [["a|b", 'say "é"', "back\\slash"], [], ["1984"], [" padded ", "two\nlines", "日本", "\x7f", "a/b"]] * 3
    examples = [Example(f'text {at} "', labels) for at, labels in enumerate(sets)]
    write_examples(folder / "sets.jsonl", examples)
    option = "--size" if size else "--no-size"
    assert main(["augment", "sets.jsonl", "--written-as", "json", option, "-q"]) == 0
    written = [json.loads(line)["completion"] for line in capsys.readouterr().out.splitlines()]
    augmenter = SetAugmenter(written_as="json", with_size=size).fit(examples)
    assert written == [pair.completion for pair in augmenter.augment(examples)]
    for at, text in enumerate(written):
        read = json.loads(text)
        labels = read["labels"] if size else read
        assert sorted(labels) == sorted(sets[at // 3])
        assert not size or read["size"] == len(labels)
