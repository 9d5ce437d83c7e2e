"""CARD (paper, section 3.2): an order of labels and the set's size, as text and back, in a written form of choice."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from setaug.forms.form import DecodedSet as DecodedSet
from setaug.forms.form import WrittenForm
from setaug.registry import DEFAULT_FORM, DEFAULT_SEPARATOR, FORMS, check_choice


@dataclass(frozen=True, kw_only=True)
class SetCodec:
    r"""Encodes an order of labels as text, and decodes it.

    A label may contain any characters; ambiguous ones are escaped. Decoding never raises: the text comes from a model,
    so errors in it are reported in the result.

    Parameters
    ----------
    separator
        The text between two labels, for forms with a separator. Spaces around it are optional when decoding.
    with_size
        Whether the size of the set comes first (CARD).
    written_as
        The written form, by name; see `registry.FORMS`.

    Examples
    --------
    >>> codec = SetCodec()
    >>> codec.encode(["volleyball", "match", "event"])
    '3 | volleyball | match | event'
    >>> codec.decode("3 | volleyball | match | match")
    DecodedSet(labels=('volleyball', 'match'), size=3, repeated=('match',), malformed=())
    >>> print(codec.encode(["a|b", "1984"]))
    2 | a\|b | \1984
    >>> codec.encode([])
    '0'
    >>> print(SetCodec(written_as="json").encode(["volleyball", "match"]))
    {"size": 2, "labels": ["volleyball", "match"]}

    """

    separator: str = DEFAULT_SEPARATOR
    with_size: bool = True
    written_as: str = DEFAULT_FORM

    def __post_init__(self) -> None:
        check_choice("written_as", self.written_as, FORMS)
        if self.separator != DEFAULT_SEPARATOR and not FORMS[self.written_as].takes_separator:
            raise ValueError(f"written_as={self.written_as!r} does not support a separator, got {self.separator!r}.")
        _ = self.form

    @cached_property
    def form(self) -> WrittenForm:
        """The written form."""
        entry = FORMS[self.written_as]
        options = {"separator": self.separator} if entry.takes_separator else {}
        form: WrittenForm = entry.load()(with_size=self.with_size, **options)
        return form

    def encode(self, order: Iterable[str]) -> str:
        """Return the labels as text, in the given order, after their number."""
        if isinstance(order, str):
            raise TypeError(f"expected labels, got the string {order!r}.")
        return self.form.encode(order)

    def encode_label(self, label: str) -> str:
        """Return one label with escapes, the same at any position."""
        return self.form.encode_label(label)

    def decode(self, text: str) -> DecodedSet:
        """Return the labels and the size in any text; never raises."""
        return self.form.decode(text)


def repeats(labels: Iterable[str]) -> tuple[str, ...]:
    """Return each further mention of a label that was written before.

    Examples
    --------
    >>> repeats(["joy", "love", "joy", "joy"])
    ('joy', 'joy')

    """
    seen: set[str] = set()
    return tuple(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
