"""Predict the sets of whole files: rows are streamed, and an interrupted run resumes.

Rows are predicted in windows, so memory does not grow with their number. What is finished is kept in a hidden journal
next to the output (``.NAME.KEY.unfinished``), or, with shards, in their folder. The key is a hash of everything that
the bytes depend on: the same command resumes after the last finished window (or shard), and the output is the same.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import orjson

from setaug.engines.fast.blocks import check_numbers, plain_time
from setaug.engines.job import check_positive
from setaug.engines.partitions import Partition, plan_partitions
from setaug.engines.shards import Shards
from setaug.engines.sources import find_files
from setaug.engines.writers import RowFormat, Write, open_table
from setaug.errors import DataError, FileError
from setaug.examples import Columns, Example, Skipped, listed, read_rows, shown
from setaug.models.model_folder import CARD, MEMBER
from setaug.predictions import Prediction
from setaug.progress import counting_from
from setaug.settings import Progress
from setaug.storage import as_file_errors, check_outputs, is_address, kind_of, local_path, locked
from setaug.terminal import json_line

WINDOW = 1024
"""Rows that are read, sorted by length and predicted at a time."""
PARTITION_SIZE = 1 << 24
"""About how many bytes of input are read at a time for a shard."""
FIELDS = {
    "labels": "strings",
    "size": "number",
    "generation": "text",
    "repeated": "strings",
    "unknown": "strings",
    "malformed": "strings",
    "probabilities": "shares",
    "sizes": "shares",
}
"""The fields of a prediction, and their types in a Parquet file."""
_JOURNAL = ".unfinished"


class Predictor(Protocol):
    """A model that predicts sets."""

    def predict(self, data: Any, **changes: Any) -> list[Prediction]:
        """Predict the set of each text."""
        ...


@dataclass(kw_only=True)
class PredictReport:
    """What was read and predicted."""

    n_sets: int = 0
    n_labels: int = 0
    """Predicted labels in all sets."""
    n_resumed: int = 0
    """Sets that an earlier, interrupted run had predicted."""
    skipped: Skipped = field(default_factory=Skipped)
    seconds: float = 0.0

    def add(self, notes: Mapping[str, Any]) -> None:
        """Add the notes of a finished part."""
        self.n_sets += notes["n_sets"]
        self.n_labels += notes["n_labels"]
        self.skipped.count += notes["n_bad"]
        self.skipped.first = [*self.skipped.first, *notes["bad"]][:5]


@dataclass(frozen=True, kw_only=True)
class PredictJob:
    """What to predict, and how to write it; it can be sent to other processes."""

    target: str
    columns: Columns
    carry: tuple[str, ...]
    skip_bad: bool
    changes: Mapping[str, Any]

    @cached_property
    def row_format(self) -> RowFormat:
        """The columns of the output."""
        return RowFormat(
            names=("id", *self.carry, *FIELDS),
            carry=("id", *self.carry),
            types=FIELDS,
            cells={"labels": self._cell},
        )

    def _cell(self, labels: list[str]) -> str:
        delimiter = self.columns.delimiter
        for label in labels:
            if label != label.strip():
                raise FileError(
                    f"the label {shown(label)} would lose its white space in a cell; write .jsonl or .parquet."
                )
            if delimiter in label:
                raise FileError(
                    f"the label {shown(label)} does not fit into a cell with the delimiter {delimiter!r};"
                    " write .jsonl or .parquet, or choose another delimiter."
                )
        return delimiter.join(labels)

    def read(self, partition: Partition, skipped: Skipped | None) -> Iterator[tuple[Example, dict[str, Any]]]:
        """Yield the examples of a partition, each with its carried fields; they may be missing in a row."""
        file, is_part = partition.file, partition.end is not None
        row_groups = range(partition.start, partition.end or 0) if is_part and file.kind == "parquet" else None
        with partition.open() as stream:
            bad = None if skipped is None else _Moved(skipped, partition)
            rows = read_rows(
                stream, file.name, file.kind, self.columns, bad, self._make, carry=self.carry, row_groups=row_groups
            )
            try:
                yield from rows
            except DataError as error:
                raise _moved(error, partition) from None

    def _make(self, row: Mapping[str, Any]) -> tuple[Example, dict[str, Any]]:
        example = self.columns.example(row)
        carried = {name: row[name] for name in self.carry if name in row}
        for name, value in carried.items():
            check_numbers(value, name)
        return example, carried

    def lines(self, window: Sequence[tuple[Example, dict[str, Any]]], predictions: Sequence[Prediction]) -> bytes:
        """Return predictions as JSON lines."""
        return b"".join(
            self._line(carried, prediction) for (_, carried), prediction in zip(window, predictions, strict=True)
        )

    def _line(self, carried: Mapping[str, Any], prediction: Prediction) -> bytes:
        row = prediction.to_dict()
        key = {"id": row.pop("id")} if "id" in row else {}
        fields = {name: carried.get(name) for name in self.carry}
        try:
            plain = orjson.loads(orjson.dumps(fields, plain_time)) if _has_times(fields) else fields
            return json_line({**key, **plain, **row})
        except TypeError as error:
            raise DataError(f"a field that is carried cannot be written as JSON ({error}).") from None


class _Moved(Skipped):
    """Bad rows of a partition, counted elsewhere with their lines in the whole file."""

    def __init__(self, total: Skipped, partition: Partition) -> None:
        super().__init__()
        self._total, self._partition = total, partition

    def add(self, error: DataError, n_rows: int = 1) -> None:
        """Count one bad row, or several that were read as one."""
        self._total.add(_moved(error, self._partition) if len(self._total.first) < 5 else error, n_rows)


def _moved(error: DataError, partition: Partition) -> DataError:
    """Return an error with its line in the whole file."""
    line = None if error.line is None else error.line + partition.lines_before()
    return error.located(source=error.source, line=line)


def _has_times(fields: Mapping[str, Any]) -> bool:
    return not all(value is None or isinstance(value, str | int | float) for value in fields.values())


def predict_files(
    model: Predictor,
    sources: str | Path | Iterable[str | Path],
    target: str | Path,
    *,
    columns: Columns | None = None,
    kind: str | None = None,
    carry: Sequence[str] | None = None,
    skip_bad: bool = False,
    shards: int | None = None,
    state: str | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> PredictReport:
    """Predict the set of each text of one or more files, and write the predictions.

    Parameters
    ----------
    model
        Any fitted model.
    sources
        Files, folders of files, or URLs of either; ``-`` is standard input. See `augment_files`.
    target
        The file to write: JSON lines, CSV, TSV or Parquet, by its suffix. It is written atomically.
    columns
        The names of the text and label columns; by default those that the model was fitted with.
    carry
        Fields of a row to copy. By default the text, in a CSV, TSV or Parquet file.
    shards
        The number of files to write instead of one; see `augment_files`.
    state
        A hash of the model (`folder_state`). With it, an interrupted run resumes.
    changes
        Arguments of the model's ``predict``.

    """
    check_positive("shards", shards)
    job, partitions, key = plan(
        sources,
        target,
        model=model,
        columns=columns,
        kind=kind,
        carry=carry,
        skip_bad=skip_bad,
        shards=shards,
        state=state,
        changes=changes,
    )
    start = perf_counter()
    if shards is not None:
        place = Shards(job.target, shards, key)

        def run(missing: Mapping[int, Sequence[Partition]]) -> Iterator[Mapping[str, Any]]:
            return (predict_shard(model, job, place, k, parts, progress) for k, parts in missing.items())

        report = write_shards(job, partitions, place, run, None)
    else:
        report = _write_file(model, job, partitions, key if state is not None else None, progress)
    report.seconds = perf_counter() - start
    return report


def plan(
    sources: str | Path | Iterable[str | Path],
    target: str | Path,
    *,
    model: Any,
    columns: Columns | None,
    choose: str | None = None,
    kind: str | None,
    carry: Sequence[str] | None,
    skip_bad: bool,
    shards: int | None,
    state: str | None,
    changes: Mapping[str, Any],
) -> tuple[PredictJob, list[Partition], str]:
    """Check what is asked for; return the job, the parts of its input, and the key of the run."""
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    check_outputs([target], named)
    columns = columns or getattr(model, "columns_", None) or Columns()
    needs_labels = changes.get("choose", _choice_of(model) or choose) == "oracle-k"
    if carry is None:
        carry = [columns.text] if kind_of(target) != "jsonl" else []
    carried = tuple(name for name in dict.fromkeys(carry) if name != "id")
    for name in carried:
        if name in FIELDS:
            raise ValueError(f'the field "{name}" cannot be carried: predictions have a field with this name.')
    job = PredictJob(
        target=local_path(target),
        columns=replace(columns, are_labelled=needs_labels),
        carry=carried,
        skip_bad=skip_bad,
        changes=dict(changes),
    )
    files = find_files(named, kind)
    if any(file.path == "-" for file in files):
        if shards is not None:
            raise FileError("standard input cannot be divided into shards; write it to a file first.")
        return job, [Partition(file) for file in files], ""
    partitions, states = plan_partitions(files, PARTITION_SIZE, at_least=shards or 1)
    if shards is None:
        partitions = [Partition(file) for file in files]
    known = repr((version("setaug"), state or os.urandom(8), job, partitions, states, shards, WINDOW))
    return job, partitions, sha256(known.encode()).hexdigest()[:16]


def _choice_of(model: Any) -> str | None:
    """Return how a model chooses sets where a call does not say so."""
    found: str | None = getattr(getattr(model, "decoding", model), "choose", None)
    return found


def folder_state(folder: str | Path) -> str:
    """Return a state of a model folder that changes with the model."""
    paths = [*Path(folder).iterdir(), *Path(folder).glob(f"{MEMBER}*/*")]
    files = sorted(path for path in paths if path.is_file() and path.name[0] != ".")
    stats = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return sha256(repr((stats, (Path(folder) / CARD).read_bytes())).encode()).hexdigest()


def _windows(
    job: PredictJob, partitions: Sequence[Partition], skipped: Skipped | None
) -> Iterator[list[tuple[Example, dict[str, Any]]]]:
    rows = chain.from_iterable(job.read(partition, skipped) for partition in partitions)
    while window := list(islice(rows, WINDOW)):
        yield window


def _check_carried(job: PredictJob, window: Sequence[tuple[Example, dict[str, Any]]]) -> None:
    """Raise if no row of the first window has a field that is to be carried."""
    for name in job.carry:
        if window and not any(name in carried for _, carried in window):
            example = window[0][0]
            there = listed([job.columns.text, *example.fields])
            raise DataError(
                f"none of the first {len(window)} rows has the field {shown(name)}, which is to be carried; "
                f"the first has {there}."
            )


def _write_file(
    model: Predictor, job: PredictJob, partitions: Sequence[Partition], key: str | None, progress: Progress | None
) -> PredictReport:
    report = PredictReport()
    skipped = report.skipped if job.skip_bad else None
    with _output(job, key) as (done, write):
        for notes in done:
            report.add(notes)
        n_done = len(done)
        report.n_resumed = report.n_sets
        for number, window in enumerate(_windows(job, partitions, skipped)):
            if number == 0:
                _check_carried(job, window)
            if number < n_done:
                continue
            found = _predict(model, job, window, report.n_sets, progress)
            n_labels = sum(len(prediction.labels) for prediction in found)
            notes = {"n_sets": len(window), "n_labels": n_labels, "n_bad": 0, "bad": []}
            write(job.lines(window, found), notes)
            report.add(notes)
    return report


def _predict(
    model: Predictor,
    job: PredictJob,
    window: Sequence[tuple[Example, dict[str, Any]]],
    n_done: int,
    progress: Progress | None,
) -> list[Prediction]:
    progress = None if progress is None else counting_from(n_done, progress)
    changes = dict(job.changes)
    top = changes.pop("top", None)
    found = model.predict([example for example, _ in window], progress=progress, **changes)
    return found if top is None else [one.keep_top(top) for one in found]


Run = Callable[[Mapping[int, Sequence[Partition]]], Iterator[Mapping[str, Any]]]
"""Predicts the parts of each shard, and yields the notes of each in this order."""


def write_shards(
    job: PredictJob, partitions: Sequence[Partition], shards: Shards, run: Run, progress: Progress | None
) -> PredictReport:
    """Predict the shards that are still missing, and publish all."""
    n_shards, report = shards.n_shards, PredictReport()
    shards.check()
    for window in islice(_windows(job, partitions, Skipped()), 1):
        _check_carried(job, window)
    cuts = [len(partitions) * k // n_shards for k in range(n_shards + 1)]
    with shards.locked():
        shards.begin()
        finished = shards.notes()
        for noted in finished.values():
            report.add(noted)
        report.n_resumed = report.n_sets
        missing = [k for k in range(n_shards) if k not in finished]
        for notes in run({k: partitions[cuts[k] : cuts[k + 1]] for k in missing}):
            report.add(notes)
            if progress is not None:
                progress("predicting", report.n_sets, None)
        shards.publish()
    return report


def predict_shard(
    model: Predictor,
    job: PredictJob,
    shards: Shards,
    number: int,
    partitions: Sequence[Partition],
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Predict and write one shard; return and keep its notes."""
    report = PredictReport()
    with open_table(shards.path(number), job.row_format) as write:
        for window in _windows(job, partitions, report.skipped if job.skip_bad else None):
            found = _predict(model, job, window, report.n_sets, progress)
            write(memoryview(job.lines(window, found)))
            report.n_sets += len(found)
            report.n_labels += sum(len(prediction.labels) for prediction in found)
    skipped = report.skipped
    notes = {"n_sets": report.n_sets, "n_labels": report.n_labels, "n_bad": skipped.count, "bad": skipped.first}
    shards.note(number, notes)
    return notes


