"""The evaluation of one model: all scores of its predictions, matched to the examples."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

from setaug.errors import DataError
from setaug.examples import Columns, Example, LabelReader, LabelSets, as_items, checked_columns, shown
from setaug.metrics.keyphrases import KeyphraseAverage, KeyphraseScores, score_keyphrases
from setaug.metrics.rankings import RankingScores, score_rankings
from setaug.metrics.sets import LabelScore, MacroOver, SetScores, score_labels, score_sets
from setaug.metrics.sizes import SizeScores, score_sizes
from setaug.predictions import Prediction
from setaug.terminal import printable

MACRO = {
    "gold": "{:,} labels in the true sets",
    "gold-or-predicted": "{:,} labels in the true or the predicted sets",
    "vocabulary": "{:,} labels of the vocabulary",
}
"""Descriptions of the labels that macro scores are averaged over."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The scores of one model's predictions."""

    sets: SetScores
    sizes: SizeScores
    keyphrases: KeyphraseScores | None = None
    rankings: RankingScores | None = None
    """The scores of the probabilities, if all predictions have some."""
    labels: tuple[LabelScore, ...] | None = None
    """The scores of each label, the most frequent first, if requested."""

    def to_dict(self) -> dict[str, Any]:
        """Return all scores for JSON, without those that were not requested."""
        result: dict[str, Any] = {"sets": asdict(self.sets), "sizes": asdict(self.sizes)}
        for name in ("agreement", "agreement_within_one"):  # the name in older stored results
            result["sizes"][name] = result["sizes"][name.replace("agreement", "agreement_distinct")]
        if self.keyphrases is not None:
            result["keyphrases"] = asdict(self.keyphrases)
        if self.rankings is not None:
            result["rankings"] = asdict(self.rankings)
            for name in ("precision_at", "ndcg_at"):
                result["rankings"][name] = {str(k): value for k, value in getattr(self.rankings, name).items()}
        if self.labels is not None:
            result["labels"] = [asdict(score) for score in self.labels]
        return result

    def table(self) -> str:
        """Return all scores as plain text, in percent."""
        parts = [_set_lines(self.sets), _size_lines(self.sizes)]
        if self.keyphrases is not None:
            parts.append(_keyphrase_lines(self.keyphrases))
        if self.rankings is not None:
            parts.append(_ranking_lines(self.rankings))
        if self.labels is not None:
            parts.append(_label_lines(self.labels))
        return "\n\n".join("\n".join(lines) for lines in parts)


def evaluate(
    gold: LabelSets,
    predictions: LabelSets,
    *,
    columns: Columns | None = None,
    macro_over: MacroOver = "gold",
    vocabulary: Iterable[str] | None = None,
    keyphrases: KeyphraseAverage | None = None,
    per_label: bool = False,
) -> Evaluation:
    """Score predictions against the true sets.

    Parameters
    ----------
    gold, predictions
        Label sets, rows or a data frame with ``labels`` (and optionally ``id``, ``text``, ``size`` and more), an
        indicator matrix, or `Example` and `Prediction` objects. They are matched by id or by position; see `match`.
    columns
        The names of the text and label columns of `gold`, and of labels that are numbers or columns of a matrix.
    macro_over, vocabulary
        Which labels the macro scores are averaged over, as in `score_sets`. Labels outside a given vocabulary count as
        unknown.
    keyphrases
        Also score the labels as keyphrases of the texts, with this average; see `score_keyphrases`.
    per_label
        Also score each label.

    Examples
    --------
    >>> evaluate([{"joy", "pride"}, {"fear"}], [{"joy"}, {"fear"}]).sets.micro_f1
    0.8
    >>> examples = [Example("We won!", ["joy", "pride"]), Example("Who is there?", ["fear"])]
    >>> predictions = [Prediction(labels=("joy",), size=2), Prediction(labels=("fear",), size=1)]
    >>> result = evaluate(examples, predictions)
    >>> result.sets.micro_f1, result.sizes.agreement_distinct
    (0.8, 0.5)

    """
    columns = checked_columns(columns)
    examples = list(_examples(gold, columns))
    matched = match(examples, _predictions(predictions, Columns(names=columns.names)))
    if not examples:
        raise DataError("no examples to score.")
    vocabulary = None if vocabulary is None else frozenset(vocabulary)
    truths, guesses = [example.labels for example in examples], [prediction.labels for prediction in matched]
    texts = [example.text for example in examples]
    return Evaluation(
        sets=score_sets(truths, guesses, macro_over=macro_over, vocabulary=vocabulary),
        sizes=score_sizes(truths, matched, vocabulary=vocabulary),
        keyphrases=None if keyphrases is None else score_keyphrases(truths, guesses, texts, average=keyphrases),
        rankings=_score_rankings(truths, matched),
        labels=tuple(score_labels(truths, guesses)) if per_label else None,
    )


def _score_rankings(truths: Sequence[tuple[str, ...]], predictions: Sequence[Prediction]) -> RankingScores | None:
    shares = [one.probabilities for one in predictions if one.probabilities is not None]
    return score_rankings(truths, shares) if len(shares) == len(predictions) else None


def _examples(gold: LabelSets, columns: Columns) -> Iterator[Example]:
    read = LabelReader.of(gold, columns)

    def make(one: Any) -> Example:
        if isinstance(one, Example):
            return one
        row = one if isinstance(one, Mapping) else {columns.labels: one}
        return columns.example({columns.text: "", **read.row(row, columns.labels)})

    return _located(map(partial(partial, make), as_items(gold, columns)), "gold")


