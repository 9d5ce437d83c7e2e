"""The variational view (section 3.1, appendix H), measured: TSAMPLE as a proposal, and its bound as an objective."""

from setaug.experiments.plots import Panel, Series, spread
from setaug.experiments.simulation.design import PROPOSALS, SAMPLES, Check, Finding, Rows, are_below
from setaug.experiments.simulation.set_overlap import ADDED, ORDERINGS, paired_cell, paired_values

_OBJECTIVES = ("plain", "elbo", "iwelbo")
_MODELS = {
    "Trained on the given and 2 topological orders": ("topological", "plain"),
    "Trained on topological orders only": ("topological", "elbo"),
    "Trained on random orders": ("random", "plain"),
}
"""The models whose likelihood is bounded: training orders and objective."""


def _panels_proposals(rows: Rows) -> list[Panel]:
    panels = []
    for title, (ordering, objective) in _MODELS.items():
        exact = paired_values(rows, ordering, "likelihood", "exact", objective=objective)
        series = []
        for name in PROPOSALS:
            paths = {str(n): ("bound", name, str(n)) for n in SAMPLES} | {"∞": ("allowed", name)}
            gaps = {}
            for samples, path in paths.items():
                bits = paired_values(rows, ordering, "likelihood", *path, objective=objective)
                gaps[samples] = [cost - least for cost, least in zip(bits, exact, strict=True)]
            series.append(Series(f"{name} proposal", gaps))
        panels.append(Panel(title=title, x="orders drawn, K", y="exact - bound (bits per set)", series=series))
    return panels


def _checks_proposals(rows: Rows) -> list[Check]:
    found = []
    for panel in _panels_proposals(rows):
        tsample, uniform = (series.points for series in panel.series)
        found += [
            Check(
                f"{panel.title.lower()}, K = {samples}: TSAMPLE's bound is tighter than that of uniform orders",
                are_below(tsample[samples], uniform[samples]),
                f"gap {spread(tsample[samples])} against {spread(uniform[samples])} bits",
            )
            for samples in map(str, SAMPLES)
        ]
    return found


def _panels_objectives(rows: Rows) -> list[Panel]:
    def panel(title: str, y: str, *path: str) -> Panel:
        series = [
            Series(
                f"{ordering} orders",
                {name: paired_values(rows, ordering, *path, objective=name) for name in _OBJECTIVES},
            )
            for ordering in ORDERINGS
        ]
        return Panel(title=title, x="objective", y=y, series=series, are_bars=True)

    return [
        panel("Likelihood of the set, over all its orders", "bits per test set", "likelihood", "exact"),
        panel("Greedy, constrained to sets", "Jaccard, test sets", "decodings", "constrained greedy", "jaccard"),
    ]


def _checks_objectives(rows: Rows) -> list[Check]:
    found = []
    for ordering in ORDERINGS:
        bits = {name: paired_values(rows, ordering, "likelihood", "exact", objective=name) for name in _OBJECTIVES}
        for other, is_control in (("elbo", False), ("plain", True)):
            claim = f"{ordering} orders: iwelbo makes test sets more likely than {other}"
            evidence = f"{spread(bits['iwelbo'])} against {spread(bits[other])} bits per set"
            found.append(Check(claim, are_below(bits["iwelbo"], bits[other]), evidence, is_control))
    return found


PROPOSAL_STUDY = Finding(
    help="topological against uniform orders as a proposal for the likelihood of a set",
    title="TSAMPLE is the better proposal for the likelihood of a set",
    claim="TSAMPLE is a richer proposal distribution than uniform orders (section 3.1; no number is given).",
    cells=lambda scale, seed: [
        paired_cell(scale, seed, ordering, ADDED[-1], objective) for ordering, objective in _MODELS.values()
    ],
    panels=_panels_proposals,
    checks=_checks_proposals,
)
OBJECTIVE_STUDY = Finding(
    help="training on bounds of the likelihood of a set",
    title="The importance-weighted bound is the better training objective",
    claim="In practice, k samples from the proposal optimise a weighted bound (section 3.1; no number is given).",
    cells=lambda scale, seed: [
        paired_cell(scale, seed, ordering, ADDED[-1], objective) for ordering in ORDERINGS for objective in _OBJECTIVES
    ],
    panels=_panels_objectives,
    checks=_checks_objectives,
)
