"""Elements of HTML and SVG. Whatever is not `Markup` already is escaped, so labels and texts cannot become markup."""

from collections.abc import Iterable
from html import escape

from setaug.orders.pictures import ILLEGAL

MAX_LABEL = 120
"""Labels are cut to so many characters,"""
MAX_TEXT = 600
"""and texts to so many: a page stays readable whatever it is made from."""


class Markup(str):
    """Mark a string as HTML. What is put together from it with ``+`` or an f-string is a plain string again."""

    __slots__ = ()


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Put parts one after the other, each escaped where it is not markup.

    >>> joined(["a < b", element("b", "bold")], ", ")
    'a &lt; b, <b>bold</b>'

    """
    return Markup(_escaped(between).join(map(_escaped, parts)))


def element(name: str, *content: str, **attributes: str | float | None) -> Markup:
    """Give an element with its content and attributes.

    An attribute that is None is left out. As Python's names hold no hyphen and no keyword, ``aria_label`` stands for
    ``aria-label`` and ``class_`` for ``class``.

    >>> element("td", 'say "a < b"', class_="wide", title='"')
    '<td class="wide" title="&quot;">say &quot;a &lt; b&quot;</td>'

    """
    given = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(_legal(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return Markup(f"<{name}{''.join(given)}>{joined(content)}</{name}>")


def paragraph(*content: str) -> Markup:
    """Give a paragraph."""
    return element("p", *content)


def label(name: str) -> Markup:
    """Show a label; one that is written from right to left leaves the words around it in their place."""
    return element("bdi", shortened(name, MAX_LABEL), class_="label")


def quoted(text: str) -> Markup:
    """Show a text as it stands in the data, cut short where it is long."""
    return element("bdi", shortened(text, MAX_TEXT), dir="auto")


def shortened(text: str, most: int) -> str:
    """Cut a text to so many characters, and say so.

    >>> shortened("abcdefgh", 3)
    'abc… (8 characters)'

    """
    return text if len(text) <= most else f"{text[:most].rstrip()}… ({len(text):,} characters)"


def percent(share: float | None) -> str:
    """Show a share; a dash where it is not known.

    >>> percent(0.12345), percent(None)
    ('12.35', '-')

    """
    return "-" if share is None else f"{100 * share:.2f}"


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else escape(_legal(text))


def _legal(text: str) -> str:
    return ILLEGAL.sub("\ufffd", text)
