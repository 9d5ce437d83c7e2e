"""The paper's SET SEARCH: learn to write one label at a time, and return all that a beam search finds."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from setaug.analysis.likelihood import SetLikelihood
from setaug.augmenter import SetAugmenter
from setaug.codec import repeats
from setaug.errors import ModelError
from setaug.examples import Data, Example, make_texts
from setaug.models import targets
from setaug.models.neural.generator import SetGenerator
from setaug.predictions import Prediction
from setaug.settings import Decoding, Progress, TrainingSettings


class SetSearch(SetGenerator):
    """Train on one pair per label; predict with a beam as wide as the largest training set.

    The parameters are those of `SetGenerator`; there are no orders, and no sizes. With ``constrained`` on, only known
    labels are found.
    """

    kind: ClassVar[str] = "set-search"

    def __init__(
        self,
        model: str = "tiny",
        *,
        augmenter: SetAugmenter | None = None,
        one_order: bool = False,
        vocabulary: str | Sequence[str] = "closed",
        training: TrainingSettings | None = None,
        decoding: Decoding | None = None,
    ) -> None:
        super().__init__(
            model,
            augmenter=augmenter or SetAugmenter(with_size=False),
            one_order=one_order,
            vocabulary=vocabulary,
            training=training,
            decoding=decoding,
        )

    def write_targets(self, examples: Sequence[Example], epoch: int) -> list[list[str]]:
        """Return each label by itself."""
        return targets.each_label(self.augmenter_, examples, epoch)

    def _check(self) -> None:
        super()._check()
        if self.augmenter.with_size:
            raise ValueError("set search writes one label at a time, so it writes no sizes.")
        if self.training.fresh_orders:
            raise ValueError("set search has no orders that could be fresh in each epoch.")
        if self.training.objective != "plain":
            raise ValueError("set search has no orders, so its objective is plain.")

    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text: the different labels that the beam search found, the best first."""
        self._check_fitted()
        if unknown := changes.keys() - {"constrained", "batch_size"}:
            raise TypeError(f"set search takes no {', '.join(sorted(unknown))}.")
        decoding = self._change(changes)
        beam = max(self.largest_, 1)
        search = Decoding(name="beam", n_beams=beam, constrained=False, batch_size=decoding.batch_size)
        if decoding.constrained:
            search = replace(search, constrained=True, size_is=1)
        texts, keys = make_texts(data)
        found = self._writer.write(texts, search, n_each=beam, progress=progress)
        return [self._unite(ones, key) for ones, key in zip(found, keys, strict=True)]

    def log_likelihoods(self, data: Data, **options: Any) -> list[dict[str, SetLikelihood]]:
        """Raise a `ModelError`: labels are written one at a time, and nothing marks a set as complete."""
        raise ModelError("set search writes one label at a time, so it gives sets no likelihood.")

    def _unite(self, ones: list[Any], key: str | int | None) -> Prediction:
        written = [label for one in ones for label in one.labels]
        labels = tuple(dict.fromkeys(written))
        unknown = tuple(dict.fromkeys(label for one in ones for label in one.unknown))
        malformed = tuple(part for one in ones for part in one.malformed)
        return Prediction(labels=labels, repeated=repeats(written), unknown=unknown, malformed=malformed, id=key)
