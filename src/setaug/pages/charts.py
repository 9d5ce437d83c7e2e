"""Charts as SVG within a page, in its colours."""

from collections.abc import Sequence
from math import ceil

from setaug.pages.markup import Markup, element

ROW, LETTER, LONGEST, NUMBER = 22, 8, 140, 110
"""In pixels: a bar with its room, a letter of its name, the longest bar, its number. A phone is 360 wide."""


def bars(title: str, values: Sequence[tuple[str, int]]) -> Markup:
    """Draw a bar for each value, with its number and its share of the whole.

    >>> bars("How many sets have so many labels", [("1", 3), ("2", 1)]).count("<rect")
    2

    """
    most, whole = max((n for _, n in values), default=0) or 1, sum(n for _, n in values) or 1
    left = LETTER * (1 + max((len(name) for name, _ in values), default=0))
    width, height = left + LONGEST + NUMBER, ROW * len(values)
    parts = []
    for at, (name, n) in enumerate(values):
        middle = at * ROW + ROW / 2
        length = ceil(LONGEST * n / most)
        text = f"{n:,} ({n / whole:.1%})"
        parts += [
            element("text", name, x=left - LETTER, y=middle, class_="name"),
            element("rect", x=left, y=middle - 8, width=length, height=16, rx=2),
            element("text", text, x=left + length + 6, y=middle),
        ]
    view, told = f"0 0 {width} {height}", _told(title, values)
    drawing = element(
        "svg", *parts, class_="bars", role="img", aria_label=told, width=width, height=height, viewBox=view
    )
    return element("figure", element("figcaption", title), drawing)


def _told(title: str, values: Sequence[tuple[str, int]]) -> str:
    return f"{title}: " + "; ".join(f"{name}: {n:,}" for name, n in values)
