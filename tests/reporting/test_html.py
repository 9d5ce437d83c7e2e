"""Elements of HTML: what is not markup is escaped, and stays what it was."""

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from setaug.reporting.html import MAX_LABEL, bars, element, join, label, legal, matrix, shorten, table
from setaug.reporting.page import Section, page
from tests.reporting.reading import Page, Table

TAGS = {"h1", "script", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
TAGS |= {"figure", "figcaption", "svg", "rect", "text"}


def test_plain_text_is_escaped_and_markup_is_not() -> None:
    bold = element("b", "<i>")
    escaped = "<b>&lt;i&gt;</b>&lt;b&gt;&amp;lt;i&amp;gt;&lt;/b&gt;<b>&lt;i&gt;</b>&lt;"
    assert join([bold, f"{bold}", bold + "<"]) == escaped
    assert join(["a", "b"], "<") == "a&lt;b"
    assert isinstance(join(["a"]), Markup)


def test_attributes_cannot_be_left() -> None:
    assert element("a", title="\"'><script>", data_x=None) == '<a title="&#34;&#39;&gt;&lt;script&gt;"></a>'


def test_what_a_file_in_utf_8_cannot_hold_is_replaced() -> None:
    assert legal("a\ud800\x00b\uffff") == "a\ufffd\ufffdb\ufffd"
    bad = "\ud800\x00"
    text = page(bad, [label(bad)], [Section("s", bad, [element("i", bad, title=bad)])])
    assert text.encode()
    assert text.count("\ufffd\ufffd") == 6  # the title twice, the label, the heading, the text and its title


def test_sections_without_content_are_left_out() -> None:
    sections = [Section("a", "First", [element("p", "x")]), Section("b", "Second", [])]
    assert "First" in (text := page("t", [], sections))
    assert "Second" not in text


def test_long_labels_and_texts_are_cut_and_say_so() -> None:
    assert "… (5,000 characters)" in label("x" * 5000)
    assert len(label("x" * 5000)) < MAX_LABEL + 80
    assert shorten("x" * 5, 5) == "x" * 5


@given(st.text(), st.text(min_size=1))
def test_any_text_stands_in_a_table_as_it_is(one: str, two: str) -> None:
    parts = [
        table(two, [one, two], [[one, two]]),
        matrix("m", one, [two], lambda i, j: 1),
        bars(two, [(one, 1)]),
    ]
    source = legal(f"<!doctype html>\n<h1>t</h1><script></script>{join(parts)}")
    assert source.encode()
    page = Page(source)
    one, two = legal(one), legal(two)
    assert page.tables == [Table(two, [one, two], [[one, two]]), Table("m", [one, two], [[two, "1"]])]
    assert set(page.tags) <= TAGS


def test_a_matrix_of_nothing_and_bars_of_nothing_are_drawn() -> None:
    assert "·" in matrix("m", "", ["a"], lambda i, j: 0)
    assert "<svg" in bars("none", [])
