"""Split files into train, dev and test data; rows with the same text go to the same part."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from xxhash import xxh3_64_intdigest

from setaug.engines.sources import SourceFile, find_files
from setaug.errors import DataError, FileError
from setaug.examples import Columns, Skipped, read_rows
from setaug.storage import as_file_errors, check_outputs, open_again, open_output
from setaug.terminal import json_line

PARTS = ("train", "dev", "test")


@dataclass(kw_only=True)
class SplitReport:
    """What was written."""

    n_rows: dict[str, int] = field(default_factory=dict)
    """The number of rows in each part."""
    n_repeated: int = 0
    """Rows whose text occurred before."""
    n_unseen: int = 0
    """The number of dev and test labels that are not in the training data."""
    skipped: Skipped = field(default_factory=Skipped)


def split_files(
    sources: str | Path | Iterable[str | Path],
    folder: str | Path,
    *,
    dev: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    columns: Columns | None = None,
    kind: str | None = None,
    skip_bad: bool = False,
) -> SplitReport:
    """Write ``train.jsonl``, ``dev.jsonl`` and ``test.jsonl`` into a folder, with all fields of the rows.

    A text's part depends on the seed and the text alone, apart from the exact sizes: rows keep their order, and those
    with the same text stay together. Memory grows by a few bytes per row. Existing files are never overwritten; those
    that a killed split of the same rows has left are completed.

    Parameters
    ----------
    dev, test
        The share of the rows (below 1), or their number; 0 for no such file.

    """
    columns = columns or Columns()
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    for name, value in (("dev", dev), ("test", test)):
        if value < 0 or (value >= 1 and value != int(value)):
            raise ValueError(f"{name} must be a fraction below 1 or a number of rows, got {value!r}.")
    report = SplitReport()
    with _reading(find_files(named, kind)) as files:
        keys = [_key(row[columns.text], seed) for row in _rows(files, columns, report.skipped if skip_bad else None)]
        if not keys:
            raise DataError("no examples to split.")
        wanted = {name: _number(value, len(keys)) for name, value in (("test", test), ("dev", dev))}
        parts = _assign(Counter(keys), wanted)
        names = [name for name in PARTS if name == "train" or wanted[name]]
        targets = {name: Path(folder) / f"{name}.jsonl" for name in names}
        _check(targets, parts, keys, named)
        report.n_repeated = len(keys) - len(set(keys))
        report.n_rows = dict.fromkeys(names, 0)
        labels: dict[str, set[str]] = {name: set() for name in names}
        with ExitStack() as stack:
            streams = {name: stack.enter_context(_open(path)) for name, path in targets.items()}
            # Bad rows were counted before; if the file has changed, the number of valid rows differs.
            rows = _rows(files, columns, Skipped())
            for key, row in zip(keys, rows, strict=True):
                part = parts.get(key, "train")
                streams[part].write(_line(row))
                report.n_rows[part] += 1
                labels[part].update(row[columns.labels])
    report.n_unseen = len(set().union(*labels.values()) - labels["train"])
    return report


def _number(value: float, n_rows: int) -> int:
    return int(value) if value >= 1 else round(value * n_rows)


def _key(text: str, seed: int) -> int:
    return xxh3_64_intdigest(text.encode(errors="surrogatepass"), seed=seed % (1 << 64))


def _assign(counts: Mapping[int, int], wanted: Mapping[str, int]) -> dict[int, str]:
    """Return the part of each key outside the training data: the smallest keys that fit, which are random."""
    found: dict[int, str] = {}
    left = dict(wanted)
    for key in sorted(counts):
        part = next((name for name, n in left.items() if counts[key] <= n), None)
        if part is not None:
            found[key] = part
            left[part] -= counts[key]
        if not any(left.values()):
            break
    return found


def _check(
    targets: Mapping[str, Path], parts: Mapping[int, str], keys: Sequence[int], sources: Sequence[str | Path]
) -> None:
    check_outputs(targets.values(), sources)
    if targets["train"].exists():  # the last to be published: a split that was killed has left dev and test data
        raise _exists(targets["train"])
    n_left = sum(key not in parts for key in keys)
    if not n_left:
        raise ValueError(f"no examples are left for training, of {len(keys)}; use less dev and test data.")
    next(iter(targets.values())).parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Yield what takes the lines of a part; if its file is there already, they have to be the same."""
    if not path.exists():
        with open_output(path) as output:
            yield output
        return
    with as_file_errors("read", path):
        stream = path.open("rb")
    with stream:
        yield _Same(path, stream)
        if stream.read(1):
            raise _exists(path)


@dataclass(frozen=True)
class _Same:
    """Raise unless what is written is what a file contains."""

    path: Path
    stream: BinaryIO

    def write(self, line: bytes) -> None:
        """Compare a line."""
        if self.stream.read(len(line)) != line:
            raise _exists(self.path)


def _exists(path: Path) -> FileError:
    return FileError(f"{path} already exists; choose another folder.")


@contextmanager
def _reading(files: Sequence[SourceFile]) -> Iterator[list[tuple[SourceFile, Any]]]:
    with ExitStack() as stack:
        yield [(file, stack.enter_context(open_again(file.path))) for file in files]


def _rows(
    files: Sequence[tuple[SourceFile, Any]], columns: Columns, skipped: Skipped | None
) -> Iterator[Mapping[str, Any]]:
    def make(row: Mapping[str, Any]) -> Mapping[str, Any]:
        example = columns.example(row)
        try:
            _line(row)
        except (TypeError, ValueError) as error:
            raise DataError(f"a field cannot be written as JSON ({error}).") from None
        return {**row, columns.labels: list(example.labels)}

    for file, opener in files:
        stream: BinaryIO
        with opener() as stream:
            yield from read_rows(stream, file.name, file.kind, columns, skipped, make)


def _line(row: Mapping[str, Any]) -> bytes:
    return json_line(dict(row))
