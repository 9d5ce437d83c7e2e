"""Read a page as a browser would, and refuse one that is not well formed or that needs anything else."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "input", "br"}
HEADINGS = {"h1", "h2", "h3", "h4"}


@dataclass
class Table:
    caption: str = ""
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


class Page(HTMLParser):
    """Hold what a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.tables: list[Table] = []
        self.headings: list[tuple[int, str]] = []
        self.seen = ""
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"
        self._check()

    def table(self, caption: str) -> Table:
        (found,) = [table for table in self.tables if caption in table.caption]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute comes twice in <{tag}>"
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"<{tag}> has the attribute {name}"
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "srcset", "action", "data"):
                self.links.append(value or "")
            if name == "style":
                assert "url" not in (value or "")
        if tag in VOID:
            return
        self._open.append(tag)
        if tag == "table":
            self.tables.append(Table())
        elif tag == "tr" and "tbody" in self._open:
            self.tables[-1].rows.append([])
        elif tag in ("th", "td"):
            (self.tables[-1].header if "thead" in self._open else self.tables[-1].rows[-1]).append("")
            assert tag == "td" or dict(attrs)["scope"] in ("row", "col")
        elif tag in HEADINGS:
            self.headings.append((int(tag[1]), ""))
        elif tag == "svg":
            assert dict(attrs)["role"] == "img"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self._open, f"<{tag}/> is no HTML"
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if {"style", "script"} & set(self._open):
            assert "url(" not in data
            assert "@import" not in data
            return
        self.seen += data
        if "caption" in self._open:
            self.tables[-1].caption += data
        elif "th" in self._open or "td" in self._open:
            cells = self.tables[-1].header if "thead" in self._open else self.tables[-1].rows[-1]
            cells[-1] += data
        elif HEADINGS & set(self._open):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    def _check(self) -> None:
        assert self.source.startswith("<!doctype html>\n")
        assert len(set(self.ids)) == len(self.ids)
        assert all(link.startswith("#") and link[1:] in self.ids for link in self.links)
        assert not {"iframe", "object", "embed", "link", "img", "base", "form"} & set(self.tags)
        assert self.tags.count("script") == 1
        levels = [level for level, _ in self.headings]
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        for table in self.tables:
            assert table.caption
            assert all(len(row) == len(table.header) for row in table.rows)
