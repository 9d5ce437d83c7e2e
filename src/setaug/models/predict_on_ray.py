"""Predict files on Ray: each actor loads the model once, and predicts one shard after the other.

The shards are those of `predict_files`, and so are their bytes: what is drawn for a text depends on the seed and the
text alone. An actor that dies is started again, and its shard is predicted again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from setaug.engines.job import check_positive
from setaug.engines.partitions import Partition
from setaug.engines.ray_engine import absolute, last_line, running_ray
from setaug.engines.shards import Shards
from setaug.errors import EngineError, SetAugError
from setaug.examples import Columns
from setaug.models.model_folder import read_card, saved_columns
from setaug.models.predict_files import PredictJob, PredictReport, folder_state, plan, predict_shard, write_shards
from setaug.settings import Progress

_RETRIES = 5
"""Restarts of an actor that died, and retries of its shard."""


@dataclass(frozen=True, kw_only=True)
class Actors:
    """The number of actors, and their resources.

    Parameters
    ----------
    workers
        Number of actors, each with a model of its own.
    gpus
        GPUs of an actor; a fraction shares one among several.

    """

    workers: int = 1
    gpus: float = 0.0

    def __post_init__(self) -> None:
        check_positive("workers", self.workers)
        if not 0 <= self.gpus < float("inf"):
            raise ValueError(f"gpus must be at least 0, got {self.gpus!r}.")


def predict_on_ray(
    folder: str | Path,
    sources: str | Path | Iterable[str | Path],
    target: str | Path,
    *,
    shards: int,
    actors: Actors | None = None,
    columns: Columns | None = None,
    kind: str | None = None,
    carry: Sequence[str] | None = None,
    skip_bad: bool = False,
    learnt: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> PredictReport:
    """Predict like `predict_files`, with a model folder that all machines can read.

    Parameters
    ----------
    learnt
        Attributes to set on each loaded model, such as ``calibration_``.

    """
    check_positive("shards", shards)
    card, actors = read_card(folder), actors or Actors()
    settings = card.get("settings", {})
    job, partitions, key = plan(
        sources,
        target,
        model=None,
        choose=settings.get("decoding", settings).get("choose"),
        columns=columns or saved_columns(card),
        kind=kind,
        carry=carry,
        skip_bad=skip_bad,
        shards=shards,
        state=folder_state(folder) + repr(sorted((learnt or {}).items())),
        changes=changes,
    )
    job = replace(job, target=absolute(job.target))
    partitions = [replace(part, file=replace(part.file, path=absolute(part.file.path))) for part in partitions]
    place = Shards(job.target, shards, key)
    start = perf_counter()

    def run(missing: Mapping[int, Sequence[Partition]]) -> Iterator[Mapping[str, Any]]:
        if missing:
            with running_ray(actors.workers):
                yield from _run(absolute(str(folder)), learnt or {}, job, place, missing, actors)

    report = write_shards(job, partitions, place, run, progress)
    report.seconds = perf_counter() - start
    return report


def _run(
    folder: str,
    learnt: Mapping[str, Any],
    job: PredictJob,
    shards: Shards,
    missing: Mapping[int, Sequence[Partition]],
    actors: Actors,
) -> Iterator[Mapping[str, Any]]:
    import ray
    from ray.exceptions import RayError
    from ray.util import ActorPool

    needs: Any = {"num_cpus": 1, "num_gpus": actors.gpus, "max_restarts": _RETRIES, "max_task_retries": _RETRIES}
    make: Any = ray.remote(**needs)
    start = make(_Actor).remote
    n_actors = min(actors.workers, len(missing))
    try:
        pool = ActorPool([start(folder, learnt, job, shards) for _ in range(n_actors)])
        for result in pool.map(lambda actor, item: actor.predict.remote(*item), list(missing.items())):
            if isinstance(result, Exception):
                raise result
            yield result
    except RayError as error:
        raise EngineError(f"Ray could not finish: {last_line(error)}") from error


class _Actor:
    """A model in its own process; it is loaded with the first shard, so that an error can be returned."""

    def __init__(self, folder: str, learnt: Mapping[str, Any], job: PredictJob, shards: Shards) -> None:
        self._folder, self._learnt, self._job, self._shards = folder, learnt, job, shards
        self._model: Any = None

    def predict(self, number: int, partitions: Sequence[Partition]) -> Mapping[str, Any] | Exception:
        """Predict a shard; return its notes, or an error meant for the caller, because Ray would wrap it."""
        try:
            if self._model is None:
                from setaug.models import load_model

                self._model = load_model(self._folder)
                for name, value in self._learnt.items():
                    setattr(self._model, name, value)
            return predict_shard(self._model, self._job, self._shards, number, partitions)
        except (SetAugError, OSError, TypeError, ValueError) as error:
            return error
