"""The paper's SET SEARCH: learn to write one label at a time, and return all that a beam search finds.

A set can also be chosen from label probabilities. Each label of a set is a target as often as any other, so a label is
written with probability P(label in the set) / E(size of the set): times the mean size, that is the probability of the
label, and dev data calibrate it. An empty set is a target of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setaug.augmenter import SetAugmenter
from setaug.codec import SetCodec, repeats
from setaug.decoding.mixture import LabelProbabilities, Mixture
from setaug.decoding.scored import ASKED, changed, predict_mixed, ways_of
from setaug.examples import Data, Example, make_texts
from setaug.metrics.indicators import hits_of
from setaug.models.held_out import MAX_TUNING, sample_dev
from setaug.models.neural.model import SetModel, Train
from setaug.models.neural.writer import DRAWS, Writer, fit_writer, load_writer, new_writer, set_targets
from setaug.predictions import Prediction
from setaug.settings import Decoding, Progress, TrainingSettings
from setaug.vocabulary import check_vocabulary, known_labels


class SetSearch(SetModel):
    """Train on one pair per label; choose sets from label probabilities, or take all that a beam search finds.

    Parameters
    ----------
    model
        As for `SetGenerator`: a name on the Hugging Face Hub, a folder, or a model from scratch.
    template
        The prompt; ``{text}`` stands for the text.
    codec
        How a label is written; sizes are not.
    vocabulary
        ``closed``: only the labels of the training and dev data; ``open``: any text can be a label; or a list of
        further labels.
    constrained
        Whether only known labels are found.
    choose
        How to choose a set: a name of `setaug.settings.CHOICES`. ``written`` is the paper's way: all that a beam as
        wide as the largest training set finds. So is ``best`` without the constraint or with an open vocabulary;
        without dev data ``best`` is ``expected-f1``.
    training, batch_size
        How to train, and how many labels are written at once.

    Attributes
    ----------
    mean_size_
        The mean number of labels of training sets that are not empty.
    mixture_
        The calibration of the label probabilities and the rule for sets, as dev data decided; None if there were none.

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
        choose: str = "best",
        training: TrainingSettings | None = None,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.template = template
        self.codec = codec or SetCodec(with_size=False)
        self.vocabulary = vocabulary
        self.constrained = constrained
        self.choose = choose
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
        if self.training.label_head:
            raise ValueError("set search has no label head.")

    @property
    def _written(self) -> dict[str, Any]:
        """How prompts and labels are written."""
        return {"codec": self.codec, "template": self.template, "training": self.training}

    def _learn(self, examples: list[Example], dev: list[Example], train: Train) -> dict[str, Any]:
        self.mixture_: Mixture | None = None
        labels = known_labels(self.statistics_, self.vocabulary, dev=dev)
        writer = new_writer(self.model, examples, labels=labels, **self._written)
        self.network_, data, kept, counts = set_targets(writer, examples, self.write_targets, self.training)
        self.largest_ = self.network_.largest
        self.mean_size_ = mean(len(example.labels) for example in kept if example.labels)
        record = counts | fit_writer(self.network_, data, self.training, train)
        self.network_ = self.network_.merged()
        if dev and self.choose != "written" and self._can_sum(self._decoding()):
            tuning = sample_dev(dev, at_most=MAX_TUNING)
            found = self._probabilities([example.text for example in tuning], self._decoding(), None)
            known = list(self.classes_)
            hits, n_true = hits_of(tuning, known)
            options: dict[str, Any] = {"least": self.least_, "largest": self.largest_, "ways": ways_of(self.choose)}
            self.mixture_, f1 = Mixture.fit([found], hits, n_true, new=self._are_new(known), **options)
            record["chosen"] = {"f1": f1, "n_dev": len(tuning)}
        return record

    def write_targets(self, examples: Sequence[Example], epoch: int) -> list[list[str]]:
        """Return the texts that the model is trained to write for each example: each label by itself, or no label."""
        parts = ([[label] for label in example.labels] or [[]] for example in examples)
        return [[self.codec.encode(one) for one in each] for each in parts]

    def _decoding(self) -> Decoding:
        return Decoding(constrained=self.constrained, choose=self.choose, batch_size=self.batch_size)

    def _can_sum(self, decoding: Decoding) -> bool:
        """Return whether all labels have probabilities."""
        return decoding.constrained and self.network_.can_sum(self._of_one_label(decoding))

    def _of_one_label(self, asked: Decoding) -> Decoding:
        """Return the settings to write one label with, or an empty set if there are some in training."""
        return Decoding(min_size=self.least_, max_size=1, batch_size=asked.batch_size)

    def predict(
        self, data: Iterable[str] | Data, *, progress: Progress | None = None, **changes: Any
    ) -> list[Prediction]:
        """Predict the set of each text.

        Parameters
        ----------
        changes
            What is asked for in this call: ``choose``, with a ``threshold`` or a ``k``; ``size_is``, ``min_size`` and
            ``max_size``; ``constrained`` and ``batch_size``.

        """
        self._check_fitted()
        asked = self._change(changes)
        if asked.choose == "written" or (asked.choose == "best" and not self._can_sum(asked)):
            if sizes := [name for name in ("size_is", "min_size", "max_size") if name in changes]:
                raise ValueError(f"{sizes[0]} needs label probabilities; give choose='expected-f1', say.")
            return self._search(data, asked, progress)
        self._check_sums(asked)
        options: Any = {"labels": list(self.classes_), "columns": self.columns_}
        options |= {"least": self.least_, "largest": self.largest_}
        find = partial(self._mixed, asked=asked)
        return predict_mixed(find, data, asked, mixture=self.mixture_, **options, progress=progress)

    def _change(self, changes: dict[str, Any]) -> Decoding:
        return changed(self._decoding(), changes, of="set search", names=(*ASKED, "constrained", "batch_size"))

    def _check_sums(self, asked: Decoding) -> None:
        if not self._can_sum(asked):
            raise ValueError(
                f"choose={asked.choose!r} needs probabilities of all labels: a closed vocabulary and the constraint."
            )

    def _search(self, data: Any, asked: Decoding, progress: Progress | None) -> list[Prediction]:
        """Return the different labels that a beam search finds, the best first."""
        beam = max(self.largest_, 1)
        texts, keys = make_texts(data, self.columns_)
        way = replace(asked, name="beam", n_beams=beam)
        if asked.constrained:
            way = replace(way, min_size=self.least_, max_size=1)
        found = self.network_.write(texts, way, n_each=beam, progress=progress)
        if not self.least_:  # where an empty set is the most probable output, it is the prediction
            found = [ones if ones[0].labels or ones[0].unknown else ones[:1] for ones in found]
        return [_unite(ones, key) for ones, key in zip(found, keys, strict=True)]

    def _probabilities(self, texts: Sequence[str], asked: Decoding, progress: Progress | None) -> LabelProbabilities:
        """Return the probability that a set has each label: its share of what is written, times the expected size.

        A set of s labels is trained on as s outputs, and an empty one as one output. So where the model writes nothing
        with probability e, and sets with labels have m of them on average, a set is empty with probability
        e m / (e m + 1 - e).
        """
        found = self.network_.probabilities(texts, self._of_one_label(asked), n_each=DRAWS, progress=progress)
        assert found.sizes is not None
        nothing, mean_size = found.sizes[:, :1], self.mean_size_
        scale = mean_size / (nothing * mean_size + 1 - nothing)
        return LabelProbabilities(np.minimum(found.labels * scale, 1.0))

    def _mixed(self, texts: Sequence[str], progress: Progress | None, *, asked: Decoding) -> LabelProbabilities:
        found = self._probabilities(texts, asked, progress)
        return found if self.mixture_ is None else self.mixture_.combine([found])

    def predict_proba(self, data: Iterable[str] | Data, **changes: Any) -> NDArray[np.float64]:
        """Return the probability of each label (columns, as in ``classes_``) for each text (rows)."""
        self._check_fitted()
        asked = self._change({"choose": "expected-f1", **changes})
        self._check_sums(asked)
        texts, _ = make_texts(data, self.columns_)
        return np.asarray(self._mixed(texts, None, asked=asked).labels, np.float64)

    def _learnt(self) -> dict[str, Any]:
        mixture = None if self.mixture_ is None else self.mixture_.to_dict()
        tokens = self.network_.max_label_tokens
        return {"max_label_tokens": tokens, "mean_size": self.mean_size_, "mixture": mixture}

    def _restore(self, folder: Path, card: dict[str, Any]) -> None:
        if "mean_size" not in card:
            raise ValueError("an earlier version trained it; train it again")
        self.network_, self.mean_size_ = load_writer(folder, card, **self._written), float(card["mean_size"])
        mixture = card.get("mixture")
        self.mixture_ = None if mixture is None else Mixture.from_dict(mixture, n_labels=len(self.labels_ or ()))
        if self.mixture_ is not None and len(self.mixture_.weights) != 1:
            raise ValueError("it mixes other models than it holds")


def _unite(ones: list[Prediction], key: str | int | None) -> Prediction:
    """Return the set of all labels that were written."""
    written = [label for one in ones for label in one.labels]
    unknown = tuple(dict.fromkeys(label for one in ones for label in one.unknown or ()))
    malformed = tuple(part for one in ones for part in one.malformed or ())
    labels = tuple(dict.fromkeys(written))
    return Prediction(labels=labels, repeated=repeats(written), unknown=unknown, malformed=malformed, id=key)
