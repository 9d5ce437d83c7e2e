"""Parse the answer of a language model as a set."""

import re
from dataclasses import dataclass

from setaug.codec import DecodedSet, SetCodec, repeats
from setaug.predictions import Prediction
from setaug.prompting.prompt import LABELS
from setaug.vocabulary import LabelIndex

MAX_ANSWER = 1_000_000
"""Maximum characters of an answer that are parsed, without reasoning; only hostile answers are longer."""
_BREAKS = re.compile("[\r\n]+")
_FENCE = "```"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
UNKNOWN = ("keep", "drop")
"""What to do with labels that are not in the vocabulary."""


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """An answer as a prediction, and the changes to it: a `DecodedSet` whose labels were looked up."""

    prediction: Prediction
    mapped: tuple[str, ...]
    """Parts that were matched to a label despite differences in case or whitespace."""
    dropped: tuple[str, ...]
    """Parts that were dropped, because they match no label."""


@dataclass(frozen=True, kw_only=True)
class AnswerReader:
    """Parses answers.

    The labels are expected in the format of the codec: in the first non-empty line, or in all lines if the format may
    have several (JSON). Reasoning (``<think>``) is skipped, and so is everything after the first million characters. If
    the separator is missing and all labels are known, they may also be in separate lines, or separated by commas.

    Parameters
    ----------
    index
        The known labels; None for an open vocabulary.
    unknown
        ``keep`` labels that are not known, or ``drop`` them.

    """

    codec: SetCodec
    index: LabelIndex | None = None
    unknown: str = "keep"

    def read(self, text: str) -> ReadAnswer:
        """Parse one answer; never raises.

        Examples
        --------
        >>> reader = AnswerReader(codec=SetCodec(), index=LabelIndex(["joy", "love"]))
        >>> reading = reader.read("3 | Joy | love | mirth")
        >>> reading.prediction.labels, reading.prediction.unknown, reading.mapped
        (('joy', 'love', 'mirth'), ('mirth',), ('Joy',))

        """
        said = (_without_name(line.strip()) for line in _BREAKS.split(_without_thoughts(text)[:MAX_ANSWER]))
        lines = [line for line in said if line.strip() and not line.startswith(_FENCE)]
        is_one_line = self.codec.form.is_one_line
        found = self.codec.decode("\n".join(lines[:1] if is_one_line else lines))
        if len(found.labels) <= 1 and self.index is not None:
            found = self._read_list(lines, found)
        return self._settle(found, text)

    def _read_list(self, lines: list[str], found: DecodedSet) -> DecodedSet:
        """Parse labels in separate lines or separated by commas, if all of them are known."""
        assert self.index is not None
        if any(self.index.find(label) for label in found.labels) and len(lines) == 1:
            return found
        for parts in (lines, lines[0].split(",") if lines else []):
            labels = [_BULLET.sub("", part).strip() for part in parts]
            if len(labels) > 1 and all(self.index.find(label) for label in labels):
                return DecodedSet(tuple(dict.fromkeys(labels)), None, repeats(labels))
        return found

    def _settle(self, found: DecodedSet, text: str) -> ReadAnswer:
        labels: dict[str, None] = {}
        repeated, mapped, unknown, dropped = list(found.repeated), [], [], []
        for written in found.labels:
            label = written if self.index is None else self.index.find(written)
            if label is None and self.unknown == "drop":
                dropped.append(written)
                continue
            if label is None:
                label = written
                unknown.append(written)
            elif label != written:
                mapped.append(written)
            if label in labels:
                repeated.append(label)
            labels[label] = None
        prediction = Prediction(
            labels=tuple(labels),
            size=found.size,
            generation=text,
            repeated=tuple(repeated),
            unknown=None if self.index is None else tuple(unknown),
            malformed=found.malformed,
        )
        return ReadAnswer(prediction, tuple(mapped), tuple(dropped))


def _without_name(line: str) -> str:
    """Drop the prefix of labels in a prompt, if an answer repeats it."""
    return line[len(LABELS) :] if line.casefold().startswith(LABELS.casefold()) else line


def _without_thoughts(text: str) -> str:
    """Drop everything up to the last ``</think>``, and everything after an unclosed ``<think>``."""
    return text.rpartition("</think>")[2].partition("<think>")[0]
