"""Hooks of the documentation site: README is its home, notebooks are pages, and linked files are copied."""

import json
import posixpath
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
BESIDE = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "results").rglob("*.md"))),
)
"""Pages that are not in docs/."""
LINK = re.compile(r'(\]\(|src=")\s*(?!\w+:)([^)#\s"]+)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, the notebooks, and the other files that pages link to."""
    pages = {name: (ROOT / name).read_text() for name in BESIDE}
    for notebook in sorted((ROOT / "docs").rglob("*.ipynb")):
        pages[notebook.relative_to(ROOT).with_suffix(".md").as_posix()] = as_markdown(notebook)
    for name, text in pages.items():
        files.append(File.generated(config, site_name(name), content=text))
    for page in [*BESIDE, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]:
        for _, target in LINK.findall((ROOT / page).read_text()):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            is_new = (ROOT / name).is_file() and files.get_file_from_path(site_name(name)) is None
            if is_new and not name.startswith("docs/"):
                files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links, which are written for the repository, to the pages of the site."""
    site = page.file.src_uri
    source = {site_name(name): name for name in BESIDE}.get(site, f"docs/{site}")

    def link(found: re.Match[str]) -> str:
        target = site_name(posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2])))
        return found[1] + posixpath.relpath(target, posixpath.dirname(site) or ".")

    return LINK.sub(link, markdown)


def site_name(name: str) -> str:
    """Return the place of a file of the repository in the site: docs/ is its top, README its home."""
    if name == "README.md":
        return "index.md"
    name = name.removeprefix("docs/")
    if name.endswith(".ipynb"):
        return name.removesuffix(".ipynb") + ".md"
    return name if "." in posixpath.basename(name) else f"{name}/README.md"


def as_markdown(notebook: Path) -> str:
    """Return a notebook as a page: its text, its code and the outputs that are stored in it."""
    parts = []
    for cell in json.loads(notebook.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                picture = b64encode("".join(data["image/svg+xml"]).encode()).decode()
                parts.append(f"![Output](data:image/svg+xml;base64,{picture})")
            elif text := "".join(output.get("text", data.get("text/plain", []))):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
