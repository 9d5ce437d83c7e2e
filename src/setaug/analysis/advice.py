"""Advice from measured orders: which method and thresholds to train with, and what else to expect.

The orders are compared on the labels alone. The sentences on size and constraint are based on label counts and on the
trained models of ``docs/results.md``.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from setaug.analysis.order_cost import OrderingScore
from setaug.examples import Columns
from setaug.orders.edges import Thresholds
from setaug.registry import BASELINE_ORDERING, DEFAULT_MIN_PMI, DEFAULT_MIN_RATIO, DEFAULT_ORDERING, ORDERINGS
from setaug.settings import METHODS, PAPER_MODEL

MIN_GAIN = 0.02
"""The minimum fraction of the bits of random orders that an ordering must save to help."""
MIN_BITS = 0.05
"""The minimum bits per set that an ordering must save to help: the model is not precise enough for less."""
_NO_ORDERS = "No set has two labels or more: order cannot matter, and a classifier is the simpler choice."
_RARE = 0.005
"""Labels outside the vocabulary are mentioned as a loss above this fraction."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The scores of the orderings that read the label graph, at other thresholds.

    The intervals hold for all trials at once.
    """

    min_pmi: float
    min_ratio: float
    n_edges: int
    """The number of edges of the label graph, among the sets of the trial."""
    constrained: float
    """The fraction of held-out sets with an edge."""
    n_held_out: int
    scores: dict[str, OrderingScore]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to train with."""

    ordering: str
    """The advised ordering."""
    method: str
    """The training method that uses it."""
    min_pmi: float
    min_ratio: float
    sentences: tuple[str, ...]
    """What was found, and what to expect."""
    options: tuple[str, ...]
    """The options of ``setaug train`` that differ from its defaults."""

    def command(
        self, source: str = "train.jsonl", *, columns: Columns | None = None, options: Iterable[str] = ()
    ) -> str:
        """Return the training command for this advice, on a file with these columns.

        Examples
        --------
        >>> advice = Advice(DEFAULT_ORDERING, "setaug", 1.0, 1.0, (), ("--min-ratio", "1"))
        >>> advice.command("my data.csv", columns=Columns(text="body", delimiter=","))
        "setaug train 'my data.csv' --text-field body --delimiter , --model facebook/bart-base --min-ratio 1 -o run/"

        """
        given, usual = columns or Columns(), Columns()
        reading = [
            word
            for name, option in (("text", "--text-field"), ("labels", "--labels-field"), ("delimiter", "--delimiter"))
            if getattr(given, name) != getattr(usual, name)
            for word in (option, getattr(given, name))
        ]
        words = ["train", source, *reading, *options, "--model", PAPER_MODEL, *self.options, "-o", "run/"]
        return shlex.join(["setaug", *words])


@dataclass(frozen=True, slots=True)
class Candidate:
    """An ordering at some thresholds, with its score."""

    ordering: str
    min_pmi: float
    min_ratio: float
    score: OrderingScore
    trial: Trial | None = None

    @property
    def helps(self) -> bool:
        """Whether it clearly beats random orders."""
        return has_gain(self.score)


def has_gain(score: OrderingScore) -> bool:
    """Return whether an ordering saves enough bits, and significantly so."""
    base = score.bits - score.difference
    return score.difference <= -max(MIN_GAIN * base, MIN_BITS) and score.high < 0


def has_loss(score: OrderingScore) -> bool:
    """Return whether an ordering needs clearly more bits than random orders."""
    base = score.bits - score.difference
    return score.difference >= max(MIN_GAIN * base, MIN_BITS) and score.low > 0


def choose(scores: Mapping[str, OrderingScore], trials: Sequence[Trial], thresholds: Thresholds) -> Candidate | None:
    """Return what helps: the default unless others are clearly better; then those at the same thresholds first."""
    given = float(thresholds.min_pmi), float(thresholds.min_ratio)
    here = [Candidate(name, *given, score) for name, score in scores.items() if name != BASELINE_ORDERING]
    here.sort(key=lambda one: (one.ordering != DEFAULT_ORDERING, one.score.share))
    elsewhere = [
        Candidate(name, trial.min_pmi, trial.min_ratio, score, trial)
        for trial in trials
        for name, score in trial.scores.items()
    ]
    found = [one for one in (*here, *elsewhere) if one.helps]
    best = min((one.score.share for one in found), default=0.0)
    return next((one for one in found if one.score.share <= best + MIN_GAIN), None)


