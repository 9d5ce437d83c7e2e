"""The style sheet: the colours, the rules of a page and those of a graph picture."""

from collections.abc import Mapping
from string import Template

_COLOURS = {
    "ink": ("#1f2933", "#e8edf2"),
    "soft": ("#5f6b78", "#a3afbb"),
    "line": ("#d5dbe1", "#39434d"),
    "back": ("#fff", "#14181d"),
    "box": ("#f4f6f8", "#1d232a"),
    "blue": ("#2f6fde", "#6ea8ff"),
    "edge": ("#8a97a6", "#76838f"),
    "good": ("#1a7f37", "#57c97a"),
    "bad": ("#b3261e", "#ff8a80"),
    "miss": ("#8a5300", "#f0b429"),
}
"""Each colour on light and on dark ground."""
_LIGHT, _DARK = ({name: pair[at] for name, pair in _COLOURS.items()} for at in (0, 1))


def _variables(colours: Mapping[str, str]) -> str:
    return "; ".join(f"--{name}: {colour}" for name, colour in colours.items())


_GRAPH_COLOURS = Template("""
.setaug-order text { fill: $ink } .setaug-order .note text { fill: $soft }
.setaug-order rect { fill: $blue; stroke: $blue }
.setaug-order path { stroke: $edge } .setaug-order .tip { fill: $edge; stroke: none }
""")

GRAPH = f"""
.setaug-order {{ color-scheme: light dark }}
.setaug-order text {{ font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  text-anchor: middle; white-space: pre }}
.setaug-order .note text {{ font-size: 12px }} .setaug-order .free rect {{ stroke-dasharray: 4 3 }}
.setaug-order path {{ fill: none }}
.setaug-order .hit {{ stroke-width: 9px; stroke-opacity: 0; pointer-events: stroke }}
{_GRAPH_COLOURS.substitute(_LIGHT)}
@media (prefers-color-scheme: dark) {{ {_GRAPH_COLOURS.substitute(_DARK)} }}
.setaug-order .edge:hover .line {{ stroke: #e8590c }} .setaug-order .edge:hover .tip {{ fill: #e8590c }}
"""
"""The rules of a graph picture, without variables: not all programs that show SVG know them."""

PAGE = (
    f""":root {{ color-scheme: light dark; {_variables(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(_DARK)} }} }}
{GRAPH}"""
    + """
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--ink);
  background: var(--back); max-width: 88rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
@media (min-width: 64rem) {
  main, .beside { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 2rem }
  .wide { grid-column: 1 / -1 } .beside { align-items: start }
}
.row { display: flex; flex-wrap: wrap; gap: 0 2rem } .row > * { max-width: 100% }
.row > :first-child { flex: 1 1 20rem }
h1 { font-size: 1.6rem; line-height: 1.25 } h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem }
p, ul { max-width: 46rem } .soft, footer, figcaption, caption, dt { color: var(--soft) }
a { color: var(--blue) }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0; list-style: none }
.answer { font-size: 1.1rem; border-left: 4px solid var(--blue); padding-left: 0.8rem }
dl { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1rem 0 }
dl div { background: var(--box); border-radius: 6px; padding: 0.5rem 0.9rem } dt { font-size: 0.85rem }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums }
.scroll { overflow-x: auto; margin: 0.75rem 0; max-width: 100% }
.scroll > .setaug-order { max-width: 100%; height: auto }
.scroll.over { border-right: 2px solid var(--blue) }
.scroll.over::before { content: "scroll sideways →"; position: sticky; left: 0; display: block; width: max-content;
  color: var(--blue); font-size: 0.85rem }
details { margin: 0.75rem 0 } summary { cursor: pointer; color: var(--blue) } details caption { display: none }
pre { margin: 0.75rem 0; padding: 0.6rem 0.9rem; background: var(--box); border-radius: 6px; white-space: pre-wrap }
.scroll:focus-visible, button:focus-visible, input:focus-visible, summary:focus-visible {
  outline: 2px solid var(--blue); outline-offset: 2px }
table { border-spacing: 0; font-variant-numeric: tabular-nums; font-size: 0.94rem }
caption, figcaption { max-width: calc(100vw - 2rem); text-align: left; padding-bottom: 0.35rem; font-size: 0.94rem }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.7rem; text-align: right; vertical-align: top;
  overflow-wrap: normal }
tr > :first-child { position: sticky; left: 0; background: var(--back) }
.name { text-align: left } tbody th { font-weight: 400 } thead th { font-weight: 600; vertical-align: bottom }
td .label, th .label { display: inline-block; max-width: min(20rem, 45vw); overflow-wrap: break-word }
.matrix { border-collapse: collapse }
.matrix td { text-align: center; vertical-align: middle; min-width: 2.6rem;
  background: color-mix(in srgb, var(--blue) calc(var(--shade, 0) * 55%), transparent);
  border: 1px solid var(--line); print-color-adjust: exact }
.matrix thead th { text-align: center } .matrix thead .name { text-align: left; white-space: nowrap }
.matrix th .label { max-width: none; white-space: nowrap }
.upright thead .label { writing-mode: vertical-rl; transform: rotate(180deg) }
.matrix td.same { border: 2px solid var(--soft) }
figure { margin: 0.75rem 0 } svg { display: block } .bars rect { fill: var(--blue); print-color-adjust: exact }
.bars text { font-size: 13px; fill: var(--ink); dominant-baseline: central } .bars .name { text-anchor: end }
article { border: 1px solid var(--line); border-radius: 6px; padding: 0.25rem 1rem 0.75rem; margin: 1rem 0;
  break-inside: avoid } article h3 { margin-top: 0.5rem } article p { max-width: none; margin: 0.4rem 0 }
blockquote { margin: 0.4rem 0; white-space: pre-line }
.mark { display: inline-block; border: 1px solid; border-radius: 4px; padding: 0 0.4rem; margin: 0.1rem 0 }
.mark.right { color: var(--good) } .mark.missing { color: var(--miss); border-style: dashed }
.mark.extra { color: var(--bad); border-style: double; border-width: 3px }
.told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
footer { margin: 3rem 0 1rem; font-size: 0.9rem }
thead button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit; text-decoration: underline dotted }
[aria-sort=ascending] button::after { content: " ↑" } [aria-sort=descending] button::after { content: " ↓" }
.find { display: block; margin: 0.75rem 0 0 } input { font: inherit; padding: 0.2rem 0.5rem; max-width: 100% }
@media print {
  html { font-size: 10.5pt } body { font-size: 1rem; max-width: none; padding: 0 } nav, .find { display: none }
  .scroll { overflow: visible; border: 0 } .scroll::before { display: none }
  tr > :first-child { position: static } svg { max-width: 100%; height: auto }
  h2, h3, caption, figcaption { break-after: avoid } tr, figure { break-inside: avoid }
}
"""
)
"""The rules of a page, those of the graph pictures on it included."""
