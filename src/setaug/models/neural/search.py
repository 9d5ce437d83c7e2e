"""The paper's SET SEARCH: learn to write one label at a time, and return all that a beam search finds."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

from setaug.augmenter import SetAugmenter
from setaug.codec import SetCodec, repeats
from setaug.examples import Data, Example, make_texts
from setaug.models.neural.model import SetModel, Train
from setaug.models.neural.writer import Writer, fit_writer, load_writer, new_writer
from setaug.predictions import Prediction
from setaug.settings import Decoding, Progress, TrainingSettings
from setaug.vocabulary import check_vocabulary, known_labels


class SetSearch(SetModel):
    """Train on one pair per label; predict with a beam as wide as the largest training set.

    Parameters
    ----------
    model
        As for `SetGenerator`: a name on the Hugging Face Hub, a folder, or a model from scratch.
    template
        The prompt; ``{text}`` stands for the text.
    codec
        How a label is written; sizes are not.
    vocabulary
        ``closed``: only the labels of the training data; ``open``: any text can be a label; or a list of further
        labels.
    constrained
        Whether only known labels are found.
    training, batch_size
        How to train, and how many labels are written at once.

    """

    kind: ClassVar[str] = "set-search"
    network_: Writer

    def __init__(
        self,
        model: str = "tiny",
        *,
        template: str = "{text}",
        codec: SetCodec | None = None,
        vocabulary: str | Sequence[str] = "closed",
        constrained: bool = True,
        training: TrainingSettings | None = None,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.template = template
        self.codec = codec or SetCodec(with_size=False)
        self.vocabulary = vocabulary
        self.constrained = constrained
        self.training = training or TrainingSettings()
        self.batch_size = batch_size

    def _check(self) -> None:
        SetAugmenter(template=self.template).check()
        check_vocabulary(self.vocabulary)
        if self.codec.with_size:
            raise ValueError("set search generates one label at a time, so it does not write sizes.")
        self._decoding()
        if self.training.fresh_orders:
            raise ValueError("set search has no orders, so fresh_orders is not supported.")
        if self.training.objective != "plain":
            raise ValueError("set search has no orders, so its objective is plain.")

    @property
    def _written(self) -> dict[str, Any]:
        """How prompts and labels are written."""
        return {"codec": self.codec, "template": self.template, "training": self.training}

    def _learn(self, examples: list[Example], dev: list[Example], train: Train) -> dict[str, Any]:
        labels = known_labels(self.statistics_, self.vocabulary)
        self.network_ = new_writer(self.model, examples, labels=labels, **self._written)
        record = fit_writer(self.network_, examples, self.write_targets, self.training, train)
        self.network_ = self.network_.merged()
        return record

    def write_targets(self, examples: Sequence[Example], epoch: int) -> list[list[str]]:
        """Return the texts that the model is trained to write for each example: each label by itself."""
        return [[self.codec.encode([label]) for label in example.labels] for example in examples]

    def _decoding(self, *, constrained: bool | None = None, batch_size: int | None = None, beam: int = 1) -> Decoding:
        is_constrained = self.constrained if constrained is None else constrained
        return Decoding(
            name="beam",
            n_beams=beam,
            constrained=is_constrained,
            size_is=1 if is_constrained else None,
            batch_size=self.batch_size if batch_size is None else batch_size,
        )

    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text: the different labels that the beam search found, the best first.

        Parameters
        ----------
        changes
            Other values of ``constrained`` and ``batch_size`` for this call.

        """
        self._check_fitted()
        if unknown := changes.keys() - {"constrained", "batch_size"}:
            raise TypeError(f"set search takes no {', '.join(sorted(unknown))}.")
        beam = max(self.largest_, 1)
        texts, keys = make_texts(data, self.columns_)
        found = self.network_.write(texts, self._decoding(**changes, beam=beam), n_each=beam, progress=progress)
        return [_unite(ones, key) for ones, key in zip(found, keys, strict=True)]

    def _learnt(self) -> dict[str, Any]:
        return {"max_label_tokens": self.network_.max_label_tokens}

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        if "augmenter" in settings:  # written when set search still had the parameters of a generator
            codec = asdict(SetAugmenter(**settings["augmenter"]).codec)
            parts = {**settings["augmenter"], **settings["decoding"], **settings, "codec": codec}
            settings = {name: parts[name] for name in cls().get_params(deep=False)}
        return super()._from_settings(settings)

    def _restore(self, folder: Path, card: dict[str, Any]) -> None:
        self.network_ = load_writer(folder, card, **self._written)


def _unite(ones: list[Prediction], key: str | int | None) -> Prediction:
    """Return the set of all labels that were written."""
    written = [label for one in ones for label in one.labels]
    unknown = tuple(dict.fromkeys(label for one in ones for label in one.unknown or ()))
    malformed = tuple(part for one in ones for part in one.malformed or ())
    labels = tuple(dict.fromkeys(written))
    return Prediction(labels=labels, repeated=repeats(written), unknown=unknown, malformed=malformed, id=key)
