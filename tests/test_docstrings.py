"""Docstrings begin as CONTRIBUTING asks: with what is returned, or with what the thing is."""

import ast
from pathlib import Path

import setaug


def test_no_docstring_begins_with_a_paraphrase() -> None:
    found = []
    for path in Path(setaug.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
            if isinstance(text, str) and text.split(maxsplit=1)[0] in ("Give", "Say", "Hold", "Tell"):
                found.append(f"{path.name}:{node.lineno}")
    assert not found
