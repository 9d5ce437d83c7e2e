"""Small models that several tests look at, each trained once; torch is imported only where one is asked for."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from setaug import Example
from setaug.sample import sample_examples

if TYPE_CHECKING:
    from setaug.models import SetClassifier, SetGenerator, SetSearch

EXAMPLES = list(sample_examples(48))
DEV = list(sample_examples(12, seed=1))


@pytest.fixture(scope="session")
def generator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from setaug.models import SetGenerator, TrainingSettings

    folder = tmp_path_factory.mktemp("models") / "generator"
    SetGenerator("tiny", training=TrainingSettings(epochs=2, seed=1)).fit(EXAMPLES, dev=DEV, folder=folder)
    return folder


@pytest.fixture(scope="session")
def causal_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from setaug.models import SetGenerator, TrainingSettings

    folder = tmp_path_factory.mktemp("models") / "causal"
    SetGenerator("mini-causal", training=TrainingSettings(epochs=2, seed=1)).fit(EXAMPLES, dev=DEV, folder=folder)
    return folder


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from setaug.models import SetClassifier, TrainingSettings

    folder = tmp_path_factory.mktemp("models") / "classifier"
    SetClassifier("tiny", training=TrainingSettings(epochs=3, seed=1)).fit(EXAMPLES, dev=DEV, folder=folder)
    return folder


@pytest.fixture(scope="session")
def search_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from setaug.models import TrainingSettings, make_model

    folder = tmp_path_factory.mktemp("models") / "search"
    make_model("set-search", "tiny", training=TrainingSettings(epochs=1)).fit(EXAMPLES, folder=folder)
    return folder


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
