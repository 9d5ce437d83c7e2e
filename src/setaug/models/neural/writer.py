"""A model that writes sets: built or loaded, trained on targets, its texts read as sets and scored."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import torch

from setaug.analysis.likelihood import Order, Score
from setaug.codec import SetCodec, repeats
from setaug.decoding.automaton import ClosedSets
from setaug.decoding.label_sums import LabelTally
from setaug.decoding.mixture import LabelProbabilities
from setaug.errors import DataError
from setaug.examples import Example, Skipped, check_labels, shown
from setaug.models.neural.batches import Batch, Item, TrainingSet, by_length, evaluating, on_device
from setaug.models.neural.constraint import SetConstraint
from setaug.models.neural.generation import SHARING, can_generate, draw_by_text, generate_sets
from setaug.models.neural.label_head import LabelHead, trained_with
from setaug.models.neural.layouts import Layout, make_layout
from setaug.models.neural.pretrained import add_adapters, load_for_generation
from setaug.models.neural.scratch import SHAPES, scratch_generator, train_tokenizer
from setaug.models.neural.training.objectives import ClosedCollator, training_loss
from setaug.models.neural.training.processes import is_sharded
from setaug.predictions import Prediction
from setaug.settings import CONSTRAINED, Decoding, Progress, TrainingSettings

DRAWS = 8
"""Sets that are drawn of a text to sum label probabilities over."""


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
        The size of the largest set that it was trained on.
    max_label_tokens
        In an open vocabulary, a label this long ends as soon as it can.
    head
        Scores the labels of the training data from what the encoder reads.

    """

    layout: Layout
    codec: SetCodec
    labels: list[str] | None
    largest: int
    max_label_tokens: int
    head: LabelHead | None = None

    @property
    def model(self) -> Any:
        """The model."""
        return self.layout.model

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self.layout.tokenizer

    def merged(self) -> "Writer":
        """Return the writer as it predicts: adapters and what its head learnt of names are merged into the weights."""
        merge = getattr(self.model, "merge_and_unload", None)
        layout = self.layout if merge is None else replace(self.layout, model=merge())
        return replace(self, layout=layout, head=None if self.head is None else self.head.trained())

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
    ) -> list[list[Prediction]]:
        """Write `n_each` sets for each text."""
        constraint = self.constraint(decoding.sizes(self.largest)) if decoding.constrained else None
        limit = self.layout.max_target_length if constraint is None else constraint.max_new_tokens
        prompts, _ = self.layout.read(texts)
        written: list[list[Prediction]] = [[] for _ in texts]
        n_done = 0
        with evaluating(self.model, seed=decoding.seed):
            for rows in by_length(prompts, self._texts_per_batch(decoding, n_each)):
                batch = on_device(self.layout.inputs([prompts[at] for at in rows]), self.model.device)
                room = self.layout.room(limit, batch["input_ids"].shape[1])
                for at, outputs in zip(rows, self._generate(batch, decoding, constraint, n_each, room), strict=True):
                    written[at] = [self.read(tokens, constraint) for tokens in outputs]
                n_done += len(rows)
                if progress is not None:
                    progress("writing", n_done, len(texts))
        return written

    def probabilities(
        self, texts: Sequence[str], decoding: Decoding, *, n_each: int, progress: Progress | None = None
    ) -> LabelProbabilities:
        """Return the probability of each known label and of each size for each text, from `n_each` drawn sets."""
        allowed = decoding.sizes(self.largest)
        constraint = self.constraint(allowed)
        automaton = constraint.automaton
        if not isinstance(automaton, ClosedSets):
            raise TypeError("only sets of known labels have probabilities of all labels.")
        places = {label: at for at, label in enumerate(self.labels or ())}
        columns = [places[label] for label in constraint.labels or ()]
        prior = 1 / (1.0 + np.array(columns))  # the most frequent label comes first
        found = np.zeros((len(texts), len(places)), np.float32)
        sizes = np.zeros((len(texts), allowed[-1] + 1), np.float32)
        options = replace(decoding, name="random", temperature=1.0).options()
        prompts, _ = self.layout.read(texts)
        n_done = 0
        with evaluating(self.model, seed=decoding.seed):
            for rows in by_length(prompts, max(decoding.batch_size * SHARING // n_each, 1)):
                batch = on_device(self.layout.inputs([prompts[at] for at in rows]), self.model.device)
                room = self.layout.room(constraint.max_new_tokens, batch["input_ids"].shape[1])
                tally = LabelTally(automaton, len(rows), n_each)
                generate_sets(
                    self.model,
                    batch,
                    constraint,
                    options,
                    n_each=n_each,
                    max_new_tokens=room,
                    seed=decoding.seed,
                    tally=tally,
                )
                found[np.ix_(rows, columns)], sizes[rows] = tally.probabilities(prior, sizes.shape[1])
                n_done += len(rows)
                if progress is not None:
                    progress("scoring", n_done, len(texts))
        return LabelProbabilities(found, sizes)

    def head_probabilities(
        self, texts: Sequence[str], batch_size: int, *, progress: Progress | None = None
    ) -> LabelProbabilities:
        """Return the probability that the head gives each known label for each text."""
        assert self.head is not None
        head, places = self.head.to(self.model.device), self.head.places
        prompts, _ = self.layout.read(texts)
        scored = np.zeros((len(texts), len(places)), np.float32)
        n_done = 0
        with evaluating(self.model):
            for rows in by_length(prompts, batch_size):
                batch = on_device(self.layout.inputs([prompts[at] for at in rows]), self.model.device)
                log_odds = head(self.model.get_encoder()(**batch).last_hidden_state, batch["attention_mask"])
                scored[rows] = torch.sigmoid(log_odds).cpu().numpy()
                n_done += len(rows)
                if progress is not None:
                    progress("scoring", n_done, len(texts))
        labels = list(self.labels or ())
        known = np.array([label in places for label in labels], bool)
        found = np.zeros((len(texts), len(labels)), np.float32)
        found[:, known] = scored[:, [places[label] for label in labels if label in places]]
        return LabelProbabilities(found, known=None if known.all() else known)

    def can_sum(self, decoding: Decoding) -> bool:
        """Return whether `probabilities` can be summed: of known labels, under the constraint, by greedy decoding."""
        if self.labels is None or not decoding.constrained or decoding.name != "greedy" or decoding.samples:
            return False
        automaton = self.constraint(decoding.sizes(self.largest)).automaton
        is_closed = isinstance(automaton, ClosedSets) and automaton.can_sum
        return is_closed and self._can_share(decoding.options())

    def _texts_per_batch(self, decoding: Decoding, n_each: int) -> int:
        shares = decoding.constrained and self._can_share(decoding.options())
        return max(decoding.batch_size * (min(n_each, SHARING) if shares else 1) // n_each, 1)

    def _can_share(self, options: dict[str, Any]) -> bool:
        """Return whether `generate_sets` can be used; it looks into weights, which must not be sharded for that."""
        return can_generate(self.model, options) and not is_sharded(self.model)

    def _generate(
        self, batch: Batch, decoding: Decoding, constraint: SetConstraint | None, n_each: int, room: int
    ) -> list[list[list[int]]]:
        """Return the tokens of `n_each` sets for each text of a batch."""
        options = decoding.options()
        if constraint is not None and self._can_share(options):
            return generate_sets(
                self.model, batch, constraint, options, n_each=n_each, max_new_tokens=room, seed=decoding.seed
            )
        start = self.layout.start(batch)
        processors: list[Any] = [] if constraint is None else [constraint]
        if constraint is not None:
            constraint.start = start
        if decoding.does_sample:
            processors += draw_by_text(batch, options, n_each=n_each, start=start, n_tokens=room, seed=decoding.seed)
            options |= {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        if processors:
            options["logits_processor"] = processors
        rows = self.model.generate(**batch, **options, num_return_sequences=n_each, max_new_tokens=room)
        tokens = rows[:, start:].tolist()
        return [tokens[first : first + n_each] for first in range(0, len(tokens), n_each)]

    def read(self, tokens: list[int], constraint: SetConstraint | None = None) -> Prediction:
        """Read what was written, under a constraint or freely."""
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        found = None if constraint is None else constraint.read(tokens)
        if found is not None:
            labels, size = found
            return Prediction(labels=labels, size=size, generation=text, repeated=(), unknown=(), malformed=())
        read = self.codec.decode(text)  # free, or cut off: a model with too few places
        meant = [self._spellings.get(label, label) for label in read.labels]
        labels = tuple(dict.fromkeys(meant))
        return Prediction(
            labels=labels,
            size=read.size,
            generation=text,
            repeated=(*read.repeated, *repeats(meant)),
            unknown=() if self.labels is None else tuple(label for label in labels if label not in self._known),
            malformed=read.malformed,
        )

    def sizes(self, texts: Sequence[str], decoding: Decoding) -> list[dict[int, float]]:
        """Return the model's own distribution over the sizes, which come before the labels."""
        openings = self.constraint(decoding.sizes(self.largest)).openings
        sizes, targets = list(openings), [list(opening) for opening in openings.values()]
        # Targets this short leave room, and a text is read again wherever a batch ends within its targets.
        scores = self._score(texts, [targets] * len(texts), decoding.batch_size * SHARING)
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
        self, texts: Sequence[str], outputs: Sequence[Sequence[str]], *, batch_size: int = 32
    ) -> list[list[float]]:
        """Return the natural log-probability of each output of each text."""
        return self._score(texts, self.layout.targets(outputs), batch_size)

    def _score(
        self, texts: Sequence[str], targets: Sequence[Sequence[list[int]]], batch_size: int
    ) -> list[list[float]]:
        """Score the targets of each text; those in a batch share what the model has read."""
        prompts, _ = self.layout.read(texts)
        collate = self.layout.collator()
        found: list[list[float]] = [[] for _ in texts]
        flat = [(at, target) for (at,) in by_length(prompts, 1) for target in targets[at]]
        with evaluating(self.model):
            for start in range(0, len(flat), batch_size):
                part = flat[start : start + batch_size]
                items: list[Item] = [
                    {"input_ids": prompts[at], "targets": [target for _, target in pairs]}
                    for at, pairs in groupby(part, key=lambda pair: pair[0])
                ]
                batch = on_device(collate(items), self.model.device)
                values = self.layout.log_probabilities(self.model, batch).tolist()
                for (at, _), value in zip(part, values, strict=True):
                    found[at].append(value)
        return found


def new_writer(
    name: str,
    examples: Sequence[Example],
    *,
    labels: list[str] | None,
    codec: SetCodec,
    template: str,
    training: TrainingSettings,
) -> Writer:
    """Build the model of a name, pretrained or from scratch, to be trained on these examples."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        if name in SHAPES:
            texts = [template.replace("{text}", example.text) for example in examples]
            tokenizer = train_tokenizer([*texts, *(codec.encode(example.labels) for example in examples)])
            longest = max(training.lengths.values())
            model = scratch_generator(name, tokenizer, max_length=longest, seed=training.seed)
            model = model.to(getattr(torch, training.weights))
        else:
            model, tokenizer = load_for_generation(name, weights=training.weights)
        seen = list({label: None for example in examples for label in example.labels})
        lengths = map(len, tokenizer([" " + label for label in seen], add_special_tokens=False)["input_ids"])
        if training.lora_rank is not None:
            model = add_adapters(model, training.lora_rank)
    return Writer(
        layout=_lay_out(model, tokenizer, template, training),
        codec=codec,
        labels=labels,
        largest=max(len(example.labels) for example in examples),
        max_label_tokens=max(lengths) + 4,  # a margin
    )


def load_writer(
    folder: Path, card: dict[str, Any], *, codec: SetCodec, template: str, training: TrainingSettings
) -> Writer:
    """Load the model of a folder; its ``setaug.json`` is read already."""
    labels = None if card["labels"] is None else list(check_labels(card["labels"], "labels"))
    layout = _lay_out(*load_for_generation(str(folder), weights=training.weights), template, training)
    largest, longest = int(card["largest"]), int(card["max_label_tokens"])
    return Writer(layout=layout, codec=codec, labels=labels, largest=largest, max_label_tokens=longest)


def _lay_out(model: Any, tokenizer: Any, template: str, training: TrainingSettings) -> Layout:
    before, _, after = template.partition("{text}")
    return make_layout(model, tokenizer, around_text=(before, after), **training.lengths)


def set_targets(
    writer: Writer,
    examples: Sequence[Example],
    write: Callable[[Sequence[Example], int], list[list[str]]],
    training: TrainingSettings,
) -> tuple[Writer, TrainingSet, list[Example], dict[str, int]]:
    """Return the writer, limited to the size of the sets that are trained on, their training set, them, and counts."""
    data, kept, counted = make_training_set(writer, examples, write=write, settings=training)
    writer = replace(writer, largest=max(len(example.labels) for example in kept))
    return writer, data, kept, counted | {"labels_written_alike": count_written_alike(writer)}


def fit_writer(
    writer: Writer, data: TrainingSet, training: TrainingSettings, train: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Train a writer; return the record."""
    layout = writer.layout
    loss = partial(training_loss, layout, objective=training.objective)
    collate = layout.collator()
    if training.objective in CONSTRAINED:
        sets = writer.constraint(Decoding().sizes(writer.largest)).automaton
        assert isinstance(sets, ClosedSets)
        collate = ClosedCollator(collate, sets, sets.tokens.tolist())
    with trained_with(layout.model, writer.head, collate, loss) as (collate, both):
        return train(layout.model, data, collate=collate, loss=both)


def count_written_alike(writer: Writer) -> int:
    """Return how many known labels have the tokens of another one, so that the model cannot tell them apart."""
    if not writer.labels:
        return 0
    tokens = writer.tokenizer(list(writer.labels), add_special_tokens=False)["input_ids"]
    return len(tokens) - len(set(map(tuple, tokens)))


def make_training_set(
    writer: Writer,
    examples: Sequence[Example],
    *,
    write: Callable[[Sequence[Example], int], list[list[str]]],
    settings: TrainingSettings,
) -> tuple[TrainingSet, list[Example], dict[str, int]]:
    """Tokenize examples; return those that can be trained on, as targets and as they are, and counts.

    Parameters
    ----------
    write
        Returns the texts of each example's targets for an epoch.

    """
    layout = writer.layout
    inputs, n_cut = layout.read([example.text for example in examples])
    first = layout.targets(write(examples, 0))
    limit = settings.lengths["max_target_length"]
    fits = [max(map(len, each), default=0) <= limit for each in first]
    kept = [at for at, does_fit in enumerate(fits) if does_fit]
    if not any(examples[at].labels for at in kept):
        raise DataError(
            f"no example with labels can be trained on: all targets need more than max_target_length = {limit} tokens."
        )
    counted = {
        "n_pairs_per_epoch": sum(len(first[at]) for at in kept),
        "texts_cut_off": n_cut,
        "left_out_targets_too_long": fits.count(False),
    }
    chosen = [examples[at] for at in kept]
    fixed = [first[at] for at in kept]

    def targets_of(epoch: int) -> list[list[list[int]]]:
        return layout.targets(write(chosen, epoch)) if epoch and settings.fresh_orders else fixed

    columns = None
    if writer.head is not None:
        places = writer.head.places
        columns = [[places[label] for label in example.labels] for example in chosen]
    return TrainingSet([inputs[at] for at in kept], targets_of, columns), chosen, counted


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
