"""The errors that a caller may want to catch.

SetAugError
├── DataError          a row of the input is not what it should be
├── FileError          a file cannot be read or written as asked
├── ModelError         a model cannot be loaded, trained or used as asked
├── EngineError        a cluster cannot be reached, or did not finish
├── EndpointError      a server that runs a language model cannot be reached, or refuses to answer
└── MissingExtraError  an optional dependency is not installed

Bad arguments raise ``ValueError`` or ``TypeError``.
"""

from functools import partial
from typing import Any


class SetAugError(Exception):
    """Base of all errors that this package raises on purpose."""


class DataError(SetAugError):
    """Report a row of the input that is not what it should be.

    Parameters
    ----------
    problem
        What is wrong, with the offending value.
    source, line
        Where: the file's name and the line (or row) number, where they are known.

    """

    def __init__(self, problem: str, *, source: str | None = None, line: int | None = None) -> None:
        self.problem = problem
        self.source = source
        self.line = line
        where = "" if line is None else f"line {line}"
        if source is not None:
            where = f"{where} of {source}" if where else source
        super().__init__(f"{where}: {problem}" if where else problem)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return partial(type(self), source=self.source, line=self.line), (self.problem,)


class FileError(SetAugError):
    """Report a file that cannot be read or written as asked."""


class ModelError(SetAugError):
    """Report a model that cannot be loaded, trained or used as asked."""


class EngineError(SetAugError):
    """Report a cluster that cannot be reached, or that did not finish."""


class EndpointError(SetAugError):
    """Report a server that runs a language model and cannot be reached, or refuses to answer."""


class MissingExtraError(SetAugError, ImportError):
    """Report an optional dependency that is not installed, and how to install it."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature, self.extra = feature, extra
        super().__init__(f"{feature} needs an optional dependency: pip install 'setaug[{extra}]'")

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.feature, self.extra)
