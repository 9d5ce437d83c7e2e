"""Elements of HTML and SVG: tables, matrices, bar charts, labels. Whatever is not `Markup` is escaped."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

from markupsafe import Markup

MAX_LABEL = 120
"""Labels are truncated to this number of characters."""
MAX_TEXT = 600
"""Texts are truncated to this number of characters."""
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNFOLDED = 12
"""Sortable tables with more rows are folded."""
_ROW, _LETTER, _LONGEST, _NUMBER = 22, 8, 140, 110  # pixels of a bar chart; a phone is 360 wide


def legal(text: str) -> str:
    r"""Replace what XML 1.0 does not allow, and UTF-8 cannot encode.

    Examples
    --------
    >>> legal("a\x00b")
    'a\ufffdb'

    """
    return _ILLEGAL.sub("\ufffd", text)


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Concatenate parts, each escaped unless it is markup."""
    return Markup.escape(between).join(parts)


def element(name: str, *content: str, **attributes: str | float | None) -> Markup:
    """Return an element; ``class_`` becomes ``class``, ``aria_label`` becomes ``aria-label``, None omits the attribute.

    Examples
    --------
    >>> print(element("td", "a < b", element("b", "c"), class_="wide", title='"', id=None))
    <td class="wide" title="&#34;">a &lt; b<b>c</b></td>

    """
    given = (
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, join(given), join(content))


def label(name: str) -> Markup:
    """Show a label; right-to-left text does not affect what is around it."""
    return element("bdi", shorten(name, MAX_LABEL), class_="label")


def shorten(text: str, most: int) -> str:
    """Truncate a text to a number of characters, and mark it.

    Examples
    --------
    >>> shorten("abcdefgh", 3)
    'abc… (8 characters)'

    """
    return text if len(text) <= most else f"{text[:most].rstrip()}… ({len(text):,} characters)"


def percent(share: float | None) -> str:
    """Format a fraction in percent; a dash for None.

    Examples
    --------
    >>> percent(0.12345), percent(None)
    ('12.35', '-')

    """
    return "-" if share is None else f"{100 * share:.2f}"


def facts(values: Mapping[str, str]) -> Markup:
    """Return a short list of names and values."""
    return element("dl", *(element("div", element("dt", name), element("dd", what)) for name, what in values.items()))


def scroll_box(content: Markup, name: str) -> Markup:
    """Return a box that scrolls on a narrow screen, also by keyboard."""
    return element("div", content, class_="scroll", tabindex=0, role="region", aria_label=name)


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1, sortable: bool = False
) -> Markup:
    """Return a table whose first `names` columns are names and whose other columns are numbers.

    A `sortable` table can be sorted and searched, if scripts are enabled; if it is long, it is folded.
    """
    sides = ["name" if at < names else None for at in range(len(header))]
    head = [element("th", name, scope="col", class_=side) for name, side in zip(header, sides, strict=True)]
    body = [[element("th", first, scope="row", class_="name"), *map(_cell, rest, sides[1:])] for first, *rest in rows]
    shown = _table(caption, head, body, "sortable" if sortable else None)
    return element("details", element("summary", caption), shown) if sortable and len(body) > _UNFOLDED else shown


def beside(*parts: Markup) -> Markup:
    """Return parts side by side on a wide screen, one below the other on a narrow one."""
    return element("div", *parts, class_="beside")


def in_row(first: Markup, *others: Markup) -> Markup:
    """Return parts in a row if they fit; the first gets the remaining width."""
    return element("div", first, *others, class_="row")


def matrix(
    caption: str,
    corner: str,
    names: Sequence[str],
    count: Callable[[int, int], int],
    *,
    show: Callable[[str], str] = str,
    upright: bool = False,
) -> Markup:
    """Return a square matrix of counts, larger counts darker. Long column names can be set `upright`."""
    counts = [[count(i, j) for j in range(len(names))] for i in range(len(names))]
    most = max((n for row in counts for n in row), default=0) or 1
    head = [element("th", corner, scope="col", class_="name"), *(element("th", show(n), scope="col") for n in names)]
    body = []
    for i, (name, row) in enumerate(zip(names, counts, strict=True)):
        cells = [_shaded(n, most, is_same=i == j) for j, n in enumerate(row)]
        body.append([element("th", show(name), scope="row", class_="name"), *cells])
    return _table(caption, head, body, "matrix upright" if upright else "matrix")


def _cell(content: str, side: str | None) -> Markup:
    return element("td", content, class_=side)


def _shaded(n: int, most: int, *, is_same: bool) -> Markup:
    shade = f"--shade:{(n / most) ** 0.5:.2f}" if n else None  # a square root, so that small counts differ from zero
    return element("td", f"{n:,}" if n else "·", class_="same" if is_same else None, style=shade)


def _table(caption: str, head: Iterable[Markup], body: Iterable[Iterable[Markup]], kind: str | None) -> Markup:
    rows = join((element("tr", *row) for row in body), "\n")
    parts = element("caption", caption), element("thead", element("tr", *head)), element("tbody", rows)
    return scroll_box(element("table", *parts, class_=kind), caption)


def bars(title: str, values: Sequence[tuple[str, int]]) -> Markup:
    """Return a bar chart with the number and the fraction of each value.

    Examples
    --------
    >>> bars("Sets by size", [("1", 3), ("2", 1)]).count("<rect")
    2

    """
    most, whole = max((n for _, n in values), default=0) or 1, sum(n for _, n in values) or 1
    left = _LETTER * (1 + max((len(name) for name, _ in values), default=0))
    width, height = left + _LONGEST + _NUMBER, _ROW * len(values)
    parts = []
    for at, (name, n) in enumerate(values):
        middle, length = at * _ROW + _ROW / 2, ceil(_LONGEST * n / most)
        parts += [
            element("text", name, x=left - _LETTER, y=middle, class_="name"),
            element("rect", x=left, y=middle - 8, width=length, height=16, rx=2),
            element("text", f"{n:,} ({n / whole:.1%})", x=left + length + 6, y=middle),
        ]
    told = f"{title}: " + "; ".join(f"{name}: {n:,}" for name, n in values)
    size: dict[str, str | float] = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}
    drawing = element("svg", *parts, class_="bars", role="img", aria_label=told, **size)
    return element("figure", element("figcaption", title), drawing)
