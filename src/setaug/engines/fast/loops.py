"""The loops over bytes: compiled, or in pure Python for small inputs."""

from importlib import import_module
from typing import Any


def load_scan(is_plain: bool) -> Any:
    """Import the loops that scan JSON lines and write pairs; both versions return the same results."""
    return import_module("setaug.engines.fast.plain_scan" if is_plain else "setaug.engines.fast.json_scan")
