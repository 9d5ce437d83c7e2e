"""The frame of a page: head, style and the small script that sorts tables. Without the script nothing is missing."""

from collections.abc import Sequence
from dataclasses import dataclass

from setaug import __version__
from setaug.pages.markup import Markup, element, joined

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #5f6b78; --line: #d5dbe1; --back: #fff; --box: #f4f6f8;
  --blue: 47 111 222; --good: #1a7f37; --bad: #b3261e; --miss: #8a5300 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf2; --soft: #a3afbb; --line: #39434d; --back: #14181d; --box: #1d232a;
    --blue: 110 168 255; --good: #57c97a; --bad: #ff8a80; --miss: #f0b429 }
}
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--ink);
  background: var(--back); max-width: 72rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25 } h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem }
p, ul { max-width: 46rem } .soft, footer, figcaption, caption, dt { color: var(--soft) }
a { color: rgb(var(--blue)) }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0; list-style: none }
.answer { font-size: 1.1rem; border-left: 4px solid rgb(var(--blue)); padding-left: 0.8rem }
dl { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1rem 0 }
dl div { background: var(--box); border-radius: 6px; padding: 0.5rem 0.9rem } dt { font-size: 0.85rem }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums }
.scroll { overflow-x: auto; margin: 0.75rem 0; max-width: 100% }
.scroll:focus-visible, button:focus-visible, input:focus-visible {
  outline: 2px solid rgb(var(--blue)); outline-offset: 2px }
table { border-spacing: 0; font-variant-numeric: tabular-nums; font-size: 0.94rem }
caption, figcaption { max-width: calc(100vw - 2rem); text-align: left; padding-bottom: 0.35rem; font-size: 0.94rem }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.7rem; text-align: right; vertical-align: top;
  overflow-wrap: normal }
tr > :first-child { position: sticky; left: 0; background: var(--back) }
.name { text-align: left } tbody th { font-weight: 400 } thead th { font-weight: 600; vertical-align: bottom }
td .label, th .label { display: inline-block; max-width: min(20rem, 45vw); overflow-wrap: break-word }
.matrix { border-collapse: collapse }
.matrix td { text-align: center; vertical-align: middle; min-width: 2.6rem;
  background: rgb(var(--blue) / calc(var(--shade, 0) * 0.55));
  border: 1px solid var(--line); print-color-adjust: exact }
.matrix thead th { text-align: center } .matrix thead .name { text-align: left; white-space: nowrap }
.matrix th .label { max-width: none; white-space: nowrap }
.upright thead .label { writing-mode: vertical-rl; transform: rotate(180deg) }
.matrix td.same { border: 2px solid var(--soft) }
figure { margin: 0.75rem 0 } svg { display: block } .bars rect { fill: rgb(var(--blue)); print-color-adjust: exact }
.bars text { font-size: 13px; fill: var(--ink); dominant-baseline: central } .bars .name { text-anchor: end }
article { border: 1px solid var(--line); border-radius: 6px; padding: 0.25rem 1rem 0.75rem; margin: 1rem 0;
  break-inside: avoid } article h3 { margin-top: 0.5rem } article p { max-width: none; margin: 0.4rem 0 }
blockquote { margin: 0.4rem 0; white-space: pre-line }
.mark { display: inline-block; border: 1px solid; border-radius: 4px; padding: 0 0.4rem; margin: 0.1rem 0 }
.mark.right { color: var(--good) } .mark.missing { color: var(--miss); border-style: dashed }
.mark.superfluous { color: var(--bad); border-style: double; border-width: 3px }
.told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
footer { margin: 3rem 0 1rem; font-size: 0.9rem }
thead button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit; text-decoration: underline dotted }
[aria-sort=ascending] button::after { content: " ↑" } [aria-sort=descending] button::after { content: " ↓" }
.find { display: block; margin: 0.75rem 0 0 } input { font: inherit; padding: 0.2rem 0.5rem; max-width: 100% }
@media print {
  html { font-size: 10.5pt } body { font-size: 1rem; max-width: none; padding: 0 } nav, .find { display: none }
  .scroll { overflow: visible } tr > :first-child { position: static } svg { max-width: 100%; height: auto }
  h2, h3, caption, figcaption { break-after: avoid } tr, figure { break-inside: avoid }
}
"""

SCRIPT = """
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
"""


@dataclass(frozen=True)
class Section:
    """Hold a part of a page under a heading of its own."""

    name: str
    """What links within the page call it."""
    heading: str
    parts: Sequence[Markup]


def frame(title: str, about: Sequence[Markup], sections: Sequence[Section]) -> str:
    """Give a whole page: a title, what it is about, links to its sections, and these."""
    links = [element("li", element("a", section.heading, href=f"#{section.name}")) for section in sections]
    body = [
        element("header", element("h1", title), *about),
        *([element("nav", element("ul", *links), aria_label="Sections")] if len(links) > 1 else []),
        element("main", joined(map(_shown, sections), "\n")),
        element("footer", f"Made by setaug {__version__}."),
        Markup(f"<script>{SCRIPT}</script>"),
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    whole = joined(body, "\n")
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}{element("title", title)}<style>{STYLE}</style></head>\n'
        f"<body>\n{whole}\n</body></html>\n"
    )


def _shown(section: Section) -> Markup:
    return element("section", element("h2", section.heading), *section.parts, id=section.name)
