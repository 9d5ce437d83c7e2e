"""Write sets with a trained encoder-decoder: batches, the constraint, the model's own distribution over sizes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from setaug.codec import SetCodec
from setaug.decoding.settings import Decoding
from setaug.models.batches import IGNORED, cut, pad_inputs, pad_rows
from setaug.models.constraint import SetConstraint
from setaug.models.settings import Progress


@dataclass(frozen=True, slots=True)
class Written:
    """Hold one generation, read."""

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
    labels
        The known labels; None for an open vocabulary.
    largest
        The size of the largest training set.
    max_label_tokens
        In an open vocabulary, a label this long ends as soon as it can.

    """

    model: Any
    tokenizer: Any
    codec: SetCodec
    labels: Sequence[str] | None
    largest: int
    max_source_length: int
    max_target_length: int
    max_label_tokens: int

    @property
    def prefix(self) -> tuple[int, ...]:
        """The tokens that stand in front of each target."""
        forced = self.model.generation_config.forced_bos_token_id
        return () if forced is None else (forced,)

    def target(self, tokens: Sequence[int]) -> list[int]:
        """Make a training target of the tokens of a text."""
        return [*self.prefix, *tokens, self.model.generation_config.eos_token_id]

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
        codes = self.tokenizer(labels, add_special_tokens=False)["input_ids"] if labels else []
        written = self.tokenizer.batch_decode(codes, skip_special_tokens=True)
        pairs = zip(written, labels, strict=True)
        known = set(labels)
        return {text.strip(): label for text, label in pairs if text.strip() not in known}

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.labels or ())

    def write(
        self, prompts: Sequence[str], decoding: Decoding, *, n_each: int = 1, progress: Progress | None = None
    ) -> list[list[Written]]:
        """Write `n_each` sets for each prompt."""
        constraint = self.constraint(decoding.sizes(self.largest)) if decoding.constrained else None
        limit = self.max_target_length if constraint is None else constraint.max_new_tokens
        options = {**decoding.options(), "max_new_tokens": self._room(limit), "num_return_sequences": n_each}
        if constraint is not None:
            options["logits_processor"] = [constraint]
        read = self._read_text if constraint is None else self._read_set(constraint)
        written: list[list[Written]] = [[] for _ in prompts]
        n_done = 0
        with self._generating(decoding.seed):
            for rows, batch in self._batches(prompts, max(decoding.batch_size // n_each, 1)):
                outputs = self.model.generate(**batch, **options).tolist()
                for at, output in enumerate(outputs):
                    written[rows[at // n_each]].append(read(output[1:]))
                n_done += len(rows)
                if progress is not None:
                    progress("writing", n_done, len(prompts))
        return written

    def _room(self, limit: int) -> int:
        """Stay within the places for which a model has learnt positions."""
        places = getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        return limit if places is None else min(limit, places - 2)

    def _batches(self, prompts: Sequence[str], size: int) -> Iterator[tuple[list[int], dict[str, torch.Tensor]]]:
        """Give batches of prompts of similar length, each with the places of its prompts."""
        inputs, _ = cut(self.tokenizer, list(prompts), self.max_source_length)
        order = sorted(range(len(inputs)), key=lambda at: len(inputs[at]))
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            batch = pad_inputs([inputs[at] for at in rows], self.model.generation_config.pad_token_id)
            yield rows, {name: values.to(self.model.device) for name, values in batch.items()}

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
        labels = tuple(dict.fromkeys(self._spellings.get(label, label) for label in read.labels))
        unknown = () if self.labels is None else tuple(label for label in labels if label not in self._known)
        return Written(text, labels, read.size, read.repeated, unknown, read.malformed)

    def sizes(self, prompts: Sequence[str], decoding: Decoding) -> list[dict[int, float]]:
        """Give the model's own distribution over the sizes, which stand in front of the labels."""
        openings = self.constraint(decoding.sizes(self.largest)).openings
        sizes, targets = list(openings), list(openings.values())
        scores = self._score(prompts, [targets] * len(prompts), decoding.batch_size)
        return [dict(zip(sizes, torch.tensor(row).softmax(dim=0).tolist(), strict=True)) for row in scores]

    def obstacle(self, labels: Sequence[str]) -> str | None:
        """Say why no probability of writing this set can be given, where that is so."""
        text = self.tokenizer(self.codec.encode(labels), add_special_tokens=False)["input_ids"]
        n_tokens = len(self.target(text))
        if self._room(n_tokens) < n_tokens:
            return f"the labels need {n_tokens} tokens, and the model has places for {self._room(n_tokens)}."
        first: dict[tuple[int, ...], str] = {}
        for label in labels:  # two that are written alike would have their orders counted twice
            written = tuple(self.tokenizer(" " + label, add_special_tokens=False)["input_ids"])
            if (twin := first.setdefault(written, label)) != label:
                return f"the model's tokenizer cannot tell the labels {twin!r} and {label!r} apart."
        return None

    def score(
        self,
        prompts: Sequence[str],
        texts: Sequence[Sequence[str]],
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[list[float]]:
        """Give the natural logarithm of the probability that the model writes a text, for each text of each prompt."""
        flat = [text for each in texts for text in each]
        tokens = iter(self.tokenizer(flat, add_special_tokens=False)["input_ids"] if flat else ())
        targets = [[self.target(next(tokens)) for _ in each] for each in texts]
        return self._score(prompts, targets, batch_size, progress)

    def _score(
        self,
        prompts: Sequence[str],
        targets: Sequence[Sequence[Sequence[int]]],
        batch_size: int,
        progress: Progress | None = None,
    ) -> list[list[float]]:
        """Score the targets of each prompt; the encoder reads a prompt once, however many targets it has."""
        found: list[list[float]] = [[] for _ in prompts]
        n_done, total = 0, sum(map(len, targets))
        with self._generating(0):
            for rows, batch in self._batches(prompts, batch_size):
                states = self.model.get_encoder()(**batch).last_hidden_state
                owners = [at for at, row in enumerate(rows) for _ in targets[row]]
                flat = [target for row in rows for target in targets[row]]
                for start in range(0, len(flat), batch_size):
                    served = owners[start : start + batch_size]
                    labels = pad_rows(flat[start : start + batch_size], IGNORED).to(self.model.device)
                    logits = self.model(
                        encoder_outputs=(states[served],), attention_mask=batch["attention_mask"][served], labels=labels
                    ).logits
                    for at, value in zip(served, log_probabilities(logits, labels).tolist(), strict=True):
                        found[rows[at]].append(value)
                    n_done += len(served)
                    if progress is not None:
                        progress("scoring", n_done, total)
        return found


def log_probabilities(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Give the natural logarithm of the probability of each row of labels, padding left out."""
    losses = torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), labels, reduction="none", ignore_index=IGNORED
    )
    return -losses.sum(dim=1)
