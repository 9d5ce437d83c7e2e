"""Finding 6: the size in front of the labels, where the text determines it."""

from setaug.experiments.cells import Cell
from setaug.experiments.plots import Panel, Series, spread
from setaug.experiments.simulation.design import POINT, Check, Finding, Rows, Scale, are_below, make_cell

_SIZED = {"with the size": True, "without": False}
_PAPER = {"jaccard": (0.4613, 0.4054), "right_size": (0.7064, 0.2745)}
_DECODINGS = {"greedy": "greedy, as text", "random": "sampled, as text", "constrained greedy": "greedy, constrained"}


def _cell(scale: Scale, seed: int, *, size: bool) -> Cell:
    data = {"max_size": 6, "words_per_label": 3, "concentration": 0.3}
    return make_cell("sizes", scale, seed, data, {"ordering": "random", "n_orders": 2, "size": size})


def _values(rows: Rows, name: str, *path: str) -> list[float]:
    return rows.values(lambda scale, seed: _cell(scale, seed, size=_SIZED[name]), "decodings", *path)


def _panels(rows: Rows) -> list[Panel]:
    def panel(title: str, y: str, measure: str) -> Panel:
        series = [
            Series(
                name,
                {shown: _values(rows, name, way, measure) for way, shown in _DECODINGS.items()},
                paper={_DECODINGS["greedy"]: paper},
            )
            for name, paper in zip(_SIZED, _PAPER[measure], strict=True)
        ]
        return Panel(title=title, x="decoding", y=y, series=series, are_bars=True, digits=3)

    return [
        panel("Overlap", "Jaccard, test sets", "jaccard"),
        panel("Length", "share of outputs of the right length", "right_size"),
    ]


def _checks(rows: Rows) -> list[Check]:
    def check(claim: str, way: str, measure: str, *, is_control: bool = False) -> Check:
        one, other = (_values(rows, name, way, measure) for name in _SIZED)
        paper = "" if is_control else f" (paper: {_PAPER[measure][0]} against {_PAPER[measure][1]})"
        evidence = f"{spread(one, 3)} against {spread(other, 3)}{paper}"
        return Check(claim, are_below(other, one, by=POINT), evidence, is_control)

    return [
        check("writing the size gives a higher overlap (Jaccard)", "greedy", "jaccard"),
        check("writing the size gives a higher share of the right length", "greedy", "right_size"),
        check("the same holds for the right length of sampled sets", "random", "right_size", is_control=True),
    ]


FINDING_6 = Finding(
    help="with and without the size in front",
    title="Models use the size that they write first",
    claim="With the size Jaccard 46.1 against 40.5, and 70.6 % against 27.5 % of outputs have the right length.",
    cells=lambda scale, seed: [_cell(scale, seed, size=size) for size in _SIZED.values()],
    panels=_panels,
    checks=_checks,
)
