"""Topological against random orders in two more settings: larger blocks, and no positions (section 4.2.3)."""

from typing import Any

from setaug.experiments.plots import Panel, Series, spread
from setaug.experiments.simulation.design import POINT, Check, Finding, Rows, are_below
from setaug.experiments.simulation.set_overlap import ADDED, ORDERINGS, paired_cell, paired_values

_GREEDY = ("decodings", "greedy", "jaccard")
_MEASURES = {
    "Orders trained on": ("perplexity per label", ("train_perplexity",)),
    "Greedy, as text": ("Jaccard, test sets", _GREEDY),
    "Likelihood of a set, over all its orders": ("bits per test set", ("likelihood", "exact")),
}
_BLOCK_SIZE = 3


def _panels(rows: Rows, added_orders: tuple[int, ...], **options: Any) -> list[Panel]:
    panels = []
    for title, (y, path) in _MEASURES.items():
        series = [
            Series(
                f"{ordering} orders",
                {f"{100 * n} %": paired_values(rows, ordering, *path, added=n, **options) for n in added_orders},
            )
            for ordering in ORDERINGS
        ]
        panels.append(Panel(title=title, x="orders added to each given one", y=y, series=series))
    return panels


def _checks(rows: Rows, **options: Any) -> list[Check]:
    def both(*path: str) -> tuple[list[float], list[float]]:
        return paired_values(rows, "topological", *path, **options), paired_values(rows, "random", *path, **options)

    lower, higher = both("train_perplexity")
    better, worse = both(*_GREEDY)
    none = paired_values(rows, "random", *_GREEDY, added=0, **options)
    shorter, longer = both("likelihood", "exact")
    return [
        Check(
            "topological orders give a lower training perplexity than random ones",
            are_below(lower, higher),
            f"{spread(lower)} against {spread(higher)} with 200 % added",
        ),
        Check(
            "a higher overlap than random ones (greedy)",
            are_below(worse, better, by=POINT),
            f"Jaccard {spread(better, 3)} against {spread(worse, 3)} with 200 % added",
        ),
        Check(
            "a higher overlap than the given order alone (greedy)",
            are_below(none, better, by=POINT),
            f"Jaccard {spread(better, 3)} against {spread(none, 3)}",
        ),
        Check(
            "they make the test sets themselves more likely",
            are_below(shorter, longer),
            f"{spread(shorter)} against {spread(longer)} bits per set; the process itself has "
            f"{spread(paired_values(rows, 'random', 'likelihood', 'truth', **options))}",
            is_control=True,
        ),
    ]


LARGER_BLOCKS = Finding(
    help="Finding 4 in blocks of 3",
    title="Topological orders lead to higher set overlap in larger blocks",
    claim="Trends as in Finding 4 hold for larger blocks (no value is given).",
    cells=lambda scale, seed: [
        paired_cell(scale, seed, "random", 0, block_size=_BLOCK_SIZE),
        *(
            paired_cell(scale, seed, ordering, added, block_size=_BLOCK_SIZE)
            for ordering in ORDERINGS
            for added in ADDED[1:]
        ),
    ],
    panels=lambda rows: _panels(rows, ADDED, block_size=_BLOCK_SIZE),
    checks=lambda rows: _checks(rows, block_size=_BLOCK_SIZE),
)
NO_POSITIONS = Finding(
    help="Finding 4 without position embeddings",
    title="Topological orders help without position embeddings, too",
    claim="SETAUG is helpful even when position embeddings are disabled (section 4.2.3; no value is given).",
    cells=lambda scale, seed: [
        paired_cell(scale, seed, "random", 0, positions=False),
        *(paired_cell(scale, seed, ordering, ADDED[-1], positions=False) for ordering in ORDERINGS),
    ],
    panels=lambda rows: _panels(rows, (0, ADDED[-1]), positions=False),
    checks=lambda rows: _checks(rows, positions=False),
)