def _predictions(predictions: LabelSets, columns: Columns) -> Iterator[Prediction]:
    read = LabelReader.of(predictions, columns)

    def make(one: Any) -> Prediction:
        if isinstance(one, Prediction):
            return one
        row = one if isinstance(one, Mapping) else {columns.labels: one}
        return Prediction.from_dict(read.row(row, columns.labels))

    return _located(map(partial(partial, make), as_items(predictions, columns)), "predictions")


def _located(makes: Iterable[Callable[[], _T]], source: str) -> Iterator[_T]:
    """Yield what is made of each item; an error names its number."""
    for number, make in enumerate(makes, 1):
        try:
            yield make()
        except DataError as error:
            raise error.located(source=source, line=number) from None


def match(examples: Iterable[Example], predictions: Iterable[Prediction]) -> list[Prediction]:
    """Return predictions in the order of the examples: by id if both have ids, else by position.

    Ids are compared as strings, so 7 equals "7": a CSV file has no numbers.

    Examples
    --------
    >>> examples = [Example("a", ["x"], id=1), Example("b", ["y"], id=2)]
    >>> [p.labels for p in match(examples, [Prediction(labels=("y",), id=2), Prediction(labels=("x",), id=1)])]
    [('x',), ('y',)]

    """
    examples, predictions = list(examples), list(predictions)
    ids = [example.id for example in examples], [prediction.id for prediction in predictions]
    if not all(any(one is not None for one in side) for side in ids):
        if len(predictions) != len(examples):
            raise DataError(
                f"{len(predictions):,} predictions for {len(examples):,} examples, and no ids to match them."
            )
        return predictions
    wanted, places = _places(ids[0], "example"), _places(ids[1], "prediction")
    for name, place in places.items():
        if name not in wanted:
            raise DataError(f"prediction {place + 1:,} has the id {shown(ids[1][place])}, which no example has.")
    for name, place in wanted.items():
        if name not in places:
            raise DataError(f"example {place + 1:,}, with the id {shown(ids[0][place])}, has no prediction.")
    return [predictions[places[name]] for name in wanted]


def _places(ids: Sequence[object], noun: str) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, one in enumerate(ids):
        if one is None:
            raise DataError(f"{noun} {place + 1:,} has no id, but others have one.")
        if (earlier := places.setdefault(str(one), place)) != place:
            raise DataError(f"{noun}s {earlier + 1:,} and {place + 1:,} have the same id {shown(one)}.")
    return places


# --- as text ----------------------------------------------------------------------------------------------------------


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def _row(name: str, *shares: float | None) -> str:
    return f"  {name:22}" + "".join(f"{_percent(share):>10}" for share in shares)


def _head(name: str, *columns: str) -> str:
    return f"{name:24}" + "".join(f"{column:>10}" for column in columns)


def _set_lines(scores: SetScores) -> list[str]:
    return [
        f"{scores.n_examples:,} examples, {scores.mean_gold_size:.2f} labels each;"
        f" {scores.mean_predicted_size:.2f} predicted",
        "",
        _head("Label sets (%)", "precision", "recall", "F1"),
        _row("micro (all labels)", scores.micro_precision, scores.micro_recall, scores.micro_f1),
        _row("macro (by label)", scores.macro_precision, scores.macro_recall, scores.macro_f1),
        _row("samples (by example)", scores.samples_precision, scores.samples_recall, scores.samples_f1),
        _row("Jaccard", scores.jaccard),
        _row("exact match", scores.exact_match),
        f"  macro is averaged over the {MACRO[scores.macro_over].format(scores.n_macro_labels)}",
    ]


def _size_lines(scores: SizeScores) -> list[str]:
    return [
        _head("Sizes (%)", "exact", "within 1"),
        _row("accuracy", scores.accuracy, scores.accuracy_within_one),
        _row("agreement, generated", scores.agreement_generated, scores.agreement_generated_within_one),
        _row("agreement, distinct", scores.agreement_distinct, scores.agreement_distinct_within_one),
        f"  {scores.n_stated:,} of {scores.n_examples:,} predictions state a size",
        "",
        _head("Format errors (%)", "repeated", "unknown", "malformed"),
        _row("of the predictions", scores.repeated, scores.unknown, scores.malformed),
    ]


def _ranking_lines(scores: RankingScores) -> list[str]:
    return [
        _head("Rankings (%)", *(f"at {k}" for k in scores.precision_at)),
        _row("precision", *scores.precision_at.values()),
        _row("nDCG", *scores.ndcg_at.values()),
        _row("average precision", scores.average_precision),
        f"  all true labels are among the first {scores.coverage:.1f} on average (coverage)",
    ]


def _keyphrase_lines(scores: KeyphraseScores) -> list[str]:
    lines = [_head("Keyphrases (%)", "F1@5", "F1@M", "P@M", "R@M", "documents")]
    for name, kind in (("present", scores.present), ("absent", scores.absent)):
        row = _row(name, kind.f1_at_5, kind.f1_at_m, kind.precision_at_m, kind.recall_at_m)
        lines.append(f"{row}{kind.n_documents:>10,}")
    how = {
        "one2set": "F1 of precision and recall averaged over all documents (One2Set)",
        "documents": "F1 averaged over the documents that have such phrases",
    }
    return [*lines, f"  {how[scores.average]}"]


def _label_lines(scores: Sequence[LabelScore]) -> list[str]:
    lines = [f"{'true':>8}{'predicted':>11}{'precision':>11}{'recall':>8}{'F1':>8}  label"]
    for score in scores:
        shares = f"{_percent(score.precision):>11}{_percent(score.recall):>8}{_percent(score.f1):>8}"
        lines.append(f"{score.support:>8,}{score.predicted:>11,}{shares}  {printable(score.label)}")
    return lines
