"""Write sets with a trained model: batches, the constraint, the model's own distribution over sizes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import log
from typing import Any

import torch

from setaug.analysis.likelihood import Order, Score
from setaug.codec import SetCodec, repeats
from setaug.errors import DataError
from setaug.examples import Example, Skipped, shown
from setaug.models.neural.batches import Batch, Item
from setaug.models.neural.constraint import SetConstraint
from setaug.models.neural.layouts import Layout
from setaug.settings import Decoding, Progress


@dataclass(frozen=True, slots=True)
class Written:
    """One generation, read as a set."""

    text: str
    labels: tuple[str, ...]
    size: int | None = None
    repeated: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Writer:
    """Let a model write sets.

    Parameters
    ----------
    layout
        The model, its tokenizer, and how it reads and writes.
    labels
        The known labels; None for an open vocabulary.
    largest
        The size of the largest training set.
    max_label_tokens
        In an open vocabulary, a label this long ends as soon as it can.

    """

    layout: Layout
    codec: SetCodec
    labels: Sequence[str] | None
    largest: int
    max_label_tokens: int

    @property
    def model(self) -> Any:
        """The model."""
        return self.layout.model

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self.layout.tokenizer

    @cached_property
    def _constraints(self) -> dict[range, SetConstraint]:
        return {}

    def constraint(self, sizes: range) -> SetConstraint:
        """Make the constraint for these sizes, once."""
        if sizes not in self._constraints:
            self._constraints[sizes] = SetConstraint.for_model(
                self.model,
                self.tokenizer,
                self.labels,
                codec=self.codec,
                sizes=sizes,
                max_label_tokens=self.max_label_tokens,
            )
        return self._constraints[sizes]

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Labels by what the tokenizer makes of them, where that is something else."""
        labels = list(self.labels or ())
        if not labels:
            return {}
        codes = self.tokenizer(labels, add_special_tokens=False)["input_ids"]
        written = self.tokenizer.batch_decode(codes, skip_special_tokens=True)
        pairs = zip(written, labels, strict=True)
        known = set(labels)
        return {text.strip(): label for text, label in pairs if text.strip() not in known}

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.labels or ())

    def write(
        self, texts: Sequence[str], decoding: Decoding, *, n_each: int = 1, progress: Progress | None = None
    ) -> list[list[Written]]:
        """Write `n_each` sets for each text."""
        constraint = self.constraint(decoding.sizes(self.largest)) if decoding.constrained else None
        limit = self.layout.max_target_length if constraint is None else constraint.max_new_tokens
        options = {**decoding.options(), "num_return_sequences": n_each}
        if constraint is not None:
            options["logits_processor"] = [constraint]
        read = self._read_text if constraint is None else self._read_set(constraint)
        written: list[list[Written]] = [[] for _ in texts]
        n_done = 0
        with self._generating(decoding.seed):
            for rows, batch in self._batches(texts, max(decoding.batch_size // n_each, 1)):
                start = self.layout.start(batch)
                room = self.layout.room(limit, batch["input_ids"].shape[1])
                if constraint is not None:
                    constraint.start = start
                outputs = self.model.generate(**batch, **options, max_new_tokens=room).tolist()
                for at, output in enumerate(outputs):
                    written[rows[at // n_each]].append(read(output[start:]))
                n_done += len(rows)
                if progress is not None:
                    progress("writing", n_done, len(texts))
        return written

    def _batches(self, texts: Sequence[str], size: int) -> Iterator[tuple[list[int], Batch]]:
        """Yield batches of prompts of similar length, each with the indices of its texts."""
        prompts, order = self._read(texts)
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            yield rows, self._on_device(self.layout.inputs([prompts[at] for at in rows]))

    def _read(self, texts: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """Return the tokens of each prompt, and the indices of the prompts sorted by length."""
        prompts, _ = self.layout.read(texts)
        return prompts, sorted(range(len(prompts)), key=lambda at: len(prompts[at]))

    def _on_device(self, batch: Batch) -> Batch:
        return {name: values.to(self.model.device) for name, values in batch.items()}

    @contextmanager
    def _generating(self, seed: int) -> Iterator[None]:
        """Draw from the seed alone, and leave the global generators and the model's mode as they were."""
        was_training = self.model.training
        self.model.eval()
        devices = [] if self.model.device.type == "cpu" else [self.model.device]
        try:
            with torch.random.fork_rng(devices), torch.inference_mode():
                torch.manual_seed(seed)
                yield
        finally:
            self.model.train(was_training)

    def _read_set(self, constraint: SetConstraint) -> Callable[[list[int]], Written]:
        def read(tokens: list[int]) -> Written:
            text = self.tokenizer.decode(tokens, skip_special_tokens=True)
            found = constraint.read(tokens)
            if found is None:  # cut off: a model with too few places
                return self._read_text(tokens)
            return Written(text, found[0], found[1])

        return read

    def _read_text(self, tokens: list[int]) -> Written:
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        read = self.codec.decode(text)
        meant = [self._spellings.get(label, label) for label in read.labels]
        labels = tuple(dict.fromkeys(meant))
        unknown = () if self.labels is None else tuple(label for label in labels if label not in self._known)
        return Written(text, labels, read.size, (*read.repeated, *repeats(meant)), unknown, read.malformed)

    def sizes(self, texts: Sequence[str], decoding: Decoding) -> list[dict[int, float]]:
        """Return the model's own distribution over the sizes, which come before the labels."""
        openings = self.constraint(decoding.sizes(self.largest)).openings
        sizes, targets = list(openings), [list(opening) for opening in openings.values()]
        scores = self._score(texts, [targets] * len(texts), decoding.batch_size)
        return [dict(zip(sizes, torch.tensor(row).softmax(dim=0).tolist(), strict=True)) for row in scores]

    def obstacle(self, text: str, labels: Sequence[str]) -> str | None:
        """Return why this set cannot be scored for a text; None if it can."""
        (prompt,), _ = self.layout.read([text])
        ((target,),) = self.layout.targets([[self.codec.encode(labels)]])
        room = self.layout.room(len(target), len(prompt))
        if room < len(target):
            return f"the labels need {len(target)} tokens, and the model has places for {room}."
        first: dict[tuple[int, ...], str] = {}
        for label in labels:  # two that are written alike would have their orders counted twice
            written = tuple(self.tokenizer(" " + label, add_special_tokens=False)["input_ids"])
            if (twin := first.setdefault(written, label)) != label:
                return f"the model's tokenizer cannot tell the labels {twin!r} and {label!r} apart."
        return None

    def score(
        self,
        texts: Sequence[str],
        outputs: Sequence[Sequence[str]],
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[list[float]]:
        """Return the natural log-probability of each output of each text."""
        return self._score(texts, self.layout.targets(outputs), batch_size, progress)

    def _score(
        self,
        texts: Sequence[str],
        targets: Sequence[Sequence[list[int]]],
        batch_size: int,
        progress: Progress | None = None,
    ) -> list[list[float]]:
        """Score the targets of each text; those in a batch share what the model has read."""
        prompts, order = self._read(texts)
        collate = self.layout.collator()
        found: list[list[float]] = [[] for _ in texts]
        flat = [(at, target) for at in order for target in targets[at]]
        with self._generating(0):
            for start in range(0, len(flat), batch_size):
                part = flat[start : start + batch_size]
                items: list[Item] = [
                    {"input_ids": prompts[at], "targets": [target for _, target in pairs]}
                    for at, pairs in groupby(part, key=lambda pair: pair[0])
                ]
                batch = self._on_device(collate(items))
                logits = self.layout.run(self.model, batch).logits
                values = self.layout.log_probabilities(logits, batch["labels"]).tolist()
                for (at, _), value in zip(part, values, strict=True):
                    found[at].append(value)
                if progress is not None:
                    progress("scoring", start + len(part), len(flat))
        return found


def make_score(writer: Writer, batch_size: int) -> Score:
    """Make what scores the orders of examples, in bits."""

    def score(examples: Sequence[Example], orders: Sequence[Sequence[Order]]) -> list[list[float]]:
        texts = [[writer.codec.encode(order) for order in each] for each in orders]
        found = writer.score([example.text for example in examples], texts, batch_size=batch_size)
        return [[value / log(2) for value in values] for values in found]

    return score


def scorable(writer: Writer, examples: Sequence[Example], skipped: Skipped | None) -> Iterator[Example]:
    """Yield the examples whose sets can be scored; raise at the first that cannot, or count it."""
    for example in examples:
        obstacle = writer.obstacle(example.text, example.labels)
        if obstacle is None:
            yield example
            continue
        error = DataError(f"the set {shown(example.labels)} cannot be scored: {obstacle}")
        if skipped is None:
            raise error
        skipped.add(error)
