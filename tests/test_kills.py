"""Commands that are killed leave whole files or none, and can be called again."""

from pathlib import Path

import pytest

from setaug.models import predict_files
from tests import prediction_kills
from tests.kills import COMMANDS, try_commands


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name.startswith("augment") or name in ("inspect", "split")]
)
def test_what_a_killed_command_leaves_is_whole(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(try_commands([name], 3, 5000, "no model is needed"))


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(predict_files, "WINDOW", 16)
    prediction_kills.lay_out(tmp_path, request.param)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("texts", [300], indirect=True)
@pytest.mark.parametrize("options", [[], ["--shards", "8"]])
def test_a_prediction_that_is_killed_again_and_again_loses_nothing(
    texts: Path, options: list[str], generator_folder: Path
) -> None:
    prediction_kills.kill_command(texts, str(generator_folder), 3, *options)


@pytest.mark.minutes
@pytest.mark.parametrize("texts", [3000], indirect=True)
def test_killed_actors_lose_nothing(texts: Path, generator_folder: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'setaug[ray]'")
    prediction_kills.kill_actors(texts, str(generator_folder), 1)


@pytest.mark.slow
@pytest.mark.parametrize("texts", [400], indirect=True)
def test_a_killed_server_loses_nothing(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    prediction_kills.kill_server(texts, 400, 2)
