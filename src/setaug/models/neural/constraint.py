"""A logits processor for ``model.generate`` that lets a model write nothing but a set."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import index
from typing import Any, SupportsIndex

import numpy as np
import torch
from transformers import LogitsProcessor

from setaug.codec import SetCodec
from setaug.decoding.automaton import ClosedSets, OpenSets, PartialLabel, PartialSet, SetAutomaton, Sizes
from setaug.decoding.json_schema import read_set_schema
from setaug.decoding.label_tokens import LabelTokens, Tokens
from setaug.errors import SizeError

MAX_LABEL_TOKENS = 24
"""In an open vocabulary, a label this long ends as soon as it can."""
MAX_SIZE = 20
"""The largest size where none is named."""


class SetConstraint(LogitsProcessor):
    """Let a model write only sets: known labels, none twice, and exactly as many as the size says.

    Works with greedy search, sampling and beams, for encoder-decoders and causal models, with any tokenizer. Give
    ``max_new_tokens=constraint.max_new_tokens`` to ``generate``: a shorter limit could cut a set off. Where other
    settings of a generation (``no_repeat_ngram_size``, ``min_new_tokens``) forbid all tokens that a set can go on with,
    the set goes on all the same.

    Parameters
    ----------
    tokenizer
        The model's tokenizer.
    labels
        The labels that may be written; None for an open vocabulary (any text; where labels are separated, without the
        separator's first character). Of labels that the tokenizer writes alike only the first is used; `twins` names
        the others.
    codec
        How the model writes sets.
    sizes
        How many labels a set may have: a number, or several (a ``range``, say). By default 0 to 20, or to the number of
        labels where there are fewer. A size in front of the labels is chosen by the model among these.
    prefix
        Tokens that ``generate`` forces in front of the output (BART's ``<s>``); `for_model` finds them out.
    start
        The place in a row where the output starts; None: where the row ends when a generation begins, which is when a
        row does not go on with one of the last call's (assisted generation goes back, so name the place for it).
    before
        The text right before the output, where it decides how the output is cut into tokens (a prompt that ends
        without a space needs none).
    end
        The token that ends the output; by default the tokenizer's.
    max_label_tokens
        In an open vocabulary, a label this long ends as soon as it can.

    """

    def __init__(
        self,
        tokenizer: Any,
        labels: Iterable[str] | None = None,
        *,
        codec: SetCodec | None = None,
        sizes: SupportsIndex | Iterable[int] | None = None,
        prefix: Sequence[int] = (),
        start: int | None = None,
        before: str = "",
        end: int | None = None,
        max_label_tokens: int = MAX_LABEL_TOKENS,
    ) -> None:
        self.tokenizer = tokenizer
        self.codec = codec or SetCodec()
        self._form = self.codec.form
        self._max_label_tokens = max_label_tokens
        self.start = start
        self.end = tokenizer.eos_token_id if end is None else end
        if self.end is None:
            raise ValueError("the tokenizer has no end-of-sequence token; pass one as end=.")
        label_tokens = LabelTokens(tokenizer, self._form, before)
        self.labels: list[str] | None = None
        self.twins: dict[str, str] = {}
        empty = label_tokens.empty()
        if labels is None:
            self.sizes = _check_sizes(sizes, None)
            written = self._written_sizes(label_tokens)
            self._check_marks()
            first, (spaces, between), last = label_tokens.first(), label_tokens.between(), label_tokens.last()
            behind = first[:1]
            longest = self.sizes.most * (max_label_tokens + len(spaces + between)) + len(first + last)
            self.automaton: SetAutomaton = OpenSets(
                read_label=self._read_label,
                first=first,
                between=between,
                last=last,
                empty=empty,
                max_label_tokens=max_label_tokens,
                sizes=self.sizes,
                written_sizes=written,
                end=self.end,
                prefix=prefix,
            )
        else:
            different = self._keep_different(label_tokens, labels)
            self.sizes = _check_sizes(sizes, len(different["later"]))
            written = self._written_sizes(label_tokens)
            starts = {tokens[0] for tokens in different.get("first", different["later"])}
            behind = tuple(starts) if len(starts) == 1 else ()
            lengths = sorted((max(map(len, each)) for each in zip(*different.values(), strict=True)), reverse=True)
            longest = sum(lengths[: self.sizes.most])
            self.automaton = ClosedSets(
                later=different["later"],
                first=different.get("first"),
                later_last=different.get("later_last"),
                first_last=different.get("first_last"),
                empty=empty,
                sizes=self.sizes,
                written_sizes=written,
                end=self.end,
                prefix=prefix,
            )
        self.openings = {
            size: (*prefix, *tokens, *(behind if size else (*empty, self.end)[:1]))
            for size, tokens in (written or {}).items()
        }
        """How a set of each size begins, with the token that shows where the size ends."""
        n_front = len(prefix) + max(map(len, (written or {0: ()}).values()))
        self.max_new_tokens = n_front + max(longest, len(empty)) + 1
        self._prompt = torch.empty(0, 0, dtype=torch.long)
        self._states: dict[Tokens, object] = {}

    @classmethod
    def for_model(
        cls, model: Any, tokenizer: Any, labels: Iterable[str] | None = None, **options: Any
    ) -> "SetConstraint":
        """Make a constraint that fits a model's way to start and end."""
        settings = model.generation_config
        if model.config.is_encoder_decoder:
            options.setdefault("start", 1)
            if settings.forced_bos_token_id is not None:
                options.setdefault("prefix", (settings.forced_bos_token_id,))
        ends = settings.eos_token_id
        if isinstance(ends, list):
            ends = tokenizer.eos_token_id if tokenizer.eos_token_id in ends else ends[0]
        if ends is not None:
            options.setdefault("end", ends)
        return cls(tokenizer, labels, **options)

    @classmethod
    def from_json_schema(
        cls, tokenizer: Any, schema: Mapping[str, Any], *, model: Any | None = None, **options: Any
    ) -> "SetConstraint":
        """Make a constraint from the JSON schema of an array of different strings.

        Parameters
        ----------
        schema
            Such as ``{"type": "array", "items": {"enum": ["joy", "love"]}, "uniqueItems": True, "maxItems": 2}``; items
            that are any strings make an open vocabulary.
        model
            The model to fit; see `for_model`.
        options
            The other parameters. By default sets are written as JSON, without a size.

        """
        labels, least, most = read_set_schema(schema)
        if most is None:
            most = max(least, MAX_SIZE if labels is None else len(labels))
        options.setdefault("codec", SetCodec(written_as="json", with_size=False))
        options = {"sizes": range(least, most + 1), **options}
        if model is not None:
            return cls.for_model(model, tokenizer, labels, **options)
        return cls(tokenizer, labels, **options)

    def _keep_different(self, label_tokens: LabelTokens, labels: Iterable[str]) -> dict[str, list[Tokens]]:
        """Keep one of the labels that are written alike; return the tokens of each, by where it stands in a set."""
        if isinstance(labels, str):
            raise TypeError(f"expected labels, got the string {labels!r}.")
        different = list(dict.fromkeys(labels))
        if not different:
            raise ValueError("labels must not be empty; None allows any label.")
        form = self._form
        written = {"later": label_tokens.later_labels(different)}
        if form.first != form.before or not form.with_size:
            written["first"] = label_tokens.first_labels(different)
        if form.last != form.after:
            written["later_last"] = label_tokens.later_labels(different, are_last=True)
            if "first" in written:
                written["first_last"] = label_tokens.first_labels(different, are_last=True)
        kept: dict[str, dict[Tokens, str]] = {where: {} for where in written}
        for label, *each in zip(different, *written.values(), strict=True):
            if any(self.end in tokens for tokens in each):
                raise ValueError(f"the label {label!r} contains the end-of-sequence token; remove it.")
            places = list(zip(kept.values(), each, strict=True))
            twin = next((known[tokens] for known, tokens in places if tokens in known), None)
            if twin is not None:
                self.twins[label] = twin
                continue
            for known, tokens in places:
                known[tokens] = label
        self.labels = list(kept["later"].values())
        return {where: list(known) for where, known in kept.items()}

    def _written_sizes(self, label_tokens: LabelTokens) -> dict[int, Tokens] | None:
        if not self.codec.with_size:
            return None
        sizes = sorted(self.sizes.allowed)
        written = dict(zip(sizes, label_tokens.sizes(sizes), strict=True))
        if len(set(written.values())) < len(written):
            raise ValueError(
                "the tokenizer maps different sizes to the same tokens; use SetCodec(with_size=False) or sizes=."
            )
        return written

    def _check_marks(self) -> None:
        """Raise if labels of any text could not be told from what stands around them."""
        if self._form.with_size and not self._form.first:
            raise ValueError(f"sets written as {self.codec.written_as} with their size need a closed vocabulary.")
        for mark in self._form.marks:
            if mark.isspace():
                raise ValueError(f"in an open vocabulary the separator must not be white space, got {mark!r}.")
            if not mark.isascii() and any("\ufffd" in text for text in self._texts):
                raise ValueError(f"the tokenizer could write {mark!r} byte by byte; choose another separator.")

    @cached_property
    def _texts(self) -> list[str]:
        """What each token stands for behind a letter."""
        anchor = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        n_before = len(self.tokenizer.decode(anchor))
        texts = self.tokenizer.batch_decode([[*anchor, token] for token in range(len(self.tokenizer))])
        return [text[n_before:] for text in texts]

    @cached_property
    def _special(self) -> set[int]:
        added = self.tokenizer.added_tokens_decoder.items()
        return {self.end, *self.tokenizer.all_special_ids, *(token for token, one in added if one.special)}

    def _banned(self, unfinished: str) -> Any:
        """Return the tokens that cannot go on with a label that ends with an unfinished escape."""
        if unfinished not in self._banned_behind:
            texts = enumerate(self._texts)
            refused = {token for token, text in texts if self._form.unfinished(unfinished + text) is None}
            self._banned_behind[unfinished] = np.array(sorted(refused | self._special), np.int64)
        return self._banned_behind[unfinished]

    @cached_property
    def _banned_behind(self) -> dict[str, Any]:
        return {}

    def _read_label(self, before: Tokens, tokens: Tokens) -> PartialLabel:
        raw = self.tokenizer.decode(before + tokens).removeprefix(self.tokenizer.decode(before)) if tokens else ""
        is_cut = raw.endswith("\ufffd") and len(tokens) < self._max_label_tokens  # within a letter's bytes
        unfinished = self._form.unfinished(raw)
        label = self._form.read_label(raw) if unfinished == "" and not is_cut else None
        return PartialLabel(label, self._banned(unfinished or ""))

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Forbid all tokens that no set can go on with."""
        start = self._find_start(input_ids) if self.start is None else self.start
        rows = [tuple(row) for row in input_ids[:, start:].tolist()]
        self._states = {row: self._state(row) for row in dict.fromkeys(rows)}
        allowed = torch.zeros(scores.shape, dtype=torch.bool)
        for at, row in enumerate(rows):
            state = self._states[row]
            if state is None:  # a beam that only goes on because nothing better was left; it cannot win
                allowed[at, self.end] = True
                continue
            choices = self.automaton.choices(state)
            if choices.are_banned:
                allowed[at, : len(self.tokenizer)] = True  # a model may have more places than there are tokens
            allowed[at, torch.from_numpy(choices.tokens)] = not choices.are_banned
        allowed = allowed.to(scores.device)
        masked = scores.masked_fill(~allowed, -torch.inf)
        has_none = masked.amax(dim=-1, keepdim=True) == -torch.inf
        if not rows[0] and has_none.all():
            raise ValueError(
                "no token is left to start with: something forces another one to stand first. "
                "Make the constraint with SetConstraint.for_model(model, tokenizer, ...), or name it as prefix=."
            )
        # What stands before in the list has forbidden all that a set can go on with; it is to be a set nevertheless.
        return masked.masked_fill(has_none & allowed, 0) if has_none.any() else masked

    def _find_start(self, input_ids: torch.Tensor) -> int:
        """Return where the output starts: where it did before, if each row continues one of the last call's."""
        start = self._prompt.shape[1]
        if (
            input_ids.shape[1] > start
            and torch.equal(input_ids[:, :start], self._prompt.to(input_ids.device))
            and all(tuple(row) in self._states for row in input_ids[:, start:-1].tolist())
        ):
            return start
        self._prompt = input_ids.clone()
        return input_ids.shape[1]

    def _state(self, tokens: Tokens) -> object | None:
        if not tokens or tokens[:-1] not in self._states:
            return self._walk(tokens)
        before = self._states[tokens[:-1]]
        return None if before is None else self.automaton.step(before, tokens[-1])

    def _walk(self, tokens: Sequence[int]) -> object | None:
        state: object | None = self.automaton.start()
        for token in tokens:
            state = None if state is None else self.automaton.step(state, token)
        return state

    def read(self, tokens: Sequence[int]) -> tuple[tuple[str, ...], int | None] | None:
        """Read the labels and the size that were written (without what stands before the output).

        None where the tokens are no set that the constraint allows, or were cut off.
        """
        state = self._walk([int(token) for token in tokens])
        reading = None if state is None else self.automaton.reading(state)
        if reading is None or not reading.has_ended:
            return None
        return self._named(reading), reading.size

    def unreadable(self) -> list[str]:
        """Return the known labels that cannot be read back from the text that the tokenizer makes of them.

        `read` knows them by their tokens; who gets only the text (from a server) does not.
        """
        if self.labels is None or not isinstance(self.automaton, ClosedSets):
            return []
        trie, form = self.automaton.label_tries[-1], self._form
        rows = zip(trie.items.tolist(), trie.rows.tolist(), trie.lengths.tolist(), strict=True)
        tokens = {item: row[:length] for item, row, length in rows}
        texts = self.tokenizer.batch_decode([tokens[at] for at in range(len(tokens))], skip_special_tokens=True)
        written = [form.before + form.encode_label(label) + form.last for label in self.labels]
        pairs = zip(self.labels, texts, written, strict=True)
        return [*self.twins, *(label for label, text, whole in pairs if text.strip() != whole.strip())]

    def _named(self, reading: PartialSet) -> tuple[str, ...]:
        return tuple(label if isinstance(label, str) else (self.labels or [])[label] for label in reading.labels)


def _check_sizes(sizes: SupportsIndex | Iterable[int] | None, n_labels: int | None) -> Sizes:
    most = MAX_SIZE if n_labels is None else min(n_labels, MAX_SIZE)
    given = range(most + 1) if sizes is None else [sizes] if isinstance(sizes, SupportsIndex) else sizes
    allowed = frozenset(map(index, given))
    if not allowed or min(allowed) < 0:
        raise ValueError(f"sizes must be integers of at least 0, got {sorted(allowed)}.")
    if n_labels is not None and max(allowed) > n_labels:
        if min(allowed) > n_labels:
            raise SizeError(f"there are only {n_labels} labels, too few for a set of {min(allowed)}.")
        allowed = frozenset(size for size in allowed if size <= n_labels)
    return Sizes(allowed)
