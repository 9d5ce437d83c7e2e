"""The tokens of the parts of a set: sizes, the separator, and labels, first or later."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from setaug.codec import SetCodec

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
    codec
        How sets are written.
    before
        The text right before the output (the end of the prompt).

    """

    tokenizer: Any
    codec: SetCodec
    before: str = ""

    def sizes(self, sizes: Iterable[int]) -> list[Tokens]:
        """Return the tokens of each size at the start of the output."""
        return self._parts([str(size) for size in sizes], (self.before,))

    def first_labels(self, labels: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each label at the start of the output."""
        cut = self._parts([self.codec.encode_label(label) for label in labels], (self.before,))
        return _check_written(labels, cut, nothing=())

    def later_labels(self, labels: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each label together with the separator before it."""
        parts = [self.codec.separator + self.codec.encode_label(label) for label in labels]
        nothing, *cut = self._parts([self.codec.separator, *parts], _ANCHORS)
        return _check_written(labels, cut, nothing=nothing)

    def separator(self) -> tuple[Tokens, Tokens]:
        """Return the tokens of the spaces before the separator's mark (if they have any), and those of the mark."""
        cut = self._parts([self.codec.separator + label for label in _PROBES], _ANCHORS)
        for stop in range(1, min(map(len, cut))):
            tokens = cut[0][:stop]
            if any(other[:stop] != tokens for other in cut):
                break
            if self.tokenizer.decode(tokens).strip() == self.codec.mark:
                n_spaces = next(at for at in range(stop) if self.tokenizer.decode(tokens[: at + 1]).strip())
                return tokens[:n_spaces], tokens[n_spaces:]
        raise ValueError(
            f"the tokenizer does not keep the separator {self.codec.separator!r} apart from labels; "
            "choose another separator."
        )

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


def _check_written(labels: Sequence[str], cut: list[Tokens], nothing: Tokens) -> list[Tokens]:
    for label, tokens in zip(labels, cut, strict=True):
        if tokens == nothing:
            raise ValueError(f"the tokenizer writes nothing for the label {label!r}; leave it out.")
    return cut
