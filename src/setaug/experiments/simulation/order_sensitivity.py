"""Findings 1 to 3: the perplexity of labels in an order other than that of training."""

from itertools import pairwise
from typing import Any

from setaug.experiments.cells import Cell
from setaug.experiments.plots import Panel, Series, spread
from setaug.experiments.simulation.design import SHUFFLES, Check, Finding, Rows, Scale, are_below, make_cell

N_BLOCKS = {1: 8, 2: 4, 3: 3, 4: 2}
"""Blocks per set, by block size: 8 or 9 labels in all."""
AUGMENTED = (2, 4)
"""The block sizes for which random orders are added."""
_SORTABLE = (3, 4)
"""Block sizes whose prefix has an order: sorted as in the paper, or unsorted as a control."""


def block_cell(
    scale: Scale, seed: int, block_size: int, added: int = 0, *, positions: bool = True, sort_prefix: bool = True
) -> Cell:
    """Return a training on blocks in their own order, and some random orders."""
    data: dict[str, Any] = {"n_words": scale.n_words, "n_blocks": N_BLOCKS[block_size], "block_size": block_size}
    data |= {"concentration": 0.3, "sort_prefix": sort_prefix}
    orders = {"ordering": "random", "n_orders": added, "size": False}
    model = scale.model if positions else f"{scale.model}-no-positions"
    return make_cell("blocks", scale, seed, data, orders, model=model)


def _values(rows: Rows, share: int, *args: Any, **options: Any) -> list[float]:
    return rows.values(lambda scale, seed: block_cell(scale, seed, *args, **options), "perplexity", str(share))


def _ratios(rows: Rows, *args: Any, **options: Any) -> list[float]:
    """Return the perplexity of shuffled labels over that of the training order."""
    kept, mixed = (_values(rows, share, *args, **options) for share in (0, 100))
    return [after / before for before, after in zip(kept, mixed, strict=True)]


def _panel(title: str, x: str, series: list[Series]) -> Panel:
    return Panel(title=title, x=x, y="perplexity per label", series=series, is_log=True)


def _panels_1(rows: Rows) -> list[Panel]:
    series = [
        Series(f"blocks of {size}", {str(share): _values(rows, share, size) for share in SHUFFLES}) for size in N_BLOCKS
    ]
    for size in _SORTABLE:
        points = {str(share): _values(rows, share, size, sort_prefix=False) for share in SHUFFLES}
        series.append(Series(f"blocks of {size}, prefix not sorted", points, is_dashed=True))
    return [_panel("Trained on one order, tested on another", "labels shuffled at test time (%)", series)]


def _checks_1(rows: Rows) -> list[Check]:
    ratios = {size: _ratios(rows, size) for size in N_BLOCKS}
    unsorted = {size: _ratios(rows, size, sort_prefix=False) for size in _SORTABLE}
    evidence = ", ".join(f"{spread(values)} for blocks of {size}" for size, values in ratios.items())
    rises = all(
        are_below(less, more)
        for size in (2, 3, 4)
        for less, more in pairwise(_values(rows, share, size) for share in SHUFFLES)
    )
    stays = all(abs(value - 1) < 0.03 for value in ratios[1])
    others = [max(each) for each in zip(*(ratios[size] for size in (1, 3, 4)), strict=True)]
    return [
        Check(
            "perplexity rises with shuffling for blocks of 2, 3 and 4, and is constant for blocks of 1 (within 3 %)",
            rises and stays,
            f"perplexity, shuffled over not: {evidence}",
        ),
        Check(
            "most for blocks of 2",
            are_below(others, ratios[2]),
            f"{spread(ratios[2])} times, the largest of the others {spread(others)}",
        ),
        Check(
            "larger blocks are less sensitive if their prefix is not sorted",
            all(are_below(unsorted[size], ratios[size]) for size in _SORTABLE),
            ", ".join(f"{spread(values)} times for blocks of {size}" for size, values in unsorted.items()),
            is_control=True,
        ),
    ]


