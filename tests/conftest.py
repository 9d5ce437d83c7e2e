"""Small models that several tests look at, each trained once per run; torch is imported only for who asks for one."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from setaug import Example
from setaug.sample import sample_examples
from tests.power_loss import do_not_sync

if TYPE_CHECKING:
    from setaug.models import SetClassifier, SetGenerator, SetSearch

with suppress(ModuleNotFoundError):  # it is not in the environment of vLLM
    from hypothesis import HealthCheck, settings

    # Before any test module reads them. A run must be repeatable; on a busy machine, or where a loop is compiled first,
    # an example may take seconds.
    settings.register_profile(
        "setaug", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("setaug")

EXAMPLES = list(sample_examples(48))
DEV = list(sample_examples(12, seed=1))


@pytest.fixture(scope="session", autouse=True)
def patient() -> Iterator[None]:
    """Keep commands quiet while models load, which takes longer on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setaug.progress.PATIENCE", 600)
        patch.setattr("setaug.progress.LINE_EVERY", 600)
        yield


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Do not wait for the disk, tens of thousands of times; the tests of storage do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", do_not_sync)
        yield


MakeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory) -> MakeOnce:
    """Return a function that fills a folder once per run, in whichever test process asks first; the others wait."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    shared.mkdir(exist_ok=True)

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def generator_folder(make_once: MakeOnce) -> Path:
    from setaug.models import SetGenerator, TrainingSettings
    from setaug.settings import Decoding

    model = SetGenerator("tiny", training=TrainingSettings(epochs=8, seed=1), decoding=Decoding(choose="written"))
    return make_once("generator", lambda folder: model.fit(EXAMPLES, dev=DEV, folder=folder))


@pytest.fixture(scope="session")
def causal_folder(make_once: MakeOnce) -> Path:
    from setaug.models import SetGenerator, TrainingSettings
    from setaug.settings import Decoding

    model = SetGenerator(
        "mini-causal", training=TrainingSettings(epochs=2, seed=1), decoding=Decoding(choose="written")
    )
    return make_once("causal", lambda folder: model.fit(EXAMPLES, dev=DEV, folder=folder))


@pytest.fixture(scope="session")
def classifier_folder(make_once: MakeOnce) -> Path:
    from setaug.models import SetClassifier, TrainingSettings

    model = SetClassifier("tiny", training=TrainingSettings(epochs=3, seed=1))
    return make_once("classifier", lambda folder: model.fit(EXAMPLES, dev=DEV, folder=folder))


@pytest.fixture(scope="session")
def search_folder(make_once: MakeOnce) -> Path:
    from setaug.models import TrainingSettings, make_model

    model = make_model("set-search", "tiny", training=TrainingSettings(epochs=1))
    return make_once("search", lambda folder: model.fit(EXAMPLES, folder=folder))


@pytest.fixture(scope="session")
def generator(generator_folder: Path) -> "SetGenerator":
    from setaug.models import SetGenerator

    return SetGenerator.from_pretrained(generator_folder)


@pytest.fixture(scope="session")
def causal(causal_folder: Path) -> "SetGenerator":
    from setaug.models import SetGenerator

    return SetGenerator.from_pretrained(causal_folder)


@pytest.fixture(params=["generator", "causal"])
def writer(request: pytest.FixtureRequest) -> "SetGenerator":
    """Each kind of model that writes sets."""
    model: SetGenerator = request.getfixturevalue(request.param)
    return model


@pytest.fixture(scope="session")
def classifier(classifier_folder: Path) -> "SetClassifier":
    from setaug.models import SetClassifier

    return SetClassifier.from_pretrained(classifier_folder)


@pytest.fixture(scope="session")
def search(search_folder: Path) -> "SetSearch":
    from setaug.models import SetSearch

    return SetSearch.from_pretrained(search_folder)


def write_examples(path: Path, examples: list[Example]) -> Path:
    rows = ({"id": one.id, "text": one.text, "labels": one.labels} for one in examples)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
