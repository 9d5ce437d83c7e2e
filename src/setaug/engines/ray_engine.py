"""Count and augment files on Ray, on one machine or many: the same pairs as `LocalEngine`, in several files.

The input is divided into partitions. Each step runs one Ray task per partition: count the labels, count the label
pairs whose edge the counts do not decide, write the pairs. What the tasks of a step share is put into Ray's object
store once; the tasks of a machine read it there without a copy. A task whose worker dies is retried on another.

Tasks read their partition with the code of the local engine, so bytes, messages and orders are the same. An example's
index is its position in its partition plus the number of examples in the partitions before it.
"""

import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from itertools import accumulate, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64

from setaug.engines.fast.blocks import Block
from setaug.engines.fast.label_table import LabelTable
from setaug.engines.fast.pair_writer import PairWriter
from setaug.engines.job import AugmentReport, Job, check_positive
from setaug.engines.partitions import Partition, plan_partitions
from setaug.engines.shards import Shards
from setaug.engines.threads import read_ahead
from setaug.engines.writers import open_rows
from setaug.errors import DataError, EngineError, MissingExtraError, SetAugError
from setaug.examples import Skipped
from setaug.orders.arrays import Ints, SetBatch
from setaug.orders.pair_counts import PairCounts, SpillingPairCounts
from setaug.settings import Progress
from setaug.storage import is_address

PARTITION_SIZE = 1 << 26
_CPUS = 0.9
"""CPUs that a task requests: below one, so that a task never waits for a full CPU."""
_RETRIES = 5
"""Retries of a task whose worker died."""
_IN_FLIGHT = 1000
"""Tasks that are submitted ahead of the awaited result."""


@dataclass(frozen=True, kw_only=True)
class RayEngine:
    """Runs a job on Ray.

    It runs where Ray is initialized, or on the cluster that ``RAY_ADDRESS`` names, or else on this machine.

    Parameters
    ----------
    workers
        How many tasks to run at once on this machine; by default one per processor. A cluster decides itself.
    partition_size
        About how many bytes of input a task reads at most. Compressed files, CSV files and row groups are not divided.

    """

    workers: int | None = None
    partition_size: int = PARTITION_SIZE

    def __post_init__(self) -> None:
        check_positive("workers", self.workers)
        check_positive("partition_size", self.partition_size)

    @contextmanager
    def start(self, job: Job, progress: Progress | None) -> Iterator["RayRun"]:
        """Plan the partitions, and start Ray if it is not running."""
        partitions, states = plan_partitions(job.files, self.partition_size, at_least=job.shards or 1)
        # Workers may have another working folder.
        partitions = [replace(part, file=replace(part.file, path=absolute(part.file.path))) for part in partitions]
        settings = (job.augmenter, job.columns, job.pair_format, list(job.carry), job.skip_bad)
        n_shards = job.shards or len(partitions)
        known = repr((version("setaug"), settings, partitions, states, n_shards))  # all that a shard depends on
        shards = Shards(absolute(job.target), n_shards, sha256(known.encode()).hexdigest()[:16])
        shards.check()
        with running_ray(self.workers):
            yield RayRun(job, partitions, shards, progress)


def absolute(path: str) -> str:
    """Return a path that means the same in any working folder."""
    return path if is_address(path) or path == "-" else os.path.abspath(path)


@contextmanager
def running_ray(workers: int | None) -> Iterator[None]:
    """Use a running Ray, or connect to the cluster at ``RAY_ADDRESS``, or start a local one with `workers` CPUs."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("The engine ray", "ray") from None
    is_ours = not ray.is_initialized()
    if is_ours:
        is_here = os.environ.get("RAY_ADDRESS", "") in ("", "local")
        here: dict[str, Any] = {"address": "local", "num_cpus": workers, "include_dashboard": False} if is_here else {}
        try:
            with _keeping_handlers():
                ray.init(logging_level=logging.ERROR, log_to_driver=False, **here)
        except Exception as error:
            raise EngineError(f"Ray cannot be started or reached: {last_line(error)}") from error
    try:
        yield
    finally:
        if is_ours:
            ray.shutdown()


def last_line(error: Exception) -> str:
    """Return the last line of an error message."""
    return str(error).strip().rpartition("\n")[2]


@contextmanager
def _keeping_handlers() -> Iterator[None]:
    """Restore the SIGTERM handler, which Ray replaces."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


