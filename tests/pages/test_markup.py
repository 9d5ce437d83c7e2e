"""Elements of HTML: what is not markup is escaped, and stays what it was."""

from hypothesis import given
from hypothesis import strategies as st

from setaug.orders.pictures import ILLEGAL
from setaug.pages.charts import bars
from setaug.pages.markup import MAX_LABEL, Markup, element, joined, label, quoted
from setaug.pages.tables import matrix, table
from tests.pages.reading import Page, Table

TAGS = {"h1", "script", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
TAGS |= {"figure", "figcaption", "svg", "rect", "text"}


def test_markup_put_together_by_hand_is_escaped_again() -> None:
    bold = element("b", "a")
    assert joined([bold, f"{bold}", bold + "!"]) == "<b>a</b>&lt;b&gt;a&lt;/b&gt;&lt;b&gt;a&lt;/b&gt;!"
    assert isinstance(joined(["a"]), Markup)


def test_attributes_cannot_be_left() -> None:
    assert element("a", title="\"'><script>", data_x=None) == '<a title="&quot;&#x27;&gt;&lt;script&gt;"></a>'


def test_what_a_file_in_utf_8_cannot_hold_is_replaced() -> None:
    assert label("a\ud800\x00b") == '<bdi class="label">a\ufffd\ufffdb</bdi>'
    assert element("i", title="\ud800").encode()


def test_long_labels_and_texts_are_cut_and_say_so() -> None:
    assert "… (5,000 characters)" in label("x" * 5000)
    assert len(label("x" * 5000)) < MAX_LABEL + 80
    assert len(quoted("x" * 100_000)) < 1000


@given(st.text(), st.text(min_size=1))
def test_any_text_stands_in_a_table_as_it_is(one: str, two: str) -> None:
    parts = [
        table(two, [one, two], [[one, two]]),
        matrix("m", one, ([two], [one]), lambda i, j: 1),
        bars(two, [(one, 1)]),
    ]
    source = f"<!doctype html>\n<h1>t</h1><script></script>{joined(parts)}"
    assert source.encode()
    page = Page(source)
    one, two = ILLEGAL.sub("\ufffd", one), ILLEGAL.sub("\ufffd", two)
    assert page.tables == [Table(two, [one, two], [[one, two]]), Table("m", [one, one], [[two, "1"]])]
    assert set(page.tags) <= TAGS


def test_a_matrix_of_nothing_and_bars_of_nothing_are_drawn() -> None:
    assert "·" in matrix("m", "", (["a"], ["a"]), lambda i, j: 0)
    assert "<svg" in bars("none", [])
