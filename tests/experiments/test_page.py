"""Pages of tables, as Markdown and HTML."""

from pathlib import Path
from xml.etree import ElementTree

from setaug.experiments.page import Line, Page, Picture, Table

PAGE = Page(
    title="Rows & <columns>",
    about=["Call `setaug reproduce main --data 'a[min2]'`."],
    tables=[
        Table("Data <1>", ["row", "F & G"], [Line(["a <b>", "1.0"], "ours", frozenset({1})), Line(["c", ""], "extra")]),
        Table("More", ["row"], [Line(["x"])], ["A note: p < 0.05."]),
    ],
    pictures=[Picture("graph.svg", "A & B")],
    closing=["The end."],
)


def test_markdown_has_the_best_in_bold() -> None:
    text = PAGE.as_markdown()
    assert "| row | F & G |\n|---|---|\n| a <b> | **1.0** |\n| c |  |\n" in text
    assert "A & B\n\n![A & B](graph.svg)" in text
    assert text.startswith("# Rows & <columns>\n")
    assert text.endswith("The end.\n")


def test_html_is_well_formed_and_nothing_is_taken_for_markup() -> None:
    text = PAGE.as_html()
    assert text.startswith("<!doctype html>\n")
    plain = text.removeprefix("<!doctype html>\n").replace("<meta ", "<meta_ ")
    for name in ('charset="utf-8">', 'initial-scale=1">'):
        plain = plain.replace(name, name[:-1] + "/>")
    tree = ElementTree.fromstring(plain.replace('alt="A &amp; B">', 'alt="A &amp; B"/>'))
    assert ["".join(cell.itertext()) for cell in tree.iter("td")] == ["1.0", ""]
    assert [row.get("class") for row in tree.iter("tr")] == [None, "ours", "extra", None, ""]
    assert next(tree.iter("b")).text == "1.0"
    assert [code.text for code in tree.iter("code")] == ["setaug reproduce main --data 'a[min2]'"]
    assert "http" not in text
    assert "<script" not in text


def test_both_are_written(tmp_path: Path) -> None:
    paths = PAGE.write(tmp_path / "main")
    assert [path.name for path in paths] == ["main.md", "main.html"]
    assert [path.read_text() for path in paths] == [PAGE.as_markdown(), PAGE.as_html()]
