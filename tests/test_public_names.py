"""What is public is what ``__all__`` lists, sorted, and can be imported without torch."""

import subprocess
import sys
from importlib import import_module

import pytest

import setaug


@pytest.mark.parametrize(
    "module",
    ["setaug", "setaug.orders", "setaug.engines", "setaug.metrics", "setaug.datasets", "setaug.models", "setaug.web"],
)
def test_all_public_names_are_there(module: str) -> None:
    public = import_module(module)
    assert len(set(public.__all__)) == len(public.__all__)
    for name in public.__all__:
        assert getattr(public, name).__doc__


def test_names_are_sorted_and_each_has_a_home() -> None:
    assert sorted(setaug.__all__) == setaug.__all__
    assert setaug._HOMES.keys() == set(setaug.__all__)
    assert set(setaug.__all__) <= set(dir(setaug))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'setaug' has no attribute 'nothing'"):
        _ = setaug.nothing


@pytest.mark.parametrize(
    "names",
    [
        "import setaug",
        "from setaug import SetAugmenter, SetCodec, diagnose, inspect_file",
        "from setaug.datasets import load_dataset",
        "from setaug.reporting.inspection import inspection_page",
    ],
)
def test_importing_needs_neither_torch_nor_datasets(names: str) -> None:
    heavy = {"torch", "transformers", "datasets", "pyarrow", "pandas", "networkx", "sklearn"}
    code = f"import sys\n{names}\nsys.exit(str({heavy} & set(sys.modules)) if {heavy} & set(sys.modules) else 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
