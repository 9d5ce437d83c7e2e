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
for arguments in sys.argv[1:]:
    status = main(arguments.split())
    sys.stderr.write(f"{status} {sorted({'torch', 'transformers', 'fastapi', 'numba'} & set(sys.modules))}\\n")
"""
PROBLEMS = {
    "missing": "there is no model folder missing.",
    "empty": "the folder empty is not a setaug model: setaug.json is missing.",
    "broken": "broken/setaug.json is not a valid setaug file: it has no kind of model.",
}


def said(folder: Path, code: str, *calls: str) -> list[str]:
    """Run commands, one after the other; return what each says, with its exit code and what is imported then."""
    (folder / "dev.jsonl").write_text(json.dumps({"text": "a", "labels": ["b"]}) + "\n")
    program = [sys.executable, "-c", code, *calls]
    run = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=600, check=True)
    return run.stderr.splitlines()


def test_a_folder_without_a_model_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "setaug.json").write_text("{}")
    calls = {"predict": "dev.jsonl", "score": "dev.jsonl", "serve": "--data dev.jsonl"}
    found = said(tmp_path, CODE, *(f"{name} {folder} {calls[name]}" for name in calls for folder in PROBLEMS))
    wanted = [f"setaug {name}: {problem}" for name in calls for problem in PROBLEMS.values()]
    assert found[::2] == wanted
    assert found[1::2] == ["2 []"] * len(wanted)


def test_predictions_that_are_not_there_are_refused_before_the_metrics_are_imported(tmp_path: Path) -> None:
    found = said(tmp_path, CODE.replace("'torch'", "'sklearn', 'torch'"), "evaluate missing/ dev.jsonl")
    assert found == ["setaug evaluate: cannot read missing/: No such file or directory.", "2 []"]


@pytest.mark.parametrize("names", ["", "load_model, make_model, METHODS, TrainingSettings"])
def test_importing_the_models_imports_no_torch(names: str) -> None:
    code = f"import sys, setaug.models\n{f'from setaug.models import {names}' if names else ''}\n"
    code += "found = {'torch', 'transformers'} & set(sys.modules)\nsys.exit(str(found) if found else 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_loading_a_model_does_not_import_the_trainer(generator_folder: Path) -> None:
    code = "import sys, setaug.models\nsetaug.models.load_model(sys.argv[1]).predict(['a'])\n"
    code += "sys.exit('transformers.trainer' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, str(generator_folder)], check=False, timeout=600)
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