def _order_panel(rows: Rows, block_size: int, *, blind: bool) -> Panel:
    series = []
    for positions in (True, False) if blind else (True,):
        name = ("positions, " if positions else "no positions, ") if blind else ""
        for share, order in ((100, "all labels shuffled"), (0, "blocks as they are")):
            points = {
                str(added): _values(rows, share, block_size, added, positions=positions)
                for added in rows.scale.added_orders
            }
            series.append(Series(name + order, points, is_dashed=not share))
    return _panel(f"Blocks of {block_size}", "random orders added to each training example", series)


def _cells_2(scale: Scale, seed: int, *, positions: bool = True) -> list[Cell]:
    return [
        block_cell(scale, seed, size, added, positions=positions) for size in AUGMENTED for added in scale.added_orders
    ]


def _checks_2(rows: Rows) -> list[Check]:
    added_orders = rows.scale.added_orders
    found = []
    for size in AUGMENTED:
        ratios = {added: _ratios(rows, size, added) for added in added_orders}
        shuffled = {added: _values(rows, 100, size, added) for added in added_orders}
        found += [
            Check(
                f"blocks of {size}: more random orders reduce the sensitivity",
                all(are_below(more, fewer) for fewer, more in pairwise(ratios.values())),
                f"perplexity, shuffled over not: {_by_orders(ratios)}",
            ),
            Check(
                f"blocks of {size}: the perplexity of shuffled labels keeps falling",
                all(are_below(more, fewer) for fewer, more in pairwise(shuffled.values())),
                _by_orders(shuffled),
            ),
        ]
        falls = [
            [(before - after) / (more - fewer) for before, after in zip(shuffled[fewer], shuffled[more], strict=True)]
            for fewer, more in pairwise(added_orders)
        ]
        if len(falls) > 1:
            found.append(
                Check(
                    f"blocks of {size}: no sign of flattening (the last order added brings at least half of the first)",
                    are_below([fall / 2 for fall in falls[0]], falls[-1]),
                    f"it falls by {spread(falls[0])} with the first order, by {spread(falls[-1])} with the last",
                )
            )
    return found


def _by_orders(values: dict[int, list[float]]) -> str:
    return ", ".join(f"{spread(each)} with {added} added" for added, each in values.items())


def _checks_3(rows: Rows) -> list[Check]:
    found = []
    none, *_, most = rows.scale.added_orders
    for size in AUGMENTED:
        placed, blind = (_values(rows, 100, size, none, positions=known) for known in (True, False))
        augmented = _values(rows, 100, size, most)
        found += [
            Check(
                f"blocks of {size}: without positions the baseline is less sensitive to shuffling",
                are_below(blind, placed),
                f"perplexity of shuffled labels {spread(blind)} without, {spread(placed)} with positions",
            ),
            Check(
                f"blocks of {size}: random orders do at least as much as removing the positions",
                not any(b < a for a, b in zip(augmented, blind, strict=True)),
                f"{spread(augmented)} with positions and {most} random orders, {spread(blind)} without either",
            ),
        ]
    return found


FINDING_1 = Finding(
    help="shuffled labels cost a model more, but only if labels depend on each other",
    title="Models are sensitive to order, but only where labels depend on each other",
    claim="Perplexity rises as the test order is shuffled, most for blocks of 2, hardly for blocks of 1.",
    cells=lambda scale, seed: [
        *(block_cell(scale, seed, size) for size in N_BLOCKS),
        *(block_cell(scale, seed, size, sort_prefix=False) for size in _SORTABLE),
    ],
    panels=_panels_1,
    checks=_checks_1,
)
FINDING_2 = Finding(
    help="less so after training with random orders",
    title="Training with random orders makes a model less sensitive to order",
    claim="The more random orders are added, the lower the perplexity of shuffled labels; no sign of flattening.",
    cells=_cells_2,
    panels=lambda rows: [_order_panel(rows, size, blind=False) for size in AUGMENTED],
    checks=_checks_2,
)
FINDING_3 = Finding(
    help="the same without position embeddings",
    title="Random orders have the effect of removing position embeddings",
    claim="Disabling position embeddings helps the baseline; adding random orders soon has the same effect.",
    cells=lambda scale, seed: _cells_2(scale, seed) + _cells_2(scale, seed, positions=False),
    panels=lambda rows: [_order_panel(rows, size, blind=True) for size in AUGMENTED],
    checks=_checks_3,
)
