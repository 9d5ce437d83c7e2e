"""Errors that a caller may want to catch.

SetAugError
├── DataError          a row of the input is invalid
├── FileError          a file cannot be read or written
├── ModelError         a model cannot be loaded, trained or used
├── SizeError          a set has to be larger than the number of known labels; also a ``ValueError``
├── EngineError        a cluster cannot be reached, or did not finish
├── EndpointError      a language model server cannot be reached, or refuses to answer
└── MissingExtraError  an optional dependency is not installed

Bad arguments raise ``ValueError`` or ``TypeError``.
"""

from functools import partial
from typing import Any


class SetAugError(Exception):
    """Base class of all errors of this package."""


class DataError(SetAugError):
    """A row of the input is invalid.

    Parameters
    ----------
    problem
        What is wrong, with the offending value.
    source, line
        File name and line (or row) number, if known.
    missing
        If a row lacks the text or the labels: ``text`` or ``labels``. They may have another name.

    """

    def __init__(
        self, problem: str, *, source: str | None = None, line: int | None = None, missing: str | None = None
    ) -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.missing = missing
        where = "" if line is None else f"line {line}"
        if source is not None:
            where = f"{where} of {source}" if where else source
        super().__init__(f"{where}: {problem}" if where else problem)

    def located(self, *, source: str | None = None, line: int | None = None) -> "DataError":
        """Return the same error at another place."""
        return DataError(self.problem, source=source, line=line, missing=self.missing)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return partial(type(self), source=self.source, line=self.line, missing=self.missing), (self.problem,)


class FileError(SetAugError):
    """A file cannot be read or written."""


class ModelError(SetAugError):
    """A model cannot be loaded, trained or used."""


class SizeError(SetAugError, ValueError):
    """A set has to be larger than the number of known labels."""


class EngineError(SetAugError):
    """A cluster cannot be reached, or did not finish."""


class EndpointError(SetAugError):
    """A language model server cannot be reached, or refuses to answer."""


class MissingExtraError(SetAugError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature, self.extra = feature, extra
        super().__init__(f"{feature} needs an optional dependency: pip install 'setaug[{extra}]'")

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.feature, self.extra)