@dataclass(slots=True)
class _Counted:
    """The contents of a partition."""

    bad: "_BadRows"
    n_rows: int = 0
    n_lines: int = 0
    n_repeated: int = 0
    checksum: int | None = None
    labels: tuple[NDArray[np.uint8], Ints, Ints] | None = None
    error: DataError | None = None
    """The error that stopped reading, if any."""


class _BadRows(Skipped):
    """Bad rows, by line in the partition."""

    def __init__(self) -> None:
        super().__init__()
        self.located: list[DataError] = []

    def add(self, error: DataError, n_rows: int = 1) -> None:
        """Count one bad row, or several that were read as one."""
        super().add(error, n_rows)
        if len(self.located) < len(self.first):
            self.located.append(error)


@dataclass(slots=True)
class RayRun:
    """The steps of a job on Ray."""

    job: Job
    partitions: list[Partition]
    shards: Shards
    progress: Progress | None
    _n_rows: list[int] = field(default_factory=list)

    def count_labels(self, report: AugmentReport) -> LabelTable:
        """Count the labels of each partition, and merge the counts."""
        table = LabelTable()
        n_lines = 0  # in the partitions before that are of the same file
        for at, counted in enumerate(self._tasks(_count_labels, self.job)):
            partition = self.partitions[at]
            n_lines = n_lines if partition.start else 0
            if counted.error is not None:
                raise _moved(counted.error, n_lines)
            for error in counted.bad.located:
                report.skipped.add(_moved(error, n_lines))
            report.skipped.count += counted.bad.count - len(counted.bad.located)
            table.add_counts(*counted.labels)
            n_lines += counted.n_lines
            self.partitions[at] = replace(partition, checksum=counted.checksum)
            self._n_rows.append(counted.n_rows)
            report.n_examples += counted.n_rows
            report.n_repeated += counted.n_repeated
            self._tell("reading", report.n_examples, None)
        return table

    def count_pairs(self, table: LabelTable, bounds: Ints, cap: float, pairs: SpillingPairCounts) -> None:
        """Count the label pairs of each partition, and merge the counts."""
        done, total = 0, sum(self._n_rows)
        counts = self._tasks(_count_pairs, (self.job, table, bounds, cap))
        for n_rows, counted in zip(self._n_rows, counts, strict=True):
            pairs.add_counts(*counted)
            done += n_rows
            self._tell("counting", done, total)

    def write(self, table: LabelTable, pair_writer: PairWriter, report: AugmentReport) -> None:
        """Write the shards that are still missing."""
        with self.shards.locked():
            self._write(table, pair_writer, report)

    def _write(self, table: LabelTable, pair_writer: PairWriter, report: AugmentReport) -> None:
        n_shards = self.shards.n_shards
        cuts = [len(self.partitions) * k // n_shards for k in range(n_shards + 1)]
        first_rows = [0, *accumulate(self._n_rows)]
        self.shards.begin()
        notes = self.shards.notes()
        missing = [k for k in range(n_shards) if k not in notes]
        groups = {
            k: _Group(self.partitions[cuts[k] : cuts[k + 1]], first_rows[cuts[k]], first_rows[cuts[k + 1]])
            for k in missing
        }
        for noted in notes.values():
            report.add(noted)
        done = report.n_examples - sum(group.end - group.start for group in groups.values())
        written = self._tasks(_write_shard, (self.job, table, pair_writer, self.shards, groups), missing)
        for k, noted in zip(missing, written, strict=True):
            report.add(noted)
            done += groups[k].end - groups[k].start
            self._tell("writing", done, report.n_examples)
        self.shards.publish()

    def _tell(self, stage: str, done: int, total: int | None) -> None:
        if self.progress:
            self.progress(stage, done, total)

    def _tasks(
        self, function: Callable[..., Any], shared: object, numbers: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """Run a function for each partition, or for each number; yield the results in this order."""
        import ray
        from ray.exceptions import RayError

        items = iter(self.partitions if numbers is None else numbers)
        task = ray.remote(num_cpus=_CPUS, max_retries=_RETRIES, scheduling_strategy="SPREAD")(_result_or_error)
        try:
            common = ray.put(shared)
            pending = deque(task.remote(function, common, item) for item in islice(items, _IN_FLIGHT))
            while pending:
                result = ray.get(pending.popleft())
                pending.extend(task.remote(function, common, item) for item in islice(items, 1))
                if isinstance(result, Exception):
                    raise result
                yield result
        except RayError as error:
            raise EngineError(f"Ray could not finish: {last_line(error)}") from error


def _result_or_error(function: Callable[..., Any], shared: object, item: object) -> Any:
    """Run a function in a task; return errors meant for the caller, because Ray would wrap them."""
    try:
        return function(shared, item)
    except (SetAugError, OSError) as error:
        return error


def _moved(error: DataError, n_lines: int) -> DataError:
    """Return an error with its line in the file, given the number of lines before the partition."""
    return error.located(source=error.source, line=None if error.line is None else n_lines + error.line)


def _blocks(job: Job, partition: Partition, bad: _BadRows | None) -> Iterator[Block]:
    reader = partition.part_of(job.reader(partition.file, bad))
    with partition.open() as stream, read_ahead(reader.read(stream)) as blocks:
        yield from blocks


def _count_labels(job: Job, partition: Partition) -> _Counted:
    table, counted, checksum = LabelTable(), _Counted(_BadRows()), xxh3_64()
    try:
        for block in _blocks(job, partition, counted.bad if job.skip_bad else None):
            counted.n_repeated += table.number_sets(block)[1]
            counted.n_rows += len(block)
            counted.n_lines += block.n_lines
            checksum.update(block.bytes.data)
    except DataError as error:
        counted.error = error
    counted.checksum, counted.labels = checksum.intdigest(), table.spelt()
    return counted


def _sets(job: Job, partition: Partition, table: LabelTable) -> Iterator[tuple[Block, SetBatch]]:
    """Read a partition again; yield its blocks and its sets, with the labels' global numbers.

    Whether the partition is unchanged is only known at its end.
    """
    own, checksum = LabelTable(), xxh3_64()
    numbers = np.zeros(0, np.int32)
    for block in _blocks(job, partition, _BadRows()):
        checksum.update(block.bytes.data)
        batch, _ = own.number_sets(block)
        if not len(batch):
            continue
        found = table.find(own, len(numbers))
        if found is None:
            raise partition.file.changed()
        numbers = np.append(numbers, found)
        yield block, SetBatch(batch.starts, numbers[batch.ids])
    if checksum.intdigest() != partition.checksum:
        raise partition.file.changed()


def _count_pairs(shared: tuple[Job, LabelTable, Ints, float], partition: Partition) -> tuple[NDArray[np.uint64], Ints]:
    from setaug.orders.kernels import undecided_keys

    job, table, bounds, cap = shared
    pairs = PairCounts()
    for _, batch in _sets(job, partition, table):
        pairs.add(undecided_keys(batch.starts, batch.ids, bounds, cap))
    return pairs.sorted()


@dataclass(frozen=True, slots=True)
class _Group:
    """Consecutive partitions, and the range of their rows among all rows."""

    partitions: Sequence[Partition]
    start: int
    end: int


def _write_shard(
    shared: tuple[Job, LabelTable, PairWriter, Shards, dict[int, _Group]], number: int
) -> dict[str, int | float]:
    job, table, pair_writer, shards, groups = shared
    group, report = groups[number], AugmentReport()
    done = group.start
    with open_rows(shards.path(number), job.pair_format, job.carry) as write:
        for partition in group.partitions:
            for block, batch in _sets(job, partition, table):
                lines, orders = pair_writer.pairs(block, batch, done)
                write(lines)
                report.note(orders)
                done += len(batch)
    notes = report.notes()
    shards.note(number, notes)
    return notes
