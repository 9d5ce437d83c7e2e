"""The page of an evaluation (`setaug evaluate --html`): scores, confusions, sizes, errors, the worst examples."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from setaug.examples import Example
from setaug.metrics.confusions import count_confusions
from setaug.metrics.keyphrases import KeyphraseScores
from setaug.metrics.report import MACRO, Evaluation
from setaug.metrics.sets import LabelScore, SetScores, score_labels
from setaug.metrics.sizes import SizeScores
from setaug.predictions import Prediction
from setaug.reporting.html import (
    MAX_LABEL,
    MAX_TEXT,
    beside,
    element,
    facts,
    in_row,
    join,
    label,
    matrix,
    percent,
    shorten,
    table,
)
from setaug.reporting.page import Section, page

_PAIRS, _MAP, _MAX_SIZE, _FLAWED, _MARKED, _BRIEF = 20, 12, 12, 5, 40, 24
"""Maximum numbers: confusions listed, labels in the matrix, sizes distinguished, errors of a kind, labels of a set, and
characters of a label in the matrix."""
_SIGNS = {"right": "✓", "missing": "○", "extra": "✗"}


@dataclass(frozen=True)
class _Case:
    """An example and its prediction."""

    number: int
    example: Example
    prediction: Prediction

    @property
    def badness(self) -> tuple[float, int]:
        """A sort key: Jaccard, then the number of wrong labels."""
        truth, guess = {*self.example.labels}, {*self.prediction.labels}
        return (-len(truth & guess) / max(len(truth | guess), 1), len(truth ^ guess))

    @property
    def size(self) -> int:
        """The predicted size: as stated, else the number of labels."""
        return len({*self.prediction.labels}) if self.prediction.size is None else self.prediction.size


def evaluation_page(
    found: Evaluation,
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    names: tuple[str, str] = ("the true sets", "predictions"),
    *,
    vocabulary: Collection[str] | None = None,
    top: int = 200,
    worst: int = 20,
) -> str:
    """Return a self-contained page about predictions.

    Parameters
    ----------
    predictions
        Predictions in the order of the examples; see `match`.
    names
        The names of the examples and of the predictions, such as their file names.
    vocabulary
        The known labels, as in `evaluate`.
    top
        Maximum number of labels to list.
    worst
        The number of examples to show, the worst first.

    """
    cases = [_Case(*row) for row in zip(range(1, len(examples) + 1), examples, predictions, strict=True)]
    gold, predicted = [one.labels for one in examples], [one.labels for one in predictions]
    labels = list(score_labels(gold, predicted) if found.labels is None else found.labels)
    sections = [
        _scores(found),
        _flaws(found.sizes, predictions, vocabulary),
        _labels(labels, top),
        _confusions(gold, predicted, labels),
        _sizes(found.sizes, cases),
        _worst(cases, worst),
    ]
    truth, guess = (shorten(name, MAX_LABEL) for name in names)
    sets = found.sets
    about = facts(
        {
            "examples": f"{sets.n_examples:,}",
            "labels in a true set": f"{sets.mean_gold_size:.2f}",
            "in a predicted set": f"{sets.mean_predicted_size:.2f}",
            "micro F1 (%)": percent(sets.micro_f1),
            "exact match (%)": percent(sets.exact_match),
        }
    )
    return page(f"Predicted sets: {guess} against {truth}", [about], sections)


def _scores(found: Evaluation) -> Section:
    parts = [_set_scores(found.sets), _whole_scores(found.sets)]
    if found.keyphrases:
        parts.append(_keyphrase_scores(found.keyphrases))
    return Section("scores", "Scores", parts, is_wide=False)


def _set_scores(sets: SetScores) -> Markup:
    rows = [
        ("micro (all labels together)", sets.micro_precision, sets.micro_recall, sets.micro_f1),
        ("macro (mean over labels)", sets.macro_precision, sets.macro_recall, sets.macro_f1),
        ("samples (mean over examples)", sets.samples_precision, sets.samples_recall, sets.samples_f1),
    ]
    return table(
        f"Scores in percent; macro is averaged over the {MACRO[sets.macro_over].format(sets.n_macro_labels)}",
        ["average", "precision", "recall", "F1"],
        [(name, *map(percent, shares)) for name, *shares in rows],
    )


def _whole_scores(sets: SetScores) -> Markup:
    rows = [
        ("Jaccard (labels in both sets / labels in either)", percent(sets.jaccard)),
        ("exact match (the set equals the true set)", percent(sets.exact_match)),
    ]
    return table("Whole sets, in percent", ["score", "mean over examples"], rows)


def _keyphrase_scores(scores: KeyphraseScores) -> Markup:
    rows = [
        (
            name,
            *map(percent, (kind.f1_at_5, kind.f1_at_m, kind.precision_at_m, kind.recall_at_m)),
            f"{kind.n_documents:,}",
        )
        for name, kind in (("present", scores.present), ("absent", scores.absent))
    ]
    return table("Keyphrases, in percent", ["phrases", "F1@5", "F1@M", "P@M", "R@M", "documents"], rows)


def _labels(scores: Sequence[LabelScore], top: int) -> Section:
    shown = scores[: max(top, 0)]
    rows = [
        (
            label(score.label),
            f"{score.support:,}",
            f"{score.predicted:,}",
            *map(percent, (score.precision, score.recall, score.f1)),
        )
        for score in shown
    ]
    caption = f"The most frequent labels in the true sets: {len(shown):,} of {len(scores):,}"
    if len(shown) == len(scores):
        caption = f"All {len(scores):,} labels, the most frequent in the true sets first"
    header = ["label", "true sets", "predicted sets", "precision (%)", "recall (%)", "F1 (%)"]
    return Section("labels", "Scores by label", [table(caption, header, rows, sortable=True)] if rows else [])


def _confusions(
    gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]], scores: Sequence[LabelScore]
) -> Section:
    found = count_confusions(gold, predicted)
    pairs = found.most_frequent(_PAIRS)
    if not pairs:
        return Section("confusions", "Confusions", [])
    missed = Counter(name for truth, guess in zip(gold, predicted, strict=True) for name in {*truth} - {*guess})
    support = {score.label: score.support for score in scores}
    rows = [
        (label(missing), label(written), f"{n:,}", f"{missed[missing]:,}", f"{support[missing]:,}")
        for missing, written, n in pairs
    ]
    intro = element(
        "p",
        "Within each example, every missing label is paired with every extra one. A frequent pair may be two labels "
        "that the model confuses, or just two frequent labels.",
    )
    listed = table(
        f"The most frequent confusions: {len(pairs):,} of {found.counts.nnz:,}{' or more' if found.is_cut else ''}",
        ["missing", "written instead", "examples", "all examples that miss it", "support"],
        rows,
        names=2,
        sortable=True,
    )
    place = {name: at for at, name in enumerate(found.labels)}
    chosen = list(dict.fromkeys(name for pair in pairs for name in pair[:2]))[:_MAP]
    mapped = matrix(
        f"The same for the first {len(chosen)} labels of that list: examples in which the label on the left is missing "
        "and the one above is written instead",
        "missing ↓ written →",
        chosen,
        lambda i, j: int(found.counts[place[chosen[i]], place[chosen[j]]]),
        show=lambda name: label(name if len(name) <= _BRIEF else f"{name[:_BRIEF]}…"),
        upright=True,
    )
    return Section("confusions", "Confusions", [in_row(element("div", intro, listed), mapped)])


def _sizes(scores: SizeScores, cases: Sequence[_Case]) -> Section:
    rows = [("accuracy (the true size)", percent(scores.accuracy), percent(scores.accuracy_within_one))]
    if scores.n_stated:
        for what, exact, near in (
            ("generated labels", scores.agreement_generated, scores.agreement_generated_within_one),
            ("distinct labels", scores.agreement_distinct, scores.agreement_distinct_within_one),
        ):
            rows.append((f"agreement with {what}", percent(exact), percent(near)))
    listed = table("Sizes, in percent of the predictions", ["the predicted size", "exact", "within 1"], rows)
    text = (
        f"{scores.n_stated:,} of {scores.n_examples:,} predictions state a size; otherwise the number of labels is the "
        "predicted size."
    )
    matrices = [
        _size_matrix(
            "True size against predicted size, in examples",
            "true ↓ predicted →",
            [(len(case.example.labels), case.size) for case in cases],
        )
    ]
    if scores.n_stated:
        stated = [
            (case.prediction.size, len({*case.prediction.labels})) for case in cases if case.prediction.size is not None
        ]
        caption = "Stated size against the number of distinct labels written, in predictions"
        matrices.append(_size_matrix(caption, "stated ↓ written →", stated))
    return Section("sizes", "Sizes", [in_row(element("div", listed, element("p", text)), *matrices)])


def _size_matrix(caption: str, corner: str, pairs: Iterable[tuple[int, int]]) -> Markup:
    """Return a matrix of two sizes; large sizes share the last row and column."""
    counts = Counter((min(one, _MAX_SIZE), min(two, _MAX_SIZE)) for one, two in pairs)
    low, high = min(map(min, counts), default=0), max(map(max, counts), default=0)
    names = [f"{size} or more" if size == _MAX_SIZE else f"{size}" for size in range(low, high + 1)]
    return matrix(caption, corner, names, lambda i, j: counts[i + low, j + low])


def _flaws(scores: SizeScores, predictions: Sequence[Prediction], vocabulary: Collection[str] | None) -> Section:
    known = None if vocabulary is None else frozenset(vocabulary)

    def unknown(one: Prediction) -> Collection[str] | None:
        return one.unknown if known is None else {*one.labels} - known

    kinds: list[tuple[str, float | None, Callable[[Prediction], Collection[str] | None]]] = [
        ("a repeated label", scores.repeated, lambda one: one.repeated),
        ("a label outside the vocabulary", scores.unknown, unknown),
        ("a malformed part", scores.malformed, lambda one: one.malformed),
    ]
    rows = []
    for name, share, flaws in kinds:
        told = [found for found in map(flaws, predictions) if found is not None]
        often = Counter(sorted(flaw for found in told for flaw in found)).most_common(_FLAWED)
        which = join((label(flaw) + f" ({n:,})" for flaw, n in often), ", ")
        if told:
            rows.append((name, which or "-", f"{sum(map(bool, told)):,} of {len(told):,}", percent(share)))
    header = ["written", "most often", "predictions", "fraction (%)"]
    parts = [table("Predictions with format errors", header, rows, names=2)] if rows else []
    if len(rows) < len(kinds):
        missing = f"The predictions do not record {'other ' if rows else ''}format errors."
        parts.append(element("p", missing))
    return Section("flaws", "Format errors", parts, is_wide=False)


def _worst(cases: Sequence[_Case], worst: int) -> Section:
    wrong = sorted((case for case in cases if case.badness[1]), key=lambda case: case.badness, reverse=True)
    shown = wrong[: max(worst, 0)]
    if not shown:
        return Section("worst", "The worst examples", [])
    intro = element(
        "p",
        f"{len(shown):,} of the {len(wrong):,} examples without an exact match, lowest Jaccard first, then by number "
        "of wrong labels. Marks: ",
        join([element("span", f"{sign} {kind}", class_=f"mark {kind}") for kind, sign in _SIGNS.items()], " "),
    )
    return Section("worst", "The worst examples", [intro, beside(*map(_example, shown))])


def _example(case: _Case) -> Markup:
    truth, guess = case.example.labels, tuple(dict.fromkeys(case.prediction.labels))
    name = [f"Example {case.number:,}"]
    if case.example.id is not None:
        name += [", id ", label(str(case.example.id))]
    stated = "" if case.prediction.size is None else f", {case.prediction.size:,} stated"
    return element(
        "article",
        element("h3", *name),
        element("blockquote", element("bdi", shorten(case.example.text, MAX_TEXT), dir="auto")),
        element("p", f"True ({len(truth):,}): ", _set(truth, guess, "missing")),
        element("p", f"Predicted ({len(guess):,}{stated}): ", _set(guess, truth, "extra")),
    )


def _set(labels: Sequence[str], others: Collection[str], otherwise: str) -> Markup:
    """Show a set, each label marked as right if the other set has it; in a long set, wrong labels come first."""
    known = frozenset(others)
    shown = sorted(labels, key=known.__contains__)[:_MARKED] if len(labels) > _MARKED else labels
    marks: list[str] = [_marked("right" if name in known else otherwise, name) for name in shown]
    if len(labels) > len(shown):
        marks.append(f"and {len(labels) - len(shown):,} more")
    return join(marks, " ") if marks else Markup("none")


def _marked(kind: str, name: str) -> Markup:
    told = element("span", f"{kind}: ", class_="told")
    return element("span", f"{_SIGNS[kind]} ", told, label(name), class_=f"mark {kind}", title=kind)
