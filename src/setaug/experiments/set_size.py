"""Finding 6: the size in front of the labels, where it follows from the text."""

from setaug.experiments.cells import Cell
from setaug.experiments.design import Finding, Rows, Scale, make_cell
from setaug.experiments.report import POINT, Check, Panel, Series, are_below, spread

_SIZED = {"with the size": True, "without": False}
_PAPER_SIZES = {
    "jaccard": {"with the size": 0.4613, "without": 0.4054},
    "right_size": {"with the size": 0.7064, "without": 0.2745},
}


def sized_cell(scale: Scale, seed: int, *, size: bool) -> Cell:
    """Train on sets whose size follows from the text, with or without writing it."""
    data = {"max_size": 6, "words_per_label": 3, "concentration": 0.3}
    return make_cell("sizes", scale, seed, data, {"ordering": "random", "n_orders": 2, "size": size})


def _sized_values(rows: Rows, scale: Scale, name: str, *path: str) -> list[float]:
    return rows.values(lambda seed: sized_cell(scale, seed, size=_SIZED[name]), "decodings", *path)


def _panels_6(scale: Scale, rows: Rows) -> list[Panel]:
    def panel(title: str, y: str, measure: str) -> Panel:
        ways = {"greedy": "greedy, as text", "random": "sampled, as text", "constrained greedy": "greedy, constrained"}
        series = [
            Series(
                name,
                {shown: _sized_values(rows, scale, name, way, measure) for way, shown in ways.items()},
                paper={ways["greedy"]: _PAPER_SIZES[measure][name]},
            )
            for name in _SIZED
        ]
        return Panel(title=title, x="decoding", y=y, series=series, are_bars=True, digits=3)

    return [
        panel("Overlap", "Jaccard, test sets", "jaccard"),
        panel("Length", "share of outputs of the right length", "right_size"),
    ]


def _checks_6(scale: Scale, rows: Rows) -> list[Check]:
    found = []
    for measure, what in (("jaccard", "overlap (Jaccard)"), ("right_size", "share of the right length")):
        one, other = (_sized_values(rows, scale, name, "greedy", measure) for name in _SIZED)
        paper = " against ".join(map(str, _PAPER_SIZES[measure].values()))
        evidence = f"{spread(one, 3)} against {spread(other, 3)} (paper: {paper})"
        found.append(Check(f"writing the size gives a higher {what}", are_below(other, one, by=POINT), evidence))
    one, other = (_sized_values(rows, scale, name, "random", "right_size") for name in _SIZED)
    evidence = f"{spread(one, 3)} against {spread(other, 3)}"
    statement = "so it does for the share of the right length where sets are sampled"
    return [*found, Check(statement, are_below(other, one, by=POINT), evidence, is_control=True)]


FINDING_6 = Finding(
    title="Models use the size that they write first",
    claim="With the size Jaccard 46.1 against 40.5, and 70.6 % against 27.5 % of outputs have the right length.",
    cells=lambda scale, seed: [sized_cell(scale, seed, size=size) for size in _SIZED.values()],
    panels=_panels_6,
    checks=_checks_6,
)
