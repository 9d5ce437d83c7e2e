"""Small inputs are augmented in plain Python: nothing waits for a compiler."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from setaug import SetAugmenter
from setaug.augmenter import PairFormat
from setaug.engines import LocalEngine, local
from setaug.engines.job import Job
from setaug.engines.sources import find_files
from setaug.examples import Columns
from setaug.sample import sample_examples

WITHOUT_NUMBA = """
import sys
from setaug.cli import main
code = main(sys.argv[1:])
assert "numba" not in sys.modules
sys.exit(code)
"""


def write_sample(path: Path, n: int = 50) -> bytes:
    rows = [{"text": example.text, "labels": list(example.labels)} for example in sample_examples(n)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return content


@pytest.mark.parametrize("ordering", ["topological", "reversed", "random", "frequency", "given"])
def test_a_small_file_is_augmented_without_numba(tmp_path: Path, ordering: str) -> None:
    write_sample(tmp_path / "in.jsonl")
    arguments = ["augment", "in.jsonl", "-o", "out.jsonl", "--ordering", ordering]
    subprocess.run([sys.executable, "-c", WITHOUT_NUMBA, *arguments], check=True, cwd=tmp_path)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 150


def test_small_standard_input_is_augmented_without_numba(tmp_path: Path) -> None:
    content = write_sample(tmp_path / "in.jsonl")
    command = [sys.executable, "-c", WITHOUT_NUMBA, "augment", "-"]
    found = subprocess.run(command, check=True, input=content, stdout=subprocess.PIPE)
    assert found.stdout.count(b"\n") == 150


@pytest.mark.parametrize(("name", "factor"), [("in.jsonl", 1), ("in.jsonl.gz", 10)])
def test_the_size_of_the_input_decides(tmp_path: Path, name: str, factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sample(tmp_path / name)
    size = (tmp_path / name).stat().st_size * factor
    job = Job(
        files=find_files([tmp_path / name, tmp_path / name]),
        target="-",
        augmenter=SetAugmenter(),
        columns=Columns(),
        pair_format=PairFormat(),
    )
    for limit, is_plain in ((2 * size, True), (2 * size - 1, False)):
        monkeypatch.setattr(local, "SMALL_INPUT", limit)
        with LocalEngine().start(job, None) as run:
            assert run.is_plain == is_plain
