"""The paper's SET SEARCH: learn to write one label at a time, and take all different ones that a beam search finds."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from setaug.decoding.settings import Decoding
from setaug.errors import ModelError
from setaug.examples import Data, Example, make_texts
from setaug.likelihood import SetLikelihood
from setaug.models import targets
from setaug.models.generator import SetGenerator
from setaug.models.settings import Progress
from setaug.predictions import Prediction


class SetSearch(SetGenerator):
    """Train on one pair per label; predict with a beam as wide as the largest training set.

    The parameters are those of `SetGenerator`; there are no orders, and no sizes. With ``constrained`` on, only known
    labels are found.
    """

    kind: ClassVar[str] = "set-search"

    def write_targets(self, examples: Sequence[Example], epoch: int) -> list[list[str]]:
        """Give each label by itself."""
        return targets.each_label(self.augmenter, examples, epoch)

    def _check(self) -> None:
        super()._check()
        if self.augmenter.size:
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
        """Refuse: labels are written one at a time, and nothing says when a set is complete."""
        raise ModelError("set search writes one label at a time, so it gives sets no likelihood.")

    def _unite(self, ones: list[Any], key: str | int | None) -> Prediction:
        written = [label for one in ones for label in one.labels]
        labels = tuple(dict.fromkeys(written))
        unknown = tuple(dict.fromkeys(label for one in ones for label in one.unknown))
        repeated = tuple(label for at, label in enumerate(written) if label in written[:at])
        malformed = tuple(part for one in ones for part in one.malformed)
        return Prediction(labels=labels, repeated=repeated, unknown=unknown, malformed=malformed, id=key)