Done = list[dict[str, Any]]
"""The notes of the windows that an earlier run finished."""


@contextmanager
def _output(job: PredictJob, key: str | None) -> Iterator[tuple[Done, Callable[[bytes, Mapping[str, Any]], None]]]:
    """Yield the notes of the windows that are finished, and a function that writes one more with its notes."""
    place = Path(os.path.realpath(job.target))
    if key is None or job.target == "-" or is_address(job.target) or (place.exists() and not place.is_file()):
        with open_table(job.target, job.row_format) as write:
            yield [], lambda lines, notes: write(memoryview(lines))
        return
    journal = place.with_name(f".{place.name}.{key}{_JOURNAL}")
    with locked(place.with_name(f"{place.name}{_JOURNAL}"), job.target):
        for left in place.parent.glob(f".{place.name}.*{_JOURNAL}"):
            if left != journal and left.is_file():
                left.unlink()
        with _Journal(journal) as kept:
            yield kept.done, kept.add
            with open_table(job.target, job.row_format) as write:
                kept.copy(write)
        journal.unlink(missing_ok=True)


class _Journal:
    """The lines of finished windows, each window followed by a line of notes; what follows the last is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.done: Done = []

    def __enter__(self) -> "_Journal":
        with as_file_errors("write", self._path):
            self._stream = self._path.open("a+b")
            self._stream.seek(0)
            end = 0
            for line in self._stream:
                if line.startswith(b"#") and line.endswith(b"\n"):
                    end = self._stream.tell()
                    self.done.append(orjson.loads(line[1:]))
            self._stream.truncate(end)
        return self

    def add(self, lines: bytes, notes: Mapping[str, Any]) -> None:
        """Add a window, and sync it to the disk."""
        with as_file_errors("write", self._path):
            self._stream.write(lines + b"#" + orjson.dumps(notes) + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())
        self.done.append(dict(notes))

    def copy(self, write: Write) -> None:
        """Write all lines again."""
        self._stream.seek(0)
        for lines in iter(lambda: list(islice(self._stream, WINDOW)), []):
            write(memoryview(b"".join(line for line in lines if not line.startswith(b"#"))))

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        if not self.done:  # nothing to resume from
            with suppress(OSError):
                self._path.unlink()
