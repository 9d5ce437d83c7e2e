"""Batched prediction: queued texts of different requests share batches, with fair scheduling between clients."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from setaug.errors import SetAugError
from setaug.predictions import Prediction
from setaug.web.limits import Budget, Limits, Refusal, too_busy

_LONG = 2000
"""Longer texts do not share a batch with shorter ones, which would have to be padded."""
_LONG_COST = 8
_log = logging.getLogger("setaug.web")


@dataclass(eq=False)
class _Job:
    """The texts of one request."""

    address: str
    texts: Sequence[str]
    options: Mapping[str, Any]
    result: "asyncio.Future[list[Prediction]]" = field(repr=False)
    found: list[Prediction] = field(default_factory=list)
    n_taken: int = 0
    """Number of texts assigned to batches so far."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """Jobs with the same key can share a batch."""
        return (*sorted(self.options.items()), max(map(len, self.texts)) > _LONG)

    @property
    def cost(self) -> int:
        """Sequences that the model generates per text; a long text counts as several."""
        n_each = getattr(self.options.get("ask"), "n", self.options.get("samples") or 1)
        return max(1, n_each) * (_LONG_COST if self.kind[-1] else 1)


@dataclass(frozen=True)
class _Part:
    """Some texts of a job."""

    job: _Job
    texts: Sequence[str]


class Predictor:
    """Run a model, one batch at a time.

    A job is cut where it exceeds a batch. It is the turn of the address that has had the least time of the model, so a
    large job delays others by one batch at most. A batch that fails is halved and tried again, until only the job at
    fault fails.

    Parameters
    ----------
    model
        Anything with ``predict(texts, **options)``.

    """

    def __init__(self, model: Any, limits: Limits) -> None:
        self.model, self._limits = model, limits
        self._waiting = Budget(limits.waiting_texts, limits.share(limits.waiting_texts))
        self._queues: dict[str, list[_Job]] = {}
        self._spent: dict[str, float] = {}
        """Model seconds used by each address; addresses without queued texts are forgotten once others catch up."""
        self._clock = 0.0
        """The model seconds of the address that was served last: idle addresses do not accumulate credit."""
        self._has_jobs = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._busy_since: float | None = None
        self.batches: Counter[int] = Counter()
        """The number of batches by size."""
        self.n_failures = 0

    @property
    def n_waiting(self) -> int:
        """The number of queued and running texts."""
        return self._waiting.taken

    def problem(self) -> str | None:
        """Return why the model cannot predict at the moment, or None."""
        if self._worker is None or self._worker.done():
            return "the predictor does not run."
        busy = 0.0 if self._busy_since is None else time.monotonic() - self._busy_since
        return (
            f"the model has been busy with one batch for {busy:.0f} s." if busy > self._limits.predict_seconds else None
        )

    async def predict(self, texts: Sequence[str], options: Mapping[str, Any], address: str = "") -> list[Prediction]:
        """Predict the sets of texts; if the caller is cancelled, they are removed from the queue."""
        try:
            self._waiting.take(address, len(texts))
        except Refusal:
            raise too_busy("too many texts are queued for the model; try again later.") from None
        job = _Job(address, texts, options, asyncio.get_running_loop().create_future())
        if address not in self._queues:
            self._queues[address] = []
            self._spent[address] = max(self._spent.get(address, 0.0), self._clock)
        self._queues[address].append(job)
        self._has_jobs.set()
        try:
            async with asyncio.timeout(self._limits.predict_seconds):
                return await job.result
        except TimeoutError:
            raise Refusal(504, f"the model took more than {self._limits.predict_seconds:g} s.") from None
        finally:
            self._waiting.give_back(address, len(texts))
            self._forget(job)

    def start(self) -> None:
        """Start the worker task."""
        self._worker = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop the worker task."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker

    async def _run(self) -> None:
        while True:
            try:
                await self._has_jobs.wait()
                if batch := self._next_batch():
                    await self._answer(batch)
                else:
                    self._has_jobs.clear()
            except Exception:
                self.n_failures += 1
                _log.exception("the predictor failed and continues")
                await asyncio.sleep(0.1)

    def _forget(self, job: _Job) -> None:
        jobs = self._queues.get(job.address, [])
        if job in jobs:
            jobs.remove(job)
            if not jobs:
                del self._queues[job.address]

    def _next_batch(self) -> list[_Part]:
        """Return a batch: texts of the next address, and of others with the same key, one each in turn."""
        if not self._queues:
            return []
        turns = sorted(self._queues, key=self._spent.__getitem__)
        self._clock = self._spent[turns[0]]
        self._spent = {one: spent for one, spent in self._spent.items() if one in self._queues or spent > self._clock}
        first = self._queues[turns[0]][0]
        room = max(1, self._limits.batch_size // first.cost)
        jobs = [[job for job in self._queues[address] if job.kind == first.kind] for address in turns]
        taken: Counter[_Job] = Counter()
        while room and (left := [queue for queue in jobs if queue]):
            for queue in left[:room]:
                taken[queue[0]] += 1
                if queue[0].n_taken + taken[queue[0]] == len(queue[0].texts):
                    queue.pop(0)
            room -= len(left[:room])
        return [self._cut(job, n) for job, n in taken.items()]

    def _cut(self, job: _Job, n: int) -> _Part:
        part = _Part(job, job.texts[job.n_taken : job.n_taken + n])
        job.n_taken += n
        if job.n_taken == len(job.texts):
            self._forget(job)
        return part

    async def _answer(self, batch: Sequence[_Part]) -> None:
        batch = [part for part in batch if not part.job.result.done()]  # whose clients still wait
        if not batch:
            return
        texts = [text for part in batch for text in part.texts]
        start = self._busy_since = time.monotonic()
        found, error = await asyncio.to_thread(_call, self.model, texts, batch[0].job.options)
        self._busy_since = None
        for part in batch:
            share = (time.monotonic() - start) * len(part.texts) / len(texts)
            self._spent[part.job.address] = self._spent.get(part.job.address, self._clock) + share
        self.batches[len(texts)] += 1
        if error is None:
            rest = iter(found)
            for part in batch:
                _extend(part.job, [next(rest) for _ in part.texts])
        elif len(batch) == 1:
            self._fail(batch[0].job, error)
        else:
            middle = len(batch) // 2
            await self._answer(batch[:middle])
            await self._answer(batch[middle:])

    def _fail(self, job: _Job, error: BaseException) -> None:
        self._forget(job)
        if isinstance(error, SetAugError):
            refusal = Refusal(400, str(error))
        else:
            self.n_failures += 1
            refusal = Refusal(500, f"the model failed: {type(error).__name__}.", id=token_hex(8))
            _log.error("the model failed", exc_info=error, extra={"id": refusal.id})
        if not job.result.done():
            job.result.set_exception(refusal)


def _call(model: Any, texts: list[str], options: Mapping[str, Any]) -> tuple[list[Prediction], BaseException | None]:
    """Return predictions, or the error; an extension module may raise a `BaseException`."""
    try:
        found = list(model.predict(texts, **options))
        if len(found) != len(texts):
            raise RuntimeError(f"{len(found)} predictions for {len(texts)} texts")
    except BaseException as error:
        return [], error
    return found, None


def _extend(job: _Job, found: list[Prediction]) -> None:
    job.found += found
    if len(job.found) == len(job.texts) and not job.result.done():
        job.result.set_result(job.found)
