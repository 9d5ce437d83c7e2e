"""Predict for many requests at once: what waits is put together, and what is too much is turned away."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from setaug.predictions import Prediction
from setaug.web.limits import Limits, Refusal


@dataclass
class _Job:
    texts: Sequence[str]
    options: Mapping[str, Any]
    result: "asyncio.Future[list[Prediction]]" = field(repr=False)


class Predictor:
    """Let a model predict, one batch at a time.

    Requests that ask for the same (greedy sets, say) share a batch; texts that have to wait are counted, and once there
    are too many, requests are refused until the model has caught up.

    Parameters
    ----------
    model
        Anything with ``predict(texts, **options)``.

    """

    def __init__(self, model: Any, limits: Limits) -> None:
        self.model, self._limits = model, limits
        self._jobs: list[_Job] = []
        self._has_jobs = asyncio.Event()
        self._n_waiting = 0

    async def predict(self, texts: Sequence[str], options: Mapping[str, Any]) -> list[Prediction]:
        """Wait for the sets of these texts."""
        if self._n_waiting + len(texts) > self._limits.waiting_texts:
            raise Refusal(503, "too many texts wait for the model; try again soon.", retry_after=1)
        job = _Job(texts, options, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._n_waiting += len(texts)
        self._has_jobs.set()
        try:
            async with asyncio.timeout(self._limits.predict_seconds):
                return await job.result
        except TimeoutError:
            raise Refusal(504, f"the model took more than {self._limits.predict_seconds:g} s.") from None
        finally:
            if job in self._jobs:  # nobody waits for it any more
                self._jobs.remove(job)
                self._n_waiting -= len(texts)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._has_jobs.wait()
            batch = self._next_batch()
            if not batch:
                self._has_jobs.clear()
                continue
            texts = [text for job in batch for text in job.texts]
            try:
                found = await asyncio.to_thread(self.model.predict, texts, **batch[0].options)
            except (ValueError, TypeError) as error:
                _fail(batch, Refusal(422, str(error)))
            except Exception as error:
                _fail(batch, Refusal(500, f"the model failed: {type(error).__name__}."))
            else:
                rest = iter(found)
                for job in batch:
                    part = [next(rest) for _ in job.texts]
                    if not job.result.done():
                        job.result.set_result(part)

    def _next_batch(self) -> list[_Job]:
        """Take the job that has waited longest, and others that ask for the same, as many as fit."""
        batch: list[_Job] = []
        n_texts = 0
        for job in list(self._jobs):
            fits = not batch or n_texts + len(job.texts) <= self._limits.batch_size
            if fits and (not batch or job.options == batch[0].options):
                batch.append(job)
                n_texts += len(job.texts)
                self._jobs.remove(job)
        self._n_waiting -= n_texts
        return batch


def _fail(batch: Sequence[_Job], refusal: Refusal) -> None:
    for job in batch:
        if not job.result.done():
            job.result.set_exception(refusal)
