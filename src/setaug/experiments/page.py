"""Result pages: tables and pictures, as Markdown and as HTML."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from setaug.experiments.plots import Panel, spread
from setaug.storage import open_output

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #5f6b78; --line: #d5dbe1; --back: #fff; --ours: #eaf2ff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf2; --soft: #9aa7b4; --line: #39434d; --back: #14181d; --ours: #1b2c47 }
}
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--ink);
  background: var(--back); max-width: 110rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.5rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.7rem; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
thead th { color: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom }
tbody th { font-weight: 400 } tr.ours { background: var(--ours) } tr.extra th, tr.oracle th { font-style: italic }
code { background: var(--ours); padding: 0.1rem 0.3rem; border-radius: 3px; overflow-wrap: anywhere }
p { max-width: 60rem } figure { margin: 1.5rem 0 } figcaption { color: var(--soft) }
"""


@dataclass(frozen=True)
class Line:
    """A line of a table."""

    cells: Sequence[str]
    role: str = ""
    best: frozenset[int] = frozenset()
    """The cells with the best value of their column."""


@dataclass(frozen=True)
class Table:
    """A table with notes below it."""

    title: str
    header: Sequence[str]
    lines: Sequence[Line]
    notes: Sequence[str] = ()

    def as_markdown(self) -> str:
        """Format as Markdown, the best values in bold."""
        rows = [
            [f"**{cell}**" if at in line.best else cell for at, cell in enumerate(line.cells)] for line in self.lines
        ]
        head = ["| " + " | ".join(self.header) + " |", "|" + "---|" * len(self.header)]
        table = "\n".join(head + ["| " + " | ".join(row) + " |" for row in rows])
        return "\n\n".join([f"## {self.title}", table, *self.notes])

    def as_html(self) -> str:
        """Format as a part of an HTML page."""
        head = "".join(f'<th scope="col">{_breakable(name)}</th>' for name in self.header)
        rows = "\n".join(f'<tr class="{line.role}">{_cells(line)}</tr>' for line in self.lines)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
        notes = "\n".join(_paragraphs(self.notes))
        return f'<h2>{escape(self.title)}</h2>\n<div class="scroll">{table}</div>\n{notes}'


@dataclass(frozen=True)
class Picture:
    """A picture file beside the page."""

    name: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page of an experiment."""

    title: str
    about: Sequence[str]
    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()
    closing: Sequence[str] = ()

    def as_markdown(self) -> str:
        """Format as Markdown."""
        pictures = [f"{picture.caption}\n\n![{picture.caption}]({picture.name})" for picture in self.pictures]
        tables = [table.as_markdown() for table in self.tables]
        return "\n\n".join([f"# {self.title}", *self.about, *tables, *pictures, *self.closing]) + "\n"

    def as_html(self) -> str:
        """Format as HTML that needs no other file but the pictures."""
        body = [f"<h1>{escape(self.title)}</h1>", *_paragraphs(self.about)]
        body += [table.as_html() for table in self.tables]
        body += [_figure(picture) for picture in self.pictures]
        body += _paragraphs(self.closing)
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        return (
            f'<!doctype html>\n<html lang="en"><head>{head}<title>{escape(self.title)}</title>'
            f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
        )

    def write(self, path: Path) -> list[Path]:
        """Write Markdown and HTML files; the path has no suffix. Return their paths."""
        written = []
        for suffix, text in ((".md", self.as_markdown()), (".html", self.as_html())):
            written.append(path.with_name(path.name + suffix))
            with open_output(written[-1]) as stream:
                stream.write(text.encode())
        return written


def panel_table(panel: Panel) -> Table:
    """Return a panel as a table: a line per position, a column per series and for the paper's values."""
    header = [panel.x]
    for series in panel.series:
        header += [series.name, f"{series.name}, paper"] if series.paper else [series.name]
    lines = []
    for position in panel.positions:
        cells = [position]
        for series in panel.series:
            cells.append(spread(series.points[position], panel.digits) if position in series.points else "")
            if series.paper:
                cells.append(f"{series.paper[position]:.{panel.digits}f}" if position in series.paper else "")
        lines.append(Line(cells))
    return Table(f"{panel.title}: {panel.y}", header, lines)


def _figure(picture: Picture) -> str:
    caption = escape(picture.caption)
    image = f'<img src="{escape(picture.name)}" alt="{caption}">'
    return f'<figure><figcaption>{caption}</figcaption><div class="scroll">{image}</div></figure>'


def _breakable(name: str) -> str:
    """Let a long name of a dataset break: go-emotions[min2,train600]."""
    return re.sub(r"(?=\[)|(?<=,)(?! )", "<wbr>", escape(name))


def _cells(line: Line) -> str:
    first, *rest = line.cells
    shown = [f"<b>{escape(cell)}</b>" if at in line.best else escape(cell) for at, cell in enumerate(rest, start=1)]
    return f'<th scope="row">{escape(first)}</th>' + "".join(f"<td>{cell}</td>" for cell in shown)


def _paragraphs(texts: Iterable[str]) -> list[str]:
    """Return paragraphs, with code between backticks."""
    parts = (escape(text).split("`") for text in texts)
    return [
        "<p>" + "".join(f"<code>{one}</code>" if at % 2 else one for at, one in enumerate(each)) + "</p>"
        for each in parts
    ]
