"""Tables of a page: plain ones that can be sorted, and matrices whose cells are the darker the more they count."""

from collections.abc import Callable, Mapping, Sequence

from setaug.pages.markup import Markup, element, joined


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    names: int = 1,
    sortable: bool = False,
) -> Markup:
    """Give a table that scrolls in a box of its own where the screen is narrow.

    Parameters
    ----------
    names
        How many columns, from the left, hold names; the others hold numbers. The first names its row.
    sortable
        Whether a reader may sort it and look for rows, where scripts are allowed.

    """
    sides = ["name" if at < names else None for at in range(len(header))]
    head = [element("th", name, scope="col", class_=side) for name, side in zip(header, sides, strict=True)]
    body = [
        element("tr", element("th", first, scope="row", class_="name"), *map(_cell, rest, sides[1:]))
        for first, *rest in rows
    ]
    return _boxed(caption, [head], body, class_="sortable" if sortable else None)


def matrix(
    caption: str,
    corner: str,
    names: tuple[Sequence[str], Sequence[str]],
    count: Callable[[int, int], int],
    *,
    show: Callable[[str], str] = str,
    upright: bool = False,
) -> Markup:
    """Give a matrix of counts: a row for each first name, a column for each second one.

    Cells of a row and a column with the same name have a frame. Long names of columns stand `upright`.
    """
    rows, columns = names
    counts = [[count(i, j) for j in range(len(columns))] for i in range(len(rows))]
    most = max((n for row in counts for n in row), default=0) or 1
    head = [element("th", corner, scope="col", class_="name")]
    head += [element("th", show(name), scope="col") for name in columns]
    body = []
    for name, row in zip(rows, counts, strict=True):
        cells = [_shaded(n, most, name == other) for other, n in zip(columns, row, strict=True)]
        body.append(element("tr", element("th", show(name), scope="row", class_="name"), *cells))
    return _boxed(caption, [head], body, class_="matrix upright" if upright else "matrix")


def facts(pairs: Mapping[str, str]) -> Markup:
    """Give a short list of names and what is known of each."""
    return element("dl", *(element("div", element("dt", name), element("dd", what)) for name, what in pairs.items()))


def _boxed(caption: str, head: Sequence[Sequence[str]], body: Sequence[str], **attributes: str | None) -> Markup:
    whole = element(
        "table",
        element("caption", caption),
        element("thead", *(element("tr", *row) for row in head)),
        element("tbody", joined(body, "\n")),
        **attributes,
    )
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _cell(content: str, side: str | None) -> Markup:
    return element("td", content, class_=side)


def _shaded(n: int, most: int, is_same: bool) -> Markup:
    # A root, so that small counts can still be told from none.
    shade = f"--shade:{(n / most) ** 0.5:.2f}" if n else None
    return element("td", f"{n:,}" if n else "·", class_="same" if is_same else None, style=shade)
