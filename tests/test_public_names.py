"""What is public is what ``__all__`` lists, sorted, and can be imported without torch."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

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


@pytest.mark.parametrize("module", ["setaug", "setaug.models"])
def test_type_checkers_see_the_names_that_are_imported_late(module: str) -> None:
    package = import_module(module)
    tree = ast.parse(Path(str(package.__file__)).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert sorted(alias.asname or "" for node in imports for alias in node.names) == sorted(package._HOMES)
    for node in imports:
        for alias in node.names:
            assert getattr(import_module(str(node.module)), alias.name) is getattr(package, str(alias.asname))
    assert set(package._HOMES) <= set(dir(package))


def test_the_top_of_the_package_stays_short() -> None:
    assert len(setaug.__all__) <= 25


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'setaug' has no attribute 'nothing'"):
        _ = setaug.nothing


@pytest.mark.parametrize(
    "names",
    [
        "import setaug",
        "from setaug import SetAugmenter, SetCodec, diagnose, inspect_examples, write_examples, write_predictions",
        "from setaug.datasets import load_dataset",
        "from setaug.reporting.inspection import inspection_page",
    ],
)
def test_importing_needs_neither_torch_nor_datasets(names: str) -> None:
    heavy = {"torch", "transformers", "datasets", "pyarrow", "pandas", "networkx", "sklearn"}
    code = f"import sys\n{names}\nsys.exit(str({heavy} & set(sys.modules)) if {heavy} & set(sys.modules) else 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
