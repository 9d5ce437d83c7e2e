"""The page of an inspection: its numbers are those of the inspection, whatever the labels are."""

import pytest

from setaug import Example
from setaug.analysis.inspection import Inspection, inspect_examples
from setaug.reporting.inspection import inspection_page
from setaug.sample import sample_examples
from tests.reporting.reading import Page

AWKWARD = [
    "<script>alert(1)</script>",
    "\"'&<>",
    "long " * 2000,
    "שלום עולם",
    "\u202eevil",
    "👩‍👩‍👧 famille",
    "</style>",
    "]]>",
    "a\nb",
]


@pytest.fixture(scope="module")
def found() -> Inspection:
    return inspect_examples(sample_examples(600))


def test_the_numbers_are_those_of_the_inspection(found: Inspection) -> None:
    page, known = Page(inspection_page(found, "train.jsonl")), found.to_dict()
    labels = page.table("The most frequent labels: 30 of 54")
    top = [[name, f"{n:,}", f"{n / known['n_sets']:.1%}"] for name, n in known["top_labels"]]
    assert labels.rows[: len(top)] == top
    edges = page.table("The most frequent edges")
    assert edges.rows[: len(known["top_edges"])] == [
        [e["before"], e["after"], f"{e['n_both']:,}", f"{e['pmi']:.2f}", f"{e['ratio']:.1f}"]
        for e in known["top_edges"]
    ]
    assert page.table("What the graph constrains").rows == [
        ["sets with an edge", f"{known['n_constrained_sets']:,}", f"{known['n_constrained_sets'] / 600:.1%}"],
        [
            "label pairs in sets with a fixed order",
            f"{known['n_constrained_pairs']:,}",
            f"{known['n_constrained_pairs'] / known['n_set_pairs']:.1%}",
        ],
    ]
    bits = page.table("Bits per set")
    scores = known["diagnosis"]["scores"]
    assert [row[:2] for row in bits.rows] == [[name, f"{score['bits']:.3f}"] for name, score in scores.items()]
    assert page.seen.count(known["diagnosis"]["sentence"]) == 1
    assert all(sentence in page.seen for sentence in known["diagnosis"]["advice"]["sentences"])
    assert found.diagnosis is not None
    assert found.diagnosis.advice.command() in page.seen
    tried = page.table("With other thresholds")
    scored = [score for trial in known["diagnosis"]["trials"] for score in trial["scores"].values()]
    assert [row[1] for row in tried.rows] == [f"{score['difference']:+.3f}" for score in scored]
    assert page.source.index('id="graph"') < page.source.index('id="labels"')
    assert page.tags.count("details") == 2  # the labels and the edges, 30 each
    for size, n in known["sizes"].items():
        assert f" {size}: {n:,}" in page.source
    for text in (
        f"{known['mean_log2_orders']:.2f}",
        f"{known['mean_log2_all_orders']:.2f}",
        f"{known['mean_size']:.2f}",
    ):
        assert text in page.seen
    assert f"{known['n_edges']:,} edges among the {known['n_pairs']:,} label pairs" in page.seen


def test_examples_show_allowed_orders_and_their_exact_number(found: Inspection) -> None:
    page = inspection_page(found, "train.jsonl")
    assert 1 < len(found.example_sets) <= 4
    for labels in found.example_sets:
        graph = found.graph(labels)
        assert f"{graph.n_orders:,} of " in page
        for order in graph.draw(min(graph.n_orders or 0, 5), seed=0, distinct=True):
            assert " | ".join(order) in Page(page).seen


def test_awkward_labels_do_no_harm() -> None:
    examples = [Example("t", [*AWKWARD[at % 5 : at % 5 + 5], "all"]) for at in range(80)]
    examples += [Example("t", ["all"])] * 400 + [Example("t", ["other"])] * 2000
    text = inspection_page(inspect_examples(examples), "<b>.jsonl")
    page = Page(text)
    assert "<script>alert" not in text
    assert "Label sets of <b>.jsonl" in page.seen
    for name in AWKWARD:
        assert name[:100] in page.seen
    assert len(text) < 300_000


@pytest.mark.parametrize(
    "examples",
    [[], [Example("t", [])], [Example("t", ["a"])], [Example("t", ["a", "b"])] * 3],
    ids=["none", "empty", "one", "no edge"],
)
def test_there_is_a_page_of_little_data(examples: list[Example]) -> None:
    page = Page(inspection_page(inspect_examples(examples), "few.jsonl"))
    assert ("No examples." in page.seen) == (not examples)


def test_a_page_of_many_labels_and_sizes_is_small() -> None:
    examples = [Example("t", [f"label {(at * 7 + k * k) % 10_000}" for k in range(at % 40)]) for at in range(5000)]
    inspection = inspect_examples(examples, with_diagnosis=False)
    text = inspection_page(inspection, "many.jsonl")
    page = Page(text)
    assert len(text.encode()) < 1_000_000
    assert f"30 of {inspection.n_labels:,}" in page.seen
    assert "19 or more" in page.seen
    assert len(Page(inspection_page(inspection, "many.jsonl", top=0)).tables) < len(page.tables)
