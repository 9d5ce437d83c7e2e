"""The tokens of the parts of a written set: sizes, labels with the text around them, and the text between labels."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from setaug.forms.form import WrittenForm

Tokens: TypeAlias = tuple[int, ...]
_ANCHORS = ("1", "a", "word")
"""Texts to put before a part, because the context decides how its first letters are tokenized."""
_PROBES = ("apple", "the", "zoo", "I")
"""Labels that begin differently, to find the tokens of the separator alone."""


@dataclass(frozen=True)
class LabelTokens:
    """The tokens of the parts of a written set, each as inside a complete text.

    Parameters
    ----------
    tokenizer
        Any tokenizer with the interface of transformers.
    form
        How sets are written.
    before
        The text right before the output (the end of the prompt).

    """

    tokenizer: Any
    form: WrittenForm
    before: str = ""

    def sizes(self, sizes: Iterable[int]) -> list[Tokens]:
        """Return the tokens of each size at the start of the output."""
        return self._parts([self.form.size_text(size) for size in sizes], (self.before,))

    def empty(self) -> Tokens:
        """Return the tokens of the empty set, after its size."""
        return self._parts([self.form.empty], (self.before + self.form.size_text(0),))[0]

    def first_labels(self, labels: Sequence[str], *, are_last: bool = False) -> list[Tokens]:
        """Return the tokens of each label as the first one, together with the texts before and after it."""
        return self._labels(labels, self.form.first, (self._front,), are_last=are_last)

    def later_labels(self, labels: Sequence[str], *, are_last: bool = False) -> list[Tokens]:
        """Return the tokens of each label as a later one, together with the texts before and after it."""
        anchors = tuple(anchor + self.form.after for anchor in _ANCHORS)
        return self._labels(labels, self.form.before, anchors, are_last=are_last)

    def _labels(self, labels: Sequence[str], before: str, anchors: tuple[str, ...], *, are_last: bool) -> list[Tokens]:
        after = self.form.last if are_last else self.form.after
        parts = [before + self.form.encode_label(label) + after for label in labels]
        nothing, *cut = self._parts([before + after, *parts], anchors)
        for label, tokens in zip(labels, cut, strict=True):
            if tokens == nothing:
                raise ValueError(f"the tokenizer has no tokens for the label {label!r}; remove it.")
        return cut

    def first(self) -> Tokens:
        """Return the tokens before the first label."""
        return sum(self._apart(self.form.first, (self._front,)), ())

    def between(self) -> tuple[Tokens, Tokens]:
        """Return the tokens of the leading spaces of the separator (if they have any), and the others."""
        return self._apart(self.form.between, _ANCHORS)

    def last(self) -> Tokens:
        """Return the tokens after the last label."""
        return self._parts([self.form.last], _ANCHORS)[0]

    @property
    def _front(self) -> str:
        """The text before the opening of the first label."""
        return self.before + self.form.size_text(1)

    def _apart(self, text: str, anchors: tuple[str, ...]) -> tuple[Tokens, Tokens]:
        """Return the tokens of a text before a label: those of spaces at its start, and the others."""
        if not text:
            return (), ()
        found: Counter[Tokens] = Counter()
        for cut in self._parts([text + label for label in _PROBES], anchors):
            starts = (cut[:stop] for stop in range(1, len(cut)))
            found.update(islice((start for start in starts if self.tokenizer.decode(start).strip() == text.strip()), 1))
        if not found:
            raise ValueError(
                f"the tokenizer merges the separator {text!r} with labels; choose another separator, or "
                "another written form."
            )
        ((tokens, _),) = found.most_common(1)
        n_spaces = next(at for at in range(len(tokens)) if self.tokenizer.decode(tokens[: at + 1]).strip())
        return tokens[:n_spaces], tokens[n_spaces:]

    def _parts(self, parts: list[str], anchors: tuple[str, ...]) -> list[Tokens]:
        """Return the tokens of each part after the first anchor whose own tokens it does not change."""
        found: list[Tokens | None] = [None] * len(parts)
        for anchor in anchors:
            (head,) = self._cut([anchor])
            missing = [at for at, tokens in enumerate(found) if tokens is None]
            for at, tokens in zip(missing, self._cut([anchor + parts[at] for at in missing]), strict=True):
                if tokens[: len(head)] == head and len(tokens) > len(head):
                    found[at] = tokens[len(head) :]
        alone = self._cut([part for part, tokens in zip(parts, found, strict=True) if tokens is None])
        rest = iter(alone)
        return [next(rest) if tokens is None else tokens for tokens in found]

    def _cut(self, texts: list[str]) -> list[Tokens]:
        if not texts:
            return []
        return [tuple(ids) for ids in self.tokenizer(texts, add_special_tokens=False)["input_ids"]]