def advise(
    scores: Mapping[str, OrderingScore],
    trials: Sequence[Trial],
    thresholds: Thresholds,
    *,
    constrained: float,
    sizes: Mapping[int, int],
    share_unseen: float,
) -> Advice:
    """Return the advice from scores and trials.

    Parameters
    ----------
    scores
        The scores at the given thresholds; empty if there was too little data.
    constrained
        The fraction of sets with an edge.
    sizes
        The number of sets by size.
    share_unseen
        The fraction of labels of held-out sets that occur in no other set.

    """
    if max(sizes, default=0) < 2:
        given = float(thresholds.min_pmi), float(thresholds.min_ratio)
        return Advice(DEFAULT_ORDERING, "classifier", *given, (_NO_ORDERS,), ("--method", "classifier"))
    chosen = choose(scores, trials, thresholds)
    ordering, min_pmi, min_ratio = DEFAULT_ORDERING, float(thresholds.min_pmi), float(thresholds.min_ratio)
    default = scores.get(DEFAULT_ORDERING)
    if chosen is not None:
        ordering, min_pmi, min_ratio = chosen.ordering, chosen.min_pmi, chosen.min_ratio
    elif default is not None and has_loss(default):
        ordering = BASELINE_ORDERING
    method = next(name for name, one in METHODS.items() if one.ordering == ordering and not one.one_order)
    sentences = [
        *_scope_sentences(sizes),
        _default_sentence(default, constrained),
        *_choice_sentences(chosen, default, ordering, method, len(trials)),
        _size_sentence(sizes),
        _constraint_sentence(share_unseen),
    ]
    options: tuple[str, ...] = () if ordering == DEFAULT_ORDERING else ("--method", method)
    if ORDERINGS[ordering].needs_edges:
        options += _threshold_options(min_pmi, min_ratio)
    return Advice(ordering, method, min_pmi, min_ratio, tuple(sentences), options)


def _threshold_options(min_pmi: float, min_ratio: float) -> tuple[str, ...]:
    pmi = () if min_pmi == DEFAULT_MIN_PMI else ("--min-pmi", f"{min_pmi:g}")
    return pmi + (() if min_ratio == DEFAULT_MIN_RATIO else ("--min-ratio", f"{min_ratio:g}"))


def told_difference(score: OrderingScore) -> str:
    """Return a difference in words.

    Examples
    --------
    >>> told_difference(OrderingScore(bits=9.0, difference=-1.0, low=-1.2, high=-0.8))
    '1.00 bits (10.0 %) fewer per set than random ones'

    """
    return (
        f"{abs(score.difference):.2f} bits ({100 * abs(score.share):.1f} %) "
        f"{'fewer' if score.difference < 0 else 'more'} per set than random ones"
    )


def told_thresholds(min_pmi: float, min_ratio: float) -> str:
    """Return thresholds in words, as options."""
    return " ".join(_threshold_options(min_pmi, min_ratio)) or "the default thresholds"


def _scope_sentences(sizes: Mapping[int, int]) -> list[str]:
    share = sum(n for size, n in sizes.items() if size > 1) / sum(sizes.values())
    sentence = f"Only {share:.1%} of the sets have two labels or more; order matters in these alone."
    return [sentence] if share < 0.5 else []


def _default_sentence(score: OrderingScore | None, constrained: float) -> str:
    if score is None:
        return "There is too little data to compare orders, so the default is advised."
    effect = "help" if has_gain(score) else "do not help" if has_loss(score) else "make no clear difference"
    return (
        f"The default {DEFAULT_ORDERING} orders {effect}: they need {told_difference(score)}; "
        f"{constrained:.1%} of the sets with two labels or more have an edge."
    )


def _choice_sentences(
    chosen: Candidate | None, default: OrderingScore | None, ordering: str, method: str, n_trials: int
) -> list[str]:
    if default is None:
        return []
    tried = f"{n_trials} other threshold{'s' if n_trials != 1 else ''}"
    if chosen is None:
        advised = f"; random orders (--method {method}) are the safer choice" if ordering == BASELINE_ORDERING else ""
        sentence = f"No tested order helps, at the given thresholds or at {tried}{advised}."
        return [sentence, "Expect no gain from orders; the size and the constraint matter more."]
    caveat = (
        "The texts were not used: with a model that reads them, the order may matter less, or another order may be "
        f"better. Also train with --method {'random' if method != 'random' else 'setaug'}, and compare."
    )
    if chosen.trial is None and ordering == DEFAULT_ORDERING:
        return [f"No other ordering and none of {tried} is clearly better.", caveat]
    start = "What helps more" if has_gain(default) else "What helps"
    how = f"{ordering} orders ({ORDERINGS[ordering].help})"
    if chosen.trial is None:
        return [f"{start}: {how}, with --method {method}: {told_difference(chosen.score)}.", caveat]
    trial = chosen.trial
    return [
        f"{start}: {how} with {told_thresholds(trial.min_pmi, trial.min_ratio)}: {trial.n_edges:,} edges, "
        f"{trial.constrained:.1%} of the sets, {told_difference(chosen.score)}.",
        caveat,
    ]


def _size_sentence(sizes: Mapping[int, int]) -> str:
    if len(sizes) == 1:
        return f"Size: every set has {next(iter(sizes))} labels, so the size is uninformative; use --no-size."
    common = max(sizes, key=lambda size: sizes[size])
    share = sizes[common] / sum(sizes.values())
    return (
        f"Size: sets have {min(sizes)} to {max(sizes):,} labels, most often {common} ({share:.0%}). "
        "If written first, the size tells the model when to stop: expect a gain with the constraint, and no gain or a "
        "loss without it."
    )


def _constraint_sentence(share_unseen: float) -> str:
    start = "Constraint (the default of setaug predict): no duplicate or invented labels, so expect a gain"
    if share_unseen < _RARE:
        share = f"only {share_unseen:.1%}" if share_unseen >= 0.0005 else "almost none" if share_unseen else "none"
        return f"{start}; {share} of the labels in held-out sets occur in no other set."
    return (
        f"{start}; but {share_unseen:.1%} of the labels in held-out sets occur in no other set, and cannot be "
        "predicted unless they are listed (--vocabulary FILE) or the vocabulary is open (--vocabulary open)."
    )
