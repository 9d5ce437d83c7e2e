"""A full page: head, style, sections and a small script that sorts tables. The page works without the script."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from setaug import __version__
from setaug.reporting.html import element, join, legal
from setaug.reporting.style import PAGE

_SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], rows = [...body.rows];
  const value = (row, at) => {
    const text = row.cells[at].textContent.trim(), number = parseFloat(text.replaceAll(",", ""));
    return heads[at].classList.contains("name") ? text.toLowerCase() : isNaN(number) ? -Infinity : number;
  };
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isName = head.classList.contains("name");
      const was = head.getAttribute("aria-sort"), first = isName ? "ascending" : "descending";
      const now = was !== first ? first : isName ? "descending" : "ascending", sign = now === "ascending" ? 1 : -1;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", now);
      const compare = (a, b) => a < b ? -sign : a > b ? sign : 0;
      body.append(...rows.sort((a, b) => compare(value(a, at), value(b, at))));
    });
  });
  if (rows.length <= 20) continue;
  const find = document.createElement("label"), input = document.createElement("input");
  input.type = "search";
  find.className = "find";
  find.append("Find: ", input);
  table.parentElement.before(find);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    rows.forEach(row => { row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted); });
  });
}
const boxes = document.querySelectorAll(".scroll");
const mark = () => boxes.forEach(box => box.classList.toggle("over", box.scrollWidth > box.clientWidth + 1));
addEventListener("resize", mark);
document.querySelectorAll("details").forEach(one => one.addEventListener("toggle", mark));
mark();
"""


@dataclass(frozen=True)
class Section:
    """A part of a page under its own heading."""

    name: str
    """The anchor for links within the page."""
    heading: str
    parts: Sequence[Markup]
    """The content; a section without content is omitted."""
    is_wide: bool = True
    """Whether it has the full width of a wide screen, or half of it."""


def page(title: str, about: Sequence[Markup], sections: Sequence[Section]) -> str:
    """Return a self-contained page: a title, an introduction, links to the sections, and the sections."""
    shown = [section for section in sections if section.parts]
    links = [element("li", element("a", section.heading, href=f"#{section.name}")) for section in shown]
    body = [
        element("header", element("h1", title), *about),
        *([element("nav", element("ul", *links), aria_label="Sections")] if len(links) > 1 else []),
        element("main", join(map(_section, shown), "\n")),
        element("footer", f"Made by setaug {__version__}."),
        element("script", Markup(_SCRIPT)),
    ]
    head = Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">')
    head += element("title", title) + element("style", Markup(PAGE))
    whole = Markup('<!doctype html>\n<html lang="en"><head>{}</head>\n<body>\n{}\n</body></html>\n')
    return legal(whole.format(head, join(body, "\n")))


def _section(section: Section) -> Markup:
    width = "wide" if section.is_wide else None
    return element("section", element("h2", section.heading), *section.parts, id=section.name, class_=width)
