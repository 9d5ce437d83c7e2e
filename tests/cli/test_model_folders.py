"""A folder without a model is refused before anything heavy is imported, and its settings are read once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from setaug.cli import main
from setaug.models import load_model
from setaug.models import model_folder as module

CODE = """
import sys
from setaug.cli import main
status = main(sys.argv[1:])
sys.stderr.write(str(sorted({"torch", "transformers", "fastapi", "numba"} & set(sys.modules))))
sys.exit(status)
"""


@pytest.mark.parametrize("command", ["predict", "score", "serve"])
@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("missing", "there is no model folder missing."),
        ("empty", "the folder empty is not a setaug model: setaug.json is missing."),
        ("broken", "broken/setaug.json is not a valid setaug file: it has no kind of model."),
    ],
)
def test_a_folder_without_a_model_is_refused_before_torch_is_imported(
    command: str, folder: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "setaug.json").write_text("{}")
    (tmp_path / "dev.jsonl").write_text(json.dumps({"text": "a", "labels": ["b"]}) + "\n")
    data = ["--data", "dev.jsonl"] if command == "serve" else ["dev.jsonl"]
    run = subprocess.run(
        [sys.executable, "-c", CODE, command, folder, *data],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stderr) == (2, f"setaug {command}: {problem}\n[]")


def test_predictions_that_are_not_there_are_refused_before_the_metrics_are_imported(tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_text(json.dumps({"text": "a", "labels": ["b"]}) + "\n")
    code = CODE.replace('"torch"', '"sklearn", "torch"')
    command = [sys.executable, "-c", code, "evaluate", "missing/", "dev.jsonl"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    problem = "cannot read missing/: No such file or directory."
    assert (run.returncode, run.stderr) == (2, f"setaug evaluate: {problem}\n[]")


@pytest.mark.parametrize("names", ["", "load_model, make_model, METHODS, TrainingSettings"])
def test_importing_the_models_imports_no_torch(names: str) -> None:
    code = f"import sys, setaug.models\n{f'from setaug.models import {names}' if names else ''}\n"
    code += "found = {'torch', 'transformers'} & set(sys.modules)\nsys.exit(str(found) if found else 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_loading_a_model_does_not_import_the_trainer(generator_folder: Path) -> None:
    code = "import sys, setaug.models\nsetaug.models.load_model(sys.argv[1]).predict(['a'])\n"
    code += "sys.exit('transformers.trainer' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, str(generator_folder)], check=False, timeout=120)
    assert run.returncode == 0


@pytest.mark.parametrize("kind", ["generator", "classifier"])
def test_the_settings_of_a_model_are_read_once(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder: Path = request.getfixturevalue(f"{kind}_folder")
    read = []
    plain = module._read_json
    monkeypatch.setattr(module, "_read_json", lambda path: (read.append(path.name), plain(path))[1])
    load_model(folder)
    assert read == ["setaug.json"]
    read.clear()
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    assert main(["predict", str(folder), str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert read == ["setaug.json"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import setaug.models

    with pytest.raises(AttributeError, match=r"module 'setaug\.models' has no attribute 'nothing'"):
        _ = setaug.models.nothing
    assert set(setaug.models.__all__) <= set(dir(setaug.models))
