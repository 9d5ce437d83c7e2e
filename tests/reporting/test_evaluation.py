"""The page of an evaluation: its numbers are those of the evaluation, whatever the labels and texts are."""

import random

import pytest

from setaug import Example
from setaug.metrics import Evaluation, evaluate
from setaug.predictions import Prediction
from setaug.reporting.evaluation import evaluation_page
from setaug.sample import sample_examples
from tests.reporting.reading import Page, Table
from tests.reporting.test_inspection import AWKWARD

EXAMPLES = list(sample_examples(120))


def guesses(examples: list[Example], seed: int = 0) -> list[Prediction]:
    """Predict some of the true labels and some of another example's."""
    draw = random.Random(seed)
    made = []
    for example in examples:
        labels = {label for label in (*example.labels, *draw.choice(examples).labels) if draw.random() < 0.7}
        flaws = {"repeated": ("event",) * draw.randrange(2), "malformed": ()}
        made.append(Prediction(labels=tuple(sorted(labels)), size=draw.choice([None, len(labels), 3]), **flaws))
    return made


PREDICTIONS = guesses(EXAMPLES)


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return evaluate(EXAMPLES, PREDICTIONS, per_label=True)


@pytest.fixture(scope="module")
def page(found: Evaluation) -> Page:
    return Page(evaluation_page(found, EXAMPLES, PREDICTIONS))


def test_the_scores_are_those_of_the_evaluation(found: Evaluation, page: Page) -> None:
    known = found.to_dict()
    sets, sizes = known["sets"], known["sizes"]
    for row, kind in zip(page.table("Scores in percent").rows, ("micro", "macro", "samples"), strict=True):
        assert row[1:] == [percent(sets[f"{kind}_{name}"]) for name in ("precision", "recall", "f1")]
    whole = page.table("Whole sets").rows
    assert [row[1] for row in whole] == [percent(sets["jaccard"]), percent(sets["exact_match"])]
    assert [row[1:] for row in page.table("Sizes, in percent").rows] == [
        [percent(sizes["accuracy"]), percent(sizes["accuracy_within_one"])],
        [percent(sizes["agreement_generated"]), percent(sizes["agreement_generated_within_one"])],
        [percent(sizes["agreement_distinct"]), percent(sizes["agreement_distinct_within_one"])],
    ]
    assert f"{sizes['n_stated']} of 120 predictions state a size" in page.seen
    flaws = page.table("with format errors").rows
    assert [row[-1] for row in flaws] == [percent(sizes["repeated"]), percent(sizes["malformed"])]
    assert page.table("labels, the most frequent in the true sets first").rows == [
        [row["label"], f"{row['support']:,}", f"{row['predicted']:,}", *map(percent, shares)]
        for row in known["labels"]
        for shares in [(row["precision"], row["recall"], row["f1"])]
    ]


def test_the_diagonals_of_sizes_are_the_scores(found: Evaluation, page: Page) -> None:
    for caption, share, n in (
        ("True size", found.sizes.accuracy, 120),
        ("Stated size", found.sizes.agreement_distinct, found.sizes.n_stated),
    ):
        rows = page.table(caption).rows
        numbers = [[int(cell.replace("·", "0")) for cell in row[1:]] for row in rows]
        assert sum(map(sum, numbers)) == n
        assert sum(row[at] for at, row in enumerate(numbers)) / n == share


def test_confusions_are_listed_and_mapped_alike(page: Page) -> None:
    listed, mapped = page.table("The most frequent confusions"), page.table("and the one above is written")
    cells = {(row[0], name): cell for row in mapped.rows for name, cell in zip(mapped.header[1:], row[1:], strict=True)}
    both = [row for row in listed.rows if (row[0], row[1]) in cells]
    assert both
    for missing, written, n, n_missing, n_true in both:
        assert cells[missing, written] == n
        assert int(n) <= int(n_missing) <= int(n_true)


