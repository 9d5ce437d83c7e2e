"""Tables of what was measured beside what the paper gives, for people: Markdown and HTML from one source."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from setaug.experiments.report import markdown_table
from setaug.files import open_output

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
    """Hold a line of a table: what stands in it, and the role of its row."""

    cells: Sequence[str]
    role: str = ""
    best: frozenset[int] = frozenset()
    """The cells that hold the best value of their column."""


@dataclass(frozen=True)
class Table:
    """Hold a table and what has to be said about it."""

    title: str
    header: Sequence[str]
    lines: Sequence[Line]
    notes: Sequence[str] = ()

    def as_markdown(self) -> str:
        """Write it in Markdown, the best values in bold."""
        rows = [
            [f"**{cell}**" if at in line.best else cell for at, cell in enumerate(line.cells)] for line in self.lines
        ]
        parts = [f"## {self.title}", markdown_table(self.header, rows)]
        return "\n\n".join(parts + list(self.notes))

    def as_html(self) -> str:
        """Write it as a part of a page."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.header)
        rows = "\n".join(f'<tr class="{line.role}">{_cells(line)}</tr>' for line in self.lines)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
        notes = "\n".join(f"<p>{_inline(note)}</p>" for note in self.notes)
        return f'<h2>{escape(self.title)}</h2>\n<div class="scroll">{table}</div>\n{notes}'


@dataclass(frozen=True)
class Picture:
    """Name a picture file beside a page."""

    name: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """Hold all that is told about an experiment."""

    title: str
    about: Sequence[str]
    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()
    closing: Sequence[str] = ()

    def as_markdown(self) -> str:
        """Write the page in Markdown."""
        pictures = [f"{picture.caption}\n\n![{picture.caption}]({picture.name})" for picture in self.pictures]
        tables = [table.as_markdown() for table in self.tables]
        return "\n\n".join([f"# {self.title}", *self.about, *tables, *pictures, *self.closing]) + "\n"

    def as_html(self) -> str:
        """Write the page as HTML that needs nothing but the pictures beside it."""
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
        """Write the page as Markdown and as HTML under a name without suffix; give the files."""
        written = []
        for suffix, text in ((".md", self.as_markdown()), (".html", self.as_html())):
            written.append(path.with_name(path.name + suffix))
            with open_output(written[-1]) as stream:
                stream.write(text.encode())
        return written


def _figure(picture: Picture) -> str:
    caption = escape(picture.caption)
    image = f'<img src="{escape(picture.name)}" alt="{caption}">'
    return f'<figure><figcaption>{caption}</figcaption><div class="scroll">{image}</div></figure>'


def _cells(line: Line) -> str:
    first, *rest = line.cells
    shown = [f"<b>{escape(cell)}</b>" if at in line.best else escape(cell) for at, cell in enumerate(rest, start=1)]
    return f'<th scope="row">{escape(first)}</th>' + "".join(f"<td>{cell}</td>" for cell in shown)


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [f"<p>{_inline(text)}</p>" for text in texts]


def _inline(text: str) -> str:
    """Show what stands between backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