def test_a_vocabulary_decides_what_is_unknown() -> None:
    known = ["event", "match"]
    result = evaluate(EXAMPLES, PREDICTIONS, vocabulary=known)
    rows = Page(evaluation_page(result, EXAMPLES, PREDICTIONS, vocabulary=known)).table("with format errors").rows
    assert rows[1][0] == "a label outside the vocabulary"
    assert rows[1][-1] == percent(result.sizes.unknown)
    assert int(rows[1][2].split()[0]) == round((result.sizes.unknown or 0) * 120)


def test_the_worst_examples_come_first_and_are_marked_in_words() -> None:
    examples = [Example("right", ["a"], id=1), Example("half", ["a", "b"], id=2), Example("wrong", ["c"], id=3)]
    predictions = [Prediction(labels=("a",)), Prediction(labels=("a", "d")), Prediction(labels=(), size=4)]
    page = Page(evaluation_page(evaluate(examples, predictions), examples, predictions))
    text = page.seen[page.seen.index("2 of the 2 examples without an exact match") :]
    assert "right: a" in text
    assert "missing: b" in text
    assert "extra: d" in text
    assert text.index("Example 3, id 3") < text.index("Example 2, id 2")
    assert "Predicted (0, 4 stated): none" in text
    assert "Example 1" not in text


def test_keyphrases_are_told_where_they_were_scored() -> None:
    result = evaluate(EXAMPLES, PREDICTIONS, keyphrases="one2set")
    assert result.keyphrases is not None
    row = Page(evaluation_page(result, EXAMPLES, PREDICTIONS)).table("Keyphrases").rows[0]
    assert row[:2] == ["present", percent(result.keyphrases.present.f1_at_5)]


def test_awkward_labels_and_texts_do_no_harm() -> None:
    examples = [Example(f"{label} {label}", [label, "x"], id=label) for label in AWKWARD]
    predictions = [Prediction(labels=(label, "y"), unknown=(label,), malformed=(label,)) for label in reversed(AWKWARD)]
    result = evaluate(examples, predictions)
    text = evaluation_page(result, examples, predictions, ("</title>", "<b>"))
    page = Page(text)
    assert "<script>alert" not in text
    assert "Predicted sets: <b> against </title>" in page.seen
    for label in AWKWARD:
        assert label[:100] in page.seen
    assert len(text) < 100_000


@pytest.mark.parametrize(
    ("predicted", "gold"),
    [((), ()), (("a",), ("a",)), ((), ("a",)), (("a",), ())],
    ids=["empty", "right", "less", "more"],
)
def test_there_is_a_page_of_one_example(predicted: tuple[str, ...], gold: tuple[str, ...]) -> None:
    examples, predictions = [Example("t", gold)], [Prediction(labels=predicted)]
    page = Page(evaluation_page(evaluate(examples, predictions), examples, predictions))
    assert ("The worst examples" in page.seen) == (predicted != gold)
    assert page.table("True size") != Table()


def test_a_page_of_many_labels_and_large_sets_is_small() -> None:
    examples = [
        Example("word " * 2000, [f"label {(at * 7 + k * k) % 10_000}" for k in range(at % 60)]) for at in range(3000)
    ]
    predictions = [
        Prediction(labels=tuple(f"label {(at * 7 + k * 3) % 10_000}" for k in range(at % 50))) for at in range(3000)
    ]
    result = evaluate(examples, predictions)
    text = evaluation_page(result, examples, predictions)
    page = Page(text)
    assert len(text.encode()) < 1_000_000
    assert len(page.table("The most frequent labels in the true sets: 200 of ").rows) == 200
    assert "12 or more" in page.seen
    assert " more" in page.seen
    short = Page(evaluation_page(result, examples, predictions, top=3, worst=0))
    assert len(short.table("The most frequent labels in the true sets: 3 of ").rows) == 3
    assert "worst" not in short.seen
